//! Comparisons that rounding alone decides.
//!
//! `sum(x - mean(x)) == 0` holds over the reals, whatever `x` is; in floats it holds where
//! the rounding errors of the sum cancel, which they may do in one order of its terms and
//! not in another. Both sides of such a comparison are the same element of the field.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{Data, InstId, Op, Verified};

use super::compare::{AlgebraOptions, evaluate, least_steps};
use super::field::{UNSURE, marks, residue};
use super::inputs::inputs;
use crate::devices::tells_devices_apart;
use crate::error::{Fault, Outcome};
use crate::inputs::InputKind;
use crate::limits::Ledger;
use crate::value::Value;

/// The comparisons of a module whose sides are equal over the reals, element by element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ties {
    equal: FxHashMap<InstId, Vec<bool>>,
}

impl Ties {
    /// Those of a module, found on one input over the field. None are found in a module
    /// that runs on several devices, or needs more than the limits.
    pub fn of(module: &Verified, options: &AlgebraOptions) -> Self {
        let AlgebraOptions { seed, limits } = *options;
        let compares = |&&id: &&InstId| matches!(module.op(id), Op::Compare(_));
        let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
        let is_within = !tells_devices_apart(module) && least_steps(module) <= limits.max_steps;
        if !is_within || !all.any(|id| compares(&&id)) {
            return Self::default();
        }
        let Ok(inputs) = inputs(module, seed, InputKind::Normal, &limits) else {
            return Self::default();
        };
        match evaluate(module, &inputs, limits) {
            Ok((_, field)) => field.ties.nonempty(),
            Err(_) => Self::default(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.equal.is_empty()
    }

    /// Takes in a comparison over the field: of one in a loop, only what is equal in every
    /// turn is kept.
    pub(crate) fn note(&mut self, id: InstId, sides: &[Value]) {
        let [Value::Array(a), Value::Array(b)] = sides else { return };
        let (Data::F64(a), Data::F64(b)) = (a.data(), b.data()) else { return };
        let is_tie = |(a, b): (&f64, &f64)| {
            let (a, b) = (a.to_bits(), b.to_bits());
            marks(a | b) & UNSURE == 0 && residue(a) == residue(b)
        };
        let ties = || a.iter().zip(b).map(is_tie);
        match self.equal.entry(id) {
            Entry::Occupied(known) => {
                known.into_mut().iter_mut().zip(ties()).for_each(|(known, tie)| *known &= tie);
            }
            // Nothing is kept of most comparisons but that they have no tie.
            Entry::Vacant(place) => {
                let any = ties().any(|tie| tie);
                place.insert(if any { ties().collect() } else { Vec::new() });
            }
        }
    }

    /// Without comparisons that have no tie.
    fn nonempty(mut self) -> Self {
        self.equal.retain(|_, ties| ties.contains(&true));
        self
    }

    /// The result of a comparison with its ties decided as over the reals.
    pub(crate) fn decide(
        &self,
        id: InstId,
        direction: Direction,
        result: Value,
        ledger: &Rc<Ledger>,
    ) -> Outcome<Value> {
        let (Some(ties), Value::Array(array)) = (self.equal.get(&id), &result) else {
            return Ok(result);
        };
        let holds = matches!(direction, Direction::Eq | Direction::Le | Direction::Ge);
        array.clone().modify(ledger, |data| {
            let Data::Pred(values) = data else {
                return Err(Fault::Internal("a comparison gives no truth values"));
            };
            for (value, _) in values.iter_mut().zip(ties).filter(|(_, tie)| **tie) {
                *value = holds;
            }
            Ok(())
        })
    }
}
