//! How often arrays that stay in main memory are read.
//!
//! The operands of an instruction decide in which *sweep* over main memory it can
//! run at the earliest (`ready.rs`): an elementwise op in the same sweep as its
//! operands, an op that needs a whole sum in the sweep after it. Sums of rows that vector
//! memory holds are there as soon as the row is, so that a computation on a row and its own
//! sum needs no second sweep. On a target that shares sweeps, all readers of an array
//! in one sweep read it once, and a sum that nothing needs yet waits for a sweep that
//! reads its array anyway; on others, each reduction and each result reads it for
//! itself. [`CostModel`] counts the first reading of an array where it is made; this file
//! counts the others.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Opcode, SecondaryMap};

use super::CostModel;
use super::readers::{Reader, Readers};
use super::ready::{readiness_of_all, waits};
use super::residency::{AllFacts, Residency};

/// A sum that may be added up in any of these sweeps, from the first one to the last.
#[derive(Clone, Copy)]
struct Waiting {
    first: u32,
    last: u32,
}

/// Which instructions of a computation are in main memory, and which are computed
/// where they are used.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) facts: &'a AllFacts,
    /// Whether an array is too large for vector memory, or to be taken for that.
    pub(super) is_large: &'a dyn Fn(InstId) -> bool,
}

impl Places<'_> {
    pub(super) fn is_inlined(&self, id: InstId) -> bool {
        self.facts[id].is_inlined()
    }

    pub(super) fn is_alias(&self, id: InstId) -> bool {
        self.facts[id].residency == Residency::Alias
    }
}

/// Who reads which array of a computation from main memory, in order.
pub(super) struct MemorySweeps {
    readers: Vec<(InstId, Readers)>,
}

impl MemorySweeps {
    /// The readers of all large arrays of a computation.
    pub(super) fn of(
        module: &Module,
        computation: CompId,
        model: &CostModel<'_>,
        places: Places<'_>,
    ) -> Self {
        let order: Vec<InstId> = module.instructions(computation).collect();
        let from_large = read_from_large(module, &order, places);
        let leads_to_large = lead_to_large(module, &order, places);
        let facts = places.facts;
        let shares = model.target.shares_sweeps;
        // Where each reads for itself, it does not matter when.
        let ready = if shares {
            readiness_of_all(module, &order, model, places, &from_large)
        } else {
            SecondaryMap::new()
        };
        // The sweep in which an instruction reads main memory, if it does.
        let mut sweeps: SecondaryMap<InstId, Option<u32>> = filled(module, order.len());
        for &id in &order {
            let is_inlined = places.is_inlined(id);
            let reads = module.operands(id).iter().any(|&operand| from_large[operand])
                && if is_inlined {
                    module.is_root(id) || model.is_stored(module, id, facts)
                } else {
                    reads(module, id)
                };
            let at = if is_inlined { ready[id] } else { waits(module, id, &ready) };
            sweeps.set(id, reads.then_some(at.sweep));
        }
        let last = order.iter().filter_map(|&id| sweeps[id]).max().unwrap_or(0);
        // The sweep before which each value is needed; none where nothing reads it.
        let mut due: SecondaryMap<InstId, Option<u32>> = filled(module, order.len());
        let mut readers = Pool { places: filled(module, order.len()), readers: Vec::new() };
        let (mut found, mut waiting) = (Vec::new(), Vec::new());
        for &id in order.iter().rev() {
            let mut of = readers.take(id);
            let mut needs = due[id];
            let sweep = sweeps[id];
            if places.is_inlined(id) {
                if let Some(sweep) = sweep {
                    of.insert(if shares { Reader::Sweep(sweep) } else { Reader::Alone(id) });
                    needs = earlier(needs, sweep);
                }
            } else if !places.is_alias(id) {
                if (places.is_large)(id) && !of.is_empty() {
                    found.push((id, of));
                }
                of = Readers::default();
                if let Some(sweep) = sweep {
                    let last = needs.map_or(last, |due| due.saturating_sub(1));
                    let shares = shares && module.opcode(id) == Opcode::Reduce;
                    match (shares, last > sweep) {
                        (false, _) => of.insert(Reader::Alone(id)),
                        (true, true) => {
                            of.insert_waiting(u32::try_from(waiting.len()).unwrap_or(u32::MAX));
                            waiting.push(Waiting { first: sweep, last });
                        }
                        (true, false) => of.insert(Reader::Sweep(sweep)),
                    }
                    needs = earlier(needs, sweep);
                }
            }
            for &operand in module.operands(id) {
                if let Some(needs) = needs {
                    due.set(operand, earlier(due[operand], needs));
                }
                if places.is_inlined(operand) && model.is_stored_for(module, id, facts) {
                    continue;
                }
                if !leads_to_large[operand] {
                    continue;
                }
                readers.add(operand, &of);
            }
        }
        found.reverse();
        choose(&mut found, &waiting, |id| facts[id].footprint.padded_bytes);
        Self { readers: found }
    }

    /// How often each array that is read is read beyond the first time.
    pub(super) fn rereads(&self) -> impl Iterator<Item = (InstId, usize)> + '_ {
        self.readers.iter().map(|(id, readers)| (*id, readers.len().saturating_sub(1)))
    }

    /// How many sweeps there are in which anything is read.
    pub(super) fn count(&self) -> usize {
        let readers = self.readers.iter().flat_map(|(_, readers)| readers.known());
        readers.collect::<FxHashSet<_>>().len()
    }
}

/// A map for so many instructions: where these are a good part of all, it has their places at
/// once, which is faster than to make them one by one.
pub(super) fn filled<V: Clone + Default>(
    module: &Module,
    instructions: usize,
) -> SecondaryMap<InstId, V> {
    let (mut map, bound) = (SecondaryMap::new(), module.instruction_bound());
    if instructions >= bound / 16 {
        map.fill(bound);
    }
    map
}

/// The readers of values that were met so far, for those that have any.
struct Pool {
    /// One more than the place of each value's readers, or 0.
    places: SecondaryMap<InstId, u32>,
    readers: Vec<Readers>,
}

impl Pool {
    fn take(&mut self, id: InstId) -> Readers {
        self.of(id).map(std::mem::take).unwrap_or_default()
    }

    fn add(&mut self, id: InstId, others: &Readers) {
        if others.is_empty() {
            return;
        }
        match self.of(id) {
            Some(readers) => readers.extend(others),
            None => {
                self.readers.push(others.clone());
                self.places.set(id, u32::try_from(self.readers.len()).unwrap_or(u32::MAX));
            }
        }
    }

    fn of(&mut self, id: InstId) -> Option<&mut Readers> {
        let place = usize::try_from(self.places[id]).ok()?;
        self.readers.get_mut(place.checked_sub(1)?)
    }
}

/// The earlier one of two sweeps.
fn earlier(sweep: Option<u32>, other: u32) -> Option<u32> {
    Some(sweep.map_or(other, |sweep| sweep.min(other)))
}

/// Which values are in main memory, or computed in place of what is.
fn read_from_large(
    module: &Module,
    order: &[InstId],
    places: Places<'_>,
) -> SecondaryMap<InstId, bool> {
    let mut from_large: SecondaryMap<InstId, bool> = filled(module, order.len());
    for &id in order {
        let computed =
            places.is_inlined(id) && module.operands(id).iter().any(|&of| from_large[of]);
        from_large.set(id, (places.is_large)(id) || computed);
    }
    from_large
}

/// Which values are large, or computed in place or other names of what leads to a large one:
/// who reads others from memory is of no interest.
fn lead_to_large(
    module: &Module,
    order: &[InstId],
    places: Places<'_>,
) -> SecondaryMap<InstId, bool> {
    let mut lead: SecondaryMap<InstId, bool> = filled(module, order.len());
    for &id in order {
        let is_passed = places.is_inlined(id) || places.is_alias(id);
        let leads = || is_passed && module.operands(id).iter().any(|&of| lead[of]);
        let leads = (places.is_large)(id) || leads();
        lead.set(id, leads);
    }
    lead
}

/// No more sweeps are looked at for one sum, the last ones.
const MOST_SWEEPS: u32 = 16;

/// Has each sum that may wait added up in a sweep in which it reads nothing more, if there
/// is one, or else least; the last of these. Those that can wait least are first: for one
/// array that leaves as few sweeps as can be.
fn choose(found: &mut [(InstId, Readers)], waiting: &[Waiting], bytes: impl Fn(InstId) -> u64) {
    let mut arrays: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); waiting.len()];
    for (array, (_, readers)) in found.iter().enumerate() {
        for sum in readers.waiting().iter().filter_map(|&sum| usize::try_from(sum).ok()) {
            if let Some(arrays) = arrays.get_mut(sum) {
                arrays.push(array);
            }
        }
    }
    let mut sums: Vec<usize> = (0..waiting.len()).collect();
    sums.sort_by_key(|&sum| waiting[sum].last);
    for sum in sums {
        let Waiting { first, last } = waiting[sum];
        let first = first.max(last.saturating_sub(MOST_SWEEPS));
        // Of each array, the sweeps from the first one on in which it is read anyway.
        let read: SmallVec<[(u64, u32); 2]> = arrays[sum]
            .iter()
            .map(|&array| {
                let (id, readers) = &found[array];
                (bytes(*id), readers.known().iter().fold(0, |read, of| read | bit(*of, first)))
            })
            .collect();
        let unread = |sweep: u32| -> u64 {
            let is_unread =
                |&&(_, read): &&(u64, u32)| read & bit(Reader::Sweep(sweep), first) == 0;
            read.iter().filter(is_unread).map(|(bytes, _)| bytes).sum()
        };
        let sweeps = (first..=last).rev();
        let sweep = sweeps.min_by_key(|&sweep| unread(sweep)).unwrap_or(first);
        for &array in &arrays[sum] {
            let sum = u32::try_from(sum).unwrap_or(u32::MAX);
            found[array].1.decide(sum, Reader::Sweep(sweep));
        }
    }
}

/// The bit of a sweep, counted from the first one looked at; none of other readers.
fn bit(reader: Reader, first: u32) -> u32 {
    match reader {
        Reader::Sweep(sweep) => {
            sweep.checked_sub(first).and_then(|n| 1u32.checked_shl(n)).unwrap_or(0)
        }
        Reader::Alone(_) => 0,
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

/// Whether an instruction that is not fused reads all of its operands.
fn reads(module: &Module, id: InstId) -> bool {
    !module.opcode(id).hands_on_its_operands() && module.opcode(id) != Opcode::Slice
}
