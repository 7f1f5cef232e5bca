//! Calls that say where or how a value lies, and compute nothing.

use super::opaque;
use crate::error::Outcome;
use crate::eval::{Cx, unsupported};
use crate::value::Value;

/// The operands, of a call between the shapes of the whole and of a shard, where there is
/// a single shard. Where there are several, something of the right shape, if the caller
/// wants that: what it is depends on a partitioner.
pub(super) fn shard(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    if cx.evaluator.invents { opaque::between_shards(cx) } else { same_value(cx) }
}

/// The operand.
pub(super) fn same_value(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let operand = cx.module().operands(cx.id).first().copied();
    let same = operand.is_some_and(|id| cx.module().shape(id).compatible(cx.shape()));
    if !same {
        return Err(unsupported(format!(
            "it yields {} of another shape; run the partitioner first, which leaves no such calls",
            cx.shape()
        )));
    }
    cx.take(0)
}
