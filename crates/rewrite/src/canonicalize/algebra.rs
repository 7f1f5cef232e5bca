//! What operations leave as it is.
//!
//! ```text
//! x ∘ e = e ∘ x = x      x * 1, x + 0, x + (-0.0), max(x, -inf), and(x, true) ...
//! x ∘ x = x              max, min, and, or
//! x ∘ a = a ∘ x = a      integer x * 0, and(x, false), or(x, true)
//! x / 1 = x - 0 = x      -(-x) = not(not(x)) = reverse(reverse(x)) = x
//! select(true, x, y) = select(p, x, x) = x
//! ```
//!
//! Every one of them holds to the last bit for all values of its type, NaN and
//! `-0.0` among them. So `x + 0.0` stays, which turns `-0.0` into `0.0`, and so do
//! `x - x` and `x * 0.0` of floats; and complex products, where an infinite part
//! meets a zero. A number in every place is a constant of equal elements, or a
//! broadcast or reshape of one.
//!
//! Preconditions: static dims, one layout, nothing attached to what goes.

use rustc_hash::FxHashMap;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{ArrayLiteral, Data, EditError, InstId, Module, Op, Opcode, Patch, Value};

use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct Algebra;

impl Pass for Algebra {
    fn name(&self) -> &'static str {
        "algebra"
    }

    fn summary(&self) -> &'static str {
        "drop operations that change no value: `x * 1`, `select(true, x, y)`"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        let splats = splats(module);
        simplify(module, |module, id| {
            let simpler = simpler(module, &splats, id)?;
            let (from, to) = (module.array_shape(simpler)?, module.array_shape(id)?);
            let same = from.element_type == to.element_type
                && from.same_dims(to)
                && from.is_static()
                && from.layout_or_default() == to.layout_or_default();
            let mut patch = Patch::new();
            patch.replace(id, Value::Old(simpler));
            same.then_some(patch)
        })
    }
}

/// The numbers that are in every place of an array.
type Splats = FxHashMap<InstId, ArrayLiteral>;

fn splats(module: &Module) -> Splats {
    let mut splats = Splats::default();
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let splat = match (module.op(id), module.operands(id)) {
            (Op::Constant(value), _) => value.as_array().and_then(ArrayLiteral::splat),
            (Op::Broadcast(_) | Op::Reshape(_), [source]) => splats.get(source).cloned(),
            _ => None,
        };
        if let Some(splat) = splat {
            splats.insert(id, splat);
        }
    }
    splats
}

/// The operand, or the operand's operand, that an instruction is.
fn simpler(module: &Module, splats: &Splats, id: InstId) -> Option<InstId> {
    if module.extras(id).is_some() {
        return None;
    }
    match (module.op(id), module.operands(id)) {
        (Op::Select, &[which, on_true, on_false]) => {
            if on_true == on_false {
                return Some(on_true);
            }
            match splats.get(&which)?.data() {
                Data::Pred(holds) => Some(if *holds.first()? { on_true } else { on_false }),
                _ => None,
            }
        }
        (Op::Negate | Op::Not | Op::Reverse(_), &[operand]) => undone(module, id, operand),
        (Op::Subtract, &[x, number]) => is_zero(splats.get(&number)?).then_some(x),
        (Op::Divide, &[x, number]) => {
            is_neutral(Opcode::Multiply, splats.get(&number)?).then_some(x)
        }
        (op, &[x, y]) => combined(op.opcode(), splats, x, y),
        _ => None,
    }
}

/// What an op is applied to that is its own inverse, where it is applied twice.
fn undone(module: &Module, id: InstId, operand: InstId) -> Option<InstId> {
    let [source] = *module.operands(operand) else { return None };
    let same = match (module.op(id), module.op(operand)) {
        (Op::Negate, Op::Negate) | (Op::Not, Op::Not) => true,
        (Op::Reverse(one), Op::Reverse(other)) => {
            let (mut one, mut other) = (one.dimensions.clone(), other.dimensions.clone());
            one.sort_unstable();
            other.sort_unstable();
            one == other
        }
        _ => false,
    };
    (same && module.extras(operand).is_none()).then_some(source)
}

/// What a sum, product or the like of two values is, if it is one of them.
fn combined(opcode: Opcode, splats: &Splats, x: InstId, y: InstId) -> Option<InstId> {
    let idempotent = matches!(opcode, Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or);
    if x == y && idempotent {
        return Some(x);
    }
    for (number, other) in [(x, y), (y, x)] {
        let Some(splat) = splats.get(&number) else { continue };
        if is_neutral(opcode, splat) {
            return Some(other);
        }
        if absorbs(opcode, splat) {
            return Some(number);
        }
    }
    None
}

/// Whether combining with a number changes nothing, to the last bit.
fn is_neutral(opcode: Opcode, number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    if element_type.is_complex() && opcode != Opcode::Add {
        return false;
    }
    let identity = Monoid { opcode, element_type }.identity();
    identity.as_ref().and_then(|identity| identity.as_array()) == Some(number)
}

/// Whether combining anything with a number is that number.
fn absorbs(opcode: Opcode, number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    match opcode {
        Opcode::Multiply => {
            !element_type.is_float() && !element_type.is_complex() && is_zero(number)
        }
        // What is neutral to one absorbs all in the other.
        Opcode::And => is_neutral(Opcode::Or, number),
        Opcode::Or => is_neutral(Opcode::And, number),
        _ => false,
    }
}

/// Whether a number is zero, and not `-0.0`. The bits of small floats are not
/// looked at: not all of them have a zero.
fn is_zero(number: &ArrayLiteral) -> bool {
    let element_type = number.element_type();
    let small = element_type.is_float() && element_type.bits() <= 8;
    !small && number.data() == &Data::zeros(element_type, 1)
}
