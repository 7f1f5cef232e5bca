//! Random programs that say themselves what devices combine: `all-reduce` keeps their values, and
//! what devices exchange does not grow.

use std::fmt::Write as _;

use crate::common::values::{difference, evaluated_like};
use crate::common::{changes, module, optimized, passes, short};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_interp::inputs::InputKind;
use tilewright_rewrite::Options;

const GROUPS: [&str; 4] = ["{{0,1,2,3}}", "{{0,1},{2,3}}", "{{0,2},{1,3}}", "{{0},{1},{2},{3}}"];

const HEAD: &str = "HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT most = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  q = f32[8] parameter(2)
  c = f32[8] constant({1,2,3,4,5,6,7,8})
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
";

/// Writes programs on arrays of 32 and of 8 elements.
struct Writer {
    random: ChaCha8Rng,
    text: String,
    large: Vec<String>,
    small: Vec<String>,
}

impl Writer {
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.random.next_u32()).unwrap() % most
    }

    /// Returns one of the values of a size, mostly a late one.
    fn pick(&mut self, is_large: bool) -> String {
        let count = if is_large { self.large.len() } else { self.small.len() };
        let back = self.below(count.min(3));
        let all = if is_large { &self.large } else { &self.small };
        all[count - 1 - back].clone()
    }

    fn step(&mut self, step: usize) {
        let name = format!("v{step}");
        let is_large = self.below(3) > 0;
        let shape = if is_large { "f32[4,8]" } else { "f32[8]" };
        let of = self.pick(is_large);
        let other = self.pick(is_large);
        let is_max = self.below(3) == 0;
        let (by, init) = if is_max { ("max", "least") } else { ("add", "zero") };
        let (is_large, line) = match self.below(8) {
            0..3 => {
                let groups = GROUPS[self.below(GROUPS.len() + 4).saturating_sub(4)];
                let of_all = format!(
                    "{shape} all-reduce({of}), channel_id={}, replica_groups={groups}, \
                     use_global_device_ids=true, to_apply={by}",
                    step + 1
                );
                (is_large, of_all)
            }
            3 => {
                let of = self.pick(true);
                (false, format!("f32[8] reduce({of}, {init}), dimensions={{0}}, to_apply={by}"))
            }
            4 => {
                let of = self.pick(false);
                (true, format!("f32[4,8] broadcast({of}), dimensions={{1}}"))
            }
            5 => (is_large, format!("{shape} tanh({of})")),
            6 => {
                let op = ["add", "subtract", "maximum"][self.below(3)];
                (is_large, format!("{shape} {op}({of}, {other})"))
            }
            _ => (is_large, format!("{shape} multiply({of}, {other})")),
        };
        let _ = writeln!(self.text, "  {name} = {line}");
        if is_large { self.large.push(name) } else { self.small.push(name) }
    }
}

fn program(seed: u64) -> String {
    let names = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    let mut writer = Writer {
        random: ChaCha8Rng::seed_from_u64(seed),
        text: HEAD.to_owned(),
        large: names(&["x", "y"]),
        small: names(&["c", "q"]),
    };
    let steps = 4 + writer.below(8);
    (0..steps).for_each(|step| writer.step(step));
    let (large, small) = (writer.pick(true), writer.pick(false));
    let _ = writeln!(writer.text, "  ROOT out = (f32[4,8], f32[8]) tuple({large}, {small})\n}}");
    writer.text
}

/// Returns options for the pass on a machine where a round costs so much that every one counts.
fn options() -> Options {
    let mut options = passes(&["all-reduce", "dce"], "linear", false);
    (options.target.round_cycles, options.target.link_bytes_per_cycle) = (1e6, 1e-3);
    options
}

#[test]
fn values_stay_and_traffic_does_not_grow() {
    let mut fired = 0;
    for seed in 0..400 {
        let text = program(seed);
        let before = module(&text);
        let after = optimized(&before, &options());
        if let [Some(given), Some(left)] = after.report.traffic.map_or([None; 2], |t| t.map(Some)) {
            assert!(!left.exceeds(&given, &options().target), "{text}\n{}", short(&after.module));
        }
        if changes(&after, "all-reduce") == 0 {
            continue;
        }
        fired += 1;
        for kind in [InputKind::Normal, InputKind::Offset] {
            let [expected, actual] =
                [&before, &after.module].map(|m| evaluated_like(m, &before, seed, kind).unwrap());
            let found = difference(&before, kind, &expected, &actual);
            assert_eq!(found, None, "{text}\n{}", short(&after.module));
        }
    }
    assert!(fired > 100, "the pass fired on {fired} programs");
}
