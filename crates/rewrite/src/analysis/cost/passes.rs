//! How often arrays that stay in main memory are read.
//!
//! What an instruction waits for decides in which *pass* over main memory it can
//! run at the earliest (`ready.rs`): what is computed elementwise in the same as its
//! operands, what needs a whole sum in one after it. Sums of rows that vector memory
//! holds are there as soon as the row is, so that what is computed of a row and its own
//! sum needs no second pass. On a target that shares passes all that reads an array
//! in one pass reads it once, and a sum that nothing needs yet waits for a pass that
//! reads its array anyway; on others, each reduction and each result reads it for
//! itself. [`CostModel`] counts the first reading of an array where it is made; here
//! the others are counted.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};

use super::CostModel;
use super::ready::{readiness_of_all, waits};

/// Who reads an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    /// All that read it in this pass.
    Pass(u32),
    /// One that reads it for itself.
    Alone(InstId),
    /// A sum that may wait: its place among these.
    Waiting(usize),
}

/// Each reader once.
type Readers = SmallVec<[Reader; 2]>;

/// A sum that may be added up in any of these passes, from the first one to the last.
#[derive(Clone, Copy)]
struct Waiting {
    first: u32,
    last: u32,
}

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
        let ends = module.instructions(computation).map(|id| ready[id] / 2).max().unwrap_or(0);
        // The pass before which each value is needed; none where nothing reads it.
        let mut due: SecondaryMap<InstId, Option<u32>> = SecondaryMap::new();
        let mut readers: SecondaryMap<InstId, Readers> = SecondaryMap::new();
        let (mut found, mut waiting) = (Vec::new(), Vec::new());
        for id in module.instructions(computation).rev() {
            let mut of = std::mem::take(readers.get_mut(id));
            let mut needs = due[id];
            let waits = waits(module, id, &ready) / 2;
            if places.fused[id] {
                if module.is_root(id) || is_stored(module, id, &is_fused) {
                    let pass = ready[id] / 2;
                    insert(&mut of, if shares { Reader::Pass(pass) } else { Reader::Alone(id) });
                    if places.large[id] {
                        needs = earlier(needs, pass);
                    }
                }
            } else if !is_other_name(module, id, model) {
                if places.large[id] && !of.is_empty() {
                    found.push((id, of));
                }
                of = Readers::new();
                let of_large = module.operands(id).iter().any(|&operand| places.large[operand]);
                if of_large && reads(module, id) {
                    let last = needs.map_or(ends, |due| due.saturating_sub(1));
                    let shares = shares && module.opcode(id) == Opcode::Reduce;
                    of.push(match (shares, last > waits) {
                        (false, _) => Reader::Alone(id),
                        (true, true) => {
                            waiting.push(Waiting { first: waits, last });
                            Reader::Waiting(waiting.len() - 1)
                        }
                        (true, false) => Reader::Pass(waits),
                    });
                    needs = earlier(needs, waits);
                }
            }
            for &operand in module.operands(id) {
                if let Some(needs) = needs {
                    due.set(operand, earlier(due[operand], needs));
                }
                if places.fused[operand] && is_stored_for(module, id, &is_fused) {
                    continue;
                }
                let all = readers.get_mut(operand);
                of.iter().for_each(|&reader| insert(all, reader));
            }
        }
        found.reverse();
        choose(&mut found, &waiting, |id| model.weigh(module.shape(id)).footprint.padded_bytes);
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

/// The earlier one of two passes.
fn earlier(pass: Option<u32>, other: u32) -> Option<u32> {
    Some(pass.map_or(other, |pass| pass.min(other)))
}

/// No more passes are looked at for one sum.
const MOST_PASSES: usize = 16;

/// Has each sum that may wait added up in the pass in which it reads least that is not
/// read anyway, the first of these; what was chosen for others stands.
fn choose(found: &mut [(InstId, Readers)], waiting: &[Waiting], bytes: impl Fn(InstId) -> u64) {
    let mut arrays: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); waiting.len()];
    for (array, (_, readers)) in found.iter().enumerate() {
        for reader in readers {
            if let Reader::Waiting(sum) = *reader {
                arrays[sum].push(array);
            }
        }
    }
    // Those that stand first in the module were met last.
    for (sum, arrays) in arrays.iter().enumerate().rev() {
        let unread = |pass: u32| -> u64 {
            let is_unread = |array: &&usize| !found[**array].1.contains(&Reader::Pass(pass));
            arrays.iter().filter(is_unread).map(|&array| bytes(found[array].0)).sum()
        };
        let Waiting { first, last } = waiting[sum];
        let passes = (first..=last).take(MOST_PASSES);
        let pass = passes.min_by_key(|&pass| unread(pass)).unwrap_or(first);
        for &array in arrays {
            let readers = &mut found[array].1;
            readers.retain(|reader| *reader != Reader::Waiting(sum));
            insert(readers, Reader::Pass(pass));
        }
    }
}

fn insert(readers: &mut Readers, reader: Reader) {
    if readers.len() < MOST_READERS && !readers.contains(&reader) {
        readers.push(reader);
    }
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
pub(super) fn same_but_ones(module: &Module, id: InstId) -> bool {
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
