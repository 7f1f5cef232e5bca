//! Values that leave the program: to other devices over channels, and to and
//! from the host.

use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::control::{InfeedAttrs, OutfeedAttrs, TransferAttrs};
use tilewright_ir::{ArrayShape, InstId, Shape};

use super::asynchronous::{element, zero};
use super::{Cx, bits, tuple, unsupported};
use crate::devices::exchange::{Handover, Label};
use crate::devices::groups::Numbers;
use crate::devices::trade::{Peers, parcel};
use crate::dynamic::{admits, admits_dims, shape_of};
use crate::error::{Fault, Outcome};
use crate::value::Value;

/// The frontend attribute that lists who sends to whom.
const PAIRS: &str = "_xla_send_recv_source_target_pairs";

/// Returns the host's infeed data, in the requested shape, and a token.
pub(super) fn infeed(cx: &mut Cx<'_, '_>, _attrs: &InfeedAttrs) -> Outcome<Value> {
    let [data, _token] = cx.shape().as_tuple().unwrap_or_default() else {
        return Err(Fault::Internal("an infeed yields data and a token"));
    };
    let data = fed(cx, data)?;
    Ok(tuple([data, Value::Token]))
}

fn fed(cx: &mut Cx<'_, '_>, shape: &Shape) -> Outcome<Value> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|shape| fed(cx, shape));
            Ok(tuple(elements.collect::<Outcome<Vec<_>>>()?))
        }
        Shape::Array(wanted) => {
            let next = cx.evaluator.infeed.pop_front().ok_or_else(|| {
                unsupported(
                    "nothing more was given for it to read (an array for each of its results)",
                )
            })?;
            let given = next.shape();
            let wrong = || unsupported(format!("it reads {wanted}, but what was given is {given}"));
            let array = next.as_array().filter(|array| admits_dims(wanted, array.dims()));
            let array = array.ok_or_else(wrong)?;
            let (from, to) = (array.element_type(), wanted.element_type);
            let allocation = cx.allocate(&ArrayShape::new(to, array.dims().iter().copied()))?;
            if from == to {
                return allocation.with(array.data().clone());
            }
            // Elements without a NumPy type are passed as their bits.
            if from.class() != NumberClass::Unsigned || from.bytes() != to.bytes() {
                return Err(wrong());
            }
            allocation.with(bits::reinterpret(array.data(), from, to)?)
        }
        other => zero(cx, other),
    }
}

pub(super) fn outfeed(cx: &mut Cx<'_, '_>, _attrs: &OutfeedAttrs) -> Outcome<Value> {
    let value = cx.take(0)?.into_literal();
    let value = value.map_err(|_| Fault::Internal("the value is not a literal"))?;
    cx.evaluator.outfeed.push(value);
    Ok(Value::Token)
}

/// Hands its operand out and goes on.
pub(super) fn send(cx: &mut Cx<'_, '_>, attrs: &TransferAttrs) -> Outcome<Value> {
    let channel = channel(attrs)?;
    let data = cx.take(0)?;
    let peers = peers(cx)?;
    for to in peers.targets {
        let (handover, turn) = cx.evaluator.next_turn(Handover::Channel { channel, to });
        let device = &cx.evaluator.device;
        let label = Label { handover, turn, from: device.number };
        device.exchange.put(label, parcel(std::slice::from_ref(&data))?, 1);
    }
    started(cx, data, 0)
}

pub(super) fn send_done(_cx: &mut Cx<'_, '_>, _attrs: &TransferAttrs) -> Outcome<Value> {
    Ok(Value::Token)
}

/// Puts its label into the number that its `recv-done` gets, and continues.
pub(super) fn recv(cx: &mut Cx<'_, '_>, attrs: &TransferAttrs) -> Outcome<Value> {
    let channel = channel(attrs)?;
    let shape = cx.shape().as_tuple().and_then(<[Shape]>::first);
    let shape = shape.ok_or(Fault::Internal("it yields a buffer, a number and a token"))?;
    let buffer = zero(cx, shape)?;
    let to = cx.evaluator.device.number;
    let awaited = match peers(cx)?.source {
        Some(from) => {
            // Counted by the sender's handover, as the sender does.
            let key = Handover::Channel { channel, to };
            let turn = cx.evaluator.received.entry((key, from)).or_default();
            *turn += 1;
            Some(Label { handover: key, turn: *turn, from })
        }
        None => None,
    };
    cx.evaluator.awaited.push(awaited);
    let number = u32::try_from(cx.evaluator.awaited.len())
        .map_err(|_| unsupported("it is run more than 2^32 times"))?;
    started(cx, buffer, number)
}

/// Returns the data sent; zeros without a sender.
pub(super) fn recv_done(cx: &mut Cx<'_, '_>, _attrs: &TransferAttrs) -> Outcome<Value> {
    let buffer = element(cx, 0)?;
    let number = element(cx, 1)?;
    let number = number.array()?.slice::<u32>()?.first().copied().unwrap_or(0);
    let awaited = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let awaited = awaited.and_then(|at| cx.evaluator.awaited.get(at).copied());
    let awaited = awaited.ok_or(Fault::Internal("its operand is of no recv"))?;
    let data = match awaited {
        None => buffer,
        Some(label) => {
            let device = &cx.evaluator.device;
            let taken = device.exchange.take(device.number, &[label])?;
            let parcel = taken.first().ok_or(Fault::Internal("a parcel is missing"))?;
            let mut values = cx.evaluator.unpack(parcel)?;
            let sent = values.pop().ok_or(Fault::Internal("a parcel is empty"))?;
            check_sent(cx, &sent)?;
            sent
        }
    };
    Ok(tuple([data, Value::Token]))
}

/// Checks that the data sent has the receiver's declared shape.
fn check_sent(cx: &Cx<'_, '_>, sent: &Value) -> Outcome<()> {
    let wanted = cx.shape().as_tuple().and_then(<[Shape]>::first);
    let wanted = wanted.ok_or(Fault::Internal("it yields data and a token"))?;
    let sent = shape_of(sent);
    if admits(wanted, &sent) {
        return Ok(());
    }
    let wanted = wanted.without_layout();
    Err(unsupported(format!("it receives {wanted}, but what was sent is {sent}")))
}

/// Returns the data, a number and a token.
fn started(cx: &Cx<'_, '_>, data: Value, number: u32) -> Outcome<Value> {
    let shape = cx.shape().as_tuple().and_then(|elements| elements.get(1));
    let shape = shape.ok_or(Fault::Internal("it yields data, a number and a token"))?;
    let number = cx.allocate(super::static_array(shape)?)?.of(vec![number])?;
    Ok(tuple([data, number, Value::Token]))
}

fn channel(attrs: &TransferAttrs) -> Outcome<i64> {
    if attrs.is_host_transfer {
        return Err(unsupported("there is no host to transfer to or from"));
    }
    attrs.channel_id.ok_or(unsupported("it has no channel_id"))
}

/// Returns the devices with which this device communicates over the channel of an instruction;
/// a single device communicates with itself.
fn peers(cx: &Cx<'_, '_>) -> Outcome<Peers> {
    let Some(pairs) = pairs(cx, cx.id)? else {
        let device = &cx.evaluator.device;
        if device.all.count() != Some(1) {
            return Err(unsupported(format!(
                "it does not say who sends to whom (in the frontend attribute `{PAIRS}`)"
            )));
        }
        return Ok(Peers { source: Some(0), targets: vec![0] });
    };
    let partitioned = cx.evaluator.device.all.partitions > 1;
    let numbers = if partitioned { Numbers::Partitions } else { Numbers::Replicas };
    Peers::of(&pairs, numbers, cx.evaluator)
}

/// `{{0,1},{1,2}}` in the frontend attributes of an instruction.
fn pairs(cx: &Cx<'_, '_>, id: InstId) -> Outcome<Option<Vec<(i64, i64)>>> {
    let Some(extras) = cx.module().extras(id) else { return Ok(None) };
    let mut attributes = extras.frontend_attributes.iter();
    let Some((_, text)) = attributes.find(|(name, _)| name == PAIRS) else { return Ok(None) };
    let numbers: Vec<i64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .filter_map(|word| word.parse().ok())
        .collect();
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(unsupported(format!("`{PAIRS}` has a source without a target")));
    }
    Ok(Some(pairs.iter().map(|&[source, target]| (source, target)).collect()))
}
