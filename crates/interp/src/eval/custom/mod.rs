//! Custom calls whose meaning is known: one file for each family.
//!
//! A target is a name in [`FAMILIES`], [`NativeCall::TARGET`], [`NativeProgram::TARGET`] or begins with
//! `lapack_`; for other targets, [`opaque`] makes up results if the caller wants that. A known target without an evaluation gives the
//! reason; `docs/oracle.md` lists both.

mod householder;
mod identity;
mod lapack;
mod native;
mod opaque;
mod pivots;
mod shards;
mod tridiagonal;

use tilewright_ir::ops::control::CustomCallAttrs;
use tilewright_ir::{NativeCall, NativeProgram};

use super::{Cx, sort, unsupported};
use crate::dynamic::any_dynamic;
use crate::error::Outcome;
use crate::strides::extent;
use crate::value::Value;

/// Evaluates a custom call.
type Family = fn(&mut Cx<'_, '_>) -> Outcome<Value>;

/// Targets by name.
const FAMILIES: &[(&str, Family)] = &[
    ("LayoutConstraint", identity::same_value),
    ("MoveToDevice", identity::same_value),
    ("MoveToHost", identity::same_value),
    ("PinToDevice", identity::same_value),
    ("PinToDeviceSram", identity::same_value),
    ("SPMDFullToShardShape", shards::to_shard),
    ("SPMDShardToFullShape", shards::to_whole),
    ("Sharding", identity::same_value),
    ("TopK", top_k),
    ("annotate_device_placement", identity::same_value),
    ("xla.sdy.FuncResultSharding", identity::same_value),
    ("xla.sdy.GlobalToLocalShape", shards::to_shard),
    ("xla.sdy.LocalToGlobalShape", shards::to_whole),
];

/// Checks whether a custom call computes nothing, or only chooses among its operands.
pub(crate) fn moves_only(attrs: &CustomCallAttrs) -> bool {
    FAMILIES.iter().any(|(name, _)| *name == attrs.custom_call_target.as_str())
}

pub(super) fn custom_call(cx: &mut Cx<'_, '_>, attrs: &CustomCallAttrs) -> Outcome<Value> {
    let target = attrs.custom_call_target.as_str();
    if let Some((_, family)) = FAMILIES.iter().find(|(name, _)| *name == target) {
        return family(cx);
    }
    if let Some(call) = lapack::Call::of(target) {
        check_static(cx)?;
        return lapack::evaluate(cx, call);
    }
    if target == NativeCall::TARGET {
        return native::evaluate(cx);
    }
    if target == NativeProgram::TARGET {
        return native::program(cx);
    }
    if cx.evaluator.invents {
        return opaque::evaluate(cx, attrs);
    }
    Err(unsupported(format!(
        "the custom call target `{target}` is not known; put ops of HLO in its place, or cut the \
         program before it (docs/oracle.md lists the targets that are known)"
    )))
}

/// The results of a custom call are unknown for sizes known only at run time.
fn check_static(cx: &Cx<'_, '_>) -> Outcome<()> {
    let operands = cx.module().operands(cx.id).iter();
    match operands.map(|&operand| cx.module().shape(operand)).find(|shape| any_dynamic(shape)) {
        Some(shape) => Err(unsupported(format!("it takes no {}", shape.without_layout()))),
        None => Ok(()),
    }
}

/// Returns the largest elements of each row and their places, like the op `topk`; the result's
/// shape gives their number.
fn top_k(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    check_static(cx)?;
    let count = cx.leaf_shape(0)?.dims().last().map_or(0, |&size| extent(size));
    sort::largest(cx, count, true)
}
