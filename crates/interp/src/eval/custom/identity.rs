//! Evaluates calls that only annotate a value, such as its placement.

use crate::error::Outcome;
use crate::eval::{Cx, unsupported};
use crate::value::Value;

/// Returns the operand.
pub(super) fn same_value(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let operand = cx.module().operands(cx.id).first().copied();
    let same = operand.is_some_and(|id| cx.module().shape(id).compatible(cx.shape()));
    if !same {
        return Err(unsupported(format!("it yields {} of another shape", cx.shape())));
    }
    cx.take(0)
}
