//! Counts how often each array in main memory is read, on a target without `shares_sweeps`. The
//! ledger charges for these reads; for other targets see `sweeps.rs`.
//!
//! On such a target each reduction and each stored result reads its arrays for itself. The readers
//! of an array therefore depend only on its users, and on the users of those users that are inlined
//! or aliases. [`UnsharedReaders`] updates the readers from the edited instructions.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module, SecondaryMap};

use super::readers::MOST_READERS;
use super::residency::AllFacts;

/// The readers of the large arrays of a module. A *reader* is an instruction that reads them from
/// main memory.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsharedReaders {
    nodes: SecondaryMap<InstId, ReaderNode>,
    /// For each computation, its readers and the number of large arrays that each of them reads.
    arrays: FxHashMap<CompId, FxHashMap<InstId, usize>>,
    /// The nodes that the last update replaced, unless it was kept or rolled back.
    undo: Vec<(InstId, ReaderNode)>,
}

/// The facts about one instruction and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReaderNode {
    /// Whether the value is a large array, or is inlined and computed from one.
    is_from_large: bool,
    /// Whether the value is a large array, or is reached from one through inlined values and
    /// aliases.
    leads_to_large: bool,
    /// Whether the instruction reads a large array from main memory.
    reads: bool,
    /// The readers of the value from main memory, in order of their ids: at most [`MOST_READERS`],
    /// those with the smallest ids. An inlined value or an alias has the readers of its users.
    readers: SmallVec<[InstId; 2]>,
    /// The computation of the instruction if its value is a large array that is read; `None`
    /// otherwise.
    array_of: Option<CompId>,
}

/// A module, the facts about its instructions, and the test for large arrays.
#[derive(Clone, Copy)]
pub(super) struct ReadersView<'a> {
    pub(super) module: &'a Module,
    pub(super) facts: &'a AllFacts,
    pub(super) is_large: &'a dyn Fn(InstId) -> bool,
}

impl UnsharedReaders {
    /// Adds all instructions of a computation.
    pub(super) fn enter(&mut self, computation: CompId, view: ReadersView<'_>) {
        let module = view.module;
        self.nodes.fill(module.instruction_bound());
        // All other instructions read no large array, and have no readers.
        let mut relevant: Vec<InstId> = Vec::new();
        for id in module.instructions(computation) {
            let (is_from_large, leads_to_large) = self.seen_from_operands(id, view);
            if is_from_large || leads_to_large {
                self.nodes
                    .set(id, ReaderNode { is_from_large, leads_to_large, ..ReaderNode::default() });
            }
            let reads = |&operand: &InstId| self.nodes[operand].is_from_large;
            if leads_to_large || module.operands(id).iter().any(reads) {
                relevant.push(id);
            }
        }
        for id in relevant.into_iter().rev() {
            let node = self.seen_from_users(id, view);
            if node.reads || !node.readers.is_empty() {
                self.set(id, node);
            }
        }
    }

    /// Updates the readers after edits: the instructions in `edited`, or the facts about them, may
    /// have changed.
    pub(super) fn update(&mut self, edited: &[InstId], view: ReadersView<'_>) {
        self.undo.clear();
        let module = view.module;
        let mut met = self.follow_down(edited, view);
        let operands: Vec<InstId> =
            met.iter().flat_map(|&id| module.operands(id).iter().copied()).collect();
        let mut waiting: FxHashSet<InstId> = met.iter().copied().collect();
        met.extend(operands.into_iter().filter(|&id| waiting.insert(id)));
        // Visit users first: operands mostly have smaller ids than their users.
        met.sort_unstable_by_key(|&id| std::cmp::Reverse(id));
        let mut next = VecDeque::from(met);
        // If an edit affects much of a module, or ids are in another order, visiting the whole
        // module once takes less time than visiting some instructions repeatedly.
        let mut budget = module.instruction_count() / 4;
        while let Some(id) = next.pop_front() {
            let Some(left) = budget.checked_sub(1) else {
                next.push_front(id);
                return self.visit_all(next, view);
            };
            budget = left;
            waiting.remove(&id);
            if self.visit(id, view) {
                let operands = module.operands(id).iter().copied();
                next.extend(operands.filter(|&operand| waiting.insert(operand)));
            }
        }
    }

    /// Computes the node of every instruction again, users before operands. `left` holds the edited
    /// instructions that were not visited yet, including removed ones.
    fn visit_all(&mut self, left: VecDeque<InstId>, view: ReadersView<'_>) {
        let module = view.module;
        for id in left.into_iter().filter(|&id| module.instruction(id).parent().is_none()) {
            self.visit(id, view);
        }
        for &computation in module.computations() {
            for id in module.instructions(computation).rev() {
                self.visit(id, view);
            }
        }
    }

    /// Computes the node of an instruction again from its users. Returns whether its operands see a
    /// difference.
    fn visit(&mut self, id: InstId, view: ReadersView<'_>) -> bool {
        let is_there = view.module.instruction(id).parent().is_some();
        let node = if is_there { self.seen_from_users(id, view) } else { ReaderNode::default() };
        let old = &self.nodes[id];
        if *old == node {
            return false;
        }
        let is_seen = old.reads != node.reads || old.readers != node.readers;
        self.undo.push((id, old.clone()));
        self.set(id, node);
        is_seen
    }

    /// Computes [`ReaderNode::is_from_large`] and [`ReaderNode::leads_to_large`] again, from
    /// operands to users. Returns the edited instructions and the users of those that changed, each
    /// once.
    fn follow_down(&mut self, edited: &[InstId], view: ReadersView<'_>) -> Vec<InstId> {
        let mut met = edited.to_vec();
        let mut is_met: FxHashSet<InstId> = edited.iter().copied().collect();
        let mut waiting = is_met.clone();
        let mut next: VecDeque<InstId> = edited.iter().copied().collect();
        while let Some(id) = next.pop_front() {
            waiting.remove(&id);
            if view.module.instruction(id).parent().is_none() {
                continue;
            }
            let (found, old) = (self.seen_from_operands(id, view), &self.nodes[id]);
            if found == (old.is_from_large, old.leads_to_large) {
                continue;
            }
            self.undo.push((id, old.clone()));
            // The readers are updated later, by `visit`.
            let node = self.nodes.get_mut(id);
            (node.is_from_large, node.leads_to_large) = found;
            for user in view.module.uses(id).map(|one| one.user) {
                if waiting.insert(user) {
                    next.push_back(user);
                }
                if is_met.insert(user) {
                    met.push(user);
                }
            }
        }
        met
    }

    pub(super) fn roll_back(&mut self) {
        for (id, node) in std::mem::take(&mut self.undo).into_iter().rev() {
            self.set(id, node);
        }
    }

    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// Returns the instructions that the last update changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = InstId> + '_ {
        self.undo.iter().map(|&(id, _)| id)
    }

    /// Returns how often a large array is read.
    pub(super) fn reads(&self, id: InstId) -> usize {
        let node = &self.nodes[id];
        if node.array_of.is_some() { node.readers.len() } else { 0 }
    }

    /// Counts the instructions of a computation that read large arrays.
    pub(super) fn count(&self, computation: CompId) -> usize {
        self.arrays.get(&computation).map_or(0, FxHashMap::len)
    }

    /// Computes [`ReaderNode::is_from_large`] and [`ReaderNode::leads_to_large`] from the operands.
    fn seen_from_operands(&self, id: InstId, view: ReadersView<'_>) -> (bool, bool) {
        let role = view.facts.role(id);
        let is_large = (view.is_large)(id);
        let (mut from_large, mut to_large) = (is_large, is_large);
        if role.is_inlined() || role.is_alias() {
            for operand in view.module.operands(id).iter().map(|&operand| &self.nodes[operand]) {
                from_large |= role.is_inlined() && operand.is_from_large;
                to_large |= operand.leads_to_large;
            }
        }
        (from_large, to_large)
    }

    /// Computes the node of an instruction from the nodes of its users.
    fn seen_from_users(&self, id: InstId, view: ReadersView<'_>) -> ReaderNode {
        let ReadersView { module, facts, is_large } = view;
        let (old, role) = (&self.nodes[id], facts.role(id));
        let is_stored = || module.is_root(id) || facts.is_stored(module, id);
        let reads = module.operands(id).iter().any(|&of| self.nodes[of].is_from_large)
            && if role.is_inlined() { is_stored() } else { role.reads_operands };
        let mut readers: SmallVec<[InstId; 2]> = SmallVec::new();
        if old.leads_to_large {
            let users = module.uses(id).map(|one| one.user);
            // A user that has an inlined value stored reads the stored copy instead.
            users
                .filter(|&user| !(role.is_inlined() && facts.role(user).stores_operands))
                .for_each(|user| self.add_readers(user, facts, &mut readers));
        }
        let is_read = !readers.is_empty() && !role.is_inlined() && !role.is_alias() && is_large(id);
        let parent = module.instruction(id).parent();
        ReaderNode { reads, array_of: parent.filter(|_| is_read), readers, ..*old }
    }

    /// Adds to `readers` the instructions that read main memory for one use of a value: `user`
    /// itself, and the readers of its value if that is inlined or an alias.
    fn add_readers(&self, user: InstId, facts: &AllFacts, readers: &mut SmallVec<[InstId; 2]>) {
        let (node, role) = (&self.nodes[user], facts.role(user));
        let mut add = |reader: InstId| {
            if let Err(place) = readers.binary_search(&reader)
                && place < MOST_READERS
            {
                readers.insert(place, reader);
                readers.truncate(MOST_READERS);
            }
        };
        if node.reads && !role.is_alias() {
            add(user);
        }
        if role.is_inlined() || role.is_alias() {
            node.readers.iter().copied().for_each(add);
        }
    }

    /// Replaces the node of an instruction, and updates the counts of its readers.
    fn set(&mut self, id: InstId, node: ReaderNode) {
        let old = std::mem::replace(self.nodes.get_mut(id), node);
        if let Some(computation) = old.array_of {
            let arrays = self.arrays.entry(computation).or_default();
            for reader in old.readers {
                if let Entry::Occupied(mut count) = arrays.entry(reader) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
        let node = &self.nodes[id];
        if let Some(computation) = node.array_of {
            let arrays = self.arrays.entry(computation).or_default();
            for &reader in &node.readers {
                *arrays.entry(reader).or_default() += 1;
            }
        }
    }
}
