//! Sums pulled apart: where dims lie in an index, what products are of, and how much
//! at once.

use crate::common::{module, passes, short, target};
use tilewright_ir::{InstId, Module, Verified};
use tilewright_rewrite::analysis::index_range::{Cuts, IndexRange, index_ranges, joined, sizes};
use tilewright_rewrite::cost::Memo;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::sums::factor::{Sum, share};
use tilewright_rewrite::sums::product::{Law, Product};
use tilewright_rewrite::sums::sign::is_not_negative;
use tilewright_rewrite::{Context, Options, module_cost, optimize, registry};

fn range(low: i64, high: i64) -> IndexRange {
    IndexRange { low, high }
}

#[track_caller]
fn named(module: &Module, name: &str) -> InstId {
    let entry = module.entry().expect("an entry");
    let found = module.instructions(entry).find(|&id| module.name_of(id) == name);
    found.expect("an instruction of this name")
}

// --- Spans ---

#[test]
fn dims_lie_one_below_the_other() {
    assert_eq!(index_ranges(&[3, 1, 4]), Some(vec![range(4, 12), range(4, 4), range(1, 4)]));
    assert_eq!(index_ranges(&[]), Some(vec![]));
    assert_eq!(index_ranges(&[3, 0]), None, "there is no index");
    assert_eq!(index_ranges(&[i64::MAX, 2]), None, "an index past 64 bits");
    assert_eq!(index_ranges(&[-1, 2]), None);
    assert_eq!(sizes(&[range(4, 12), range(4, 4), range(1, 4)]).as_slice(), [3, 1, 4]);
}

#[test]
fn neighbours_are_joined() {
    assert_eq!(joined([range(4, 12), range(1, 4), range(4, 4)]), [range(1, 12)]);
    assert_eq!(joined([range(12, 24), range(1, 4)]), [range(1, 4), range(12, 24)]);
    assert_eq!(joined([range(6, 6)]), []);
}

#[test]
fn spans_are_apart_where_neither_moves_the_other() {
    // [2,3,4]: each dim and every other.
    let dims = index_ranges(&[2, 3, 4]).expect("ranges");
    for (i, a) in dims.iter().enumerate() {
        for (j, b) in dims.iter().enumerate() {
            assert_eq!(a.apart(*b), i != j, "{a:?} {b:?}");
        }
    }
    // 24 as [6,4] and as [4,6]: only the 2 at the end of one is within the other.
    assert!(!range(1, 4).apart(range(1, 6)));
    assert!(!range(4, 24).apart(range(1, 6)));
    assert!(!range(4, 24).apart(range(6, 24)));
    assert!(range(1, 2).apart(range(6, 24)));
    assert!(range(5, 5).apart(range(1, 24)), "one value is the same everywhere");
    // By counting: steps along a dim of size n at `low` change the other or not.
    let digit = |index: i64, of: IndexRange| index / of.low % of.size();
    let all: Vec<IndexRange> = [1, 2, 3, 4, 6, 8, 12, 24]
        .into_iter()
        .flat_map(|low| [1, 2, 3, 4, 6, 8, 12, 24].map(|high| range(low, high)))
        .filter(|s| s.high % s.low == 0)
        .collect();
    for &a in &all {
        for &b in all.iter().filter(|&&b| a.apart(b)) {
            for index in (0..24).filter(|&index| digit(index, a) + 1 < a.size()) {
                assert_eq!(digit(index, b), digit(index + a.low, b), "{a:?} {b:?} at {index}");
            }
        }
    }
}

#[test]
fn an_index_is_cut_where_ends_divide_each_other() {
    let cuts = |elements, ranges: &[IndexRange]| {
        Cuts::of(elements, ranges.iter().copied()).map(|cuts| cuts.digits())
    };
    assert_eq!(cuts(24, &[]), Some(vec![range(1, 24)]));
    assert_eq!(cuts(24, &[range(4, 12)]), Some(vec![range(12, 24), range(4, 12), range(1, 4)]));
    assert_eq!(cuts(24, &[range(1, 4), range(1, 6)]), None, "four does not divide six");
    assert_eq!(cuts(1, &[]), Some(vec![]));
}

// --- Products ---

/// The factors of the instruction `p`, as text: `/` divides, then name, ranges and
/// what it is converted to.
#[track_caller]
fn factors(body: &str) -> String {
    let module = module(&format!("HloModule m\nENTRY main {{\n{body}\n}}"));
    let product = Product::of(&module, named(&module, "p"), Law::Times).expect("a product");
    let factors = product.factors.iter().map(|factor| {
        let sign = if factor.divides { "/" } else { "" };
        let ranges = factor.ranges.iter().map(|s| format!("{}-{}", s.low, s.high));
        let ranges = ranges.collect::<Vec<_>>().join(",");
        let to = factor.convert.map_or_else(String::new, |to| format!(" as {to}"));
        format!("{sign}{}[{ranges}]{to}", module.name_of(factor.value))
    });
    let sign = if product.negative { "-" } else { "" };
    format!("{sign}{}", factors.collect::<Vec<_>>().join(" "))
}

#[test]
fn factors_of_products_and_quotients() {
    let of = factors(
        "x = f32[2,3] parameter(0)
         y = f32[2,3] parameter(1)
         s = f32[3] parameter(2)
         c = f32[] constant(2)
         ws = f32[2,3] broadcast(s), dimensions={1}
         wc = f32[2,3] broadcast(c), dimensions={}
         a = f32[2,3] divide(wc, y)
         b = f32[2,3] divide(x, a)
         n = f32[2,3] negate(b)
         ROOT p = f32[2,3] multiply(n, ws)",
    );
    // x / (2 / y) * s: a divisor of a divisor is back in the numerator.
    assert_eq!(of, "-x[3-6,1-3] /c[] y[3-6,1-3] s[1-3]");
}

#[test]
fn two_signs_are_none_and_a_square_has_two_factors() {
    let of = factors(
        "x = f32[5] parameter(0)
         n = f32[5] negate(x)
         ROOT p = f32[5] multiply(n, n)",
    );
    assert_eq!(of, "x[1-5] x[1-5]");
}

#[test]
fn factors_through_reshapes_lie_where_they_were() {
    let of = factors(
        "x = f32[2,12] parameter(0)
         s = f32[12] parameter(1)
         g = f32[2,4] parameter(2)
         ws = f32[2,12] broadcast(s), dimensions={1}
         y = f32[2,12] multiply(x, ws)
         cut = f32[2,4,3] reshape(y)
         wg = f32[2,4,3] broadcast(g), dimensions={0,1}
         ROOT p = f32[2,4,3] multiply(cut, wg)",
    );
    assert_eq!(of, "x[12-24,1-12] s[1-12] g[12-24,3-12]");
}

#[test]
fn conversions_are_seen_through_where_they_lose_nothing() {
    let of = factors(
        "x = bf16[6] parameter(0)
         y = f16[6] parameter(1)
         z = f64[6] parameter(2)
         i = s8[6] parameter(3)
         n = bf16[6] negate(x)
         fx = f32[6] convert(n)
         fy = f32[6] convert(y)
         fz = f32[6] convert(z)
         fi = f32[6] convert(i)
         a = f32[6] multiply(fx, fy)
         b = f32[6] multiply(fz, fi)
         ROOT p = f32[6] multiply(a, b)",
    );
    assert_eq!(of, "-x[1-6] as f32 y[1-6] as f32 fz[1-6] fi[1-6]");
}

#[test]
fn what_is_rounded_before_it_is_converted_is_one_factor() {
    let of = factors(
        "x = bf16[6] parameter(0)
         y = bf16[6] parameter(1)
         m = bf16[6] multiply(x, y)
         ROOT p = f32[6] convert(m)",
    );
    assert_eq!(of, "m[1-6] as f32");
}

#[test]
fn powers_of_two_without_signs_keep_what_negating_them_makes() {
    let of = factors(
        "x = f8e8m0fnu[6] parameter(0)
         n = f8e8m0fnu[6] negate(x)
         ROOT p = f32[6] convert(n)",
    );
    assert_eq!(of, "n[1-6] as f32");
}

#[test]
fn quotients_of_integers_are_one_factor() {
    let of = factors(
        "x = s32[6] parameter(0)
         y = s32[6] parameter(1)
         d = s32[6] divide(x, y)
         ROOT p = s32[6] multiply(d, x)",
    );
    assert_eq!(of, "d[1-6] x[1-6]");
}

#[test]
fn products_of_very_many_factors_are_left_whole() {
    let squares: String = (0..40)
        .map(|i| match i {
            0 => "m0 = f32[6] multiply(x, x)\n".to_owned(),
            i => format!("m{i} = f32[6] multiply(m{}, m{})\n", i - 1, i - 1),
        })
        .collect();
    let of =
        factors(&format!("x = f32[6] parameter(0)\n{squares}ROOT p = f32[6] multiply(m39, m39)"));
    assert_eq!(of, "p[1-6]");
}

// --- Sums ---

const ADD: &str = "add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}";

/// A module of sums, in a tuple.
fn of_sums(body: &str, results: &[String]) -> Verified {
    let shapes: Vec<&str> = results.iter().map(|_| "f32[3]").collect();
    let (shapes, results) = (shapes.join(", "), results.join(", "));
    module(&format!(
        "HloModule m\n{ADD}\nENTRY main {{\nzero = f32[] constant(0)\n{body}\n\
         ROOT out = ({shapes}) tuple({results})\n}}"
    ))
}

#[test]
fn a_way_that_cuts_a_factor_spoils_no_other() {
    // `y` comes from other dims, which the first stage of `b` and `c` would cut.
    let text = format!(
        "HloModule m\n{ADD}\nENTRY main {{
  x = f32[4,6,10] parameter(0)
  z = f32[6,4,10] parameter(1)
  s = f32[4] parameter(2)
  zero = f32[] constant(0)
  y = f32[4,6,10] reshape(z)
  ws = f32[4,6,10] broadcast(s), dimensions={{0}}
  p = f32[4,6,10] multiply(x, y)
  q = f32[4,6,10] multiply(x, ws)
  a = f32[10] reduce(p, zero), dimensions={{0,1}}, to_apply=add
  b = f32[10] reduce(q, zero), dimensions={{0,1}}, to_apply=add
  c = f32[4,10] reduce(x, zero), dimensions={{1}}, to_apply=add
  ROOT r = (f32[10], f32[10], f32[4,10]) tuple(a, b, c)
}}"
    );
    let module = module(&text);
    let sums =
        ["a", "b", "c"].map(|name| Sum::of(&module, named(&module, name), FloatMode::default()));
    let sums: Vec<Sum> = sums.into_iter().map(|sum| sum.expect("a sum")).collect();
    let forms = share(&sums, false);
    let is_formed: Vec<bool> = forms.iter().map(Option::is_some).collect();
    assert_eq!(is_formed, [false, true, true]);
    let after = optimize(module, &passes(&["factored-sums"], "tpu-like", false)).expect("a run");
    assert!(!after.report.unchanged, "{}", short(&after.module));
}

#[test]
fn dead_code_is_not_what_is_saved() {
    // `s` is so small that pulling it out costs more than it saves.
    let text = |dead: &str| {
        format!(
            "HloModule m\n{ADD}\nENTRY main {{
  x = f32[5,4] parameter(0)
  s = f32[5] parameter(1)
  zero = f32[] constant(0)
  ws = f32[5,4] broadcast(s), dimensions={{0}}
  p = f32[5,4] multiply(x, ws)
  {dead}
  a = f32[5] reduce(p, zero), dimensions={{1}}, to_apply=add
  b = f32[] reduce(x, zero), dimensions={{0,1}}, to_apply=add
  ROOT r = (f32[5], f32[]) tuple(a, b)
}}"
        )
    };
    let dead = "dead = f32[5] reduce(x, zero), dimensions={1}, to_apply=add
  deader = f32[] reduce(dead, zero), dimensions={0}, to_apply=add";
    for dead in ["", dead] {
        let options = passes(&["factored-sums"], "tpu-like", false);
        let after = optimize(module(&text(dead)), &options).expect("a run");
        let notes = &after.report.notes;
        assert!(notes.iter().any(|note| note.text.contains("would cost")), "{notes:?}");
        assert!(after.report.passes.iter().all(|report| report.changes == 0), "{notes:?}");
    }
}

/// Runs the pass once; returns the costs before and after, and the number of changes.
fn run_once(module: &mut Module, target_name: &str) -> (f64, f64, usize) {
    let target = target(target_name);
    let (options, memo) = (Options::new(target.clone()), Memo::default());
    let mut cx = Context::new(&options, &memo);
    let before = module_cost(module, &target).cycles;
    let mut run = |name: &str| {
        let pass = registry::pass(name).expect("a pass");
        pass.run(module, &mut cx).expect("edits that can be made")
    };
    let changes = run("factored-sums");
    run("dce");
    let longest = cx.notes.iter().map(|note| note.text.len()).max().unwrap_or(0);
    assert!(longest < 2000, "a note of {longest} bytes");
    (before, module_cost(module, &target).cycles, changes)
}

const MANY: usize = 10_000;

#[test]
fn ten_thousand_sums_over_one_array_take_seconds() {
    let mut body = String::from("x = f32[5,7,3] parameter(0)\n");
    for i in 0..MANY {
        body += &format!(
            "k{i} = f32[] constant({i})\nw{i} = f32[5,7,3] broadcast(k{i}), dimensions={{}}\n\
             p{i} = f32[5,7,3] multiply(x, w{i})\n\
             sum{i} = f32[3] reduce(p{i}, zero), dimensions={{0,1}}, to_apply=add\n"
        );
    }
    let results: Vec<String> = (0..MANY).map(|i| format!("sum{i}")).collect();
    let mut module = of_sums(&body, &results).into_inner();
    let (before, after, changes) = run_once(&mut module, "tpu-like");
    assert!(changes > 0 && after < before, "{changes} changes: {before} to {after}");
    let entry = module.entry().expect("an entry");
    let is_reduce = |&id: &InstId| module.opcode(id) == tilewright_ir::Opcode::Reduce;
    let reduces = module.instructions(entry).filter(is_reduce).count();
    assert!(reduces <= MANY / 100, "{reduces} sums are left");
}

#[test]
fn sums_over_ten_thousand_arrays_take_seconds() {
    let mut body =
        String::from("s = f32[3] parameter(0)\nw = f32[5,7,3] broadcast(s), dimensions={2}\n");
    let mut results = Vec::new();
    for i in 0..MANY {
        body += &format!(
            "x{i} = f32[5,7,3] parameter({})\np{i} = f32[5,7,3] multiply(x{i}, w)\n\
             a{i} = f32[3] reduce(p{i}, zero), dimensions={{0,1}}, to_apply=add\n\
             b{i} = f32[3] reduce(x{i}, zero), dimensions={{0,1}}, to_apply=add\n",
            i + 1
        );
        results.extend([format!("a{i}"), format!("b{i}")]);
    }
    let mut module = of_sums(&body, &results).into_inner();
    let (before, after, changes) = run_once(&mut module, "tpu-like");
    assert!(changes > 0 && after < before, "{changes} changes: {before} to {after}");
    let entry = module.entry().expect("an entry");
    let is_reduce = |&id: &InstId| module.opcode(id) == tilewright_ir::Opcode::Reduce;
    let reduces = module.instructions(entry).filter(is_reduce).count();
    assert_eq!(reduces, MANY, "one for each array");
}

#[test]
fn a_long_chain_with_a_reader_at_each_link_is_weighed_in_seconds() {
    let mut body = String::from("x0 = f32[700,300,3] parameter(0)\n");
    for i in 1..MANY {
        body += &format!(
            "x{i} = f32[700,300,3] negate(x{})\n\
             sum{i} = f32[3] reduce(x{i}, zero), dimensions={{0,1}}, to_apply=add\n",
            i - 1
        );
    }
    let results: Vec<String> = (1..MANY).map(|i| format!("sum{i}")).collect();
    let module = of_sums(&body, &results);
    assert!(module_cost(&module, &target("cpu")).cycles.is_finite());
}

#[test]
fn what_ten_thousand_sums_share_is_weighed_in_seconds() {
    let mut body = String::from(
        "x = f32[700,300,3] parameter(0)\nc = f32[3] parameter(1)\n\
         w = f32[700,300,3] broadcast(c), dimensions={2}\nd = f32[700,300,3] subtract(x, w)\n",
    );
    for i in 0..MANY {
        body += &format!(
            "p{i} = f32[700,300,3] negate(d)\n\
             sum{i} = f32[3] reduce(p{i}, zero), dimensions={{0,1}}, to_apply=add\n"
        );
    }
    let results: Vec<String> = (0..MANY).map(|i| format!("sum{i}")).collect();
    let module = of_sums(&body, &results);
    // Each sum reads d; d is stored once for all of them.
    let [own, shared] = [true, false].map(|fuses_shared| {
        let mut target = target("cpu");
        target.fuses_shared = fuses_shared;
        module_cost(&module, &target).cycles
    });
    // 630,000 numbers are 78,750 vectors, of which two are stored per cycle, and 2,520,000
    // bytes, of which six per cycle go to main memory and come back.
    assert!((shared - own - (39_375.0 + 2.0 * 420_000.0)).abs() < 1.0, "{own}, {shared}");
}

#[test]
fn what_is_known_not_to_be_negative() {
    let module = module(
        "HloModule signs
ENTRY main {
  x = f32[4] parameter(0)
  e = f32[4] exponential(x)
  a = f32[4] abs(x)
  square = f32[4] multiply(x, x)
  product = f32[4] multiply(e, a)
  cube = f32[4] multiply(square, x)
  half = f32[] constant(0.5)
  minus = f32[] constant(-0.5)
  halves = f32[4] broadcast(half), dimensions={}
  minuses = f32[4] broadcast(minus), dimensions={}
  quotient = f32[4] divide(product, halves)
  above = f32[4] maximum(x, halves)
  below = f32[4] minimum(x, halves)
  less = f32[4] subtract(e, halves)
  negated = f32[4] negate(e)
  one = (f32[4], f32[4], f32[4], f32[4]) tuple(product, cube, minuses, quotient)
  ROOT two = (f32[4], f32[4], f32[4], f32[4]) tuple(above, below, less, negated)
}",
    );
    for name in ["e", "a", "square", "product", "half", "halves", "quotient", "above"] {
        assert!(is_not_negative(&module, named(&module, name)), "{name}");
    }
    for name in ["x", "cube", "minus", "minuses", "below", "less", "negated"] {
        assert!(!is_not_negative(&module, named(&module, name)), "{name}");
    }
}
