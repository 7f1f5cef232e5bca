//! Compares the values that a module computes before and after a rewrite.

use tilewright_interp::algebra::{self, AlgebraOptions, Verdict};
use tilewright_interp::compare::{Tolerance, compare};
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Devices, Evaluation, Limits, evaluate, tells_devices_apart};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Module, Shape, Verified};

/// The inputs that modules are run on: from evenly spread numbers, sums lose
/// least; `Ties` makes equal elements, which maxima and comparisons meet.
pub(crate) const KINDS: [InputKind; 4] =
    [InputKind::Uniform, InputKind::Normal, InputKind::Ties, InputKind::Offset];

/// Evaluates a module on inputs from a seed.
pub(crate) fn evaluated(module: &Verified, seed: u64, kind: InputKind) -> Result<Literal, String> {
    evaluated_like(module, module, seed, kind)
}

/// Evaluates a module that was made of `original` on inputs from a seed. If that one tells devices
/// apart, the results are those of all devices, each of which has inputs of its own. If only the module takes parts
/// of arrays, all devices have the same inputs, and must have the same results.
pub(crate) fn evaluated_like(
    module: &Verified,
    original: &Verified,
    seed: u64,
    kind: InputKind,
) -> Result<Literal, String> {
    let differ = tells_devices_apart(original);
    let like = if differ { original } else { module };
    let devices = if tells_devices_apart(like) { Devices::of(like) } else { Devices::ONE };
    let count = u64::try_from(devices.count().ok_or("too many devices")?).unwrap_or(u64::MAX);
    let seed_of = |device: u64| seed.wrapping_add(if differ { device * 1_000_003 } else { 0 });
    let inputs = (0..count).map(|device| inputs_for(module, seed_of(device), kind));
    let inputs = inputs.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let evaluation = Evaluation::new(module).limits(Limits::default()).devices(devices);
    let results = evaluation.run(&inputs).map_err(|error| error.to_string())?;
    let mut outputs: Vec<Literal> = results.into_iter().map(|result| result.output).collect();
    if !differ {
        let first = outputs.remove(0);
        let is_same = |other: &Literal| bit_difference(&first, other).is_none();
        return if outputs.iter().all(is_same) { Ok(first) } else { Err("devices differ".into()) };
    }
    Ok(if outputs.len() == 1 { outputs.remove(0) } else { Literal::Tuple(outputs) })
}

/// How far apart results may be, relative to the largest magnitude of the
/// array: what cancels in a sum is lost at that scale. The interpreter rounds
/// each sum once, so that two stages round twice: a few units in the last
/// place of the largest partial sum. In f64 it rounds every term: 320 of them, at worst, by
/// 320 * 2^-53, 3.6e-14.
fn relative(element_type: ElementType) -> f64 {
    match element_type {
        ElementType::F64 | ElementType::C128 => 1e-14,
        ElementType::F32 | ElementType::C64 => 2e-6,
        ElementType::F16 => 4e-3,
        ElementType::BF16 => 3e-2,
        _ => 0.0,
    }
}

/// The tolerance that the narrowest float anywhere in a module asks for: a
/// wide result may carry what was rounded on the way.
fn of_narrowest(module: &Module) -> f64 {
    let computations = module.computations().iter();
    let instructions = computations.flat_map(|&computation| module.instructions(computation));
    let leaves = instructions.flat_map(|id| module.shape(id).leaves());
    leaves.filter_map(Shape::as_array).map(|a| relative(a.element_type)).fold(0.0, f64::max)
}

/// Returns a difference between the results of a module and of its rewritten form, if there is one:
/// more than rounding in floats, any difference in other types.
pub(crate) fn difference(
    module: &Module,
    kind: InputKind,
    expected: &Literal,
    actual: &Literal,
) -> Option<String> {
    let narrowest = of_narrowest(module);
    // Results that nearly cancel are compared on the scale of the inputs.
    let floor = if kind == InputKind::Offset { 10.0 } else { 1.0 };
    difference_within(expected, actual, |element_type| match relative(element_type) {
        0.0 => Tolerance { signed_zeros: true, ..Tolerance::EXACT },
        _ => Tolerance { relative: narrowest, floor, ulps: 2, ..Tolerance::EXACT },
    })
}

/// Returns a bit that differs between two results, if there is one; all NaNs are equal.
pub(crate) fn bit_difference(expected: &Literal, actual: &Literal) -> Option<String> {
    difference_within(expected, actual, |_| Tolerance { signed_zeros: true, ..Tolerance::EXACT })
}

fn difference_within(
    expected: &Literal,
    actual: &Literal,
    allowed: impl Fn(ElementType) -> Tolerance,
) -> Option<String> {
    let compared = match compare(expected, actual, allowed) {
        Ok(compared) => compared,
        Err(error) => return Some(error.to_string()),
    };
    let apart = compared.into_iter().find(|comparison| !comparison.equal)?;
    let (index, at) = (apart.index, apart.at?);
    Some(format!("output {index} at {:?}: {} became {}", at.index, at.expected, at.actual))
}

/// Steps of an evaluation over the field: large modules are left to floats.
const MOST_STEPS: u64 = 20_000;

/// Which output of a rewritten module is another one over the reals, if any is.
pub(crate) fn real_difference(before: &Verified, after: &Verified) -> Option<String> {
    let usual = AlgebraOptions::default();
    let limits = Limits { max_steps: MOST_STEPS, ..usual.limits };
    let verdicts = algebra::compare(before, after, &AlgebraOptions { limits, ..usual });
    let mut verdicts = verdicts.iter().enumerate();
    // A folded constant is rounded, and the law of a function may be missing.
    let (index, verdict) = verdicts.find(
        |(_, verdict)| matches!(verdict, Verdict::Differs { unless, .. } if unless.is_empty()),
    )?;
    Some(format!("output {index} {verdict} over the reals"))
}

/// The factor by which the error of a rewritten module against the `f64` result may exceed that of
/// the module itself, on the worst element.
const WORSE: f64 = 4.0;

/// The error that luck alone may explain, relative to the largest magnitude: some units in the last
/// place. Inputs are of the order of one, and cancel.
const LUCK: f64 = 16.0 * f32::EPSILON as f64;

/// Returns an output of the rewritten module that is further from the `f64` result than [`WORSE`]
/// times the error of the module itself, if there is one. The `f64` result has the same inputs as
/// the module, and computes in `f64` wherever the module computes in `f32`.
pub(crate) fn error_difference(
    source: &str,
    seed: u64,
    kind: InputKind,
    before: &Verified,
    results: [&Literal; 2],
) -> Result<Option<String>, String> {
    let wide = super::module(&source.replace("f32[", "f64["));
    let inputs = inputs_for(before, seed, kind).map_err(|error| error.to_string())?;
    let inputs: Vec<Literal> = inputs.iter().map(widened).collect();
    let exact = evaluate(&wide, &inputs, &Limits::default()).map_err(|error| error.to_string())?;
    let exact = arrays(&exact);
    for (output, exact) in exact.iter().enumerate() {
        let largest = exact.iter().fold(1.0f64, |largest, value| largest.max(value.abs()));
        let [before, after] = results.map(|result| {
            let values = &arrays(result)[output];
            let errors = values.iter().zip(exact).map(|(value, exact)| (value - exact).abs());
            // A NaN is the worst possible error.
            errors.fold(0.0f64, |worst, e| if e.is_nan() { f64::INFINITY } else { worst.max(e) })
        });
        if after > WORSE * before + LUCK * largest {
            return Ok(Some(format!("output {output} was off by {before:e}, is by {after:e}")));
        }
    }
    Ok(None)
}

/// An array in `f64`, if it is one of `f32`.
pub(crate) fn widened(literal: &Literal) -> Literal {
    let Literal::Array(array) = literal else { return literal.clone() };
    let Data::F32(values) = array.data() else { return literal.clone() };
    let values = values.iter().map(|&value| f64::from(value)).collect();
    let dims = array.dims().iter().copied();
    let wide = ArrayLiteral::new(ElementType::F64, dims, Data::F64(values));
    Literal::Array(wide.expect("as many values"))
}

/// The floats of all arrays of a literal.
fn arrays(literal: &Literal) -> Vec<Vec<f64>> {
    match literal {
        Literal::Tuple(parts) => parts.iter().flat_map(arrays).collect(),
        Literal::Array(array) => vec![match array.data() {
            Data::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Data::F64(values) => values.clone(),
            _ => Vec::new(),
        }],
        Literal::Token | Literal::Elided(_) => Vec::new(),
    }
}
