//! What reductions share with others.
//!
//! A compiler that fuses what computes a reduction's operand into the reduction only
//! where nothing else uses it stores what others use, too, so that the reduction can
//! read it. XLA:CPU does so for the reductions that it leaves to a library
//! (`xla/backends/cpu/transforms/library_rewriter.cc`); unless the others are left to it
//! as well, and are one with the reduction: so it is with what is computed of many
//! numbers, for one reduction.

use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Opcode, SecondaryMap};

use super::reduce::reduced_arrays;

/// A value that is stored only because a reduction needs it.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The value, which could be computed where it is used.
    pub value: InstId,
    /// The reduction.
    pub reduction: InstId,
    /// What reads the value within the reduction: the reduction itself, or what is
    /// computed for it alone.
    pub readers: SmallVec<[InstId; 2]>,
}

/// XLA:CPU leaves elementwise operations on so many elements to the library, too
/// (`IsInstructionPreferredByYnn` in `xla/backends/cpu/ynn_support.cc`).
const MANY: i64 = 4096;

/// The values of a computation that reductions share, reduction by reduction in the
/// order in which these stand; `fused` says what is computed where it is used.
pub fn shared_values(
    module: &Module,
    computation: CompId,
    fused: &dyn Fn(InstId) -> bool,
) -> Vec<Shared> {
    let mut places: SecondaryMap<InstId, usize> = SecondaryMap::new();
    let mut reductions = Vec::new();
    for (place, id) in module.instructions(computation).enumerate() {
        places.set(id, place);
        if matches!(module.opcode(id), Opcode::Reduce | Opcode::ReduceWindow) {
            reductions.push(id);
        }
    }
    let of = |&reduction: &InstId| of_reduction(module, reduction, &places, fused);
    let mut shared: Vec<Shared> = reductions.iter().flat_map(of).collect();
    let mut times: FxHashMap<InstId, usize> = FxHashMap::default();
    shared.iter().for_each(|one| *times.entry(one.value).or_default() += 1);
    shared.retain(|one| times[&one.value] > 1 || waits_for_few(module, one.value));
    shared
}

fn of_reduction(
    module: &Module,
    reduction: InstId,
    places: &SecondaryMap<InstId, usize>,
    fused: &dyn Fn(InstId) -> bool,
) -> Vec<Shared> {
    let mut own: FxHashSet<InstId> = FxHashSet::from_iter([reduction]);
    let mut seen: FxHashSet<InstId> = FxHashSet::default();
    // Last ones first, so that all users of a value were met before it is.
    let mut next: BinaryHeap<(usize, InstId)> = BinaryHeap::new();
    let mut meet = |next: &mut BinaryHeap<(usize, InstId)>, operands: &[InstId]| {
        let computed = |id| fused(id) && module.opcode(id) != Opcode::Constant;
        let new = operands.iter().filter(|&&operand| computed(operand) && seen.insert(operand));
        next.extend(new.map(|&operand| (places[operand], operand)));
    };
    meet(&mut next, reduced_arrays(module, reduction));
    let mut shared = Vec::new();
    while let Some((_, value)) = next.pop() {
        let users = module.users(value);
        if !module.is_root(value) && users.iter().all(|user| own.contains(user)) {
            own.insert(value);
            meet(&mut next, module.operands(value));
        } else if !is_stored_anyway(module, value, fused) {
            let mut readers: SmallVec<[InstId; 2]> =
                users.into_iter().filter(|user| own.contains(user)).collect();
            readers.sort_unstable();
            readers.dedup();
            shared.push(Shared { value, reduction, readers });
        }
    }
    shared
}

/// Whether a value is computed of few numbers, spread out, so that nothing that computes
/// these and the value is one with it.
fn waits_for_few(module: &Module, value: InstId) -> bool {
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
    module.operands(value).iter().any(|&operand| {
        let mut source = operand;
        while let (Opcode::Broadcast | Opcode::Reshape, &[of]) =
            (module.opcode(source), module.operands(source))
        {
            source = of;
        }
        let is_few = elements(source).is_some_and(|elements| elements < MANY);
        is_few && module.opcode(source) != Opcode::Constant
    })
}

/// Whether a value is stored whether or not reductions need it.
fn is_stored_anyway(module: &Module, value: InstId, fused: &dyn Fn(InstId) -> bool) -> bool {
    let is_reduction =
        |id: InstId| matches!(module.opcode(id), Opcode::Reduce | Opcode::ReduceWindow);
    module.is_root(value)
        || module.users(value).into_iter().any(|user| !fused(user) && !is_reduction(user))
}
