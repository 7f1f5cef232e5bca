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

use crate::analysis::reduce::reduced_arrays;

/// A value that is stored only because a reduction needs it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The value, which could be computed where it is used.
    pub(crate) value: InstId,
    /// The reduction.
    pub(crate) reduction: InstId,
    /// What reads the value within the reduction: the reduction itself, or what is
    /// computed for it alone.
    pub(crate) readers: SmallVec<[InstId; 2]>,
}

/// The computations that are the bodies of fusions, within which nothing is stored.
pub(crate) fn fused_computations(module: &Module) -> FxHashSet<CompId> {
    let mut fused = FxHashSet::default();
    for &computation in module.computations() {
        let fusions = module.instructions(computation);
        for id in fusions.filter(|&id| module.opcode(id) == Opcode::Fusion) {
            fused.extend(module.called(id));
        }
    }
    fused
}

/// The values of a computation that reductions share, reduction by reduction in the
/// order in which these stand; `fused` says what is computed where it is used. XLA:CPU leaves
/// elementwise operations on `many` elements to the library, too (`IsInstructionPreferredByYnn`
/// in `xla/backends/cpu/ynn_support.cc`).
pub(crate) fn shared_values(
    module: &Module,
    computation: CompId,
    many: u64,
    fused: &dyn Fn(InstId) -> bool,
) -> Vec<Shared> {
    let mut places: SecondaryMap<InstId, usize> = SecondaryMap::new();
    let mut reductions = Vec::new();
    for (place, id) in module.instructions(computation).enumerate() {
        places.set(id, place);
        if is_reduction(module, id) {
            reductions.push(id);
        }
    }
    let mut stored: FxHashMap<InstId, bool> = FxHashMap::default();
    let mut is_stored = |value: InstId| {
        *stored.entry(value).or_insert_with(|| is_stored_anyway(module, value, fused))
    };
    let mut shared: Vec<Shared> = Vec::new();
    for reduction in reductions {
        let found = of_reduction(module, reduction, &places, fused);
        shared.extend(found.into_iter().filter(|one| !is_stored(one.value)));
    }
    let mut times: FxHashMap<InstId, usize> = FxHashMap::default();
    shared.iter().for_each(|one| *times.entry(one.value).or_default() += 1);
    shared.retain(|one| {
        let is_of_few = elements(module, one.reduction).is_some_and(|count| count < many);
        times[&one.value] > 1 || is_of_few || waits_for_few(module, one.value, many)
    });
    shared
}

fn elements(module: &Module, id: InstId) -> Option<u64> {
    module.array_shape(id).and_then(ArrayShape::num_elements).map(i64::unsigned_abs)
}

fn is_reduction(module: &Module, id: InstId) -> bool {
    matches!(module.opcode(id), Opcode::Reduce | Opcode::ReduceWindow)
}

/// What is computed where it is used, but not for this reduction alone.
fn of_reduction(
    module: &Module,
    reduction: InstId,
    places: &SecondaryMap<InstId, usize>,
    fused: &dyn Fn(InstId) -> bool,
) -> Vec<Shared> {
    let mut own: FxHashSet<InstId> = FxHashSet::from_iter([reduction]);
    let mut readers: FxHashMap<InstId, SmallVec<[InstId; 2]>> = FxHashMap::default();
    // Last ones first, so that all users of a value were met before it is.
    let mut next: BinaryHeap<(usize, InstId)> = BinaryHeap::new();
    let mut shared = Vec::new();
    let (mut reader, mut operands) = (reduction, reduced_arrays(module, reduction));
    loop {
        for &operand in operands {
            if fused(operand) && module.opcode(operand) != Opcode::Constant {
                let of = readers.entry(operand).or_default();
                if of.is_empty() {
                    next.push((places[operand], operand));
                }
                if !of.contains(&reader) {
                    of.push(reader);
                }
            }
        }
        let Some((_, value)) = next.pop() else { return shared };
        let is_own =
            !module.is_root(value) && module.uses(value).all(|one| own.contains(&one.user));
        if is_own {
            own.insert(value);
        } else {
            let readers = readers.remove(&value).unwrap_or_default();
            shared.push(Shared { value, reduction, readers });
        }
        reader = value;
        operands = if is_own { module.operands(value) } else { &[] };
    }
}

/// No more reshapes and broadcasts are looked through for one value.
const MOST_STEPS: usize = 32;

/// Whether a value is computed of few numbers, spread out, so that nothing that computes
/// these and the value is one with it.
fn waits_for_few(module: &Module, value: InstId, many: u64) -> bool {
    module.operands(value).iter().any(|&operand| {
        let mut source = operand;
        for _ in 0..MOST_STEPS {
            match (module.opcode(source), module.operands(source)) {
                (Opcode::Broadcast | Opcode::Reshape, &[of]) => source = of,
                _ => break,
            }
        }
        let is_few = elements(module, source).is_some_and(|elements| elements < many);
        is_few && module.opcode(source) != Opcode::Constant
    })
}

/// Whether a value is stored whether or not reductions need it.
fn is_stored_anyway(module: &Module, value: InstId, fused: &dyn Fn(InstId) -> bool) -> bool {
    module.is_root(value)
        || module.uses(value).any(|one| !fused(one.user) && !is_reduction(module, one.user))
}
