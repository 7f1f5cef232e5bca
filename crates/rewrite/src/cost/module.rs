//! Computes the costs of a module that is not being edited.

use std::sync::atomic::AtomicBool;

use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use super::ledger::Ledger;
use super::{Cost, CostModel, Memo};

/// The cost of one instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionCost {
    /// The instruction.
    pub id: InstId,
    /// Its cost, with the computations that it calls.
    pub cost: Cost,
}

/// The costs of a module and of its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleCosts {
    /// The cost of the module: the sum of the others.
    pub total: Cost,
    /// The cost of each instruction of the entry computation, in order.
    pub instructions: Vec<InstructionCost>,
    /// The cycles in which the entry's kernels wait for main memory.
    pub latency: f64,
}

impl ModuleCosts {
    /// Computes the costs of a module: [`module_cost`] and [`instruction_costs`].
    pub fn new(module: &Module, target: &Target) -> Self {
        with_ledger(module, target, |ledger| Self::of(module, ledger))
    }

    /// As [`Self::new`]; `None` if another thread sets `cancel` meanwhile.
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

/// Computes the modelled cost of running a module's entry once. Loop bodies count once, and every
/// branch of a conditional counts.
pub fn module_cost(module: &Module, target: &Target) -> Cost {
    let total = |ledger: &Ledger<'_>| module.entry().map(|entry| ledger.total(entry));
    with_ledger(module, target, total).unwrap_or_default()
}

/// Computes the modelled cost of each instruction of the entry computation, in order, and the
/// cycles in which the entry's kernels wait for main memory. Their sum is [`module_cost`].
pub fn instruction_costs(module: &Module, target: &Target) -> (Vec<InstructionCost>, f64) {
    let costs = ModuleCosts::new(module, target);
    (costs.instructions, costs.latency)
}

/// Counts the sweeps in which the entry computation reads its largest arrays: those with more than
/// half as many elements as the largest array.
pub fn memory_sweeps(module: &Module, target: &Target) -> usize {
    with_ledger(module, target, |ledger| ledger.memory_sweeps(module))
}

/// Computes the most bytes, padding included, that hold values at once while a module runs its
/// instructions in their order. A value that is computed where it is used takes no memory, but its
/// operands are kept until then. Parameters are kept throughout. Constants and aliases are not
/// counted.
pub fn peak_live_bytes(module: &Module, target: &Target) -> u64 {
    with_ledger(module, target, |ledger| ledger.peak_live_bytes(module))
}

fn with_ledger<T>(module: &Module, target: &Target, ask: impl FnOnce(&Ledger<'_>) -> T) -> T {
    let memo = Memo::default();
    ask(&Ledger::of(module, CostModel::new(target, &memo)))
}
