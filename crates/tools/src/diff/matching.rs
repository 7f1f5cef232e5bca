//! Which parts of two modules belong together.

use rustc_hash::FxHashMap;
use tilewright::ir::{CompId, Entity as _, InstId, Module, Opcode};

use super::interner::{Class, Interner, Parts};
use super::pairing::Pairing;
use super::side::Side;

/// Pairs of instructions and of computations, each in at most one pair.
pub(super) struct Matching {
    to_b: Vec<Option<InstId>>,
    to_a: Vec<Option<InstId>>,
    computation_to_b: FxHashMap<CompId, CompId>,
    computation_to_a: FxHashMap<CompId, CompId>,
}

impl Matching {
    /// No pairs yet.
    pub(super) fn new(a: &Module, b: &Module) -> Self {
        Self {
            to_b: vec![None; a.instruction_bound()],
            to_a: vec![None; b.instruction_bound()],
            computation_to_b: FxHashMap::default(),
            computation_to_a: FxHashMap::default(),
        }
    }

    /// The same pairs, seen from the other module.
    pub(super) fn mirrored(self) -> Self {
        Self {
            to_b: self.to_a,
            to_a: self.to_b,
            computation_to_b: self.computation_to_a,
            computation_to_a: self.computation_to_b,
        }
    }

    /// The partner of an instruction of the first module.
    pub(super) fn b_of(&self, a: InstId) -> Option<InstId> {
        self.to_b.get(a.index()).copied().flatten()
    }

    /// The partner of an instruction of the second module.
    pub(super) fn a_of(&self, b: InstId) -> Option<InstId> {
        self.to_a.get(b.index()).copied().flatten()
    }

    /// Checks whether neither has a partner.
    pub(super) fn are_free(&self, a: InstId, b: InstId) -> bool {
        self.b_of(a).is_none() && self.a_of(b).is_none()
    }

    /// Makes a pair of two instructions, unless one has a partner; says whether it did.
    pub(super) fn pair(&mut self, a: InstId, b: InstId) -> bool {
        if !self.are_free(a, b) {
            return false;
        }
        match (self.to_b.get_mut(a.index()), self.to_a.get_mut(b.index())) {
            (Some(to_b), Some(to_a)) => {
                (*to_b, *to_a) = (Some(b), Some(a));
                true
            }
            _ => false,
        }
    }

    /// The partner of a computation of the first module.
    pub(super) fn computation_b(&self, a: CompId) -> Option<CompId> {
        self.computation_to_b.get(&a).copied()
    }

    /// The partner of a computation of the second module.
    pub(super) fn computation_a(&self, b: CompId) -> Option<CompId> {
        self.computation_to_a.get(&b).copied()
    }

    /// Makes a pair of two computations that have no partners.
    pub(super) fn pair_computations(&mut self, a: CompId, b: CompId) {
        self.computation_to_b.insert(a, b);
        self.computation_to_a.insert(b, a);
    }
}

/// Pairs a computation of the first module, whose callers have been looked at, with one that the
/// partners of its callers call; says whether it did. Prefers isomorphic ones, then the one that
/// most call, then one of the same name.
pub(super) fn pair_by_callers(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    id: CompId,
) -> bool {
    if matching.computation_b(id).is_some() {
        return false;
    }
    let mut votes: FxHashMap<CompId, usize> = FxHashMap::default();
    let mut candidates = Vec::new();
    for &caller in a.callers.get(&id).into_iter().flatten() {
        let Some(partner) = matching.b_of(caller) else { continue };
        let called = a.module.called(caller).into_iter().zip(b.module.called(partner));
        for (_, other) in called.filter(|(of_a, _)| *of_a == id) {
            let count = votes.entry(other).or_insert(0);
            if *count == 0 && matching.computation_a(other).is_none() {
                candidates.push(other);
            }
            *count += 1;
        }
    }
    let name = a.module.computation(id).name();
    let score = |other: CompId| {
        (
            a.body.get(&id) == b.body.get(&other),
            a.core_body.get(&id) == b.core_body.get(&other),
            votes.get(&other).copied().unwrap_or(0),
            b.module.computation(other).name() == name,
        )
    };
    // The first of the best.
    let best = candidates.into_iter().rev().max_by_key(|&other| score(other));
    if let Some(other) = best {
        matching.pair_computations(id, other);
    }
    best.is_some()
}

/// Pairs a computation with one of the same name, parameters and root that has no partner; says
/// whether it did.
pub(super) fn pair_by_name(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    id: CompId,
) -> bool {
    if matching.computation_b(id).is_some() {
        return false;
    }
    let other = b.by_name.get(a.module.computation(id).name()).copied();
    let other = other.filter(|&other| {
        matching.computation_a(other).is_none() && signature(a, id) == signature(b, other)
    });
    if let Some(other) = other {
        matching.pair_computations(id, other);
    }
    other.is_some()
}

/// Returns the shapes of the parameters of a computation, and the opcode and shape of its root.
fn signature(side: &Side<'_>, id: CompId) -> (Vec<Class>, Option<(Opcode, Class)>) {
    let computation = side.module.computation(id);
    let shape = |id: InstId| side.shape[id.index()];
    let root = computation.root().map(|root| (side.module.opcode(root), shape(root)));
    (computation.parameters().iter().map(|&id| shape(id)).collect(), root)
}

/// Pairs the computations that are left and isomorphic, in order; returns those of the first
/// module.
pub(super) fn leftover_computations(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
) -> Vec<CompId> {
    let mut by_body: FxHashMap<Class, Vec<CompId>> = FxHashMap::default();
    for &id in b.module.computations().iter().rev() {
        if let (None, Some(&body)) = (matching.computation_a(id), b.body.get(&id)) {
            by_body.entry(body).or_default().push(id);
        }
    }
    let mut paired = Vec::new();
    for &id in a.module.computations() {
        if matching.computation_b(id).is_some() {
            continue;
        }
        let same = a.body.get(&id).and_then(|body| by_body.get_mut(body));
        if let Some(other) = same.and_then(Vec::pop) {
            matching.pair_computations(id, other);
            paired.push(id);
        }
    }
    paired
}

/// Pairs what is surely the same in a computation and its partner: everything if the two are
/// isomorphic.
pub(super) fn strong(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    id: CompId,
    parts: &mut Interner<Parts>,
) {
    let Some(other) = matching.computation_b(id) else { return };
    if a.body.get(&id) != b.body.get(&other) {
        Pairing::new(a, b, matching, (id, other)).strong(parts);
        return;
    }
    if let (Some(of_a), Some(of_b)) = (a.order.get(&id), b.order.get(&other)) {
        for (&x, &y) in of_a.iter().zip(of_b) {
            matching.pair(x, y);
        }
    }
}

/// Pairs what is alike in a computation and its partner.
pub(super) fn weak(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    id: CompId,
    parts: &mut Interner<Parts>,
) {
    let Some(other) = matching.computation_b(id) else { return };
    let all_paired = a.module.instructions(id).all(|x| matching.b_of(x).is_some())
        || b.module.instructions(other).all(|y| matching.a_of(y).is_some());
    if !all_paired {
        Pairing::new(a, b, matching, (id, other)).weak(parts);
    }
}
