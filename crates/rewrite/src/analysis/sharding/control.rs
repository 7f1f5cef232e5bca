//! How the state of loops and the results of branches lie over devices.

use tilewright_ir::ops::control::WhileAttrs;
use tilewright_ir::{CompId, InstId, Op};

use super::flow::{Elements, Flow, ValueFacts, Wait};
use super::spread::Spread;
use crate::analysis::trip_count::trip_count;
use crate::guards::{FAILED, is_guard};

impl Flow<'_> {
    /// Goes through a loop. An element of its state lies in one way before and after each turn: as
    /// far divided as either, since each device can take its part of what it has. If both divide it
    /// in different ways, nothing is known of it.
    pub(super) fn looped(&mut self, id: InstId, attrs: &WhileAttrs, before: Wait) -> ValueFacts {
        let state = self.module().operands(id).first();
        let mut elements = state.map(|&state| self.elements_of(state)).unwrap_or_default();
        let is_new = !self.has_entered(attrs.body) && !self.has_entered(attrs.condition);
        if !is_new {
            elements.fill(None);
        }
        let first = self.exchanges.len();
        let mut turn = Wait::default();
        loop {
            let (exchanges, entered) = (self.exchanges.len(), self.entered.clone());
            let given = |_| elements.clone();
            turn.join(&self.enter_with(attrs.body, Wait::default(), None, given).waits);
            let kept = joined(&elements, &self.results_of(attrs.body));
            if kept == elements {
                break;
            }
            elements = kept;
            match self.turns_left.checked_sub(1) {
                Some(left) => self.turns_left = left,
                None => elements.fill(None),
            }
            self.exchanges.truncate(exchanges);
            (self.entered, turn) = (entered, Wait::default());
        }
        let given = |_| elements.clone();
        turn.join(&self.enter_with(attrs.condition, Wait::default(), None, given).waits);
        let turns = trip_count(self.module(), id).unwrap_or(1);
        if turns == 0 {
            self.exchanges.truncate(first);
        }
        for exchange in self.exchanges.since(first) {
            exchange.level = before.level_in_loop(&turn, turns, exchange.level);
            exchange.of_loop.get_or_insert(id);
            exchange.turns = exchange.turns.saturating_mul(turns);
        }
        let mut waits = before;
        waits.for_loop(&turn, turns);
        self.handed_back(id, elements, waits)
    }

    /// Goes through branches, but not through that of a guard which is seldom taken. A result is as far divided as
    /// in any of them, or nothing is known of it.
    pub(super) fn branched(&mut self, id: InstId, op: &Op, before: Wait) -> ValueFacts {
        let mut branches: Vec<CompId> = Vec::new();
        op.for_each_computation(&mut |branch| branches.push(branch));
        if is_guard(self.module(), id) {
            branches.truncate(FAILED);
        }
        let (mut met, mut waits): (Option<Elements>, Wait) = (None, before.clone());
        for (&branch, &argument) in branches.iter().zip(self.module().operands(id).iter().skip(1)) {
            let is_new = !self.has_entered(branch);
            let given = self.elements_of(argument);
            waits.join(&self.enter_with(branch, before.clone(), None, |_| given.clone()).waits);
            let mut results = self.results_of(branch);
            if !is_new {
                results.fill(None);
            }
            met = Some(met.map_or(results.clone(), |met| joined(&met, &results)));
        }
        self.handed_back(id, met.unwrap_or_default(), waits)
    }

    fn results_of(&self, computation: CompId) -> Elements {
        let root = self.module().computation(computation).root();
        root.map(|root| self.elements_of(root)).unwrap_or_default()
    }

    /// Records how the results of a loop or of branches lie.
    fn handed_back(&mut self, id: InstId, elements: Elements, waits: Wait) -> ValueFacts {
        let is_array = self.module().array_shape(id).is_some();
        let spread = elements.first().cloned().flatten().filter(|_| is_array);
        self.elements.insert(id, elements);
        ValueFacts { spread, waits }
    }
}

/// Returns how elements lie that are as far divided as those of either tuple.
fn joined(one: &Elements, other: &Elements) -> Elements {
    let join = |(place, spread): (usize, &Option<Spread>)| {
        spread.as_ref()?.joined(other.get(place)?.as_ref()?)
    };
    one.iter().enumerate().map(join).collect()
}
