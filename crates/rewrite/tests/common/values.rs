//! What a module computes, before and after.

use tilewright_interp::compare::{Tolerance, compare};
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ElementType, Literal, Module, Shape, Verified};

/// The inputs that modules are run on: from evenly spread numbers, sums lose
/// least; `Ties` makes equal elements, which maxima and comparisons meet.
pub(crate) const KINDS: [InputKind; 4] =
    [InputKind::Uniform, InputKind::Normal, InputKind::Ties, InputKind::Offset];

/// Evaluates a module on inputs from a seed.
pub(crate) fn evaluated(module: &Verified, seed: u64, kind: InputKind) -> Result<Literal, String> {
    let inputs = inputs_for(module, seed, kind).map_err(|error| error.to_string())?;
    evaluate(module, &inputs, &Limits::default()).map_err(|error| error.to_string())
}

/// How far apart results may be, relative to the largest magnitude of the
/// array: what cancels in a sum is lost at that scale. The interpreter rounds
/// each sum once, so that two stages round twice: a few units in the last
/// place of the largest partial sum.
fn relative(element_type: ElementType) -> f64 {
    match element_type {
        ElementType::F64 | ElementType::C128 => 4e-15,
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

/// What differs between a module's result and that of its rewritten form, if
/// anything does: more than rounding in floats, anything in other types.
pub(crate) fn difference(
    module: &Module,
    kind: InputKind,
    expected: &Literal,
    actual: &Literal,
) -> Option<String> {
    let narrowest = of_narrowest(module);
    // Of the order of the inputs is also what cancels to less.
    let floor = if kind == InputKind::Offset { 10.0 } else { 1.0 };
    difference_within(expected, actual, |element_type| match relative(element_type) {
        0.0 => Tolerance { signed_zeros: true, ..Tolerance::EXACT },
        _ => Tolerance { relative: narrowest, floor, ulps: 2, signed_zeros: false },
    })
}

/// Which bit differs between two results, NaNs aside, which are all one.
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
