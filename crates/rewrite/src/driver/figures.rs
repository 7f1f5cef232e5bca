//! The modelled figures of a module, and the report on a run.

use tilewright_ir::Module;
use tilewright_target::Target;

use super::report::{Note, PassReport, Report, StopReason, caveat};
use crate::analysis::sharding::Traffic;
use crate::canonicalize::batch_norm::as_run;
use crate::cost::{Cost, CostModel, Ledger};

/// The modelled figures of a module.
#[derive(Clone, Copy)]
pub(super) struct Figures {
    pub(super) cost: Cost,
    peak_live_bytes: u64,
    memory_sweeps: usize,
    /// How much devices communicate, if the module is divided over several.
    pub(super) traffic: Option<Traffic>,
    caveat: Option<&'static str>,
}

/// The notes and results of a run.
pub(super) struct Done<'a> {
    pub(super) target: &'a Target,
    pub(super) notes: Vec<Note>,
    pub(super) stopped: StopReason,
    /// [`Options::stop_after`](super::options::Options::stop_after).
    pub(super) stop_after: Option<u64>,
    pub(super) passes: Vec<PassReport>,
}

impl Figures {
    /// Returns the figures of a module as XLA runs it.
    pub(super) fn of(module: &Module, model: CostModel<'_>) -> Self {
        let module = as_run(module);
        Self::from_ledger(&module, &Ledger::of(&module, model))
    }

    pub(super) fn from_ledger(module: &Module, ledger: &Ledger<'_>) -> Self {
        Self {
            cost: module.entry().map(|entry| ledger.total(entry)).unwrap_or_default(),
            peak_live_bytes: ledger.peak_live_bytes(module),
            memory_sweeps: ledger.memory_sweeps(module),
            traffic: ledger.traffic(module),
            caveat: caveat(module),
        }
    }

    /// Returns the cycles below which a rewritten module is kept. A loop of unknown length
    /// repeats what its body saves, so that no saving of a module with such loops, or with branches, is small.
    pub(super) fn enough(&self, target: &Target) -> f64 {
        let cycles = self.cost.cycles;
        let small = if self.caveat.is_some() { 0.0 } else { target.small_saving_cycles };
        let of_small = (cycles / target.least_small_gain).max(cycles - small);
        of_small.min(cycles / target.least_gain)
    }

    /// Returns the report on a module that is given back as it was: `self` has its figures before
    /// the passes, `after` those after them.
    pub(super) fn report(&self, after: &Self, done: Done<'_>) -> Report {
        Report {
            target: done.target.name.clone(),
            ratio_error: done.target.ratio_error,
            before: self.cost,
            after: after.cost,
            peak_live_bytes: [self.peak_live_bytes, after.peak_live_bytes],
            memory_sweeps: [self.memory_sweeps, after.memory_sweeps],
            traffic: self.traffic.zip(after.traffic).map(|(before, after)| [before, after]),
            passes: done.passes,
            stopped: done.stopped,
            stopped_after: done.stop_after.filter(|_| done.stopped == StopReason::StopAfter),
            notes: done.notes,
            unchanged: true,
            caveat: after.caveat,
        }
    }
}
