//! What instructions that call computations mean to costs.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Op, Opcode};

use super::devices::Devices;
use crate::analysis::trip_count::trip_count;

/// Checks whether the computations that an op calls work on whole arrays. The computations of
/// reduces, sorts and similar ops work on elements, and the cost of such an op includes them.
pub(super) fn runs_its_callees(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
    )
}

/// Checks whether the computations that an op calls read its operands.
pub(super) fn calls_whole(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::While | Opcode::Conditional | Opcode::Call)
}

/// Checks whether an op only hands on its operands, which lie in memory, to a tuple or to computations.
pub(super) fn hands_on_stored(op: &Op) -> bool {
    match op {
        Op::Tuple | Op::OptimizationBarrier | Op::AddDependency => true,
        Op::CustomCall(attrs) => attrs.crossing().is_some(),
        _ => calls_whole(op.opcode()),
    }
}

/// Checks whether an instruction is an element of the state of a loop, as its body or its condition reads it.
pub(super) fn is_carried(module: &Module, id: InstId) -> bool {
    let is_in_entry = module.instruction(id).parent() == module.entry();
    let is_parameter = |&of: &InstId| module.opcode(of) == Opcode::Parameter;
    module.opcode(id) == Opcode::GetTupleElement
        && !is_in_entry
        && module.operands(id).iter().any(is_parameter)
}

/// Returns the instructions of a computation that call any of the computations `of`.
pub(super) fn callers(module: &Module, computation: CompId, of: &FxHashSet<CompId>) -> Vec<InstId> {
    // Most edits are in the entry alone, which nothing calls.
    if of.iter().all(|&callee| module.entry() == Some(callee)) {
        return Vec::new();
    }
    let calls = |id: &InstId| module.called(*id).iter().any(|callee| of.contains(callee));
    module.instructions(computation).filter(calls).collect()
}

/// Returns the loops whose first state is one of these tuples: how often they run depends on its elements.
pub(super) fn loops_from(module: &Module, tuples: &[InstId]) -> Vec<InstId> {
    let tuples = tuples.iter().filter(|&&id| module.opcode(id) == Opcode::Tuple);
    let users = tuples.flat_map(|&id| module.uses(id)).map(|one| one.user);
    users.filter(|&user| module.opcode(user) == Opcode::While).collect()
}

/// Returns how often each of these computations counts, callees first as they are in a module: once for each call, and
/// in each call once for each turn and device. A loop of unknown length counts as one turn.
pub(super) fn counts(
    module: &Module,
    computations: &[CompId],
    runs: impl Fn(InstId) -> bool,
) -> FxHashMap<CompId, u64> {
    let devices = Devices::of(module);
    let mut counts: FxHashMap<CompId, u64> =
        module.entry().map(|entry| (entry, 1)).into_iter().collect();
    for &computation in computations.iter().rev() {
        let own = counts.get(&computation).copied().unwrap_or(0);
        for id in module.instructions(computation).filter(|&id| runs(id)) {
            let turns = trip_count(module, id).unwrap_or(1);
            module.op(id).for_each_computation(&mut |callee| {
                let times = devices.repeats(callee).saturating_mul(turns);
                let count = counts.entry(callee).or_insert(0u64);
                *count = count.saturating_add(own.saturating_mul(times));
            });
        }
    }
    counts
}
