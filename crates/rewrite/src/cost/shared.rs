//! Finds the values that a reduction shares with other users.
//!
//! Some compilers fuse the producers of a reduction's operand into the reduction only if
//! nothing else uses them. A producer with other users is stored, so that the reduction can
//! read it. XLA:CPU does so for the reductions that it leaves to a library
//! (`xla/backends/cpu/transforms/library_rewriter.cc`). The exception is a value that is
//! computed from many numbers and shared by a single reduction: the library then also gets its
//! other users, and they form one unit with the reduction.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Opcode};

use crate::analysis::reduce::reduced_arrays;

/// A value that is stored only because a reduction needs it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The value, which could be computed where it is used.
    pub(crate) value: InstId,
    /// The reduction.
    pub(crate) reduction: InstId,
    /// The instructions that read the value within the reduction: the reduction itself, or
    /// instructions that only it uses.
    pub(crate) readers: SmallVec<[InstId; 2]>,
}

/// Returns the computations that are the bodies of fusions; nothing is stored within them.
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

/// Returns the values of a computation that reductions share, in the order of the reductions.
/// `fused` tells whether an instruction is computed where it is used. XLA:CPU leaves
/// elementwise operations on `many` elements to the library, too (`IsInstructionPreferredByYnn`
/// in `xla/backends/cpu/ynn_support.cc`).
pub(crate) fn shared_values(
    module: &Module,
    computation: CompId,
    many: u64,
    fused: &dyn Fn(InstId) -> bool,
) -> Vec<Shared> {
    let mut stored: FxHashMap<InstId, bool> = FxHashMap::default();
    let mut is_stored = |value: InstId| {
        *stored.entry(value).or_insert_with(|| is_stored_anyway(module, value, fused))
    };
    let mut shared: Vec<Shared> = Vec::new();
    for reduction in module.instructions(computation).filter(|&id| is_reduction(module, id)) {
        let Cone { shared: found, .. } = Cone::of(module, reduction, fused);
        shared.extend(found.into_iter().filter(|one| !is_stored(one.value)));
    }
    let mut times: FxHashMap<InstId, usize> = FxHashMap::default();
    shared.iter().for_each(|one| *times.entry(one.value).or_default() += 1);
    shared.retain(|one| {
        times[&one.value] > 1
            || is_of_few(module, one.reduction, many)
            || waits_for_few(module, one.value, many)
    });
    shared
}

/// Checks whether a reduction has fewer than `many` results.
pub(super) fn is_of_few(module: &Module, reduction: InstId, many: u64) -> bool {
    elements(module, reduction).is_some_and(|count| count < many)
}

fn elements(module: &Module, id: InstId) -> Option<u64> {
    module.array_shape(id).and_then(ArrayShape::num_elements).map(i64::unsigned_abs)
}

pub(super) fn is_reduction(module: &Module, id: InstId) -> bool {
    matches!(module.opcode(id), Opcode::Reduce | Opcode::ReduceWindow)
}

/// The instructions that a reduction computes where they are used.
#[derive(Debug, Default)]
pub(super) struct Cone {
    /// The values of the cone that others use, too.
    pub(super) shared: Vec<Shared>,
    /// All visited instructions.
    pub(super) met: Vec<InstId>,
}

impl Cone {
    pub(super) fn of(module: &Module, reduction: InstId, fused: &dyn Fn(InstId) -> bool) -> Self {
        // Maps each value to the number of its visited uses and to its readers.
        let mut uses: FxHashMap<InstId, (usize, SmallVec<[InstId; 2]>)> = FxHashMap::default();
        let mut met = vec![reduction];
        let mut next = vec![reduction];
        while let Some(reader) = next.pop() {
            let is_first = reader == reduction;
            let all = module.operands(reader);
            let operands = if is_first { reduced_arrays(module, reduction) } else { all };
            for (place, &operand) in operands.iter().enumerate() {
                if operands[..place].contains(&operand) {
                    continue;
                }
                // A constant is never shared, however many instructions read it.
                if module.opcode(operand) == Opcode::Constant {
                    continue;
                }
                met.push(operand);
                if !fused(operand) {
                    continue;
                }
                let (count, readers) = uses.entry(operand).or_default();
                *count += all.iter().filter(|&&one| one == operand).count();
                readers.push(reader);
                let is_own = *count == module.instruction(operand).use_count();
                if is_own && !module.is_root(operand) {
                    next.push(operand);
                }
            }
        }
        // A value with uses outside the cone is shared. It is listed once, at its first visit.
        let shared = met.iter().filter_map(|&value| {
            let (count, readers) = uses.remove(&value)?;
            let is_own = count == module.instruction(value).use_count() && !module.is_root(value);
            (!is_own).then_some(Shared { value, reduction, readers })
        });
        Self { shared: shared.collect(), met }
    }
}

/// The most reshapes and broadcasts that are looked through for one value.
const MOST_STEPS: usize = 32;

/// Checks whether a value is computed from a spread-out array of fewer than `many` elements.
/// The library cannot compute that array and the value as one unit.
pub(super) fn waits_for_few(module: &Module, value: InstId, many: u64) -> bool {
    module.operands(value).iter().any(|&operand| {
        let source = spread_along(module, operand).last().unwrap_or(operand);
        let is_few = elements(module, source).is_some_and(|elements| elements < many);
        is_few && module.opcode(source) != Opcode::Constant
    })
}

/// Returns a value, the source that it reshapes or broadcasts, the source of that source, and
/// so on.
pub(super) fn spread_along(module: &Module, value: InstId) -> impl Iterator<Item = InstId> + '_ {
    let source = |&id: &InstId| match (module.opcode(id), module.operands(id)) {
        (Opcode::Broadcast | Opcode::Reshape, &[of]) => Some(of),
        _ => None,
    };
    std::iter::successors(Some(value), source).take(MOST_STEPS + 1)
}

/// Checks whether a value is stored even without the reductions that need it.
pub(super) fn is_stored_anyway(
    module: &Module,
    value: InstId,
    fused: &dyn Fn(InstId) -> bool,
) -> bool {
    module.is_root(value)
        || module.uses(value).any(|one| !fused(one.user) && !is_reduction(module, one.user))
}
