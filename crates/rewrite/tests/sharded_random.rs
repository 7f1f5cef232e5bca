//! Random programs that a mesh divides: `local-sums` keeps their values, and what devices exchange
//! does not grow.

use std::fmt::Write as _;

use crate::common::values::{difference, evaluated};
use crate::common::{changes, module, optimized, passes, short};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_interp::inputs::InputKind;
use tilewright_rewrite::Options;

/// The axes that may divide a dim of 8, in Shardy's words.
const AXES: [&str; 6] =
    ["", "", r#"\"data\""#, r#"\"model\""#, r#"\"data\", \"model\""#, r#"\"data\":(1)2"#];

fn below(random: &mut ChaCha8Rng, most: usize) -> usize {
    usize::try_from(random.next_u32()).unwrap() % most
}

/// Returns the text of a sum along random dims of an array with random axes, and of what is computed
/// from it: reshapes, transposes, products, and sums of some of the dims that are left.
fn program(seed: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let rank = 2 + below(&mut random, 3);
    let mut free = [true; 3];
    let mut axes = Vec::new();
    for _ in 0..rank {
        let choice = below(&mut random, AXES.len());
        let uses: &[usize] = match choice {
            2 => &[0, 1],
            3 => &[2],
            4 => &[0, 1, 2],
            5 => &[0],
            _ => &[],
        };
        let fits = uses.iter().all(|&axis| free[axis]);
        uses.iter().filter(|_| fits).for_each(|&axis| free[axis] = false);
        axes.push(format!("{{{}}}", if fits { AXES[choice] } else { "" }));
    }
    let mut text = format!(
        "HloModule m, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"data\"=4, \"model\"=2]>}}}}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}

ENTRY main {{
  x = f32[{}] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{}]>\"}}
  s = f32[8] parameter(1)
  zero = f32[] constant(0)
",
        vec!["8"; rank].join(","),
        axes.join(", ")
    );
    let mut dims = vec![8usize; rank];
    let mut last = "x".to_owned();
    for step in 0..2 + below(&mut random, 4) {
        let shape =
            |dims: &[usize]| dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let name = format!("v{step}");
        match below(&mut random, if step == 0 { 1 } else { 5 }) {
            0 if !dims.is_empty() => {
                let mut along: Vec<usize> =
                    (0..dims.len()).filter(|_| below(&mut random, 2) == 0).collect();
                if along.is_empty() {
                    along.push(0);
                }
                let kept = (0..dims.len())
                    .filter(|dim| !along.contains(dim))
                    .map(|dim| dims[dim])
                    .collect();
                let along: Vec<String> = along.iter().map(ToString::to_string).collect();
                dims = kept;
                let _ = writeln!(
                    text,
                    "  {name} = f32[{}] reduce({last}, zero), dimensions={{{}}}, to_apply=add",
                    shape(&dims),
                    along.join(",")
                );
            }
            1 if dims.last() == Some(&8) => {
                dims.pop();
                dims.extend([2, 4]);
                let _ = writeln!(text, "  {name} = f32[{}] reshape({last})", shape(&dims));
            }
            2 if dims.len() > 1 => {
                dims.rotate_left(1);
                let order: Vec<String> =
                    (0..dims.len()).map(|dim| ((dim + 1) % dims.len()).to_string()).collect();
                let _ = writeln!(
                    text,
                    "  {name} = f32[{}] transpose({last}), dimensions={{{}}}",
                    shape(&dims),
                    order.join(",")
                );
            }
            3 if dims.last() == Some(&8) => {
                let own = dims.len() - 1;
                let _ = writeln!(
                    text,
                    "  b{step} = f32[{0}] broadcast(s), dimensions={{{own}}}\n  {name} = f32[{0}] multiply({last}, b{step})",
                    shape(&dims)
                );
            }
            _ => {
                let _ = writeln!(text, "  {name} = f32[{}] negate({last})", shape(&dims));
            }
        }
        last = name;
    }
    let shape: Vec<String> = dims.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "  ROOT out = f32[{}] abs({last})\n}}", shape.join(","));
    text
}

/// Returns options for the pass on a machine where a round costs so much that every one counts.
fn options() -> Options {
    let mut options = passes(&["local-sums", "dce"], "linear", false);
    (options.target.round_cycles, options.target.link_bytes_per_cycle) = (1e6, 1e-3);
    options
}

#[test]
fn values_stay_and_traffic_does_not_grow() {
    let mut fired = 0;
    for seed in 0..300 {
        let text = program(seed);
        let before = module(&text);
        let after = optimized(&before, &options());
        let [given, left] = after.report.traffic.unwrap();
        assert!(!left.exceeds(&given, &options().target), "{text}\n{}", short(&after.module));
        if changes(&after, "local-sums") == 0 {
            continue;
        }
        fired += 1;
        for kind in [InputKind::Normal, InputKind::Offset] {
            let [expected, actual] =
                [&before, &after.module].map(|m| evaluated(m, seed, kind).unwrap());
            let found = difference(&before, kind, &expected, &actual);
            assert_eq!(found, None, "{text}\n{}", short(&after.module));
        }
    }
    assert!(fired > 60, "the pass fired on {fired} programs");
}
