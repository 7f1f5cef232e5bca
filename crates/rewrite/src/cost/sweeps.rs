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
        let mut search = Search {
            sweeps: reading_sweeps(module, &order, model, places),
            leads_to_large: lead_to_large(module, &order, places),
            due: filled(module, order.len()),
            readers: Pool { places: filled(module, order.len()), readers: Vec::new() },
            found: Vec::new(),
            waiting: Vec::new(),
            last: 0,
            module,
            model,
            places,
        };
        search.last = order.iter().filter_map(|&id| search.sweeps[id]).max().unwrap_or(0);
        order.iter().rev().for_each(|&id| search.meet(id));
        let Search { mut found, waiting, .. } = search;
        found.reverse();
        choose(&mut found, &waiting, |id| places.facts[id].footprint.padded_bytes);
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

/// The sweep in which each instruction reads main memory, if it does.
fn reading_sweeps(
    module: &Module,
    order: &[InstId],
    model: &CostModel<'_>,
    places: Places<'_>,
) -> SecondaryMap<InstId, Option<u32>> {
    let from_large = read_from_large(module, order, places);
    // Where each reads for itself, it does not matter when.
    let ready = if model.target.shares_sweeps {
        readiness_of_all(module, order, model, places, &from_large)
    } else {
        SecondaryMap::new()
    };
    let mut sweeps: SecondaryMap<InstId, Option<u32>> = filled(module, order.len());
    for &id in order {
        let is_inlined = places.is_inlined(id);
        let reads = module.operands(id).iter().any(|&operand| from_large[operand])
            && if is_inlined {
                module.is_root(id) || model.is_stored(module, id, places.facts)
            } else {
                reads(module, id)
            };
        let at = if is_inlined { ready[id] } else { waits(module, id, &ready) };
        sweeps.set(id, reads.then_some(at.sweep));
    }
    sweeps
}

/// A search for the readers of large arrays, from users to operands.
struct Search<'a> {
    module: &'a Module,
    model: &'a CostModel<'a>,
    places: Places<'a>,
    /// The sweep in which each instruction reads main memory, if it does.
    sweeps: SecondaryMap<InstId, Option<u32>>,
    /// The last of these sweeps.
    last: u32,
    leads_to_large: SecondaryMap<InstId, bool>,
    /// The sweep before which each value is needed; none where nothing reads it.
    due: SecondaryMap<InstId, Option<u32>>,
    /// The readers of values whose producers are still to be met.
    readers: Pool,
    /// The large arrays that are read, last ones first.
    found: Vec<(InstId, Readers)>,
    /// The sums that may be added up in one of several sweeps.
    waiting: Vec<Waiting>,
}

impl Search<'_> {
    /// Meets an instruction after all of its users.
    fn meet(&mut self, id: InstId) {
        let (module, model, places) = (self.module, self.model, self.places);
        let mut readers = self.readers.take(id);
        let (mut needs, sweep) = (self.due[id], self.sweeps[id]);
        if places.is_inlined(id) {
            if let Some(sweep) = sweep {
                let shares = model.target.shares_sweeps;
                readers.insert(if shares { Reader::Sweep(sweep) } else { Reader::Alone(id) });
                needs = earlier(needs, sweep);
            }
        } else if !places.is_alias(id) {
            if (places.is_large)(id) && !readers.is_empty() {
                self.found.push((id, readers));
            }
            readers = Readers::default();
            if let Some(sweep) = sweep {
                self.read_by(id, sweep, needs, &mut readers);
                needs = earlier(needs, sweep);
            }
        }
        for &operand in module.operands(id) {
            if let Some(needs) = needs {
                self.due.set(operand, earlier(self.due[operand], needs));
            }
            let is_stored =
                places.is_inlined(operand) && model.is_stored_for(module, id, places.facts);
            if !is_stored && self.leads_to_large[operand] {
                self.readers.add(operand, &readers);
            }
        }
    }

    /// Adds an instruction that is not inlined, and reads main memory in `sweep` at the
    /// earliest, to the readers of its operands. A sum that nothing needs yet may wait.
    fn read_by(&mut self, id: InstId, sweep: u32, needs: Option<u32>, readers: &mut Readers) {
        let last = needs.map_or(self.last, |due| due.saturating_sub(1));
        let shares = self.model.target.shares_sweeps && self.module.opcode(id) == Opcode::Reduce;
        match (shares, last > sweep) {
            (false, _) => readers.insert(Reader::Alone(id)),
            (true, true) => {
                readers.insert_waiting(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX));
                self.waiting.push(Waiting { first: sweep, last });
            }
            (true, false) => readers.insert(Reader::Sweep(sweep)),
        }
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
