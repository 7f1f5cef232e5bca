//! Computes the peak live bytes of a computation: the most memory that its values occupy at once.
//! The ledger asks for each computation that the entry runs, callees first.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, SecondaryMap};

use super::ledger::runs_its_callees;
use super::residency::AllFacts;
use super::sweeps::filled;

/// Computes the peak live bytes of a computation and its callees. `peaks` holds those of the
/// callees. The parameters of a computation other than the entry belong to its caller and are not
/// counted.
pub(super) fn peak(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
    peaks: &FxHashMap<CompId, u64>,
) -> u64 {
    let order: Vec<InstId> = module.instructions(computation).collect();
    let live_ranges = live_ranges(module, &order, facts);
    let mut ends: Vec<u64> = vec![0; order.len()];
    let (mut live, mut most) = (0u64, 0u64);
    for (position, &id) in order.iter().enumerate() {
        let (op, range) = (module.op(id), live_ranges[id]);
        let is_kept = range.takes_memory && !matches!(op, Op::Constant(_));
        let bytes = if is_kept { facts[id].footprint.padded_bytes } else { 0 };
        let runs = runs_its_callees(op.opcode());
        let callees = if runs { module.called(id) } else { SmallVec::new() };
        let inside = callees.iter().filter_map(|callee| peaks.get(callee)).max().copied();
        let parameter = matches!(op, Op::Parameter(_));
        if !parameter || module.entry() == Some(computation) {
            live = live.saturating_add(bytes);
            let end = if parameter { None } else { ends.get_mut(range.last) };
            if let Some(end) = end {
                *end = end.saturating_add(bytes);
            }
        }
        most = most.max(live.saturating_add(inside.unwrap_or(0)));
        live = live.saturating_sub(ends[position]);
    }
    most
}

/// The time for which the value of an instruction is kept.
#[derive(Clone, Copy, Default)]
struct LiveRange {
    /// The position, in the order of the computation, of the last instruction that needs the value.
    last: usize,
    /// Whether the value takes memory of its own: see
    /// [`Role::takes_memory`](super::roles::Role::takes_memory).
    takes_memory: bool,
    /// Whether a user has the value stored, to read it from memory.
    is_stored: bool,
}

/// Computes how long the value of each instruction is kept. A value that takes no memory keeps its
/// operands until its own last use.
fn live_ranges(
    module: &Module,
    order: &[InstId],
    facts: &AllFacts,
) -> SecondaryMap<InstId, LiveRange> {
    let mut live_ranges: SecondaryMap<InstId, LiveRange> = filled(module, order.len());
    for (position, &id) in order.iter().enumerate().rev() {
        let (role, is_root) = (facts.role(id), module.is_root(id));
        let mut range = live_ranges[id];
        range.last = if is_root { order.len() - 1 } else { range.last.max(position) };
        range.takes_memory = role.takes_memory(is_root || range.is_stored);
        live_ranges.set(id, range);
        let until = if range.takes_memory { position } else { range.last };
        for &operand in module.operands(id) {
            let of = live_ranges.get_mut(operand);
            of.last = of.last.max(until);
            of.is_stored |= role.stores_operands;
        }
    }
    live_ranges
}

/// Returns the entry and all computations that it runs on whole arrays, callees first.
pub(super) fn computations_run(module: &Module) -> Vec<CompId> {
    let mut is_run: FxHashSet<CompId> = module.entry().into_iter().collect();
    let mut run = Vec::new();
    for &computation in module.computations().iter().rev() {
        if !is_run.contains(&computation) {
            continue;
        }
        run.push(computation);
        for id in module.instructions(computation) {
            if runs_its_callees(module.opcode(id)) {
                is_run.extend(module.called(id));
            }
        }
    }
    run.reverse();
    run
}
