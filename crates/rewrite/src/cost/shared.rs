//! Finds the values that reductions share with other users.
//!
//! Some compilers fuse the computation of a reduction's operand into the reduction only if it has
//! no other user. If it has others, they store the operand, so that the reduction can read it.
//! XLA does so on CPUs for the reductions that it leaves to a library
//! (`xla/backends/cpu/transforms/library_rewriter.cc`), unless the other users are left to the
//! library as well and fuse with the reduction. This is so for a value that is computed from many
//! numbers and that one reduction shares.
//!
//! XLA computes with 16-bit floats in 32 bits there (`FloatNormalization` in
//! `xla/service/float_normalization.cc`): it converts each operand of an `add` or `exponential` to
//! f32, and merges these conversions of one array with each other and with those that the program
//! makes. A value that is computed from a stored array of 16-bit floats is therefore stored, too,
//! if an instruction that is not the reduction's own computes with the same array.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, ElementType, InstId, Module, Opcode};

use crate::analysis::reduce::reduced_arrays;

/// A value that is stored only because a reduction needs it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The value, which could be computed where it is used.
    pub(crate) value: InstId,
    /// The reduction that needs the value.
    pub(crate) reduction: InstId,
    /// The readers of the value within the reduction: the reduction itself, or instructions that
    /// are computed for it alone.
    pub(crate) readers: SmallVec<[InstId; 2]>,
}

/// Returns the computations that are the bodies of fusions; nothing is stored in them.
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

/// Returns the values of a computation that reductions share, in the order of the reductions;
/// `fused` says which values are computed where they are used. Elementwise operations on `many` elements
/// are left to the library, too (`IsInstructionPreferredByYnn` in `xla/backends/cpu/ynn_support.cc`).
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

/// The values that are fused into a reduction.
#[derive(Debug, Default)]
pub(super) struct Cone {
    /// The values that are also fused into other users.
    pub(super) shared: Vec<Shared>,
    /// All instructions that were visited.
    pub(super) met: Vec<InstId>,
}

/// Checks whether an array holds 16-bit floats.
pub(super) fn is_narrow(array: &ArrayShape) -> bool {
    matches!(array.element_type, ElementType::F16 | ElementType::BF16)
}

fn has_narrow(module: &Module, id: InstId) -> bool {
    module.array_shape(id).is_some_and(is_narrow)
}

/// Checks whether an instruction computes with 16-bit floats, which rounds its result.
fn rounds(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    let is_arithmetic =
        matches!(opcode, Opcode::Add | Opcode::Subtract | Opcode::Multiply | Opcode::Divide);
    (is_arithmetic || opcode.is_transcendental()) && has_narrow(module, id)
}

/// Checks whether the 16-bit operands of an instruction are converted to f32.
fn widens(module: &Module, id: InstId) -> bool {
    let element_type = module.array_shape(id).map(|array| array.element_type);
    let is_f32 = element_type == Some(ElementType::F32);
    rounds(module, id) || module.opcode(id) == Opcode::Convert && is_f32
}

/// Returns the stored arrays of 16-bit floats that are converted to f32 for a value.
pub(crate) fn widened_for<'a>(
    module: &'a Module,
    value: InstId,
    fused: &'a dyn Fn(InstId) -> bool,
) -> impl Iterator<Item = InstId> + 'a {
    let operands = if widens(module, value) { module.operands(value) } else { &[] };
    operands.iter().copied().filter(|&of| has_narrow(module, of) && !fused(of))
}

/// Checks whether an array that is converted for `value` is also converted for an instruction
/// outside `own`.
pub(crate) fn shares_conversion(
    module: &Module,
    value: InstId,
    own: &FxHashSet<InstId>,
    fused: &dyn Fn(InstId) -> bool,
) -> bool {
    let is_other = |id: InstId| !own.contains(&id) && widens(module, id);
    widened_for(module, value, fused).any(|of| module.uses(of).any(|one| is_other(one.user)))
}

impl Cone {
    pub(super) fn of(module: &Module, reduction: InstId, fused: &dyn Fn(InstId) -> bool) -> Self {
        // For each value, the number of uses that were met, and its readers.
        let mut uses: FxHashMap<InstId, (usize, SmallVec<[InstId; 2]>)> = FxHashMap::default();
        let mut met = vec![reduction];
        let mut next = vec![reduction];
        let mut own: FxHashSet<InstId> = FxHashSet::default();
        while let Some(reader) = next.pop() {
            let is_first = reader == reduction;
            let all = module.operands(reader);
            let operands = if is_first { reduced_arrays(module, reduction) } else { all };
            for (place, &operand) in operands.iter().enumerate() {
                if operands[..place].contains(&operand) {
                    continue;
                }
                // A constant is never shared, even if it has many readers.
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
                if is_own && !module.is_root(operand) && own.insert(operand) {
                    next.push(operand);
                }
            }
        }
        // A value that is not the reduction's own is shared. Each is listed once, at its first
        // visit.
        let shared = met.iter().filter_map(|&value| {
            let (_, readers) = uses.remove(&value)?;
            let is_own = own.contains(&value) && !shares_conversion(module, value, &own, fused);
            (!is_own).then_some(Shared { value, reduction, readers })
        });
        Self { shared: shared.collect(), met }
    }
}

/// The largest number of reshapes and broadcasts that are looked through for one value.
const MOST_STEPS: usize = 32;

/// Checks whether a value is computed from few numbers that are broadcast, so that no fusion
/// computes both these numbers and the value.
pub(super) fn waits_for_few(module: &Module, value: InstId, many: u64) -> bool {
    module.operands(value).iter().any(|&operand| {
        let source = spread_along(module, operand).last().unwrap_or(operand);
        let is_few = elements(module, source).is_some_and(|elements| elements < many);
        is_few && module.opcode(source) != Opcode::Constant
    })
}

/// Returns a value, the operand that it is a reshape or broadcast of, and so on.
pub(super) fn spread_along(module: &Module, value: InstId) -> impl Iterator<Item = InstId> + '_ {
    let source = |&id: &InstId| match (module.opcode(id), module.operands(id)) {
        (Opcode::Broadcast | Opcode::Reshape, &[of]) => Some(of),
        _ => None,
    };
    std::iter::successors(Some(value), source).take(MOST_STEPS + 1)
}

/// Checks whether a value is stored whether or not reductions need it.
pub(super) fn is_stored_anyway(
    module: &Module,
    value: InstId,
    fused: &dyn Fn(InstId) -> bool,
) -> bool {
    module.is_root(value)
        || module.uses(value).any(|one| !fused(one.user) && !is_reduction(module, one.user))
}
