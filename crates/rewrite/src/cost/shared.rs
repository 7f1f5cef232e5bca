//! Finds the values that are stored only because reductions share them with other users. The ledger
//! charges for storing them (`shared_stores.rs`), and the pass `rematerialize` copies them instead.
//!
//! Some compilers fuse the operand of a reduction into the reduction only if it has no other user.
//! If it has others, they store the operand, and the reduction reads it. XLA does so on CPUs for
//! the reductions that it leaves to a library (`xla/backends/cpu/transforms/library_rewriter.cc`).
//! It stores nothing if it leaves the other users to the library, too, and fuses them with the
//! reduction. That is the case if only one reduction shares the value, this reduction has many
//! results, and the value is not computed from few numbers that are broadcast.
//!
//! XLA computes with 16-bit floats in f32 there (`FloatNormalization` in
//! `xla/service/float_normalization.cc`): it converts each such operand of an `add` or
//! `exponential` to f32, and merges all conversions of one array, including those that the program
//! makes. A value that is computed from a stored array of 16-bit floats is therefore stored, too,
//! if an instruction that is not fused into the reduction converts the same array.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, ElementType, InstId, Module, Opcode};

use crate::analysis::reduce::reduced_arrays;

/// A value that is stored only because a reduction reads it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The value, which would otherwise be computed where it is used.
    pub(crate) value: InstId,
    /// The reduction that reads the value.
    pub(crate) reduction: InstId,
    /// The users of the value within the reduction: the reduction itself, or instructions that are
    /// computed for the reduction alone.
    pub(crate) readers: SmallVec<[InstId; 2]>,
}

/// Returns the computations that are bodies of fusions, in which nothing is stored.
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

/// Returns the values of a computation that are stored only because reductions share them, in the
/// order of the reductions. `fused` says which values are inlined. Elementwise ops on at least
/// `many` elements are left to the library, too (`IsInstructionPreferredByYnn` in
/// `xla/backends/cpu/ynn_support.cc`): the value is not stored if the only reduction that shares it
/// has at least `many` results and no operand of the value is broadcast from fewer numbers.
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
        let FusedOperands { shared: found, .. } = FusedOperands::of(module, reduction, fused);
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

/// The values that could be fused into a reduction: its operands, their operands, and so on.
#[derive(Debug, Default)]
pub(super) struct FusedOperands {
    /// The values that other users read as well.
    pub(super) shared: Vec<Shared>,
    /// The reduction and all instructions that were visited for it.
    pub(super) met: Vec<InstId>,
}

/// Checks whether an array holds 16-bit floats.
pub(super) fn is_narrow(array: &ArrayShape) -> bool {
    matches!(array.element_type, ElementType::F16 | ElementType::BF16)
}

fn has_narrow(module: &Module, id: InstId) -> bool {
    module.array_shape(id).is_some_and(is_narrow)
}

/// Checks whether an instruction computes in 16-bit floats, and so rounds its result.
fn rounds(module: &Module, id: InstId) -> bool {
    let opcode = module.opcode(id);
    let is_arithmetic =
        matches!(opcode, Opcode::Add | Opcode::Subtract | Opcode::Multiply | Opcode::Divide);
    (is_arithmetic || opcode.is_transcendental()) && has_narrow(module, id)
}

/// Checks whether the 16-bit operands of an instruction are converted to f32, by the compiler or by
/// the instruction itself.
fn widens(module: &Module, id: InstId) -> bool {
    let element_type = module.array_shape(id).map(|array| array.element_type);
    let is_f32 = element_type == Some(ElementType::F32);
    rounds(module, id) || module.opcode(id) == Opcode::Convert && is_f32
}

/// Returns the stored operands of 16-bit floats that are converted to f32 to compute a value.
pub(crate) fn widened_for<'a>(
    module: &'a Module,
    value: InstId,
    fused: &'a dyn Fn(InstId) -> bool,
) -> impl Iterator<Item = InstId> + 'a {
    let operands = if widens(module, value) { module.operands(value) } else { &[] };
    operands.iter().copied().filter(|&of| has_narrow(module, of) && !fused(of))
}

/// Checks whether an array that is converted to f32 for `value` is also converted for an
/// instruction outside of `own`.
pub(crate) fn shares_conversion(
    module: &Module,
    value: InstId,
    own: &FxHashSet<InstId>,
    fused: &dyn Fn(InstId) -> bool,
) -> bool {
    let is_other = |id: InstId| !own.contains(&id) && widens(module, id);
    widened_for(module, value, fused).any(|of| module.uses(of).any(|one| is_other(one.user)))
}

impl FusedOperands {
    /// Finds the values that could be fused into a reduction, and which of them are shared.
    pub(super) fn of(module: &Module, reduction: InstId, fused: &dyn Fn(InstId) -> bool) -> Self {
        // For each value: the number of its uses by visited instructions, and these instructions.
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
        // A value is shared if an instruction that is not the reduction's own reads it or shares a
        // conversion with it. List each such value once, at its first visit.
        let shared = met.iter().filter_map(|&value| {
            let (_, readers) = uses.remove(&value)?;
            let is_own = own.contains(&value) && !shares_conversion(module, value, &own, fused);
            (!is_own).then_some(Shared { value, reduction, readers })
        });
        Self { shared: shared.collect(), met }
    }
}

/// The most reshapes and broadcasts that are followed from one value.
const MOST_STEPS: usize = 32;

/// Checks whether an operand of a value is a broadcast of fewer than `many` numbers that are not
/// constants, or has so few elements itself. No fusion then computes both these numbers and the
/// value.
pub(super) fn waits_for_few(module: &Module, value: InstId, many: u64) -> bool {
    module.operands(value).iter().any(|&operand| {
        let source = spread_along(module, operand).last().unwrap_or(operand);
        let is_few = elements(module, source).is_some_and(|elements| elements < many);
        is_few && module.opcode(source) != Opcode::Constant
    })
}

/// Returns a value, the operand of which it is a reshape or broadcast, the operand of that one, and
/// so on.
pub(super) fn spread_along(module: &Module, value: InstId) -> impl Iterator<Item = InstId> + '_ {
    let source = |&id: &InstId| match (module.opcode(id), module.operands(id)) {
        (Opcode::Broadcast | Opcode::Reshape, &[of]) => Some(of),
        _ => None,
    };
    std::iter::successors(Some(value), source).take(MOST_STEPS + 1)
}

/// Checks whether a value is stored even if no reduction reads it.
pub(super) fn is_stored_anyway(
    module: &Module,
    value: InstId,
    fused: &dyn Fn(InstId) -> bool,
) -> bool {
    module.is_root(value)
        || module.uses(value).any(|one| !fused(one.user) && !is_reduction(module, one.user))
}
