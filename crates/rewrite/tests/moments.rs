//! Random sums about means. `shifted-moments`, run alone on a machine without room for arrays,
//! keeps their values up to rounding, and with guards the bounds of their errors whatever the data;
//! `rematerialize` keeps every bit.

use std::fmt::Write as _;

use crate::common::forms::copying;
use crate::common::random_sums::{Dims, Judge, floats, in_main_memory, results};
use crate::common::values::widened;
use crate::common::{changes, module, optimized};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_ir::{ArrayLiteral, Data, Literal, Verified};
use tilewright_rewrite::Options;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_target::reductions::Source;

/// The weight of an element in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    None,
    /// Each element has its own weight.
    Each,
    /// The weight is the same for all elements of one sum.
    Kept,
    /// The weight is the same along the kept dims.
    Summed,
    /// Each element is divided by its own weight, which is at least 1.
    Divisor,
    /// Each element has its own weight, which is not negative.
    NotNegative,
}

/// A sum of `(x - mean)^power * weight`.
#[derive(Clone, Copy, Debug)]
struct Term {
    power: u32,
    weight: Weight,
    negative: bool,
}

/// Sums of one array along the same dims.
#[derive(Clone, Debug)]
struct Program {
    dims: Dims,
    terms: Vec<Term>,
}

impl Program {
    /// Its text: the sum of the array, then all other sums. Parameter 0 is the array;
    /// the others are weights.
    fn text(&self, t: &str) -> String {
        self.text_of(t, Judge::None)
    }

    /// The same, or what judges it.
    fn text_of(&self, t: &str, judge: Judge) -> String {
        let kept = self.dims.shape(t, |summed| !summed);
        let mean = match judge {
            Judge::None => format!("mean = {kept} divide(sum, counts)"),
            Judge::Exact | Judge::Sizes => {
                let rounded = |name: &str| {
                    format!("{kept} reduce-precision({name}), exponent_bits=8, mantissa_bits=23")
                };
                format!(
                    "total = {}\n  quotient = {kept} divide(total, counts)\n  mean = {}",
                    rounded("sum"),
                    rounded("quotient")
                )
            }
        };
        let absolute = judge == Judge::Sizes;
        let whole = self.dims.shape(t, |_| true);
        let summed = self.dims.shape(t, |summed| summed);
        let (kept_places, summed_places) = (self.dims.places(false), self.dims.places(true));
        let mut text = format!(
            "HloModule random\nadd {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  \
             ROOT r = {t}[] add(a, b)\n}}\nENTRY main {{\n  x = {whole} parameter(0)\n  \
             zero = {t}[] constant(0)\n  one = {t}[] constant(1)\n  \
             ones = {whole} broadcast(one), dimensions={{}}\n  \
             sum = {kept} reduce(x, zero), dimensions={{{summed_places}}}, to_apply=add\n  \
             count = {t}[] constant({})\n  counts = {kept} broadcast(count), dimensions={{}}\n  \
             {mean}\n  \
             means = {whole} broadcast(mean), dimensions={{{kept_places}}}\n  \
             rest = {whole} subtract(x, means)\n  size = {whole} abs(rest)\n",
            self.dims.values()
        );
        let rest = if absolute { "size" } else { "rest" };
        let weight = if absolute { "abs" } else { "negate" };
        let mut write = |line: String| writeln!(text, "  {line}").expect("a string grows");
        let mut results = vec!["sum".to_owned()];
        let mut parameters = 1;
        for (i, term) in self.terms.iter().enumerate() {
            let mut product = rest.to_owned();
            if term.power == 2 {
                product = format!("square{i}");
                write(format!("{product} = {whole} multiply(rest, rest)"));
            }
            let mut parameter = |shape: &str| {
                parameters += 1;
                write(format!("q{i} = {shape} parameter({})", parameters - 1));
            };
            let opcode = match term.weight {
                Weight::None => None,
                Weight::Each => {
                    parameter(&whole);
                    write(format!("w{i} = {whole} {weight}(q{i})"));
                    Some("multiply")
                }
                Weight::Kept => {
                    parameter(&kept);
                    write(format!("c{i} = {kept} {weight}(q{i})"));
                    write(format!("w{i} = {whole} broadcast(c{i}), dimensions={{{kept_places}}}"));
                    Some("multiply")
                }
                Weight::Summed => {
                    parameter(&summed);
                    let places = &summed_places;
                    write(format!("c{i} = {summed} {weight}(q{i})"));
                    write(format!("w{i} = {whole} broadcast(c{i}), dimensions={{{places}}}"));
                    Some("multiply")
                }
                Weight::NotNegative => {
                    parameter(&whole);
                    write(format!("w{i} = {whole} abs(q{i})"));
                    Some("multiply")
                }
                Weight::Divisor => {
                    parameter(&whole);
                    write(format!("size{i} = {whole} abs(q{i})"));
                    write(format!("w{i} = {whole} add(size{i}, ones)"));
                    Some("divide")
                }
            };
            if let Some(opcode) = opcode {
                write(format!("weighted{i} = {whole} {opcode}({product}, w{i})"));
                product = format!("weighted{i}");
            }
            if term.negative && !absolute {
                write(format!("negative{i} = {whole} negate({product})"));
                product = format!("negative{i}");
            }
            let places = &summed_places;
            write(format!(
                "term{i} = {kept} reduce({product}, zero), dimensions={{{places}}}, to_apply=add"
            ));
            results.push(format!("term{i}"));
        }
        let types = vec![kept.as_str(); results.len()].join(", ");
        write(format!("ROOT results = ({types}) tuple({})", results.join(", ")));
        text.push_str("}\n");
        text
    }
}

/// Programs of small arrays.
fn programs() -> impl Strategy<Value = Program> {
    let size = prop_oneof![1 => Just(1i64), 6 => 2i64..10, 1 => 10i64..40];
    let dims = prop::collection::vec((size, prop::bool::weighted(0.7)), 1..=5);
    let weight = prop_oneof![
        Just(Weight::None),
        Just(Weight::Each),
        Just(Weight::Kept),
        Just(Weight::Summed),
        Just(Weight::Divisor)
    ];
    let term = (1u32..=2, weight, any::<bool>());
    let term = term.prop_map(|(power, weight, negative)| Term { power, weight, negative });
    let small = |dims: &Vec<(i64, bool)>| {
        let summed: i64 = dims.iter().filter(|dim| dim.1).map(|dim| dim.0).product();
        summed >= 64 && dims.iter().map(|dim| dim.0).product::<i64>() <= 20_000
    };
    let dims = dims.prop_filter("sums of some values", small);
    (dims, prop::collection::vec(term, 1..4))
        .prop_map(|(dims, terms)| Program { dims: Dims(dims), terms })
}

fn options(pass: &str) -> Options {
    let mut options = in_main_memory(pass);
    options.float_mode = FloatMode::Fast;
    if pass == "rematerialize" {
        options.target.fuses_shared = false;
        options.target.reductions = copying(Source::ALL).reductions;
        options.target.reductions.least_elements = 1;
    }
    options
}

/// The parameters: the first is normal with this mean, the others around 0.
fn inputs(module: &Verified, seed: u64, mean: f64) -> Vec<Literal> {
    let mut inputs = inputs_for(module, seed, InputKind::Normal).expect("inputs");
    let Literal::Array(x) = &inputs[0] else { panic!("an array") };
    #[expect(clippy::cast_possible_truncation, reason = "inputs may be any")]
    let moved = match x.data() {
        Data::F32(values) => Data::F32(values.iter().map(|v| v + mean as f32).collect()),
        Data::F64(values) => Data::F64(values.iter().map(|v| v + mean).collect()),
        other => panic!("{other:?}"),
    };
    let (element_type, dims) = (x.element_type(), x.dims().iter().copied());
    inputs[0] = Literal::Array(ArrayLiteral::new(element_type, dims, moved).expect("as many"));
    inputs
}

/// The largest of some magnitudes.
fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |largest: f64, value| {
        if value.is_nan() { f64::INFINITY } else { largest.max(value.abs()) }
    })
}

/// The quantities in the error bounds.
struct Sizes {
    /// The number of values that a sum adds.
    count: f64,
    /// The largest `|x|`.
    size: f64,
    /// The distance between the largest and the smallest value; no mean is further from any value.
    spread: f64,
    /// The largest weight of each sum, 1 for the sum of the array.
    weights: Vec<f64>,
}

impl Sizes {
    fn of(program: &Program, inputs: &[Literal]) -> Self {
        let x = floats(&inputs[0]);
        let (least, most) = x.iter().fold((f64::MAX, f64::MIN), |(a, b), &v| (a.min(v), b.max(v)));
        let mut parameters = inputs[1..].iter();
        let weights = program.terms.iter().map(|term| match term.weight {
            Weight::None => 1.0,
            // A divisor is at least 1.
            Weight::Divisor => parameters.next().map_or(1.0, |_| 1.0),
            Weight::Each | Weight::NotNegative | Weight::Kept | Weight::Summed => {
                largest(floats(parameters.next().expect("a parameter")))
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "few values")]
        let count = program.dims.values() as f64;
        let weights = std::iter::once(1.0).chain(weights).collect();
        Self { count, size: largest(x), spread: most - least, weights }
    }
}

/// The random programs that a pass changed, with their new form; a pass must change some of them.
fn rewritten(pass: &str, element_type: &str, count: usize) -> Vec<(Program, Verified, Verified)> {
    let mut runner = TestRunner::deterministic();
    let mut fired = Vec::new();
    for _ in 0..count {
        let program = programs().new_tree(&mut runner).expect("a program").current();
        let before = module(&program.text(element_type));
        let after = optimized(&before, &options(pass));
        if changes(&after, pass) > 0 {
            let again = optimized(&after.module, &options(pass));
            assert_eq!(changes(&again, pass), 0, "{program:?}");
            fired.push((program, before, after.module));
        }
    }
    assert!(fired.len() * 5 > count, "it fired on {} of {count}", fired.len());
    fired
}

/// With `u` the rounding of a number, each value of a sum of `n` adds a rounding to
/// what is summed so far: `n u` times the sum of the magnitudes. No value is larger
/// than `Q (2M)^p`, with weights of `Q` and an array of `M`, whichever of its numbers
/// or means is subtracted. The law has up to four such sums, `1 + 2 + 1`, in place of
/// one; the mean is off by `(n + 1) u M`, which moves both.
fn in_f64_nothing_but_rounding_changes(pass: &str) {
    for (seed, (program, before, after)) in (0..).zip(rewritten(pass, "f64", 500)) {
        let inputs = inputs(&before, seed, [0.0, 3.0, -100.0][seed as usize % 3]);
        let sizes = Sizes::of(&program, &inputs);
        let powers = std::iter::once(1).chain(program.terms.iter().map(|term| term.power));
        let (before, after) = (results(&before, &inputs), results(&after, &inputs));
        let outputs = before.iter().zip(&after).zip(&sizes.weights).zip(powers);
        for (output, (((before, after), weight), power)) in outputs.enumerate() {
            let Sizes { count, size, .. } = sizes;
            let terms = count * weight * (2.0 * size).powi(power.try_into().expect("1 or 2"));
            let bound = 8.0 * (count + 8.0) * (f64::EPSILON / 2.0) * terms;
            let apart = largest(before.iter().zip(after).map(|(before, after)| before - after));
            assert!(apart <= bound, "{program:?}, output {output}: {apart:e} > {bound:e}");
        }
    }
}

/// The interpreter rounds each sum once, each value up to four times: about a number
/// among the data by no more than their spread `D` has it. Whatever it is about, the
/// mean is rounded as a number of `M` is. So the rewritten form is no more than
/// `4 u n Q D^(p-1) (D + M)` worse than four times the original, however far from zero
/// the data are; about zero, it would be by `u n Q M^p`.
fn in_f32_errors_stay_those_of_the_mean(pass: &str) {
    for (seed, (program, before, after)) in (0..).zip(rewritten(pass, "f32", 500)) {
        let inputs = inputs(&before, seed, [0.0, 3.0, -100.0, 1e4][seed as usize % 4]);
        let sizes = Sizes::of(&program, &inputs);
        let wide: Vec<Literal> = inputs.iter().map(widened).collect();
        let exact = results(&module(&program.text("f64")), &wide);
        let (before, after) = (results(&before, &inputs), results(&after, &inputs));
        for (output, exact) in exact.iter().enumerate() {
            let Sizes { count, size, spread, ref weights } = sizes;
            let power = output.checked_sub(1).map_or(1, |term| program.terms[term].power);
            let each = if power == 2 { spread } else { 1.0 };
            let terms = count * weights[output] * each * (spread + size);
            let [was, is] = [&before, &after].map(|results| {
                largest(results[output].iter().zip(exact).map(|(value, exact)| value - exact))
            });
            let bound = 4.0 * was + 4.0 * f64::from(f32::EPSILON / 2.0) * terms;
            assert!(is <= bound, "{program:?}, output {output}: {was:e}, then {is:e} > {bound:e}");
        }
    }
}

#[test]
fn shifted_moments_round_in_f64() {
    in_f64_nothing_but_rounding_changes("shifted-moments");
}

#[test]
fn shifted_moments_round_in_f32() {
    in_f32_errors_stay_those_of_the_mean("shifted-moments");
}

#[test]
fn what_is_not_shared_any_more_keeps_every_bit() {
    for (seed, (program, before, after)) in (0..).zip(rewritten("rematerialize", "f32", 500)) {
        for kind in InputKind::ALL {
            let inputs = inputs_for(&before, seed, *kind).expect("inputs");
            let [before, after] = [&before, &after].map(|m| results(m, &inputs));
            let bits = |results: &[Vec<f64>]| -> Vec<Vec<u64>> {
                let canonical = |v: &f64| if v.is_nan() { f64::NAN } else { *v };
                results.iter().map(|r| r.iter().map(|v| canonical(v).to_bits()).collect()).collect()
            };
            assert_eq!(bits(&before), bits(&after), "{program:?} {kind:?}");
        }
    }
}

/// Sums of so many values that a sample's mean is near that of all.
fn large_programs() -> impl Strategy<Value = Program> {
    let dims = prop::sample::select(vec![
        vec![(3, false), (16, true), (16, true), (16, true)],
        vec![(64, true), (80, true), (2, false)],
        vec![(2, false), (4100, true)],
        vec![(7, false), (600, true)],
        vec![(72, true), (3, false), (60, true)],
        vec![(16, true), (2, false), (18, true), (1, false), (16, true)],
    ]);
    let weight = prop_oneof![Just(Weight::None), Just(Weight::Each), Just(Weight::Divisor)];
    let term = (1u32..=2, weight, any::<bool>());
    // No test bounds the error of squares with weights that may be negative.
    let term = term.prop_map(|(power, weight, negative)| {
        let weight = match weight {
            Weight::Each | Weight::Divisor if power == 2 => Weight::NotNegative,
            weight => weight,
        };
        Term { power, weight, negative }
    });
    (dims, prop::collection::vec(term, 1..4))
        .prop_map(|(dims, terms)| Program { dims: Dims(dims), terms })
}

/// Data on which a sum about a sample's mean may be much larger than one about the mean, and others.
#[derive(Clone, Copy, Debug)]
enum DataKind {
    Normal,
    FarFromZero,
    Constant,
    OutlierInSample,
    Halves,
    MostlyZero,
    Tiny,
    Huge,
}

const DATA_KINDS: [DataKind; 8] = [
    DataKind::Normal,
    DataKind::FarFromZero,
    DataKind::Constant,
    DataKind::OutlierInSample,
    DataKind::Halves,
    DataKind::MostlyZero,
    DataKind::Tiny,
    DataKind::Huge,
];

/// Weights that are all one, that are 0 but for the value nearest to the mean, or whose sum nearly
/// vanishes.
fn weighted(weights: &mut [f32], x: &[f32], kind: u32) {
    let count = weights.len();
    match kind {
        0 => {}
        1 => weights.fill(1.0),
        2 if x.len() == count => {
            let mean = x.iter().sum::<f32>() / x.iter().map(|_| 1.0).sum::<f32>();
            let distance = |&place: &usize| (x[place] - mean).abs();
            let nearest = (0..count).min_by(|a, b| distance(a).total_cmp(&distance(b)));
            let one = weights[0];
            weights.fill(0.0);
            weights[nearest.expect("values")] = one;
        }
        _ => {
            let odd = (0..count).filter(|place| place % 2 == 1);
            odd.for_each(|place| weights[place] = -weights[place - 1]);
        }
    }
}

fn changed(values: &mut [f32], kind: DataKind) {
    let count = values.len();
    for (place, value) in values.iter_mut().enumerate() {
        *value = match kind {
            DataKind::Normal | DataKind::OutlierInSample => *value,
            DataKind::FarFromZero => *value * 1e-2 + 1e3,
            DataKind::Constant => 7.7,
            DataKind::Halves => *value + if place < count / 2 { 1e3 } else { 0.0 },
            DataKind::MostlyZero => {
                if place % 61 == 0 {
                    *value
                } else {
                    0.0
                }
            }
            DataKind::Tiny => *value * 1e-25,
            DataKind::Huge => *value * 1e25,
        };
    }
    if let DataKind::OutlierInSample = kind {
        // Some of these are in the sample.
        (0..count).step_by(97).for_each(|place| values[place] = 1e6);
    }
}

/// The inputs of a kind, with weights of one of four kinds, for a seed.
fn attacking(module: &Verified, seed: u64, kind: DataKind, weights: u32) -> Vec<Literal> {
    let mut inputs = inputs_for(module, seed, InputKind::Normal).expect("inputs");
    let mut x = Vec::new();
    for (number, input) in inputs.iter_mut().enumerate() {
        let Literal::Array(array) = &*input else { panic!("an array") };
        let Data::F32(values) = array.data() else { panic!("f32") };
        let mut values = values.clone();
        if number == 0 {
            changed(&mut values, kind);
            x.clone_from(&values);
        } else {
            weighted(&mut values, &x, weights);
        }
        let dims = array.dims().iter().copied();
        let element_type = array.element_type();
        let made = ArrayLiteral::new(element_type, dims, Data::F32(values)).expect("as many");
        *input = Literal::Array(made);
    }
    inputs
}

/// A term is rounded up to four times, and a sum once: the error of a result of the original is at most `5 u`
/// times the sum of the magnitudes of its terms. A guard lets it become four times as much.
#[test]
fn guarded_moments_keep_their_bounds() {
    let mut runner = TestRunner::deterministic();
    let mut options = options("shifted-moments");
    options.float_mode = FloatMode::Guarded;
    options.target.guard_cycles = 1.0;
    let (mut fired, mut kept, mut again) = (0, 0, 0);
    for seed in 0..80u64 {
        let program = large_programs().new_tree(&mut runner).expect("a program").current();
        let before = module(&program.text("f32"));
        let after = optimized(&before, &options);
        if changes(&after, "shifted-moments") == 0 {
            continue;
        }
        fired += 1;
        let twice = optimized(&after.module, &options);
        assert_eq!(changes(&twice, "shifted-moments"), 0, "{program:?}");
        let [exact, sizes] =
            [Judge::Exact, Judge::Sizes].map(|judge| module(&program.text_of("f64", judge)));
        for (kind, weights) in
            DATA_KINDS.into_iter().flat_map(|kind| (0..4).map(move |w| (kind, w)))
        {
            let inputs = attacking(&before, seed, kind, weights);
            let wide: Vec<Literal> = inputs.iter().map(widened).collect();
            let [exact, sizes] = [&exact, &sizes].map(|module| results(module, &wide));
            let [was, is] = [&before, &after.module].map(|module| results(module, &inputs));
            for output in 1..exact.len() {
                let errors = |found: &[Vec<f64>]| -> Vec<f64> {
                    let pairs = found[output].iter().zip(&exact[output]);
                    pairs.map(|(found, exact)| (found - exact).abs()).collect()
                };
                let unit = f64::from(f32::EPSILON / 2.0);
                let errors = errors(&was).into_iter().zip(errors(&is));
                for ((before, error), size) in errors.zip(&sizes[output]) {
                    // Where the original overflows, so may the other.
                    let bound = |units: f64| units * unit * size + f64::from(f32::MIN_POSITIVE);
                    let are_less =
                        error <= bound(20.0) && before <= bound(5.0) || !before.is_finite();
                    assert!(
                        are_less,
                        "{kind:?}, weights {weights}, seed {seed}, {program:?}, output {output}: {before:e} and {error:e}, {size:e}"
                    );
                }
                let is_same =
                    was[output].iter().zip(&is[output]).all(|(a, b)| a.to_bits() == b.to_bits());
                *(if is_same { &mut again } else { &mut kept }) += 1;
            }
        }
        for kind in [InputKind::NonFinite] {
            let inputs = inputs_for(&before, seed, kind).expect("inputs");
            let [was, is] = [&before, &after.module].map(|module| results(module, &inputs));
            for (was, is) in was.iter().zip(&is) {
                for (was, is) in was.iter().zip(is) {
                    assert_eq!(
                        was.is_finite(),
                        is.is_finite(),
                        "{kind:?}, seed {seed}, {program:?}"
                    );
                    assert_eq!(was.is_nan(), is.is_nan(), "{kind:?}, seed {seed}, {program:?}");
                }
            }
        }
    }
    assert!(fired >= 15, "it fired on {fired}");
    assert!(kept > 50 && again > 50, "{kept} results about the shift, {again} of the original");
}
