//! Pairs what [`super::pairing`] leaves: duplicates, and instructions that are only alike.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright::ir::{CompId, Entity as _, InstId, Opcode};

use super::context::Contexts;
use super::interner::{Interner, Parts};
use super::matching::Matching;
use super::pairing::Pairing;
use super::side::Side;

/// How many candidates an instruction is compared with, and how many neighbours are looked at for
/// them: enough for what passes do, and a bound for graphs made to be hard.
const CANDIDATES: usize = 32;

impl Pairing<'_, '_> {
    /// Pairs duplicates, then what has the same name or origin, then what has the same neighbours.
    pub(super) fn weak(&mut self, parts: &mut Interner<Parts>) {
        self.duplicates(parts);
        self.propose_again();
        self.unique(|side, id| (side.core[id.index()], side.module.name_of(id).to_owned()));
        self.drain_all();
        let (a, b) = (self.a, self.b);
        let named = |side: &Side<'_>, id: InstId| {
            Some((side.module.opcode(id), side.module.name_of(id).to_owned()))
        };
        for (x, y) in self.unique_pairs(|id| named(a, id), |id| named(b, id)) {
            if a.shape[x.index()] == b.shape[y.index()] || self.are_plausible(x, y) {
                self.pair(x, y);
            }
        }
        self.drain_all();
        self.unique_where(
            |side, id| origin(side, id).is_some(),
            |side, id| (side.core[id.index()], origin(side, id).map(str::to_owned)),
        );
        self.drain_all();
        let like =
            |side: &Side<'_>, id: InstId| Some((side.module.opcode(id), side.shape[id.index()]));
        for (x, y) in self.unique_pairs(|id| like(a, id), |id| like(b, id)) {
            if self.are_plausible(x, y) {
                self.pair(x, y);
            }
        }
        self.drain_all();
        self.by_neighbours();
    }

    /// Pairs instructions of equal value: those of equal uses, then those of equal names, then any.
    fn duplicates(&mut self, parts: &mut Interner<Parts>) {
        self.propose_again();
        self.drain_equal();
        let uses_a = Contexts::new(self.a, self.computations.0, parts);
        let uses_b = Contexts::new(self.b, self.computations.1, parts);
        let (a, b) = (self.a, self.b);
        self.pools(
            |id| (a.value[id.index()], uses_a.uses.get(&id).copied()),
            |id| (b.value[id.index()], uses_b.uses.get(&id).copied()),
        );
        self.drain_all();
        self.propose_again();
        self.drain_all();
        self.unique(|side, id| (side.value[id.index()], side.module.name_of(id).to_owned()));
        self.drain_equal();
        self.pools(|id| a.value[id.index()], |id| b.value[id.index()]);
    }

    /// Pairs instructions of equal keys, users before their operands, so that the operands of two
    /// duplicates pair with those of their partners.
    fn pools<K: Eq + Hash>(&mut self, key_a: impl Fn(InstId) -> K, key_b: impl Fn(InstId) -> K) {
        let mut pools: FxHashMap<K, Vec<InstId>> = FxHashMap::default();
        for &id in self.of_b.iter().filter(|&&id| self.matching.a_of(id).is_none()) {
            pools.entry(key_b(id)).or_default().push(id);
        }
        for x in self.of_a.clone().into_iter().rev() {
            if self.matching.b_of(x).is_some() {
                continue;
            }
            let Some(pool) = pools.get_mut(&key_a(x)) else { continue };
            while let Some(y) = pool.pop() {
                if self.matching.a_of(y).is_none() {
                    self.pair(x, y);
                    self.drain_equal();
                    break;
                }
            }
        }
    }

    /// Proposes the neighbours of all pairs once more.
    fn propose_again(&mut self) {
        for x in self.of_a.clone() {
            if let Some(y) = self.matching.b_of(x) {
                self.neighbours(x, y);
            }
        }
    }

    /// Checks whether two instructions have a neighbour in common, or have no neighbours.
    fn are_plausible(&self, x: InstId, y: InstId) -> bool {
        let (a, b) = (self.a.module, self.b.module);
        let alone = |module: &tilewright::ir::Module, id: InstId| {
            module.operands(id).is_empty() && module.instruction(id).use_count() == 0
        };
        (alone(a, x) && alone(b, y)) || self.in_common(x, y) > 0
    }

    /// Counts the operands and users that two instructions have in common, of the first few.
    fn in_common(&self, x: InstId, y: InstId) -> usize {
        let (a, b) = (self.a.module, self.b.module);
        let operands = a.operands(x).iter().take(CANDIDATES).enumerate().map(|(at, &operand)| {
            let partner = self.matching.b_of(operand);
            let same_place = partner.is_some() && b.operands(y).get(at).copied() == partner;
            let somewhere = partner.is_some_and(|partner| {
                b.operands(y).iter().take(CANDIDATES).any(|&operand| operand == partner)
            });
            usize::from(same_place) + usize::from(somewhere)
        });
        let users: FxHashSet<InstId> = b.uses(y).take(CANDIDATES).map(|of| of.user).collect();
        let common = a.uses(x).take(CANDIDATES).filter(|of| {
            self.matching.b_of(of.user).is_some_and(|partner| users.contains(&partner))
        });
        operands.sum::<usize>() + common.count()
    }

    /// Pairs each instruction that is left with the one of its opcode among the neighbours of its
    /// neighbours' partners with which it has most in common.
    fn by_neighbours(&mut self) {
        for x in self.of_a.clone() {
            if self.matching.b_of(x).is_some() {
                continue;
            }
            let candidates = self.candidates(x);
            let (a, b) = (self.a, self.b);
            let score = |y: InstId| {
                let alike = usize::from(a.core[x.index()] == b.core[y.index()])
                    + usize::from(a.shape[x.index()] == b.shape[y.index()]);
                2 * self.in_common(x, y) + alike
            };
            let best = candidates.into_iter().rev().map(|y| (score(y), y)).max_by_key(|of| of.0);
            // One neighbour alone says little.
            if let Some((score, y)) = best
                && score >= 4
            {
                self.pair(x, y);
                self.drain_all();
            }
        }
    }

    fn candidates(&self, x: InstId) -> Vec<InstId> {
        let (a, b) = (self.a.module, self.b.module);
        let opcode = a.opcode(x);
        let mut seen = FxHashSet::default();
        let mut candidates = Vec::new();
        let operands = a.operands(x).iter().take(CANDIDATES);
        let users_of_partners = operands
            .filter_map(|&operand| self.matching.b_of(operand))
            .flat_map(|partner| b.uses(partner).take(CANDIDATES).map(|of| of.user));
        let users = a.uses(x).take(CANDIDATES).filter_map(|of| self.matching.b_of(of.user));
        let operands_of_partners =
            users.flat_map(|partner| b.operands(partner).iter().take(CANDIDATES).copied());
        for y in users_of_partners.chain(operands_of_partners) {
            if b.opcode(y) == opcode && self.matching.a_of(y).is_none() && seen.insert(y) {
                candidates.push(y);
                if candidates.len() == CANDIDATES {
                    break;
                }
            }
        }
        candidates
    }
}

/// Returns the name that the framework gave an instruction.
fn origin<'m>(side: &Side<'m>, id: InstId) -> Option<&'m str> {
    let metadata = side.module.metadata(id)?;
    Some(metadata.op_name.as_str()).filter(|name| !name.is_empty())
}

/// Pairs instructions of different opcodes that stand in the same place: those of the same operands,
/// so that `tanh(x)` pairs with `sine(x)`; then those whose uses are all in the same places, with an
/// operand in common, so that `divide(x, y)` pairs with `multiply(x, z)`.
pub(super) fn replaced(matching: &mut Matching, a: &Side<'_>, b: &Side<'_>, computation: CompId) {
    // Operands before users: a pair makes the operands of its users the same.
    for x in a.module.instructions(computation) {
        if matching.b_of(x).is_none()
            && let Some(y) = of_same_operands(matching, a, b, x)
        {
            matching.pair(x, y);
        }
    }
    for x in a.module.instructions(computation).rev() {
        if matching.b_of(x).is_some() {
            continue;
        }
        if let Some(y) = replacement(matching, a, b, x) {
            matching.pair(x, y);
        }
    }
}

/// Checks whether an instruction can be taken for another of a different opcode. What calls or
/// holds others says too little by its operands.
fn stands(side: &Side<'_>, id: InstId) -> bool {
    !matches!(
        side.module.opcode(id),
        Opcode::Parameter | Opcode::Fusion | Opcode::Call | Opcode::Tuple
    )
}

/// Returns the only instruction without a partner that has the same shape, the same operands in the
/// same places, and no use that contradicts.
fn of_same_operands(matching: &Matching, a: &Side<'_>, b: &Side<'_>, x: InstId) -> Option<InstId> {
    let first = matching.b_of(*a.module.operands(x).first()?)?;
    let partners = || a.module.operands(x).iter().map(|&operand| matching.b_of(operand));
    let fits = |y: InstId| {
        matching.a_of(y).is_none()
            && a.shape[x.index()] == b.shape[y.index()]
            && b.module.operands(y).iter().map(|&operand| Some(operand)).eq(partners())
            && a.module.is_root(x) == b.module.is_root(y)
            && stands(b, y)
    };
    let users = b.module.uses(first).take(CANDIDATES).map(|of| of.user);
    let mut users = users.filter(|&y| stands(a, x) && fits(y));
    let y = users.next().filter(|&y| users.all(|other| other == y))?;
    let used = |side: &Side<'_>, id: InstId, has_partner: &dyn Fn(InstId) -> bool| {
        side.module.uses(id).filter(|of| has_partner(of.user)).count()
    };
    let agrees = a.module.uses(x).all(|of| {
        let partner = matching.b_of(of.user);
        partner.is_none_or(|user| b.module.operands(user).get(of.operand) == Some(&y))
    });
    let is_same_number = used(a, x, &|user| matching.b_of(user).is_some())
        == used(b, y, &|user| matching.a_of(user).is_some());
    (agrees && is_same_number).then_some(y)
}

fn replacement(matching: &Matching, a: &Side<'_>, b: &Side<'_>, x: InstId) -> Option<InstId> {
    let mut partners = a.module.uses(x).map(|of| {
        let partner = matching.b_of(of.user)?;
        b.module.operands(partner).get(of.operand).copied()
    });
    let root = || {
        let computation =
            b.module.computation(matching.computation_b(a.module.instruction(x).parent()?)?);
        computation.root()
    };
    let y = match partners.next() {
        Some(first) => first?,
        None if a.module.is_root(x) => root()?,
        None => return None,
    };
    let is_one = partners.all(|partner| partner == Some(y))
        && a.module.instruction(x).use_count() == b.module.instruction(y).use_count()
        && a.module.is_root(x) == b.module.is_root(y);
    let operands = a.module.operands(x).iter().take(CANDIDATES);
    let mut shared = operands.filter_map(|&operand| matching.b_of(operand));
    let fits = is_one
        && matching.a_of(y).is_none()
        && a.shape[x.index()] == b.shape[y.index()]
        && stands(a, x)
        && stands(b, y)
        && shared.any(|partner| {
            b.module.operands(y).iter().take(CANDIDATES).any(|&operand| operand == partner)
        });
    fits.then_some(y)
}
