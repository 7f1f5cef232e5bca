//! Values so far below the largest number that a sum of them overflows only where the program
//! already overflows.
//!
//! - A value that the program squares: on inputs whose square is finite, the value is at most the
//!   root of the largest number.
//! - A value computed from the program's inputs by moves, sums, differences, choices and bounded
//!   functions: a sum or a constant near 1 adds only a few binary orders to the size of the inputs.
//!   A product of two such values may be as large as the largest number.

use rustc_hash::FxHashSet;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ElementType, InstId, Module, Op, Opcode};

use super::scale::number;

/// The most instructions followed to find out how a value is computed.
const MOST_STEPS: usize = 64;

/// The largest constant that counts as near 1.
const MOST_CONSTANT: f64 = 256.0;

/// Checks whether a sum of such values overflows only where the program does, or where its
/// inputs are near the largest number.
pub fn is_bounded(module: &Module, id: InstId) -> bool {
    is_squared(module, id) || is_level(module, id)
}

/// Checks whether the program multiplies a value, or a moved copy of it, with itself.
fn is_squared(module: &Module, id: InstId) -> bool {
    let (mut seen, mut open) = (FxHashSet::default(), vec![id]);
    while let Some(next) = open.pop() {
        if !seen.insert(next) || seen.len() > MOST_STEPS {
            continue;
        }
        for user in module.uses(next).map(|found| found.user).take(MOST_STEPS) {
            match (module.op(user), module.operands(user)) {
                (Op::Reshape(_) | Op::Transpose(_) | Op::Broadcast(_) | Op::Convert, _) => {
                    open.push(user);
                }
                (Op::Multiply, &[a, b]) if a == b && overflows_alike(module, id, user) => {
                    return true;
                }
                _ => {}
            }
        }
    }
    false
}

/// Checks whether a square is a float whose type has no larger exponents than that of the
/// value.
fn overflows_alike(module: &Module, id: InstId, square: InstId) -> bool {
    let element_type = |id| module.array_shape(id).map(|array| array.element_type);
    let wide = |id| element_type(id) == Some(ElementType::F64);
    element_type(square).is_some_and(ElementType::is_float) && (wide(id) || !wide(square))
}

/// Checks whether a value is computed from inputs with no products but those with constants
/// near 1.
fn is_level(module: &Module, id: InstId) -> bool {
    let (mut seen, mut open) = (FxHashSet::default(), vec![id]);
    while let Some(next) = open.pop() {
        if !seen.insert(next) {
            continue;
        }
        if seen.len() > MOST_STEPS {
            return false;
        }
        let operands = module.operands(next);
        match (module.op(next), operands) {
            (Op::Multiply, &[a, b]) if is_at_most(module, b, MOST_CONSTANT) => open.push(a),
            (Op::Multiply, &[a, b]) if is_at_most(module, a, MOST_CONSTANT) => open.push(b),
            (Op::Divide, &[a, b]) if is_at_least(module, b) => open.push(a),
            (Op::Select, &[_, a, b]) => open.extend([a, b]),
            (Op::Clamp, &[_, a, _]) => open.push(a),
            (Op::Constant(_), _) if is_at_most(module, next, MOST_CONSTANT) => {}
            (op, _) => match op.opcode() {
                // The state of a loop may be a product over its iterations.
                Opcode::Parameter if module.instruction(next).parent() == module.entry() => {}
                Opcode::Iota
                | Opcode::Tanh
                | Opcode::Logistic
                | Opcode::Sin
                | Opcode::Cos
                | Opcode::Erf
                | Opcode::Sign => {}
                Opcode::Add
                | Opcode::Subtract
                | Opcode::Maximum
                | Opcode::Minimum
                | Opcode::Negate
                | Opcode::Abs
                | Opcode::Convert
                | Opcode::Reshape
                | Opcode::Broadcast
                | Opcode::Transpose
                | Opcode::Slice
                | Opcode::Concatenate
                | Opcode::Reverse
                | Opcode::Pad
                | Opcode::GetTupleElement => open.extend(operands),
                Opcode::Reduce if is_monoid(module, next) => open.extend(operands.first()),
                _ => return false,
            },
        }
    }
    true
}

/// Checks whether a reduce is a sum, a maximum or a minimum.
fn is_monoid(module: &Module, id: InstId) -> bool {
    let Op::Reduce(attrs) = module.op(id) else { return false };
    let monoid = Monoid::of(module, attrs.to_apply);
    let level = [Opcode::Add, Opcode::Maximum, Opcode::Minimum];
    monoid.is_some_and(|monoid| level.contains(&monoid.opcode))
}

fn is_at_most(module: &Module, id: InstId, most: f64) -> bool {
    number(module, id).is_some_and(|number| number.abs() <= most)
}

/// Checks whether all elements of a value equal one constant of at least 2^-8, of either sign, so
/// that a quotient by it is hardly larger than its dividend.
pub fn is_at_least(module: &Module, id: InstId) -> bool {
    number(module, id).is_some_and(|number| number.abs() >= 1.0 / MOST_CONSTANT)
}
