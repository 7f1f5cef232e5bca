//! Hands values of an evaluation to other devices and takes theirs.

use std::sync::Arc;

use tilewright_ir::{InstId, Literal};

use super::Parcel;
use super::exchange::{Handover, Label};
use super::groups::Numbers;
use crate::error::{Fault, Outcome};
use crate::frame::Evaluator;
use crate::value::Value;

impl Evaluator<'_> {
    /// Hands operands to all devices of a group that has this one, and takes
    /// theirs, in the order of the group.
    pub(crate) fn trade(
        &mut self,
        id: InstId,
        operands: impl IntoIterator<Item = Value>,
        group: &[usize],
    ) -> Outcome<Vec<Vec<Value>>> {
        let operands: Vec<Value> = operands.into_iter().collect();
        let me = self.device.number;
        let (handover, turn) = self.next_turn(Handover::Collective(id));
        let label = |from: usize| Label { handover, turn, from };
        let others: Vec<usize> = group.iter().copied().filter(|&device| device != me).collect();
        if !others.is_empty() {
            self.device.exchange.put(label(me), parcel(&operands)?, others.len());
        }
        let labels: Vec<Label> = others.iter().map(|&device| label(device)).collect();
        let mut theirs = self.device.exchange.take(me, &labels)?.into_iter();
        let mut all = Vec::with_capacity(group.len());
        for &device in group {
            all.push(if device == me {
                operands.clone()
            } else {
                self.unpack(&theirs.next().ok_or(Fault::Internal("a parcel is missing"))?)?
            });
        }
        Ok(all)
    }

    /// Hands operands to the devices that these pairs (source first) assign to this device, and
    /// takes the values that its own source hands out; `None` without a source.
    pub(crate) fn pass(
        &mut self,
        id: InstId,
        operands: impl IntoIterator<Item = Value>,
        pairs: &[(i64, i64)],
        numbers: Numbers,
    ) -> Outcome<Option<Vec<Value>>> {
        let operands: Vec<Value> = operands.into_iter().collect();
        let (handover, turn) = self.next_turn(Handover::Collective(id));
        let peers = Peers::of(pairs, numbers, self)?;
        let label = |from: usize| Label { handover, turn, from };
        let takers = peers.targets.len();
        self.device.exchange.put(label(self.device.number), parcel(&operands)?, takers);
        let Some(source) = peers.source else { return Ok(None) };
        let taken = self.device.exchange.take(self.device.number, &[label(source)])?;
        taken.first().map(|parcel| self.unpack(parcel)).transpose()
    }

    /// Returns how often this device came to a handover before.
    pub(crate) fn next_turn(&mut self, handover: Handover) -> (Handover, u64) {
        let turn = self.turns.entry(handover).or_default();
        *turn += 1;
        (handover, *turn)
    }

    /// Returns the values that another device handed out.
    pub(crate) fn unpack(&self, parcel: &Parcel) -> Outcome<Vec<Value>> {
        parcel.iter().map(|value| Value::from_literal(value, &self.ledger)).collect()
    }
}

/// Values, to be read by other devices.
pub(crate) fn parcel(values: &[Value]) -> Outcome<Parcel> {
    let literals = values.iter().map(|value| {
        value.clone().into_literal().map_err(|_| Fault::Internal("a value is not a literal"))
    });
    Ok(Arc::new(literals.collect::<Outcome<Vec<Literal>>>()?))
}

/// With whom a device deals.
pub(crate) struct Peers {
    pub(crate) source: Option<usize>,
    pub(crate) targets: Vec<usize>,
}

impl Peers {
    /// Finds the peers of this device among pairs of sources and targets.
    pub(crate) fn of(
        pairs: &[(i64, i64)],
        numbers: Numbers,
        evaluator: &Evaluator<'_>,
    ) -> Outcome<Self> {
        let me = &evaluator.device;
        let mut peers = Self { source: None, targets: Vec::new() };
        for &(source, target) in pairs {
            let source = numbers.checked(source, me.all)?;
            let target = numbers.checked(target, me.all)?;
            if source == numbers.name(me) {
                peers.targets.extend(numbers.devices(target, me));
            }
            if target == numbers.name(me) {
                peers.source = numbers.devices(source, me).next();
            }
        }
        Ok(peers)
    }
}
