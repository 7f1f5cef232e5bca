//! How instructions that call computations, such as loops, count in costs.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module, Op, Opcode};

use super::devices::Devices;
use super::parts::writes_part;
use super::residency::AllFacts;
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

/// Returns the bodies and conditions of loops.
pub(super) fn loop_computations(module: &Module) -> FxHashSet<CompId> {
    let all =
        module.computations().iter().flat_map(|&computation| module.instructions(computation));
    all.filter(|&id| module.opcode(id) == Opcode::While).flat_map(|id| module.called(id)).collect()
}

/// Checks whether an instruction of a loop's body or condition is an element of the loop's state, updated in place or
/// not.
pub(super) fn is_of_state(module: &Module, mut id: InstId) -> bool {
    while let (true, Some(&array)) = (writes_part(module.opcode(id)), module.operands(id).first()) {
        id = array;
    }
    let is_parameter = |&of: &InstId| module.opcode(of) == Opcode::Parameter;
    let is_part = module.opcode(id) == Opcode::GetTupleElement;
    is_parameter(&id) || is_part && module.operands(id).iter().any(is_parameter)
}

/// Returns how often an instruction runs a computation that it calls: a loop runs its body as often as it turns, or once
/// if that is not known, and its condition once more.
pub(super) fn runs(module: &Module, id: InstId, callee: CompId) -> u64 {
    let Op::While(attrs) = module.op(id) else { return 1 };
    let turns = trip_count(module, id).unwrap_or(1);
    if callee == attrs.condition { turns.saturating_add(1) } else { turns }
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
/// in each call once for each turn and device.
pub(super) fn counts(
    module: &Module,
    computations: &[CompId],
    calls: impl Fn(InstId) -> bool,
) -> FxHashMap<CompId, u64> {
    let devices = Devices::of(module);
    let mut counts: FxHashMap<CompId, u64> =
        module.entry().map(|entry| (entry, 1)).into_iter().collect();
    for &computation in computations.iter().rev() {
        let own = counts.get(&computation).copied().unwrap_or(0);
        for id in module.instructions(computation).filter(|&id| calls(id)) {
            module.op(id).for_each_computation(&mut |callee| {
                let times = devices.repeats(callee).saturating_mul(runs(module, id, callee));
                let count = counts.entry(callee).or_insert(0u64);
                *count = count.saturating_add(own.saturating_mul(times));
            });
        }
    }
    counts
}

/// Returns the results of the entry, or of a loop's body, that nothing else there reads, as pairs: the instruction whose
/// cost includes storing the result, and the result.
pub(super) fn outputs(
    module: &Module,
    computation: CompId,
    facts: &AllFacts,
) -> Vec<(InstId, InstId)> {
    let Some(root) = module.computation(computation).root() else { return Vec::new() };
    let is_tuple = module.opcode(root) == Opcode::Tuple;
    let results = if is_tuple { module.operands(root) } else { std::slice::from_ref(&root) };
    let mut seen = FxHashSet::default();
    let once = results.iter().filter(|&&result| seen.insert(result));
    let pairs = once.filter_map(|&result| {
        let is_read = module.uses(result).any(|one| one.user != root);
        let opcode = module.opcode(result);
        let is_given = matches!(opcode, Opcode::Parameter | Opcode::Constant);
        let is_new = !is_given && !writes_part(opcode);
        match facts[result].is_inlined() {
            true => Some((root, result)),
            false if is_new && !is_read && facts.role(result).takes_memory(false) => {
                Some((result, result))
            }
            false => None,
        }
    });
    pairs.collect()
}
