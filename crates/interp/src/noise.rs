//! An evaluation in which every rounding may fall the other way.
//!
//! The interpreter adds up in `f64` and rounds once, and gives exactly zero where equal
//! numbers cancel: it is better there than engines are. What error a program has of its own
//! shows where each result that is rounded moves to a number next to it (Monte Carlo
//! arithmetic: Parker, "Monte Carlo Arithmetic", 1997).

use std::rc::Rc;

use tilewright_ir::InstId;

use crate::error::Outcome;
use crate::frame::Evaluator;
use crate::nudge::{Movable, Move, nudge};
use crate::rounding::rounds;
use crate::value::Value;

impl Evaluator<'_> {
    /// An instruction's value, moved if there is noise and the instruction rounds.
    pub(crate) fn with_noise(&self, id: InstId, value: Value) -> Outcome<Value> {
        match self.noise {
            Some(seed) if rounds(self.module, id) => self.moved(value, seed),
            _ => Ok(value),
        }
    }

    /// Equal numbers move alike, so that what a program computes twice stays equal to
    /// itself. Numbers of few digits stay: counts, for one, which no engine rounds.
    fn moved(&self, value: Value, seed: u64) -> Outcome<Value> {
        match value {
            Value::Array(array) => array.modify(&self.ledger, |data| {
                nudge(data, &|Movable { bits, is_short, .. }| match is_short {
                    true => Move::Stay,
                    false => Move::by_chance(bits, seed),
                });
                Ok(())
            }),
            Value::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.moved(element.clone(), seed));
                Ok(Value::Tuple(Rc::new(elements.collect::<Outcome<_>>()?)))
            }
            Value::Token => Ok(Value::Token),
        }
    }
}
