//! Ops between devices. One device takes part: number 0.

use tilewright_ir::Data;
use tilewright_ir::ops::collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, GroupAttrs, PermuteAttrs, ReduceScatterAttrs,
};

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::value::Value;

/// `partition-id` and `replica-id`.
pub(super) fn device_id(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let zeros = Data::zeros(allocation.element_type, allocation.len);
    allocation.with(zeros)
}

pub(super) fn all_gather(_cx: &mut Cx<'_, '_>, _attrs: &AllGatherAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn all_gather_start(_cx: &mut Cx<'_, '_>, _attrs: &AllGatherAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn all_reduce(_cx: &mut Cx<'_, '_>, _attrs: &AllReduceAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn all_reduce_start(_cx: &mut Cx<'_, '_>, _attrs: &AllReduceAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn all_reduce_done(_cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    not_yet()
}

pub(super) fn done(_cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    not_yet()
}

pub(super) fn reduce_scatter(_cx: &mut Cx<'_, '_>, _attrs: &ReduceScatterAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn all_to_all(_cx: &mut Cx<'_, '_>, _attrs: &AllToAllAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn broadcast(_cx: &mut Cx<'_, '_>, _attrs: &GroupAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn ragged_all_to_all(_cx: &mut Cx<'_, '_>, _attrs: &GroupAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn permute(_cx: &mut Cx<'_, '_>, _attrs: &PermuteAttrs) -> Outcome<Value> {
    not_yet()
}

pub(super) fn permute_start(_cx: &mut Cx<'_, '_>, _attrs: &PermuteAttrs) -> Outcome<Value> {
    not_yet()
}

fn not_yet() -> Outcome<Value> {
    Err(unsupported("ops between devices"))
}
