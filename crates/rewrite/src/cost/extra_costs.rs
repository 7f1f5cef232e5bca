//! The costs of instructions that depend on the whole computation. The ledger adds them to what the
//! instructions cost by themselves.

use rustc_hash::FxHashMap;
use tilewright_ir::InstId;

use super::Cost;
use super::total::Total;

/// The extra costs of instructions that depend on the whole computation, and their sum.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtraCosts {
    of: FxHashMap<InstId, Cost>,
    pub(super) total: Total,
}

impl ExtraCosts {
    pub(super) fn add_cycles(&mut self, id: InstId, cycles: f64) {
        let cost = Cost { cycles, ..Cost::default() };
        *self.of.entry(id).or_default() += cost;
        self.total.add(cost);
    }

    pub(super) fn of(&self, id: InstId) -> Cost {
        self.of.get(&id).copied().unwrap_or_default()
    }
}
