//! Pairs the instructions of two computations.
//!
//! What is unique pairs first: a value by all that it is computed from, then by all that becomes of
//! it. From a pair, the operands in the same positions and the users of the same kind are
//! proposed; proposals are taken in the order of how much they have in common. What is left pairs
//! in [`super::weak`].

use std::collections::VecDeque;
use std::hash::Hash;

use rustc_hash::FxHashMap;
use tilewright::ir::{CompId, Entity as _, InstId, Op, Opcode};

use super::context::Contexts;
use super::interner::{Class, Interner, Parts};
use super::matching::Matching;
use super::side::Side;

/// How much two instructions have in common, most first; see [`Pairing::likeness`].
const LEVELS: usize = 8;
/// The first level whose instructions compute different values.
const OTHER_VALUE: usize = 4;

/// The instructions of a pair of computations, and the proposals made so far.
pub(super) struct Pairing<'x, 'm> {
    pub(super) a: &'x Side<'m>,
    pub(super) b: &'x Side<'m>,
    pub(super) matching: &'x mut Matching,
    pub(super) of_a: Vec<InstId>,
    pub(super) of_b: Vec<InstId>,
    pub(super) computations: (CompId, CompId),
    proposals: [VecDeque<(InstId, InstId)>; LEVELS],
    /// How many instructions of a value have no partner.
    free_a: FxHashMap<Class, usize>,
    free_b: FxHashMap<Class, usize>,
}

impl<'x, 'm> Pairing<'x, 'm> {
    /// Begins with the pairs that the matching has.
    pub(super) fn new(
        a: &'x Side<'m>,
        b: &'x Side<'m>,
        matching: &'x mut Matching,
        computations: (CompId, CompId),
    ) -> Self {
        let of_a: Vec<InstId> = a.module.instructions(computations.0).collect();
        let of_b: Vec<InstId> = b.module.instructions(computations.1).collect();
        let (mut free_a, mut free_b) = (FxHashMap::default(), FxHashMap::default());
        for id in of_a.iter().filter(|&&id| matching.b_of(id).is_none()) {
            *free_a.entry(a.value[id.index()]).or_insert(0) += 1;
        }
        for id in of_b.iter().filter(|&&id| matching.a_of(id).is_none()) {
            *free_b.entry(b.value[id.index()]).or_insert(0) += 1;
        }
        let proposals = std::array::from_fn(|_| VecDeque::new());
        Self { a, b, matching, of_a, of_b, computations, proposals, free_a, free_b }
    }

    /// Pairs what is surely the same.
    pub(super) fn strong(&mut self, parts: &mut Interner<Parts>) {
        self.parameters();
        self.unique(|side, id| side.exact[id.index()]);
        self.unique(|side, id| side.value[id.index()]);
        let uses_a = Contexts::new(self.a, self.computations.0, parts);
        let uses_b = Contexts::new(self.b, self.computations.1, parts);
        self.unique_of(|id| uses_a.with_core.get(&id), |id| uses_b.with_core.get(&id));
        let (a, b) = (self.a, self.b);
        self.unique_of(
            |id| Some((a.value[id.index()], uses_a.uses.get(&id)?)),
            |id| Some((b.value[id.index()], uses_b.uses.get(&id)?)),
        );
        self.roots();
        self.drain(LEVELS);
        self.unique_of(
            |id| Some((a.module.opcode(id), uses_a.uses.get(&id)?)),
            |id| Some((b.module.opcode(id), uses_b.uses.get(&id)?)),
        );
        self.drain(LEVELS);
    }

    /// Pairs parameters by their numbers; if there are more in one computation, by names and
    /// shapes.
    fn parameters(&mut self) {
        let of_a = self.a.module.computation(self.computations.0).parameters().to_vec();
        let of_b = self.b.module.computation(self.computations.1).parameters().to_vec();
        if of_a.len() == of_b.len() {
            for (&a, &b) in of_a.iter().zip(&of_b) {
                self.pair(a, b);
            }
            return;
        }
        let is_parameter = |side: &Side<'_>, id| matches!(side.module.op(id), Op::Parameter(_));
        self.unique_where(is_parameter, |side, id| {
            (side.module.name_of(id).to_owned(), side.shape[id.index()])
        });
        let (side_a, side_b) = (self.a, self.b);
        let mut rest = of_b.iter();
        for &a in of_a.iter().filter(|&&id| self.matching.b_of(id).is_none()).collect::<Vec<_>>() {
            let shape = side_a.shape[a.index()];
            let like =
                |&&b: &&InstId| self.matching.a_of(b).is_none() && side_b.shape[b.index()] == shape;
            if let Some(&b) = rest.clone().find(like) {
                rest.by_ref().find(|&&id| id == b);
                self.pair(a, b);
            }
        }
    }

    fn roots(&mut self) {
        let root_a = self.a.module.computation(self.computations.0).root();
        let root_b = self.b.module.computation(self.computations.1).root();
        if let (Some(a), Some(b)) = (root_a, root_b) {
            self.propose(a, b);
        }
    }

    /// Pairs instructions whose keys no other instruction without a partner has.
    pub(super) fn unique<K: Eq + Hash>(&mut self, key: impl Fn(&Side<'m>, InstId) -> K) {
        self.unique_where(|_, _| true, key);
    }

    /// Like [`Self::unique`], among some of the instructions.
    pub(super) fn unique_where<K: Eq + Hash>(
        &mut self,
        is_meant: impl Fn(&Side<'m>, InstId) -> bool,
        key: impl Fn(&Side<'m>, InstId) -> K,
    ) {
        let (a, b) = (self.a, self.b);
        self.unique_of(
            |id| is_meant(a, id).then(|| key(a, id)),
            |id| is_meant(b, id).then(|| key(b, id)),
        );
    }

    fn unique_of<K: Eq + Hash>(
        &mut self,
        key_a: impl Fn(InstId) -> Option<K>,
        key_b: impl Fn(InstId) -> Option<K>,
    ) {
        for (a, b) in self.unique_pairs(key_a, key_b) {
            self.pair(a, b);
        }
    }

    /// Returns the instructions without partners whose keys are unique, in order.
    pub(super) fn unique_pairs<K: Eq + Hash>(
        &self,
        key_a: impl Fn(InstId) -> Option<K>,
        key_b: impl Fn(InstId) -> Option<K>,
    ) -> Vec<(InstId, InstId)> {
        let free_a = self.of_a.iter().copied().filter(|&id| self.matching.b_of(id).is_none());
        let free_b = self.of_b.iter().copied().filter(|&id| self.matching.a_of(id).is_none());
        unique_pairs(free_a, key_a, free_b, key_b)
    }

    /// Makes a pair and proposes its neighbours.
    pub(super) fn pair(&mut self, a: InstId, b: InstId) {
        if !self.matching.pair(a, b) {
            return;
        }
        take_one(&mut self.free_a, self.a.value[a.index()]);
        take_one(&mut self.free_b, self.b.value[b.index()]);
        self.neighbours(a, b);
    }

    /// Proposes the neighbours of a pair: operands in the same positions, and users that are the
    /// only ones of their kind.
    pub(super) fn neighbours(&mut self, a: InstId, b: InstId) {
        let (side_a, side_b) = (self.a, self.b);
        let operands = side_a.module.operands(a).iter().zip(side_b.module.operands(b));
        for (&a, &b) in operands {
            self.propose(a, b);
        }
        let free_a: Vec<_> =
            side_a.module.uses(a).filter(|of| self.matching.b_of(of.user).is_none()).collect();
        if free_a.is_empty() {
            return;
        }
        let free_b: Vec<_> =
            side_b.module.uses(b).filter(|of| self.matching.a_of(of.user).is_none()).collect();
        let cores = unique_pairs(
            free_a.iter().copied(),
            |of| Some((side_a.core[of.user.index()], of.operand)),
            free_b.iter().copied(),
            |of| Some((side_b.core[of.user.index()], of.operand)),
        );
        let opcodes = unique_pairs(
            free_a.iter().copied(),
            |of| Some((side_a.module.opcode(of.user), of.operand)),
            free_b.iter().copied(),
            |of| Some((side_b.module.opcode(of.user), of.operand)),
        );
        for (a, b) in cores.into_iter().chain(opcodes) {
            self.propose(a.user, b.user);
        }
    }

    fn propose(&mut self, a: InstId, b: InstId) {
        if let Some(level) = self.likeness(a, b)
            && let Some(queue) = self.proposals.get_mut(level)
        {
            queue.push_back((a, b));
        }
    }

    /// Returns how much two instructions without partners have in common, from 0 for the most;
    /// `None` if they are of different opcodes.
    fn likeness(&self, a: InstId, b: InstId) -> Option<usize> {
        if !self.matching.are_free(a, b) {
            return None;
        }
        let (x, y) = (a.index(), b.index());
        let level = if self.a.exact[x] == self.b.exact[y] {
            0
        } else if self.a.value[x] == self.b.value[y] {
            2
        } else if self.a.core[x] == self.b.core[y] {
            4
        } else if self.a.module.opcode(a) == self.b.module.opcode(b)
            && self.a.module.opcode(a) != Opcode::Parameter
        {
            6
        } else {
            return None;
        };
        let named = self.a.module.name_of(a) == self.b.module.name_of(b);
        Some(level + usize::from(!named))
    }

    /// Makes pairs of proposals below a level, the most alike first. Those of which one has its
    /// equal elsewhere wait for that.
    pub(super) fn drain(&mut self, below: usize) {
        while let Some(level) = self.proposals.iter().position(|queue| !queue.is_empty()) {
            if level >= below {
                return;
            }
            let Some((a, b)) = self.proposals.get_mut(level).and_then(VecDeque::pop_front) else {
                return;
            };
            if level >= OTHER_VALUE && self.has_equal_elsewhere(a, b) {
                continue;
            }
            self.pair(a, b);
        }
    }

    /// Makes pairs of all proposals.
    pub(super) fn drain_all(&mut self) {
        self.drain(LEVELS);
    }

    /// Makes pairs of the proposals that compute equal values.
    pub(super) fn drain_equal(&mut self) {
        self.drain(OTHER_VALUE);
    }

    fn has_equal_elsewhere(&self, a: InstId, b: InstId) -> bool {
        let has = |free: &FxHashMap<Class, usize>, class: Class| {
            free.get(&class).is_some_and(|&count| count > 0)
        };
        has(&self.free_b, self.a.value[a.index()]) || has(&self.free_a, self.b.value[b.index()])
    }
}

fn take_one(free: &mut FxHashMap<Class, usize>, class: Class) {
    if let Some(count) = free.get_mut(&class) {
        *count = count.saturating_sub(1);
    }
}

/// Returns the pairs of items whose keys occur once on each side, in the order of the first side.
pub(super) fn unique_pairs<T: Copy, K: Eq + Hash>(
    of_a: impl Iterator<Item = T>,
    key_a: impl Fn(T) -> Option<K>,
    of_b: impl Iterator<Item = T>,
    key_b: impl Fn(T) -> Option<K>,
) -> Vec<(T, T)> {
    let mut places: FxHashMap<K, usize> = FxHashMap::default();
    // The first item on each side, and how many there are.
    let mut found: Vec<[(Option<T>, usize); 2]> = Vec::new();
    let mut add = |key: Option<K>, item: T, side: usize| {
        let Some(key) = key else { return };
        let place = *places.entry(key).or_insert(found.len());
        if place == found.len() {
            found.push([(None, 0); 2]);
        }
        if let Some((first, count)) = found.get_mut(place).and_then(|of| of.get_mut(side)) {
            first.get_or_insert(item);
            *count += 1;
        }
    };
    of_a.for_each(|item| add(key_a(item), item, 0));
    of_b.for_each(|item| add(key_b(item), item, 1));
    let unique = |of: [(Option<T>, usize); 2]| match of {
        [(Some(a), 1), (Some(b), 1)] => Some((a, b)),
        _ => None,
    };
    found.into_iter().filter_map(unique).collect()
}
