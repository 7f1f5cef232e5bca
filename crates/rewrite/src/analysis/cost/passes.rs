//! How often arrays that stay in main memory are read.
//!
//! What an instruction waits for decides in which *pass* over main memory it can
//! run at the earliest: what is computed elementwise in the same as its operands,
//! what needs a whole sum in one after it. Sums of rows that vector memory holds
//! are there as soon as the row is, so that what is computed of a row and its own
//! sum needs no second pass. On a target that shares passes all that reads an array
//! in one pass reads it once; on others, each reduction and each result reads it for
//! itself. [`CostModel`] counts the first reading of an array where it is made; here
//! the others are counted.

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, CompId, InstId, Module, Op, Opcode, SecondaryMap};

use super::CostModel;
use crate::analysis::reduce::reduced_arrays;

/// When a value is there: twice the number of passes before it, and one more where
/// it is there for its own row only, until the pass ends.
type Ready = u32;

/// Who reads an array, and in which pass; one who shares no pass is named.
type Reader = (u32, Option<InstId>);

/// Each reader once.
type Readers = SmallVec<[Reader; 2]>;

/// Which instructions of a computation are in main memory, and which are computed
/// where they are used.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    /// Those whose arrays are too large for vector memory.
    pub(super) large: &'a SecondaryMap<InstId, bool>,
    /// Those that are never stored.
    pub(super) fused: &'a SecondaryMap<InstId, bool>,
}

/// Who reads which array of a computation from main memory, in order.
pub(super) struct Passes {
    readers: Vec<(InstId, Readers)>,
}

impl Passes {
    /// The readers of all large arrays of a computation.
    pub(super) fn of(
        module: &Module,
        computation: CompId,
        model: &CostModel<'_>,
        places: Places<'_>,
    ) -> Self {
        let mut ready: SecondaryMap<InstId, Ready> = SecondaryMap::new();
        for id in module.instructions(computation) {
            ready.set(id, readiness(module, id, waits(module, id, &ready), model, places));
        }
        let shares = model.target.shares_passes;
        let mut readers: SecondaryMap<InstId, Readers> = SecondaryMap::new();
        let mut found = Vec::new();
        for id in module.instructions(computation).rev() {
            let mut of = std::mem::take(readers.get_mut(id));
            if places.fused[id] {
                if module.is_root(id) || is_stored(module, id, &|id| places.fused[id]) {
                    insert(&mut of, (ready[id] / 2, (!shares).then_some(id)));
                }
            } else if !is_other_name(module, id, model) {
                if places.large[id] && !of.is_empty() {
                    found.push((id, of));
                }
                of = Readers::new();
                if reads(module, id) {
                    let alone = !shares || module.opcode(id) != Opcode::Reduce;
                    of.push((waits(module, id, &ready) / 2, alone.then_some(id)));
                }
            }
            for &operand in module.operands(id) {
                let all = readers.get_mut(operand);
                of.iter().for_each(|&reader| insert(all, reader));
            }
        }
        found.reverse();
        Self { readers: found }
    }

    /// How often each array that is read is read beyond the first time.
    pub(super) fn rereads(&self) -> impl Iterator<Item = (InstId, usize)> + '_ {
        self.readers.iter().map(|(id, readers)| (*id, readers.len().saturating_sub(1)))
    }

    /// How many passes there are in which anything is read.
    pub(super) fn count(&self) -> usize {
        let mut passes = Readers::new();
        for &reader in self.readers.iter().flat_map(|(_, readers)| readers) {
            insert(&mut passes, reader);
        }
        passes.len()
    }
}

fn insert(readers: &mut Readers, reader: Reader) {
    if !readers.contains(&reader) {
        readers.push(reader);
    }
}

/// When all operands are there.
fn waits(module: &Module, id: InstId, ready: &SecondaryMap<InstId, Ready>) -> Ready {
    module.operands(id).iter().map(|&operand| ready[operand]).max().unwrap_or(0)
}

/// When the result of an instruction is there whose operands are there at `waits`.
fn readiness(
    module: &Module,
    id: InstId,
    waits: Ready,
    model: &CostModel<'_>,
    places: Places<'_>,
) -> Ready {
    let whole = waits.next_multiple_of(2);
    let next = (waits / 2 + 1) * 2;
    let of_large = || module.operands(id).iter().any(|&operand| places.large[operand]);
    match module.op(id) {
        Op::Reduce(attrs) => {
            let is_row = reduced_arrays(module, id).iter().all(|&array| {
                module.array_shape(array).is_some_and(|a| fits_row(model, a, &attrs.dimensions))
            });
            match (of_large(), is_row) {
                (false, _) => whole,
                (true, true) => waits | 1,
                (true, false) => next,
            }
        }
        Op::GetTupleElement(_) | Op::Tuple => waits,
        _ if places.fused[id] || same_but_ones(module, id) => waits,
        Op::Slice(_) => whole,
        _ if is_other_name(module, id, model) => whole,
        _ if of_large() => next,
        _ => whole,
    }
}

/// Whether vector memory holds rows: what is reduced lies side by side.
fn fits_row(model: &CostModel<'_>, array: &ArrayShape, dims: &[i64]) -> bool {
    let rank = array.rank();
    let first = rank.saturating_sub(dims.len());
    let side_by_side = array.has_default_layout()
        && dims.iter().all(|&dim| usize::try_from(dim).is_ok_and(|d| d >= first));
    let row = (0..rank).map(|dim| if dim < first { 1 } else { array.dims()[dim] });
    let row = ArrayShape::new(array.element_type, row).into();
    side_by_side && model.stays_on_chip(model.weigh(&row))
}

/// Whether a reshape moves nothing, so that it only gives its operand another name.
pub(super) fn is_other_name(module: &Module, id: InstId, model: &CostModel<'_>) -> bool {
    let &[operand] = module.operands(id) else { return false };
    match module.op(id) {
        Op::Bitcast => true,
        Op::Reshape(_) => !model.realigns(module.shape(operand), module.shape(id)),
        _ => false,
    }
}

/// Whether a reshape only adds and drops dims of size 1.
fn same_but_ones(module: &Module, id: InstId) -> bool {
    let large = |id: InstId| -> Option<SmallVec<[i64; 6]>> {
        Some(module.array_shape(id)?.dims().iter().copied().filter(|&dim| dim != 1).collect())
    };
    let &[operand] = module.operands(id) else { return false };
    module.opcode(id) == Opcode::Reshape && large(operand) == large(id)
}

/// Whether anything reads a fused value from memory.
pub(super) fn is_stored(module: &Module, id: InstId, is_fused: &dyn Fn(InstId) -> bool) -> bool {
    let computes = |user: InstId| is_fused(user) || module.opcode(user) == Opcode::Reduce;
    module.users(id).into_iter().any(|user| !computes(user))
}

/// Whether an instruction that is not fused reads all of its operands.
fn reads(module: &Module, id: InstId) -> bool {
    !matches!(
        module.op(id),
        Op::Tuple
            | Op::GetTupleElement(_)
            | Op::AddDependency
            | Op::OptimizationBarrier
            | Op::Slice(_)
    )
}
