//! An evaluation in which every rounding may fall the other way.
//!
//! The interpreter adds up in `f64` and rounds once, and returns exactly zero if equal numbers
//! cancel, so it is more exact than engines. To show a program's own error, noise moves each
//! rounded result to a neighbouring number (Monte Carlo arithmetic: Parker, "Monte Carlo
//! Arithmetic", 1997), and splits sums into parts that are rounded before they are added, as in
//! engines.

use std::rc::Rc;

use smallvec::smallvec;
use tilewright_ir::{Data, InstId, Op, Opcode};

use crate::compare::are_finite;
use crate::error::Outcome;
use crate::eval::{self, Cx, Operands, elementwise};
use crate::frame::Evaluator;
use crate::lanes::single_op;
use crate::nudge::{Movable, Move, nudge};
use crate::rounding::rounds;
use crate::value::Value;

impl Evaluator<'_> {
    /// Returns a sum of floats as the sum of two parts: a term's bits and the seed decide its
    /// part, so that equal rows have equal sums. Returns `None` for other instructions, and if
    /// a part overflows: engines do not have these parts.
    pub(crate) fn sum_of_parts(
        &mut self,
        id: InstId,
        operands: &Operands,
        seed: u64,
    ) -> Outcome<Option<Value>> {
        let Op::Reduce(attrs) = self.module.op(id) else { return Ok(None) };
        let adds = single_op(self.module, attrs.to_apply)
            .is_some_and(|op| self.module.opcode(op) == Opcode::Add);
        let [Value::Array(terms), Value::Array(init)] = operands.as_slice() else {
            return Ok(None);
        };
        if !adds || !is_zero(init.data()) {
            return Ok(None);
        }
        let shape = self.module.shape(id);
        let mut parts = Operands::new();
        for number in 0..2 {
            let terms = terms.clone().modify(&self.ledger, |data| {
                part(data, seed, number);
                Ok(())
            })?;
            let operands = smallvec![terms, Value::Array(init.clone())];
            parts.push(eval::instruction(&mut Cx { evaluator: self, id, shape, operands })?);
        }
        let sum = elementwise::sum(&Cx { evaluator: self, id, shape, operands: parts })?;
        let array = sum.array()?;
        let finite = are_finite(array.data(), array.element_type()).into_iter().all(|it| it);
        Ok(finite.then_some(sum))
    }

    /// Returns an instruction's value, moved if there is noise and the instruction rounds.
    pub(crate) fn with_noise(&self, id: InstId, value: Value) -> Outcome<Value> {
        match self.noise {
            Some(seed) if rounds(self.module, id) => self.moved(value, seed),
            _ => Ok(value),
        }
    }

    /// Moves equal numbers equally, so that values computed twice stay equal. Numbers of few
    /// digits, such as counts, do not move, because no engine rounds them.
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

/// Checks whether all are zero, and floats of 16 bits and more.
fn is_zero(data: &Data) -> bool {
    match data {
        Data::F16(v) => v.iter().all(|x| x.to_f64() == 0.0),
        Data::BF16(v) => v.iter().all(|x| x.to_f64() == 0.0),
        Data::F32(v) => v.iter().all(|x| *x == 0.0),
        Data::F64(v) => v.iter().all(|x| *x == 0.0),
        _ => false,
    }
}

/// Keeps the terms of one of two parts, with zeros for the others.
fn part(data: &mut Data, seed: u64, number: u64) {
    macro_rules! keep {
        ($terms:ident) => {
            for term in $terms.iter_mut() {
                let first = Move::by_chance(term.to_bits().into(), seed) == Move::Away;
                if first != (number == 0) {
                    *term = Default::default();
                }
            }
        };
    }
    match data {
        Data::F16(terms) => keep!(terms),
        Data::BF16(terms) => keep!(terms),
        Data::F32(terms) => keep!(terms),
        Data::F64(terms) => keep!(terms),
        _ => {}
    }
}
