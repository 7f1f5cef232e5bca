//! What a module computes, before and after.

use tilewright_interp::compare::{Tolerance, compare};
use tilewright_interp::inputs::{InputKind, inputs_for};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ElementType, Literal, Verified};

/// The inputs that modules are run on: from evenly spread numbers, sums lose
/// least; `Ties` makes equal elements, which maxima and comparisons meet.
pub(crate) const KINDS: [InputKind; 3] = [InputKind::Uniform, InputKind::Normal, InputKind::Ties];

/// Evaluates a module on inputs from a seed.
pub(crate) fn evaluated(module: &Verified, seed: u64, kind: InputKind) -> Result<Literal, String> {
    let inputs = inputs_for(module, seed, kind).map_err(|error| error.to_string())?;
    evaluate(module, &inputs, &Limits::default()).map_err(|error| error.to_string())
}

/// How far apart results may be, relative to the largest magnitude of the
/// array: what cancels in a sum is lost at that scale. The interpreter rounds
/// each sum once, so that two stages round twice: a few units in the last
/// place of the largest partial sum. All but floats must be equal.
fn tolerance(element_type: ElementType) -> Tolerance {
    let relative = match element_type {
        // Random modules convert between widths: f64 may carry what f32 rounded.
        ElementType::F64 | ElementType::C128 | ElementType::F32 | ElementType::C64 => 2e-6,
        ElementType::F16 => 4e-3,
        ElementType::BF16 => 3e-2,
        _ => return Tolerance { signed_zeros: true, ..Tolerance::EXACT },
    };
    // Inputs are of the order of one, and so is what cancels to less.
    Tolerance { relative, floor: 1.0, ulps: 2, signed_zeros: false }
}

/// What differs between two results, if anything does: any bit under `exact`
/// (NaNs aside, which are all one), else more than is allowed for the type.
pub(crate) fn difference(expected: &Literal, actual: &Literal, exact: bool) -> Option<String> {
    let same_bits = Tolerance { signed_zeros: true, ..Tolerance::EXACT };
    let allowed = |element_type| if exact { same_bits } else { tolerance(element_type) };
    let compared = match compare(expected, actual, allowed) {
        Ok(compared) => compared,
        Err(error) => return Some(error.to_string()),
    };
    let apart = compared.into_iter().find(|comparison| !comparison.equal)?;
    let (index, at) = (apart.index, apart.at?);
    Some(format!("output {index} at {:?}: {} became {}", at.index, at.expected, at.actual))
}
