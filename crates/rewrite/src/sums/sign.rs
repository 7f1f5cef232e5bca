//! Values that are known to have the sign plus.

use tilewright_ir::{ArrayLiteral, InstId, Module, Op};

/// The most instructions visited for one value.
const MOST_STEPS: usize = 32;

/// Checks whether every element of a value is a NaN or has the sign plus: none is negative, and
/// none is `-0.0`, whose reciprocal is negative.
pub fn is_not_negative(module: &Module, id: InstId) -> bool {
    Known { module, left: MOST_STEPS }.not_negative(id)
}

struct Known<'a> {
    module: &'a Module,
    left: usize,
}

impl Known<'_> {
    fn step(&mut self) -> bool {
        self.left.checked_sub(1).map(|left| self.left = left).is_some()
    }

    fn not_negative(&mut self, id: InstId) -> bool {
        if !self.step() {
            return false;
        }
        let module = self.module;
        let mut all = |ids: &[InstId]| ids.iter().all(|&id| self.not_negative(id));
        match (module.op(id), module.operands(id)) {
            (Op::Constant(_), _) => number(module, id).is_some_and(f64::is_sign_positive),
            (Op::Abs | Op::Exp(_) | Op::Logistic(_), _) => true,
            // A root of -0.0 is negative, and so is its reciprocal; other negative numbers give NaN.
            (Op::Sqrt(_) | Op::Rsqrt(_), &[a]) => self.not_minus_zero(a),
            (Op::Multiply, &[a, b]) => a == b || all(&[a, b]),
            (Op::Add | Op::Divide | Op::Minimum, operands) => all(operands),
            (Op::Maximum, &[a, b]) => all(&[a]) || all(&[b]),
            (
                Op::Broadcast(_) | Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Copy,
                &[a],
            ) => all(&[a]),
            _ => false,
        }
    }

    /// Checks whether no element is `-0.0`; other negative numbers are allowed.
    fn not_minus_zero(&mut self, id: InstId) -> bool {
        if !self.step() {
            return false;
        }
        let module = self.module;
        match (module.op(id), module.operands(id)) {
            (Op::Constant(_), _) => {
                number(module, id).is_some_and(|number| number != 0.0 || number.is_sign_positive())
            }
            // A sum is -0.0 only if both terms are.
            (Op::Add, &[a, b]) => self.not_minus_zero(a) || self.not_minus_zero(b),
            (Op::Broadcast(_) | Op::Reshape(_) | Op::Transpose(_) | Op::Copy, &[a]) => {
                self.not_minus_zero(a)
            }
            _ => self.not_negative(id),
        }
    }
}

/// Returns the number that all elements of a constant equal.
fn number(module: &Module, id: InstId) -> Option<f64> {
    module.constant(id)?.as_array().and_then(ArrayLiteral::splat)?.scalar_as_f64()
}
