//! Computes the costs of a module that is not being edited, for reports and for callers outside of
//! this crate. Each function builds a [`Ledger`] and asks it once.

use std::sync::atomic::AtomicBool;

use tilewright_ir::{ArrayShape, Dims, InstId, Module, Opcode};
use tilewright_target::{Footprint, Target};

use super::calls::{counts, runs_its_callees};
use super::devices::Devices;
use super::ledger::Ledger;
use super::memory::{MemoryUse, run_by};
use super::{Cost, CostModel, Memo};
use crate::analysis::sharding::{Axes, DeviceMesh, Flow, Spread};
use crate::guards::{calls_guard, is_guard};

/// The cost of one instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstructionCost {
    /// The instruction.
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

/// Computes the modelled cost of running a module's entry once. The body of a loop counts as often as it runs, or once
/// if that is not known; every branch of a conditional counts. A guard counts as `guard_cycles`, without its branches.
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

/// Computes the modelled cost of each instruction that a module runs on arrays, also within calls and loops, for all
/// of its runs. A call has no cost of its own; a guard or a fusion counts as one instruction.
pub fn run_costs(module: &Module, target: &Target) -> Vec<InstructionCost> {
    let runs = |id: InstId| {
        let opcode = module.opcode(id);
        let is_whole = opcode == Opcode::Fusion || is_guard(module, id) || calls_guard(module, id);
        runs_its_callees(opcode) && !is_whole
    };
    with_ledger(module, target, |ledger| {
        let mut costs = Vec::new();
        let computations = run_by(module, runs);
        let counts = counts(module, &computations, runs);
        for computation in computations {
            let count = counts.get(&computation).copied().unwrap_or(1);
            let own = module.instructions(computation).filter(|&id| !runs(id));
            let cost = |id| InstructionCost { id, cost: ledger.instruction(id).times(count) };
            costs.extend(own.map(cost));
        }
        costs
    })
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

/// Finds what a module holds in memory, as [`peak_live_bytes`] counts it; of a module that is divided over
/// several devices, what one of them holds.
pub fn memory_use(module: &Module, target: &Target) -> MemoryUse {
    with_ledger(module, target, |ledger| {
        let footprint = |id: InstId| ledger.facts()[id].footprint;
        let Some(mesh) = DeviceMesh::of(module) else {
            return MemoryUse::of(module, ledger.facts(), footprint);
        };
        let (flow, devices) = (Flow::of(module, &mesh), Devices::of(module));
        let part = |id: InstId| part_of(module.array_shape(id)?, flow.spread(id)?, &mesh, target);
        let of_device = |id: InstId| part(id).unwrap_or_else(|| footprint(id));
        let found = MemoryUse::of(module, ledger.facts(), of_device);
        let is_whole = |id: InstId| {
            let parent = module.instruction(id).parent();
            part(id).is_none() && !parent.is_some_and(|parent| devices.holds_parts(parent))
        };
        let counted_whole = found.arrays.iter().filter(|array| is_whole(array.id)).count();
        MemoryUse { counted_whole, ..found }
    })
}

/// Returns the memory of the part of an array that a device holds. The last part is padded to the size of the others.
fn part_of(
    array: &ArrayShape,
    spread: &Spread,
    mesh: &DeviceMesh,
    target: &Target,
) -> Option<Footprint> {
    let part = |(&dim, axes): (&i64, &Axes)| {
        let parts = mesh.parts(axes).max(1);
        dim.checked_add(parts.checked_sub(1)?)?.checked_div(parts)
    };
    let dims: Dims = array.dims().iter().zip(spread.iter()).map(part).collect::<Option<_>>()?;
    let part = ArrayShape::new(array.element_type, dims).with_layout(array.layout.clone());
    Some(target.footprint(&part))
}

fn with_ledger<T>(module: &Module, target: &Target, ask: impl FnOnce(&Ledger<'_>) -> T) -> T {
    let memo = Memo::default();
    ask(&Ledger::of(module, CostModel::new(target, &memo)))
}
