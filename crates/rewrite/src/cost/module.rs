//! Computes costs of a module that is not edited meanwhile.

use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use super::ledger::Ledger;
use super::{Cost, CostModel, Memo};

/// The cost of one instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionCost {
    /// The instruction.
    pub id: InstId,
    /// Its cost, with that of the computations it calls.
    pub cost: Cost,
}

/// Returns the modelled cost of running a module's entry once. Loop bodies count once, and
/// every branch of a conditional counts.
pub fn module_cost(module: &Module, target: &Target) -> Cost {
    let total = |ledger: &Ledger<'_>| module.entry().map(|entry| ledger.total(entry));
    with_ledger(module, target, total).unwrap_or_default()
}

/// Returns the modelled cost of each instruction of the entry computation, in order, and the
/// cycles in which the entry's kernels wait for main memory. Their sum is [`module_cost`].
pub fn instruction_costs(module: &Module, target: &Target) -> (Vec<InstructionCost>, f64) {
    let Some(entry) = module.entry() else { return Default::default() };
    with_ledger(module, target, |ledger| {
        let cost = |id| InstructionCost { id, cost: ledger.instruction(id) };
        (module.instructions(entry).map(cost).collect(), ledger.latency())
    })
}

/// Returns the number of sweeps in which the entry computation reads its largest arrays: those
/// with at least half as many elements as the largest one.
pub fn memory_sweeps(module: &Module, target: &Target) -> usize {
    with_ledger(module, target, |ledger| ledger.memory_sweeps(module))
}

/// Returns the peak number of bytes, padding included, that hold values while a module runs its
/// instructions in order. A value computed where it is used takes no bytes, but its operands
/// are kept for it. Parameters are kept throughout. Constants and other names of values do not
/// count.
pub fn peak_live_bytes(module: &Module, target: &Target) -> u64 {
    with_ledger(module, target, |ledger| ledger.peak_live_bytes(module))
}

fn with_ledger<T>(module: &Module, target: &Target, ask: impl FnOnce(&Ledger<'_>) -> T) -> T {
    let memo = Memo::default();
    ask(&Ledger::of(module, CostModel::new(target, &memo)))
}
