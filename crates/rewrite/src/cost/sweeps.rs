//! Counts how often each array in main memory is read, on a target with `shares_sweeps`. The ledger
//! charges for these reads; for other targets see `unshared_readers.rs`.
//!
//! The operands of an instruction decide the earliest *sweep* over main memory in which it can run
//! (`ready.rs`). An elementwise op runs in the sweep of its operands; an op that needs a whole sum
//! runs in the sweep after that sum. The sum of a row that fits in vector memory is ready with the
//! row, so a computation on a row and its own sum needs no second sweep. All readers of an array in
//! one sweep read it once together. A sum that nothing needs yet waits for a sweep that reads its
//! array anyway. [`CostModel`] charges the first read of an array to the instruction that makes the
//! array; the ledger, the other reads that this file counts.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, Op, Opcode, SecondaryMap};

use super::CostModel;
use super::contraction::output_feature;
use super::readers::{Reader, Readers};
use super::ready::{Ready, readiness};
use super::residency::AllFacts;
use super::roles::{ReadyRule, Role};
use crate::analysis::reduce::reduced_arrays;

/// A sum that may be computed in any sweep from `first` to `last`.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: u32,
    last: u32,
}

/// The large arrays of a computation that are read from main memory, in order, with their readers.
pub(super) struct MemorySweeps {
    readers: Vec<(InstId, Readers)>,
}

impl MemorySweeps {
    /// Finds the readers of all large arrays of a computation. `is_large` says which arrays are
    /// large.
    pub(super) fn of(
        (module, computation): (&Module, CompId),
        model: &CostModel<'_>,
        facts: &AllFacts,
        is_large: &dyn Fn(InstId) -> bool,
        scratch: &mut Scratch,
    ) -> Self {
        let mut search = SweepSearch { module, facts, scratch, last: 0 };
        search.enter(computation, is_large);
        search.find_rows(model);
        search.go_down(model);
        search.go_up();
        let Scratch { found, waiting, .. } = scratch;
        found.reverse();
        assign_waiting_sums(found, waiting, |id| facts[id].footprint.padded_bytes);
        Self { readers: std::mem::take(found) }
    }

    /// Returns the arrays that are read, each with the number of its reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = (InstId, usize)> + '_ {
        self.readers.iter().map(|(id, readers)| (*id, readers.len()))
    }

    /// Counts the different readers of all arrays: sweeps, and instructions that share no read.
    pub(super) fn count(&self) -> usize {
        let readers = self.readers.iter().flat_map(|(_, readers)| readers.known());
        readers.collect::<FxHashSet<_>>().len()
    }
}

/// The buffers of a search, which the next search uses again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The nodes of the computation's instructions; the nodes of other instructions are stale.
    nodes: SecondaryMap<InstId, SweepNode>,
    /// The instructions of the computation, in order.
    order: Vec<InstId>,
    /// The instructions that affect reads of main memory or the time of a sum, in order.
    relevant: Vec<InstId>,
    /// The readers of values: see [`SweepNode::readers`].
    readers: Vec<Readers>,
    /// The large arrays that are read, with their readers, the last array first.
    found: Vec<(InstId, Readers)>,
    /// The sums that may be computed in one of several sweeps.
    waiting: Vec<Waiting>,
}

/// The facts that a search finds about one instruction and its value.
#[derive(Clone, Copy, Debug, Default)]
struct SweepNode {
    /// The earliest time at which the value can be read.
    ready: Ready,
    /// The sweep in which the instruction reads main memory, if it does.
    sweep: Option<u32>,
    /// The first sweep that needs the value, if any does. A sum must be computed before it.
    needed_in: Option<u32>,
    /// One more than the index in [`Scratch::readers`] of the readers found so far, or 0.
    readers: u32,
    is_large: bool,
    /// Whether a user or the caller has the value stored, to read it from memory.
    is_stored: bool,
    /// Whether the value is a large array, or is inlined and computed from one.
    is_from_large: bool,
    /// Whether the value is a large array, or is reached from one through inlined values and
    /// aliases. The readers of other values do not matter.
    leads_to_large: bool,
    /// Whether a kernel that goes from row to row needs the value: see [`SweepSearch::find_rows`].
    serves_rows: bool,
    /// The contraction whose kernel computes the value, or could compute it: see
    /// [`contraction_kernel`].
    kernel: Option<InstId>,
}

impl SweepNode {
    /// Returns the sweep in which a contraction runs.
    fn sweep_of_run(&self) -> u32 {
        self.sweep.unwrap_or(self.ready.sweep)
    }
}

/// Returns the contraction whose kernel computes a value, or could compute it. The kernel computes
/// the contraction itself, elementwise ops on its result and on values that are known when it runs,
/// and sums of all of these that keep the output feature. XLA's compilers for machines with a
/// matrix unit make one kernel of them, so the sums read nothing.
fn contraction_kernel(
    module: &Module,
    id: InstId,
    role: Role,
    nodes: &SecondaryMap<InstId, SweepNode>,
) -> Option<InstId> {
    if role.is_contraction {
        return (nodes[id].is_large && !role.moves_space).then_some(id);
    }
    let operands = match module.op(id) {
        Op::Reduce(_) => reduced_arrays(module, id),
        op if op.keeps_indices() => module.operands(id),
        _ => return None,
    };
    let contraction = operands.iter().find_map(|&operand| nodes[operand].kernel)?;
    let sweep = nodes[contraction].sweep_of_run();
    let is_there = |&operand: &InstId| {
        let node = &nodes[operand];
        node.kernel == Some(contraction) || !node.is_from_large && node.ready.whole().sweep <= sweep
    };
    let keeps = match module.op(id) {
        Op::Reduce(attrs) => output_feature(module, contraction)
            .is_some_and(|feature| !attrs.dimensions.contains(&feature)),
        _ => true,
    };
    (keeps && operands.iter().all(is_there)).then_some(contraction)
}

/// A search for the readers of large arrays. It visits operands before users to find the sweep in
/// which each instruction runs, then users before operands to collect the readers.
struct SweepSearch<'a> {
    module: &'a Module,
    facts: &'a AllFacts,
    scratch: &'a mut Scratch,
    /// The last sweep in which any instruction reads main memory.
    last: u32,
}

impl SweepSearch<'_> {
    /// Clears the buffers and enters the instructions of a computation.
    fn enter(&mut self, computation: CompId, is_large: &dyn Fn(InstId) -> bool) {
        let Self { module, facts, scratch, .. } = self;
        let Scratch { nodes, order, relevant, readers, found, waiting } = &mut **scratch;
        order.clear();
        relevant.clear();
        readers.clear();
        found.clear();
        waiting.clear();
        for id in module.instructions(computation) {
            nodes.set(id, SweepNode { is_large: is_large(id), ..SweepNode::default() });
            if facts.role(id).stores_operands {
                module.operands(id).iter().for_each(|&of| nodes.get_mut(of).is_stored = true);
            }
            order.push(id);
        }
        if let Some(root) = module.computation(computation).root() {
            nodes.get_mut(root).is_stored = true;
        }
    }

    /// Marks the values that a kernel that goes from row to row needs. These are the large results
    /// that inlined ops compute, the operands of contractions that fuse them, and the values from
    /// which marked values are computed by inlined ops, sums of rows and reshapes of small arrays.
    fn find_rows(&mut self, model: &CostModel<'_>) {
        let Scratch { nodes, order, .. } = &mut *self.scratch;
        let are_rows = |id: &InstId| self.facts.role(*id).ready_rule == ReadyRule::RowReduce;
        if !order.iter().any(are_rows) {
            return;
        }
        for &id in order.iter().rev() {
            let (role, node) = (self.facts.role(id), nodes.get_mut(id));
            node.serves_rows |= node.is_large && node.is_stored && role.is_inlined();
            let passes_up = match role.ready_rule {
                ReadyRule::AsOperands | ReadyRule::RowReduce => node.serves_rows,
                ReadyRule::Reshape => node.serves_rows && !node.is_large,
                _ => role.is_contraction && model.target.fuses_contractions,
            };
            if passes_up {
                let operands = self.module.operands(id).iter();
                operands.for_each(|&of| nodes.get_mut(of).serves_rows = true);
            }
        }
    }

    /// Visits each instruction after its operands, and finds when it is ready and in which sweep it
    /// reads main memory.
    fn go_down(&mut self, model: &CostModel<'_>) {
        let fuses_contractions = model.target.fuses_contractions;
        let Scratch { nodes, order, relevant, .. } = &mut *self.scratch;
        for &id in &*order {
            let role = self.facts.role(id);
            let (mut waits, mut of_large, mut to_large) = (Ready::default(), false, false);
            for &operand in self.module.operands(id) {
                let operand = &nodes[operand];
                waits = waits.max(operand.ready);
                of_large |= operand.is_from_large;
                to_large |= operand.leads_to_large;
            }
            let kernel = if fuses_contractions {
                contraction_kernel(self.module, id, role, nodes)
            } else {
                None
            };
            let is_sum = self.module.opcode(id) == Opcode::Reduce;
            let beside = kernel.filter(|_| is_sum).map(|contraction| nodes[contraction].ready);
            let (is_inlined, node) = (role.is_inlined(), nodes.get_mut(id));
            node.kernel = kernel.filter(|_| !is_sum);
            node.ready = match beside {
                Some(ready) => ready,
                None => readiness(role, waits, of_large, node.serves_rows),
            };
            // The users of a slice read only its part of the array.
            let is_part = self.module.opcode(id) == Opcode::Slice;
            node.is_from_large = node.is_large || is_inlined && !is_part && of_large;
            let leads = (is_inlined || role.is_alias()) && !is_part;
            node.leads_to_large = node.is_large || leads && to_large;
            let reads =
                if is_inlined { node.is_stored } else { role.reads_operands && beside.is_none() };
            if of_large && reads && !is_part {
                let sweep = if is_inlined { node.ready.sweep } else { waits.sweep };
                node.sweep = Some(sweep);
                self.last = self.last.max(sweep);
            }
            let waits_for_sum = node.ready != Ready::default();
            if waits_for_sum || node.is_from_large || node.leads_to_large || node.sweep.is_some() {
                relevant.push(id);
            }
        }
    }

    /// Visits each relevant instruction after its users, and collects the readers of arrays.
    fn go_up(&mut self) {
        let relevant = std::mem::take(&mut self.scratch.relevant);
        relevant.iter().rev().for_each(|&id| self.collect_readers(id));
        self.scratch.relevant = relevant;
    }

    /// Records the readers of an instruction's result, all of whose users were visited, and passes
    /// them to its operands.
    fn collect_readers(&mut self, id: InstId) {
        let (node, role) = (self.scratch.nodes[id], self.facts.role(id));
        let mut readers = self.scratch.take(node.readers);
        let mut needs = node.needed_in;
        if role.is_inlined() && self.module.opcode(id) != Opcode::Slice {
            if let Some(sweep) = node.sweep {
                readers.insert(Reader::Sweep(sweep));
                needs = earlier(needs, sweep);
            }
        } else if !role.is_alias() {
            if node.is_large && !readers.is_empty() {
                self.scratch.found.push((id, readers));
            }
            readers = Readers::default();
            if let Some(sweep) = node.sweep {
                self.read_by(id, sweep, needs, &mut readers);
                needs = earlier(needs, sweep);
            }
        }
        self.pass_to_operands(id, role, needs, &readers);
    }

    /// Passes to the operands of an instruction the readers of its result, and the first sweep that
    /// needs the result.
    fn pass_to_operands(&mut self, id: InstId, role: Role, needs: Option<u32>, readers: &Readers) {
        for &operand in self.module.operands(id) {
            let node = self.scratch.nodes.get_mut(operand);
            if let Some(needs) = needs {
                node.needed_in = earlier(node.needed_in, needs);
            }
            let is_stored = role.stores_operands && self.facts.role(operand).is_inlined();
            if !is_stored && node.leads_to_large && !readers.is_empty() {
                self.scratch.add(operand, readers);
            }
        }
    }

    /// Adds an instruction that is not inlined to the readers of its operands. It reads main memory
    /// in `sweep` at the earliest. A sum that is not needed before the sweep `needs` may wait.
    fn read_by(&mut self, id: InstId, sweep: u32, needs: Option<u32>, readers: &mut Readers) {
        let last = needs.map_or(self.last, |needed_in| needed_in.saturating_sub(1));
        let is_sum = self.module.opcode(id) == Opcode::Reduce;
        let moves_space = |&operand: &InstId| self.facts.role(operand).moves_space;
        let shares = is_sum && !self.module.operands(id).iter().any(moves_space);
        match (shares, last > sweep) {
            (false, _) => readers.insert(Reader::Instruction(id)),
            (true, true) => {
                let waiting = &mut self.scratch.waiting;
                readers.insert_waiting(u32::try_from(waiting.len()).unwrap_or(u32::MAX));
                waiting.push(Waiting { first: sweep, last });
            }
            (true, false) => readers.insert(Reader::Sweep(sweep)),
        }
    }
}

impl Scratch {
    /// Takes the readers at the index `place - 1`; none for place 0.
    fn take(&mut self, place: u32) -> Readers {
        at(&mut self.readers, place).map(std::mem::take).unwrap_or_default()
    }

    /// Adds `others` to the readers of a value.
    fn add(&mut self, id: InstId, others: &Readers) {
        let node = self.nodes.get_mut(id);
        match at(&mut self.readers, node.readers) {
            Some(readers) => readers.extend(others),
            None => {
                self.readers.push(others.clone());
                node.readers = u32::try_from(self.readers.len()).unwrap_or(u32::MAX);
            }
        }
    }
}

/// Returns the readers at the index `place - 1`; `None` for place 0.
fn at(readers: &mut [Readers], place: u32) -> Option<&mut Readers> {
    readers.get_mut(usize::try_from(place).ok()?.checked_sub(1)?)
}

/// Returns a map for this many instructions. If they are a large part of the module, the map has
/// room for all of the module's instructions at once, which is faster than to grow it one by one.
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

/// Returns the earlier of two sweeps, where `None` is later than any sweep.
fn earlier(sweep: Option<u32>, other: u32) -> Option<u32> {
    Some(sweep.map_or(other, |sweep| sweep.min(other)))
}

/// The number of sweeps before the last possible one that are tried for a waiting sum.
const MOST_SWEEPS: u32 = 16;

/// Chooses the sweep of each waiting sum: the one in which the sum reads the fewest additional
/// bytes, and the last of several such sweeps. Sums with the earliest deadline come first: for a
/// single array, this leaves as few sweeps as possible.
fn assign_waiting_sums(
    found: &mut [(InstId, Readers)],
    waiting: &[Waiting],
    bytes: impl Fn(InstId) -> u64,
) {
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
        // For each array that the sum reads: its bytes, and one bit for each sweep from `first` on
        // that reads the array anyway.
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

/// Returns the bit of a sweep, bit 0 for the sweep `first`. Returns 0 for other readers, and for
/// sweeps before `first`.
fn bit(reader: Reader, first: u32) -> u32 {
    match reader {
        Reader::Sweep(sweep) => {
            sweep.checked_sub(first).and_then(|n| 1u32.checked_shl(n)).unwrap_or(0)
        }
        Reader::Instruction(_) => 0,
    }
}

/// Checks whether an instruction is a reshape that only adds or drops dims of size 1.
pub(super) fn same_but_ones(module: &Module, id: InstId) -> bool {
    let large = |id: InstId| -> Option<SmallVec<[i64; 6]>> {
        Some(module.array_shape(id)?.dims().iter().copied().filter(|&dim| dim != 1).collect())
    };
    let &[operand] = module.operands(id) else { return false };
    module.opcode(id) == Opcode::Reshape && large(operand) == large(id)
}
