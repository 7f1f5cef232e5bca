//! Transfers: a start and its done are one operation of StableHLO.

use tilewright_ir::ops::control::TransferAttrs;
use tilewright_ir::{InstId, Op};

use super::body::Body;
use super::error::Export;
use crate::mlir::{Attribute, Attributes};

/// The types of StableHLO's channels.
const DEVICE_TO_DEVICE: i64 = 1;
const DEVICE_TO_HOST: i64 = 2;
const HOST_TO_DEVICE: i64 = 3;

const ONE_OP: &str =
    "StableHLO has a start and its done as one op; let the done take its start itself";

/// A start is written where its done is, which alone takes it.
pub(super) fn start<'m>(body: &mut Body<'_, 'm>, id: InstId, _: &'m Op) -> Export<()> {
    let module = body.exporter.module;
    let is_done = |user| matches!(module.op(user), Op::SendDone(_) | Op::RecvDone(_));
    match module.uses(id).all(|one| is_done(one.user)) {
        true => Ok(()),
        false => Err(body.unsupported(ONE_OP)),
    }
}

pub(super) fn send<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::SendDone(attrs) = op else { return Err(body.invalid("it is no send-done")) };
    transfer(body, id, attrs, ("stablehlo.send", DEVICE_TO_HOST))
}

pub(super) fn recv<'m>(body: &mut Body<'_, 'm>, id: InstId, op: &'m Op) -> Export<()> {
    let Op::RecvDone(attrs) = op else { return Err(body.invalid("it is no recv-done")) };
    transfer(body, id, attrs, ("stablehlo.recv", HOST_TO_DEVICE))
}

fn transfer(
    body: &mut Body<'_, '_>,
    id: InstId,
    attrs: &TransferAttrs,
    (name, of_host): (&str, i64),
) -> Export<()> {
    let start = body.operand(id, 0)?;
    if !matches!(body.exporter.module.op(start), Op::Send(_) | Op::Recv(_)) {
        return Err(body.unsupported(
            "StableHLO has a start and its done as one op; let it take its start itself",
        ));
    }
    let operands = body.operand_values(start)?;
    let Some(channel) = attrs.channel_id else {
        return Err(body.unsupported("StableHLO's transfers need a channel; give it a channel_id"));
    };
    let kind = if attrs.is_host_transfer { of_host } else { DEVICE_TO_DEVICE };
    let parameters =
        vec![("handle".into(), Attribute::i64(channel)), ("type".into(), Attribute::i64(kind))];
    let attributes: Attributes = vec![
        ("channel_handle".into(), Attribute::structure("stablehlo", "channel_handle", parameters)),
        ("is_host_transfer".into(), Attribute::Bool(attrs.is_host_transfer)),
    ];
    body.emit(id, name, &operands, attributes, Vec::new())
}
