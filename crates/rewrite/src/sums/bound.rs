//! Values so far below the largest number that a sum of them overflows only where the program
//! already overflows.
//!
//! - A value that the program squares: on inputs whose square is finite, the value is at most the
//!   root of the largest number.
//! - A value computed from the program's inputs by moves, sums, differences, choices and bounded
//!   functions, if these add few binary orders to the size of the inputs: a sum of n values adds log2 n.
//!   A product of two such values may be as large as the largest number.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayShape, ElementType, InstId, Module, Op, Opcode};

use super::scale::number;

/// The most instructions followed to find out how a value is computed.
const MOST_STEPS: usize = 64;

/// By how many binary orders a value may be larger than the inputs: in `f32`, inputs up to 1e28 are safe then.
const MOST_GROWTH: f64 = 32.0;

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

/// Checks whether a value is hardly larger than the inputs that it is computed from.
fn is_level(module: &Module, id: InstId) -> bool {
    let growth = Growth { module, known: FxHashMap::default() }.of(id);
    growth.is_some_and(|bits| bits <= MOST_GROWTH)
}

/// By how many binary orders values may be larger than the largest input.
struct Growth<'m> {
    module: &'m Module,
    known: FxHashMap<InstId, Option<f64>>,
}

impl Growth<'_> {
    /// Returns the binary orders of a value; `None` if it has products but those with constants near 1, or too
    /// many instructions compute it.
    fn of(&mut self, id: InstId) -> Option<f64> {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        if self.known.len() >= MOST_STEPS {
            return None;
        }
        self.known.insert(id, None);
        let growth = self.computed(id);
        self.known.insert(id, growth);
        growth
    }

    fn computed(&mut self, id: InstId) -> Option<f64> {
        let module = self.module;
        let operands = module.operands(id);
        let scaled = |constant: InstId| number(module, constant).map(|number| number.abs().log2());
        match (module.op(id), operands) {
            (Op::Multiply, &[a, b]) if is_at_most(module, b, MOST_CONSTANT) => {
                Some(self.of(a)? + scaled(b)?)
            }
            (Op::Multiply, &[a, b]) if is_at_most(module, a, MOST_CONSTANT) => {
                Some(self.of(b)? + scaled(a)?)
            }
            (Op::Divide, &[a, b]) if is_at_least(module, b) => Some(self.of(a)? - scaled(b)?),
            (Op::Select, &[_, a, b]) => self.largest(&[a, b]),
            (Op::Clamp, &[_, a, _]) => self.of(a),
            (Op::Constant(_), _) if is_at_most(module, id, MOST_CONSTANT) => {
                Some(MOST_CONSTANT.log2())
            }
            (Op::Reduce(_), &[array, _]) if is_monoid(module, id) => {
                let count = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
                let (all, kept) = (count(array)?.max(1), count(id)?.max(1));
                Some(self.of(array)? + (all as f64 / kept as f64).log2())
            }
            (op, _) => match op.opcode() {
                // The state of a loop may be a product over its iterations.
                Opcode::Parameter if module.instruction(id).parent() == module.entry() => Some(0.0),
                Opcode::Iota => {
                    let elements = module.array_shape(id)?.num_elements()?.max(1);
                    Some((elements as f64).log2())
                }
                Opcode::Tanh
                | Opcode::Logistic
                | Opcode::Sin
                | Opcode::Cos
                | Opcode::Erf
                | Opcode::Sign => Some(0.0),
                Opcode::Add | Opcode::Subtract => Some(self.largest(operands)? + 1.0),
                Opcode::Maximum
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
                | Opcode::GetTupleElement => self.largest(operands),
                _ => None,
            },
        }
    }

    fn largest(&mut self, values: &[InstId]) -> Option<f64> {
        values.iter().try_fold(f64::NEG_INFINITY, |most, &id| Some(most.max(self.of(id)?)))
    }
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
