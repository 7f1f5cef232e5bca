//! What several reductions ask about a module.

use std::collections::HashMap;

use tilewright::ir::{CompId, InstId, Module, Op, Opcode};

/// Returns all instructions, callees before callers.
pub(super) fn all_instructions(module: &Module) -> impl Iterator<Item = InstId> + '_ {
    module.computations().iter().flat_map(|&computation| module.instructions(computation))
}

/// Returns the instructions of the entry.
pub(super) fn entry_instructions(module: &Module) -> impl Iterator<Item = InstId> + '_ {
    module.entry().into_iter().flat_map(|entry| module.instructions(entry))
}

/// Checks whether an instruction is where values begin: a parameter, a constant, an iota, or a
/// constant that is repeated.
pub(super) fn is_leaf(module: &Module, id: InstId) -> bool {
    let is_plain = |id: InstId| {
        matches!(module.opcode(id), Opcode::Parameter | Opcode::Constant | Opcode::Iota)
    };
    let repeats = module.opcode(id) == Opcode::Broadcast
        && module.operands(id).iter().all(|&id| module.opcode(id) == Opcode::Constant);
    is_plain(id) || repeats
}

/// Returns the instructions that call each computation.
pub(super) fn callers(module: &Module) -> HashMap<CompId, Vec<InstId>> {
    let mut callers: HashMap<CompId, Vec<InstId>> = HashMap::new();
    for id in all_instructions(module) {
        for callee in module.called(id) {
            callers.entry(callee).or_default().push(id);
        }
    }
    callers
}

/// Returns the only caller of a computation.
pub(super) fn only_caller(
    callers: &HashMap<CompId, Vec<InstId>>,
    computation: CompId,
) -> Option<InstId> {
    match callers.get(&computation).map(Vec::as_slice) {
        Some([only]) => Some(*only),
        Some(_) | None => None,
    }
}

/// Returns the elements that instructions take of a tuple, with their numbers; `None` if the
/// tuple is used in another way. The tuple may be a root.
pub(super) fn elements_taken(module: &Module, tuple: InstId) -> Option<Vec<(InstId, usize)>> {
    let uses = module.uses(tuple);
    uses.map(|found| match module.op(found.user) {
        Op::GetTupleElement(attrs) => Some((found.user, usize::try_from(attrs.index).ok()?)),
        _ => None,
    })
    .collect()
}
