//! Ops between devices. One device takes part: number 0.

use tilewright_ir::Data;
use tilewright_ir::ops::collective::CollectiveAttrs;

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::value::Value;

/// `partition-id` and `replica-id`.
pub(super) fn device_id(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let zeros = Data::zeros(allocation.element_type, allocation.len);
    allocation.with(zeros)
}

pub(super) fn declared(_cx: &mut Cx<'_, '_>, _attrs: &CollectiveAttrs) -> Outcome<Value> {
    Err(unsupported("ops between devices"))
}
