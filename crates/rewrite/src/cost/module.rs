//! Computes the costs of a module that is not being edited, for reports and for callers outside of
//! this crate. Each function builds a [`Ledger`] and asks it once.

use std::sync::atomic::AtomicBool;

use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use super::ledger::Ledger;
use super::{Cost, CostModel, Memo};

/// The cost of one instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionCost {
    /// The instruction of the entry computation.
    pub id: InstId,
    /// The cost of the instruction, with the computations that it calls.
    pub cost: Cost,
}

/// The cost of a module, and of each instruction of its entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleCosts {
    /// The cost of running the entry once: the sum of `instructions` and `latency`.
    pub total: Cost,
    /// The cost of each instruction of the entry computation, in order.
    pub instructions: Vec<InstructionCost>,
    /// The cycles in which the entry's kernels wait for main memory and for other devices.
    pub latency: f64,
}

impl ModuleCosts {
    /// Computes the costs of a module that [`module_cost`] and [`instruction_costs`] return.
    pub fn new(module: &Module, target: &Target) -> Self {
        with_ledger(module, target, |ledger| Self::of(module, ledger))
    }

    /// Computes the same costs as [`Self::new`]. Returns `None` if another thread sets `cancel`
    /// meanwhile.
    pub fn with_cancel(module: &Module, target: &Target, cancel: &AtomicBool) -> Option<Self> {
        let memo = Memo::default();
        let ledger = Ledger::with_cancel(module, CostModel::new(target, &memo), cancel)?;
        Some(Self::of(module, &ledger))
    }

    fn of(module: &Module, ledger: &Ledger<'_>) -> Self {
        let Some(entry) = module.entry() else { return Self::default() };
        let cost = |id| InstructionCost { id, cost: ledger.instruction(id) };
        Self {
            total: ledger.total(entry),
            instructions: module.instructions(entry).map(cost).collect(),
            latency: ledger.latency(),
        }
    }
}

/// Computes the modelled cost of running a module's entry once. A loop body counts once, and every
/// branch of a conditional counts. A guard counts as `guard_cycles`, without its branches.
pub fn module_cost(module: &Module, target: &Target) -> Cost {
    let total = |ledger: &Ledger<'_>| module.entry().map(|entry| ledger.total(entry));
    with_ledger(module, target, total).unwrap_or_default()
}

/// Computes the modelled cost of each instruction of the entry computation, in order, and the
/// cycles in which the entry's kernels wait for main memory and for other devices. The sum of all
/// of these is [`module_cost`].
pub fn instruction_costs(module: &Module, target: &Target) -> (Vec<InstructionCost>, f64) {
    let costs = ModuleCosts::new(module, target);
    (costs.instructions, costs.latency)
}

/// Counts the sweeps in which the entry computation reads its largest arrays: those with more than
/// half as many elements as the largest one.
pub fn memory_sweeps(module: &Module, target: &Target) -> usize {
    with_ledger(module, target, |ledger| ledger.memory_sweeps(module))
}

/// Computes the peak live bytes of a module: the most bytes, padding included, that its values
/// occupy at once while its instructions run in order. A value that is computed where it is used
/// takes no memory, but its operands are kept until then. Parameters of the entry are kept
/// throughout. Constants, aliases, tuples, slices that are not fused and guards are not counted.
pub fn peak_live_bytes(module: &Module, target: &Target) -> u64 {
    with_ledger(module, target, |ledger| ledger.peak_live_bytes(module))
}

fn with_ledger<T>(module: &Module, target: &Target, ask: impl FnOnce(&Ledger<'_>) -> T) -> T {
    let memo = Memo::default();
    ask(&Ledger::of(module, CostModel::new(target, &memo)))
}
