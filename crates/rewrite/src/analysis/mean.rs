//! Which values are means of an array.

use tilewright_ir::{ArrayLiteral, ArrayShape, ElementType, InstId, Module, Op, Opcode};

use super::monoid::Monoid;
use super::reduce::MonoidReduce;
use super::types::holds;

/// No more instructions are looked at for one value.
const MOST_STEPS: usize = 32;

/// How far from 1 the weights of a mean may add up, as numbers are rounded.
const ROUNDING: f64 = 1e-4;

/// Whether a value is made of sums of an array alone, in this type, each divided by how
/// many elements it has, and spread out: its mean along some dims, or means of that.
pub fn is_mean(module: &Module, mean: InstId, of: InstId, summed_in: ElementType) -> bool {
    let (mut at, mut weights) = (mean, 1.0);
    for _ in 0..MOST_STEPS {
        if at == of {
            return f64::abs(weights - 1.0) < ROUNDING;
        }
        let Some((next, times)) = step(module, at, summed_in) else { return false };
        (at, weights) = (next, weights * times);
    }
    false
}

/// What a value is made of, and how many of its elements one element adds up.
fn step(module: &Module, id: InstId, summed_in: ElementType) -> Option<(InstId, f64)> {
    let element_type = |id| module.array_shape(id).map(|shape| shape.element_type);
    match (module.op(id), module.operands(id)) {
        (Op::Reshape(_) | Op::Broadcast(_), &[a]) => Some((a, 1.0)),
        // A mean that was rounded to fewer bits is another number.
        (Op::Convert, &[a]) => {
            let (from, to) = (element_type(a)?, element_type(id)?);
            (from.is_float() && holds(to, from)).then_some((a, 1.0))
        }
        (Op::Divide, &[a, b]) => Some((a, 1.0 / number(module, b)?)),
        (Op::Multiply, &[a, b]) => match number(module, b) {
            Some(times) => Some((a, times)),
            None => Some((b, number(module, a)?)),
        },
        (Op::Reduce(_), &[a, init]) => {
            let monoid = MonoidReduce::of(module, id, false)?.reducer.monoid()?;
            let sum = Monoid { opcode: Opcode::Add, element_type: summed_in };
            let adds = monoid == sum && monoid.is_neutral(module.constant(init)?);
            let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
            let added = elements(a)?.checked_div(elements(id)?)?;
            #[expect(clippy::cast_precision_loss, reason = "compared up to rounding")]
            adds.then_some((a, added as f64))
        }
        _ => None,
    }
}

/// The number that all elements of a value are.
fn number(module: &Module, mut id: InstId) -> Option<f64> {
    for _ in 0..MOST_STEPS {
        match (module.op(id), module.operands(id)) {
            (Op::Reshape(_) | Op::Broadcast(_), &[a]) => id = a,
            (Op::Constant(value), _) => {
                let splat = value.as_array().and_then(ArrayLiteral::splat)?;
                return splat.scalar_as_f64();
            }
            _ => return None,
        }
    }
    None
}
