//! Conversions in their simplest form.
//!
//! - `convert(x) = x` where the type stays;
//! - `convert(convert(x: A): B): C = convert(x): C` where B has every value of
//!   A, and C takes them from both types in the same way: it has them all, or A
//!   and B are both integers, or neither is. (An integer that is too large for C
//!   wraps around; one that goes by way of a float is clamped.)
//!
//! A conversion is not moved through broadcasts, reshapes or transposes: it is
//! computed where it is read, so that nothing is gained by its place.

use tilewright_ir::{EditError, ElementType, InstId, Module, Op, Patch, Value};

use crate::analysis::types::holds;
use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ConvertCanonical;

impl Pass for ConvertCanonical {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn summary(&self) -> &'static str {
        "merge conversions and drop those that change nothing"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    let mut source = operand_of_convert(module, id)?;
    let to = module.array_shape(id)?;
    let (from, to_type) = (module.array_shape(source)?.element_type, to.element_type);
    if from != to_type {
        let inner = operand_of_convert(module, source)?;
        if !merges(module.array_shape(inner)?.element_type, from, to_type) {
            return None;
        }
        source = inner;
    }
    let origin = module.array_shape(source)?;
    if !origin.same_dims(to) || origin.layout_or_default() != to.layout_or_default() {
        return None;
    }
    let mut patch = Patch::new();
    let simpler = if origin.element_type == to_type {
        Value::Old(source)
    } else {
        patch.add(id, Op::Convert, module.shape(id).clone(), [Value::Old(source)])
    };
    patch.replace(id, simpler);
    Some(patch)
}

/// What is converted, by a conversion with nothing attached.
fn operand_of_convert(module: &Module, id: InstId) -> Option<InstId> {
    match (module.op(id), module.operands(id)) {
        (Op::Convert, [operand]) if module.extras(id).is_none() => Some(*operand),
        _ => None,
    }
}

/// Whether a value of type `a` becomes the same in type `c` directly and by way
/// of type `b`.
fn merges(a: ElementType, b: ElementType, c: ElementType) -> bool {
    holds(b, a) && (a.is_integer() == b.is_integer() && a != ElementType::Pred || holds(c, a))
}
