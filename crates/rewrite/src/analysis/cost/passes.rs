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

use rustc_hash::FxHashSet;
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
        let ready = readiness_of_all(module, computation, model, places);
        let is_fused = |id: InstId| places.fused[id];
        let shares = model.target.shares_passes;
        let mut readers: SecondaryMap<InstId, Readers> = SecondaryMap::new();
        let mut found = Vec::new();
        for id in module.instructions(computation).rev() {
            let mut of = std::mem::take(readers.get_mut(id));
            if places.fused[id] {
                if module.is_root(id) || is_stored(module, id, &is_fused) {
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
                if places.fused[operand] && is_stored_for(module, id, &is_fused) {
                    continue;
                }
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
        let readers = self.readers.iter().flat_map(|(_, readers)| readers);
        readers.collect::<FxHashSet<_>>().len()
    }
}

/// More readers of an array are not told apart.
const MOST_READERS: usize = 64;

fn insert(readers: &mut Readers, reader: Reader) {
    if readers.len() < MOST_READERS && !readers.contains(&reader) {
        readers.push(reader);
    }
}

/// When all operands are there.
fn waits(module: &Module, id: InstId, ready: &SecondaryMap<InstId, Ready>) -> Ready {
    module.operands(id).iter().map(|&operand| ready[operand]).max().unwrap_or(0)
}

/// When the results of all instructions are there.
fn readiness_of_all(
    module: &Module,
    computation: CompId,
    model: &CostModel<'_>,
    places: Places<'_>,
) -> SecondaryMap<InstId, Ready> {
    let large = module.instructions(computation).filter(|&id| places.large[id]);
    let largest = large.map(|id| model.weigh(module.shape(id)).footprint.padded_bytes).max();
    let rows = Rows { model, largest: largest.unwrap_or(0) };
    let mut ready: SecondaryMap<InstId, Ready> = SecondaryMap::new();
    for id in module.instructions(computation) {
        ready.set(id, readiness(module, id, waits(module, id, &ready), &rows, places));
    }
    ready
}

/// When the result of an instruction is there whose operands are there at `waits`.
fn readiness(
    module: &Module,
    id: InstId,
    waits: Ready,
    rows: &Rows<'_>,
    places: Places<'_>,
) -> Ready {
    let whole = waits.next_multiple_of(2);
    let next = (waits / 2 + 1) * 2;
    let of_large = module.operands(id).iter().any(|&operand| places.large[operand]);
    match module.op(id) {
        Op::Reduce(attrs) => {
            let arrays = || {
                let arrays = reduced_arrays(module, id).iter();
                arrays.map(|&array| module.array_shape(array))
            };
            let dims = &attrs.dimensions;
            if of_large {
                let one_row = arrays().all(|a| a.is_some_and(|a| rows.holds_row(a, dims)));
                if one_row { waits | 1 } else { next }
            } else {
                // Rows side by side are a longer row.
                let one_row = arrays().all(|a| a.is_some_and(|a| rows.holds_rows(a, dims)));
                if one_row { waits } else { whole }
            }
        }
        Op::GetTupleElement(_) | Op::Tuple | Op::OptimizationBarrier => waits,
        _ if places.fused[id] || same_but_ones(module, id) => waits,
        Op::Slice(_) => whole,
        // Rows keep their order.
        Op::Reshape(_) if !of_large => waits,
        _ if is_other_name(module, id, rows.model) => whole,
        _ if of_large => next,
        _ => whole,
    }
}

/// Which rows vector memory holds.
struct Rows<'a> {
    model: &'a CostModel<'a>,
    /// The bytes of the largest array.
    largest: u64,
}

impl Rows<'_> {
    /// Whether it holds what is reduced of an array to one result.
    fn holds_row(&self, array: &ArrayShape, dims: &[i64]) -> bool {
        let rank = array.rank();
        let first = rank.saturating_sub(dims.len());
        let row = (0..rank).map(|dim| if dim < first { 1 } else { array.dims()[dim] });
        let row = ArrayShape::new(array.element_type, row).into();
        are_side_by_side(array, dims) && self.model.stays_on_chip(self.model.weigh(&row))
    }

    /// Whether it holds all of the largest array that goes into one result, where an
    /// array of results for rows is reduced.
    fn holds_rows(&self, array: &ArrayShape, dims: &[i64]) -> bool {
        let first = array.rank().saturating_sub(dims.len());
        let results = array
            .dims()
            .iter()
            .take(first)
            .fold(1, |n: u64, &dim| n.saturating_mul(dim.max(1).unsigned_abs()));
        are_side_by_side(array, dims) && self.model.holds_on_chip(self.largest / results)
    }
}

/// Whether what is reduced to one result lies side by side.
fn are_side_by_side(array: &ArrayShape, dims: &[i64]) -> bool {
    let first = array.rank().saturating_sub(dims.len());
    array.has_default_layout()
        && dims.iter().all(|&dim| usize::try_from(dim).is_ok_and(|d| d >= first))
}

/// Whether an instruction moves nothing and only gives its operand another name.
pub(super) fn is_other_name(module: &Module, id: InstId, model: &CostModel<'_>) -> bool {
    let &[operand] = module.operands(id) else { return false };
    match module.op(id) {
        Op::Bitcast => true,
        Op::OptimizationBarrier => module.array_shape(id).is_some(),
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
    module.users(id).into_iter().any(|user| is_stored_for(module, user, is_fused))
}

/// Whether what is fused is stored for a user, which reads it from memory.
fn is_stored_for(module: &Module, user: InstId, is_fused: &dyn Fn(InstId) -> bool) -> bool {
    !is_fused(user) && module.opcode(user) != Opcode::Reduce
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
