//! Random sums of terms with factors that are computed from sums. `late-factors` keeps the bounds of their
//! errors with guards, whatever the data, and their values up to rounding without.

use std::fmt::Write as _;

use crate::common::random_sums::{Dims, Judge, in_main_memory, results};
use crate::common::values::widened;
use crate::common::{changes, module, optimized};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_ir::{ArrayLiteral, Data, Literal, Verified};
use tilewright_rewrite::Options;
use tilewright_rewrite::numbers::FloatMode;

/// What a term of a sum has beside its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// Nothing: its factors are inputs.
    None,
    /// A factor that is computed from the sum of its array.
    Times,
    /// A divisor that is.
    Over,
}

/// A term of a sum.
#[derive(Clone, Copy, Debug)]
struct Term {
    late: Late,
    /// Whether it has another array as a factor.
    two: bool,
    negative: bool,
}

/// A sum of some terms along dims of arrays, then the late factors.
#[derive(Clone, Debug)]
struct Program {
    dims: Dims,
    terms: Vec<Term>,
}

impl Program {
    /// Its text. Each term has three parameters: an array, another one, and what the sum of the first is multiplied
    /// by to be its factor.
    fn text(&self, t: &str, judge: Judge) -> String {
        let (whole, kept) = (self.dims.shape(t, |_| true), self.dims.shape(t, |summed| !summed));
        let (kept_places, places) = (self.dims.places(false), self.dims.places(true));
        let mut text = format!(
            "HloModule random\nadd {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  \
             ROOT r = {t}[] add(a, b)\n}}\nENTRY main {{\n  zero = {t}[] constant(0)\n"
        );
        let (mut results, mut last) = (Vec::new(), String::new());
        for (number, Term { late, two, negative }) in self.terms.iter().enumerate() {
            let [y, z, c] = [0, 1, 2].map(|place| 3 * number + place);
            let _ = writeln!(
                text,
                "  y{number} = {whole} parameter({y})\n  z{number} = {whole} parameter({z})\n  \
                 c{number} = {kept} parameter({c})\n  \
                 whole{number} = {kept} reduce(y{number}, zero), dimensions={{{places}}}, to_apply=add\n  \
                 sum{number} = {kept} multiply(whole{number}, c{number})"
            );
            let factor = match judge {
                Judge::None => format!("sum{number}"),
                Judge::Exact | Judge::Sizes => {
                    let _ = writeln!(
                        text,
                        "  rounded{number} = {kept} reduce-precision(sum{number}), exponent_bits=8, mantissa_bits=23"
                    );
                    format!("rounded{number}")
                }
            };
            let mut term = format!("y{number}");
            if *two {
                let _ = writeln!(text, "  product{number} = {whole} multiply({term}, z{number})");
                term = format!("product{number}");
            }
            if *late != Late::None {
                let op = if *late == Late::Times { "multiply" } else { "divide" };
                let _ = writeln!(
                    text,
                    "  factor{number} = {whole} broadcast({factor}), dimensions={{{kept_places}}}\n  \
                     term{number} = {whole} {op}({term}, factor{number})"
                );
                term = format!("term{number}");
            }
            last = if number == 0 {
                term
            } else {
                let op = if *negative { "subtract" } else { "add" };
                let _ = writeln!(text, "  both{number} = {whole} {op}({last}, {term})");
                format!("both{number}")
            };
            results.push(format!("sum{number}"));
        }
        if judge == Judge::Sizes {
            let _ = writeln!(text, "  size = {whole} abs({last})");
            last = "size".to_owned();
        }
        let _ = writeln!(
            text,
            "  sum = {kept} reduce({last}, zero), dimensions={{{places}}}, to_apply=add"
        );
        results.push("sum".to_owned());
        let shapes = vec![kept; results.len()].join(", ");
        let _ = writeln!(text, "  ROOT out = ({shapes}) tuple({})\n}}", results.join(", "));
        text
    }
}

fn programs() -> impl Strategy<Value = Program> {
    let dims = prop::sample::select(vec![
        vec![(3, false), (16, true), (16, true), (8, true)],
        vec![(40, true), (50, true), (2, false)],
        vec![(2, false), (1100, true)],
        vec![(7, false), (600, true)],
        vec![(36, true), (3, false), (40, true)],
    ]);
    let late = prop_oneof![1 => Just(Late::None), 2 => Just(Late::Times), 1 => Just(Late::Over)];
    let term = (late, any::<bool>(), any::<bool>());
    let term = term.prop_map(|(late, two, negative)| Term { late, two, negative });
    (dims, prop::collection::vec(term, 2..4))
        .prop_map(|(dims, terms)| Program { dims: Dims(dims), terms })
}

fn options(float_mode: FloatMode) -> Options {
    let mut options = in_main_memory("late-factors");
    options.float_mode = float_mode;
    options.target.guard_cycles = 1.0;
    options
}

/// Data of which some make the terms of a sum cancel each other.
#[derive(Clone, Copy, Debug)]
enum DataKind {
    Normal,
    /// All terms have the same arrays.
    Along,
    /// They nearly do.
    NearlyAlong,
    FarFromZero,
    /// One value of each array is large.
    Outlier,
    MostlyZero,
    /// Squares are less than the smallest number.
    Tiny,
    /// Squares are infinite.
    Huge,
    /// Factors nearly vanish.
    SmallFactors,
}

const DATA_KINDS: [DataKind; 9] = [
    DataKind::Normal,
    DataKind::Along,
    DataKind::NearlyAlong,
    DataKind::FarFromZero,
    DataKind::Outlier,
    DataKind::MostlyZero,
    DataKind::Tiny,
    DataKind::Huge,
    DataKind::SmallFactors,
];

fn attacking(module: &Verified, seed: u64, kind: DataKind) -> Vec<Literal> {
    let mut inputs = inputs_for(module, seed, InputKind::Normal).expect("inputs");
    let mut first: Vec<Vec<f32>> = Vec::new();
    for (number, input) in inputs.iter_mut().enumerate() {
        let Literal::Array(array) = &*input else { panic!("an array") };
        let Data::F32(values) = array.data() else { panic!("f32") };
        let (mut values, is_factor) = (values.clone(), number % 3 == 2);
        let like = (number >= 3).then(|| first[number % 3].clone());
        for (place, value) in values.iter_mut().enumerate() {
            let like = like.as_ref().map_or(*value, |like| like[place]);
            *value = match kind {
                DataKind::Normal => *value,
                DataKind::Along => like,
                DataKind::NearlyAlong => like + 1e-3 * *value,
                DataKind::FarFromZero if !is_factor => *value * 1e-2 + 1e3,
                DataKind::Outlier if place % 601 == 5 => 1e6,
                DataKind::MostlyZero if !is_factor && place % 61 != 0 => 0.0,
                DataKind::Tiny if !is_factor && number % 3 == 0 => *value * 1e-25,
                DataKind::Huge if !is_factor && number % 3 == 0 => *value * 1e25,
                DataKind::SmallFactors if is_factor => *value * 1e-12,
                _ => *value,
            };
        }
        if number < 3 {
            first.push(values.clone());
        }
        let dims = array.dims().iter().copied();
        let made = ArrayLiteral::new(array.element_type(), dims, Data::F32(values));
        *input = Literal::Array(made.expect("as many"));
    }
    inputs
}

/// Returns the sum, the last result.
fn sums(module: &Verified, inputs: &[Literal]) -> Vec<f64> {
    results(module, inputs).pop().expect("a sum")
}

/// The interpreter rounds a sum once and a term up to five times. Where the guard holds, the magnitudes of all
/// terms are at most 3 times what is left of them, so the error is at most `3 * 5` and 3 for each of the sums,
/// products and differences, of which a sum of three terms has eight.
#[test]
fn guarded_terms_keep_their_bounds() {
    let mut runner = TestRunner::deterministic();
    let options = options(FloatMode::Guarded);
    let (mut fired, mut split, mut again) = (0, 0, 0);
    for seed in 0..60u64 {
        let program = programs().new_tree(&mut runner).expect("a program").current();
        let before = module(&program.text("f32", Judge::None));
        let after = optimized(&before, &options);
        if changes(&after, "late-factors") == 0 {
            assert!(program.terms.iter().all(|term| term.late == Late::None), "{program:?}");
            continue;
        }
        fired += 1;
        let twice = optimized(&after.module, &options);
        assert_eq!(changes(&twice, "late-factors"), 0, "{program:?}");
        let [exact, sizes] =
            [Judge::Exact, Judge::Sizes].map(|judge| module(&program.text("f64", judge)));
        for kind in DATA_KINDS {
            let inputs = attacking(&before, seed, kind);
            let wide: Vec<Literal> = inputs.iter().map(widened).collect();
            let [exact, sizes] = [&exact, &sizes].map(|module| sums(module, &wide));
            let [was, is] = [&before, &after.module].map(|module| sums(module, &inputs));
            let is_same = was.iter().zip(&is).all(|(a, b)| a.to_bits() == b.to_bits());
            *(if is_same { &mut again } else { &mut split }) += 1;
            let unit = f64::from(f32::EPSILON / 2.0);
            for (((was, is), exact), size) in was.iter().zip(&is).zip(&exact).zip(&sizes) {
                let bound = 3.0 * 13.0 * unit * size;
                let is_near = (is - exact).abs() <= bound || !was.is_finite();
                assert!(
                    is_same || is_near,
                    "{kind:?}, seed {seed}, {program:?}: {was:e} and {is:e}, exactly {exact:e}, of {size:e}"
                );
            }
        }
        let inputs = inputs_for(&before, seed, InputKind::NonFinite).expect("inputs");
        let [was, is] = [&before, &after.module].map(|module| sums(module, &inputs));
        for (was, is) in was.iter().zip(&is) {
            assert_eq!(was.is_nan(), is.is_nan(), "seed {seed}, {program:?}");
            assert_eq!(was.is_finite(), is.is_finite(), "seed {seed}, {program:?}");
        }
    }
    assert!(fired >= 30, "it fired on {fired}");
    assert!(split > 30 && again > 30, "{split} sums were split, {again} were not");
}

/// A sum of `n` terms that are each rounded up to five times, and their sums with theirs.
#[test]
fn in_f64_nothing_but_rounding_changes() {
    let mut runner = TestRunner::deterministic();
    let options = options(FloatMode::Fast);
    let mut fired = 0;
    for seed in 0..60u64 {
        let program = programs().new_tree(&mut runner).expect("a program").current();
        let before = module(&program.text("f64", Judge::None));
        let after = optimized(&before, &options);
        fired += changes(&after, "late-factors");
        let inputs = inputs_for(&before, seed, InputKind::Normal).expect("inputs");
        let sizes = module(&program.text("f64", Judge::Sizes));
        let sizes = sums(&sizes, &inputs);
        let [was, is] = [&before, &after.module].map(|module| sums(module, &inputs));
        for ((was, is), size) in was.iter().zip(&is).zip(&sizes) {
            assert!((was - is).abs() <= 1e-9 * size, "{program:?}: {was:e} and {is:e}");
        }
    }
    assert!(fired >= 30, "it fired on {fired}");
}
