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
use super::contraction::is_contraction;
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
        let from_large = read_from_large(module, computation, places);
        let of_large = |id| module.operands(id).iter().any(|&operand| from_large[operand]);
        let ready = readiness_of_all(module, computation, model, places, &from_large);
        let is_fused = |id: InstId| places.fused[id];
        let stored = |id| module.is_root(id) || is_stored(module, id, model, &is_fused);
        let shares = model.target.shares_passes;
        // The pass in which an instruction reads main memory, if it does.
        let pass_of = |id| {
            let reads =
                of_large(id) && if places.fused[id] { stored(id) } else { reads(module, id) };
            let at = if places.fused[id] { ready[id] } else { waits(module, id, &ready) };
            reads.then_some(at / 2)
        };
        let last = module.instructions(computation).filter_map(pass_of).max().unwrap_or(0);
        // The pass before which each value is needed; none where nothing reads it.
        let mut due: SecondaryMap<InstId, Option<u32>> = SecondaryMap::new();
        let mut readers: SecondaryMap<InstId, Readers> = SecondaryMap::new();
        let (mut found, mut waiting) = (Vec::new(), Vec::new());
        for id in module.instructions(computation).rev() {
            let mut of = std::mem::take(readers.get_mut(id));
            let mut needs = due[id];
            let pass = pass_of(id);
            if places.fused[id] {
                if let Some(pass) = pass {
                    insert(&mut of, if shares { Reader::Pass(pass) } else { Reader::Alone(id) });
                    needs = earlier(needs, pass);
                }
            } else if !is_other_name(module, id, model) {
                if places.large[id] && !of.is_empty() {
                    found.push((id, of));
                }
                of = Readers::new();
                if let Some(pass) = pass {
                    let last = needs.map_or(last, |due| due.saturating_sub(1));
                    let shares = shares && module.opcode(id) == Opcode::Reduce;
                    of.push(match (shares, last > pass) {
                        (false, _) => Reader::Alone(id),
                        (true, true) => {
                            waiting.push(Waiting { first: pass, last });
                            Reader::Waiting(waiting.len() - 1)
                        }
                        (true, false) => Reader::Pass(pass),
                    });
                    needs = earlier(needs, pass);
                }
            }
            for &operand in module.operands(id) {
                if let Some(needs) = needs {
                    due.set(operand, earlier(due[operand], needs));
                }
                if places.fused[operand] && is_stored_for(module, id, model, &is_fused) {
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

/// The earlier one of two passes.
fn earlier(pass: Option<u32>, other: u32) -> Option<u32> {
    Some(pass.map_or(other, |pass| pass.min(other)))
}

/// Which values are in main memory, or computed in place of what is.
fn read_from_large(
    module: &Module,
    computation: CompId,
    places: Places<'_>,
) -> SecondaryMap<InstId, bool> {
    let mut from_large = SecondaryMap::<InstId, bool>::new();
    for id in module.instructions(computation) {
        let computed = places.fused[id] && module.operands(id).iter().any(|&of| from_large[of]);
        from_large.set(id, places.large[id] || computed);
    }
    from_large
}

/// No more passes are looked at for one sum, the last ones.
const MOST_PASSES: u32 = 16;

/// Has each sum that may wait added up in a pass in which it reads nothing more, if there
/// is one, or else least; the last of these. Those that can wait least are first: for one
/// array that leaves as few passes as can be.
fn choose(found: &mut [(InstId, Readers)], waiting: &[Waiting], bytes: impl Fn(InstId) -> u64) {
    let mut arrays: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); waiting.len()];
    for (array, (_, readers)) in found.iter().enumerate() {
        for reader in readers {
            if let Reader::Waiting(sum) = *reader {
                arrays[sum].push(array);
            }
        }
    }
    let mut sums: Vec<usize> = (0..waiting.len()).collect();
    sums.sort_by_key(|&sum| waiting[sum].last);
    for sum in sums {
        let unread = |pass: u32| -> u64 {
            let is_unread = |array: &&usize| !found[**array].1.contains(&Reader::Pass(pass));
            arrays[sum].iter().filter(is_unread).map(|&array| bytes(found[array].0)).sum()
        };
        let Waiting { first, last } = waiting[sum];
        let passes = (first.max(last.saturating_sub(MOST_PASSES))..=last).rev();
        let pass = passes.min_by_key(|&pass| unread(pass)).unwrap_or(first);
        for &array in &arrays[sum] {
            let readers = &mut found[array].1;
            readers.retain(|reader| *reader != Reader::Waiting(sum));
            insert(readers, Reader::Pass(pass));
        }
    }
}

/// More readers of an array are not told apart, nor more sums that may wait.
const MOST_READERS: usize = 64;

fn insert(readers: &mut Readers, reader: Reader) {
    let may_wait = |reader: &Reader| matches!(reader, Reader::Waiting(_));
    let kind = may_wait(&reader);
    let like = readers.iter().filter(|other| may_wait(other) == kind).count();
    if like < MOST_READERS && !readers.contains(&reader) {
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
pub(super) fn is_stored(
    module: &Module,
    id: InstId,
    model: &CostModel<'_>,
    is_fused: &dyn Fn(InstId) -> bool,
) -> bool {
    module.uses(id).any(|one| is_stored_for(module, one.user, model, is_fused))
}

/// Whether what is fused is stored for a user, which reads it from memory.
fn is_stored_for(
    module: &Module,
    user: InstId,
    model: &CostModel<'_>,
    is_fused: &dyn Fn(InstId) -> bool,
) -> bool {
    let computes_it = module.opcode(user) == Opcode::Reduce
        || model.target.fuses_contractions && is_contraction(module, user);
    !is_fused(user) && !computes_it
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
