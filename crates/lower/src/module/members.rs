//! Counts at how many indices the instructions of a group are wanted.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use tilewright_ir::{InstId, Module, Op};

/// The number of an index; 0 is that of the stored value.
type IndexNumber = usize;

/// Returns the instructions among `candidates` that are computed for a stored value, and the
/// values that they read. Candidates that may be wanted at more than `most` indices are read,
/// too, if `most` is given: if each were computed at all its indices, a chain of slices would
/// have exponentially many values.
pub(super) fn members(
    module: &Module,
    stored: InstId,
    candidates: &FxHashSet<InstId>,
    places: &FxHashMap<InstId, usize>,
    most: Option<usize>,
) -> (FxHashSet<InstId>, Vec<InstId>) {
    let (mut computed, mut read) = (FxHashSet::default(), Vec::new());
    let mut wanted: FxHashMap<InstId, SmallVec<[IndexNumber; 4]>> = FxHashMap::default();
    wanted.insert(stored, smallvec![0]);
    let place = |id: InstId| places.get(&id).copied().unwrap_or(0);
    // Users come before operands, so all indices of an instruction are known at its turn.
    let mut open = BTreeMap::from([(place(stored), stored)]);
    let mut next: IndexNumber = 1;
    while let Some((_, id)) = open.pop_last() {
        let indices = wanted.get(&id).cloned().unwrap_or_default();
        let few = most.is_none_or(|most| indices.len() <= most) || is_free(module.op(id));
        if !(id == stored || (few && candidates.contains(&id))) {
            read.push(id);
            continue;
        }
        computed.insert(id);
        for &operand in module.operands(id) {
            let scalar = module.array_shape(operand).is_some_and(|shape| shape.rank() == 0);
            let indices = match module.op(id) {
                _ if scalar => smallvec![0],
                // A reduction computes its operand once, however many instructions read the
                // result.
                Op::Reduce(_) => smallvec![0],
                Op::Copy => indices.clone(),
                op if op.opcode().is_elementwise() => indices.clone(),
                _ => {
                    let from = next;
                    next = next.saturating_add(indices.len());
                    (from..next).collect()
                }
            };
            let of = wanted.entry(operand).or_default();
            for index in indices {
                // One more than the most says that there are too many.
                if of.len() <= most.unwrap_or(0) && !of.contains(&index) {
                    of.push(index);
                }
            }
            open.insert(place(operand), operand);
        }
    }
    (computed, read)
}

/// Checks whether an instruction costs nothing at each index.
fn is_free(op: &Op) -> bool {
    matches!(op, Op::Broadcast(_) | Op::Iota(_) | Op::Constant(_))
}
