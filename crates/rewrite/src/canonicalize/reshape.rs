//! Reshapes in their simplest form.
//!
//! - `reshape(x) = x` where nothing changes;
//! - `reshape(reshape(x)) = reshape(x)`;
//! - `reshape(broadcast(scalar)) = broadcast(scalar)`.

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::reshape_op;
use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReshapeCanonical;

impl Pass for ReshapeCanonical {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn summary(&self) -> &'static str {
        "merge reshapes and drop those that change nothing"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    let (Op::Reshape(attrs), [operand]) = (module.op(id), module.operands(id)) else { return None };
    let (from, to) = (module.array_shape(*operand)?, module.array_shape(id)?);
    let free = attrs.inferred_dimension.is_none()
        && module.extras(id).is_none()
        && from.is_static()
        && to.is_static();
    if !free {
        return None;
    }
    let mut patch = Patch::new();
    if from.dims() == to.dims() && from.layout_or_default() == to.layout_or_default() {
        patch.replace(id, Value::Old(*operand));
        return Some(patch);
    }
    let replacement = match (module.op(*operand), module.operands(*operand)) {
        (Op::Reshape(inner), [source])
            if inner.inferred_dimension.is_none() && module.extras(*operand).is_none() =>
        {
            patch.add(id, reshape_op(), module.shape(id).clone(), [Value::Old(*source)])
        }
        (Op::Broadcast(_), [source])
            if module.array_shape(*source)?.rank() == 0 && module.extras(*operand).is_none() =>
        {
            let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
            patch.add(id, op, module.shape(id).clone(), [Value::Old(*source)])
        }
        _ => return None,
    };
    patch.replace(id, replacement);
    Some(patch)
}
