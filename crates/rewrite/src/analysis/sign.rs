//! Which values are known not to be negative.

use tilewright_ir::{ArrayLiteral, InstId, Module, Op};

/// No more instructions are looked at for one value.
const MOST_STEPS: usize = 32;

/// Whether no element of a value is negative; NaN and zeros of both signs may be among
/// them.
pub fn is_not_negative(module: &Module, id: InstId) -> bool {
    known(module, id, &mut { MOST_STEPS })
}

fn known(module: &Module, id: InstId, left: &mut usize) -> bool {
    let Some(fewer) = left.checked_sub(1) else { return false };
    *left = fewer;
    let mut all = |ids: &[InstId]| ids.iter().all(|&id| known(module, id, left));
    match (module.op(id), module.operands(id)) {
        (Op::Constant(value), _) => {
            let splat = value.as_array().and_then(ArrayLiteral::splat);
            splat.and_then(|number| number.scalar_as_f64()).is_some_and(|number| number >= 0.0)
        }
        (Op::Abs | Op::Exp(_) | Op::Sqrt(_) | Op::Rsqrt(_) | Op::Logistic(_), _) => true,
        (Op::Multiply, &[a, b]) => a == b || all(&[a, b]),
        (Op::Add | Op::Divide | Op::Minimum, operands) => all(operands),
        (Op::Maximum, &[a, b]) => all(&[a]) || all(&[b]),
        (Op::Broadcast(_) | Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Copy, &[a]) => {
            all(&[a])
        }
        _ => false,
    }
}
