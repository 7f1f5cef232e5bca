//! Updates the set of values that are stored because reductions share them, while passes edit a
//! module. The ledger charges for storing these values; `shared.rs` defines which they are.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, InstId, Module};

use super::residency::AllFacts;
use super::shared::{
    FusedOperands, is_of_few, is_reduction, is_stored_anyway, spread_along, waits_for_few,
};

/// The values of a module that are stored because reductions share them.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedStores {
    /// For each reduction, the values that it shares.
    reductions: FxHashMap<InstId, SharedOfReduction>,
    /// For each instruction, the reductions from which the search visited it.
    looked_at_for: ReductionsOf,
    /// For each value, the reductions that share it.
    sharers: ReductionsOf,
    /// The values that are stored because reductions share them.
    stored: FxHashSet<InstId>,
    /// The state that the last update replaced, unless it was kept or rolled back.
    undo: StoresUndo,
}

#[derive(Clone, Debug, Default)]
struct StoresUndo {
    reductions: Vec<(InstId, Option<SharedOfReduction>)>,
    stored: Vec<(InstId, bool)>,
}

/// The result of the search from one reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SharedOfReduction {
    /// The values that the reduction shares with other users.
    shared: Vec<InstId>,
    /// The instructions on which this result, and whether the values are stored, depends.
    met: Vec<InstId>,
}

/// A module, and the facts that decide which values are stored.
#[derive(Clone, Copy)]
pub(super) struct StoresView<'a> {
    pub(super) module: &'a Module,
    pub(super) facts: &'a AllFacts,
    /// The least number of elements for which the library computes an elementwise op: see
    /// `shared_values`.
    pub(super) many: u64,
    /// The bodies of fusions, in which nothing is stored.
    pub(super) fusions: &'a FxHashSet<CompId>,
}

impl SharedStores {
    /// Finds the shared values of all computations of a module.
    pub(super) fn of(view: StoresView<'_>) -> Self {
        let mut stores = Self::default();
        for &computation in view.module.computations() {
            for id in view.module.instructions(computation) {
                stores.look_at(id, view);
            }
        }
        let values: Vec<InstId> = stores.sharers.keys().copied().collect();
        values.into_iter().for_each(|value| stores.decide(value, view));
        stores.undo = StoresUndo::default();
        stores
    }

    /// Updates the set after edits: the instructions in `edited`, or the facts about them, may have
    /// changed.
    pub(super) fn update(&mut self, edited: &[InstId], view: StoresView<'_>) {
        self.undo = StoresUndo::default();
        // Whether a value is stored depends on its users.
        let operands = edited.iter().flat_map(|&id| view.module.operands(id).iter().copied());
        let near: FxHashSet<InstId> = edited.iter().copied().chain(operands).collect();
        let mut reductions: FxHashSet<InstId> = FxHashSet::default();
        for id in &near {
            reductions.extend(self.looked_at_for.get(id).into_iter().flatten());
            if self.reductions.contains_key(id) || is_reduction(view.module, *id) {
                reductions.insert(*id);
            }
        }
        let mut values: FxHashSet<InstId> = near;
        for &reduction in &reductions {
            values.extend(self.shared_by(reduction));
            self.look_at(reduction, view);
            values.extend(self.shared_by(reduction));
        }
        values.into_iter().for_each(|value| self.decide(value, view));
    }

    pub(super) fn roll_back(&mut self) {
        let StoresUndo { reductions, stored } = std::mem::take(&mut self.undo);
        for (reduction, found) in reductions.into_iter().rev() {
            self.replace(reduction, found);
        }
        for (value, was_stored) in stored.into_iter().rev() {
            self.store(value, was_stored);
        }
    }

    pub(super) fn keep(&mut self) {
        self.undo = StoresUndo::default();
    }

    /// Checks whether a value is stored because reductions share it.
    pub(super) fn holds(&self, value: InstId) -> bool {
        self.stored.contains(&value)
    }

    /// Returns the values that the last update began or ceased to store.
    pub(super) fn changed(&self) -> impl Iterator<Item = InstId> + '_ {
        self.undo.stored.iter().map(|&(value, _)| value)
    }

    fn shared_by(&self, reduction: InstId) -> impl Iterator<Item = InstId> + '_ {
        self.reductions.get(&reduction).into_iter().flat_map(|found| found.shared.iter().copied())
    }

    /// Finds the values that a reduction shares. There are none if `id` is not a reduction, was
    /// removed, or is in a fusion.
    fn look_at(&mut self, id: InstId, view: StoresView<'_>) {
        let module = view.module;
        let parent = module.instruction(id).parent();
        let computes = parent.is_some_and(|parent| !view.fusions.contains(&parent));
        let found = (computes && is_reduction(module, id)).then(|| {
            let FusedOperands { shared, mut met } =
                FusedOperands::of(module, id, &|id| view.facts.role(id).is_inlined());
            let shared: Vec<InstId> = shared.into_iter().map(|one| one.value).collect();
            let operands = shared.iter().flat_map(|&value| module.operands(value));
            met.extend(operands.flat_map(|&operand| spread_along(module, operand)));
            met.sort_unstable();
            met.dedup();
            SharedOfReduction { shared, met }
        });
        if found.as_ref() != self.reductions.get(&id) {
            let old = self.replace(id, found);
            self.undo.reductions.push((id, old));
        }
    }

    /// Replaces the search result of a reduction, and returns the old one.
    fn replace(
        &mut self,
        reduction: InstId,
        found: Option<SharedOfReduction>,
    ) -> Option<SharedOfReduction> {
        let old = self.reductions.remove(&reduction);
        if let Some(old) = &old {
            old.met.iter().for_each(|id| remove(&mut self.looked_at_for, id, reduction));
            old.shared.iter().for_each(|id| remove(&mut self.sharers, id, reduction));
        }
        if let Some(found) = found {
            for &id in &found.met {
                add(&mut self.looked_at_for, id, reduction);
            }
            for &id in &found.shared {
                add(&mut self.sharers, id, reduction);
            }
            self.reductions.insert(reduction, found);
        }
        old
    }

    /// Decides whether a value is stored because reductions share it.
    fn decide(&mut self, value: InstId, StoresView { module, facts, many, .. }: StoresView<'_>) {
        let sharers = self.sharers.get(&value).map_or(&[][..], |sharers| sharers);
        let is_stored = !sharers.is_empty()
            && !is_stored_anyway(module, value, &|id| facts.role(id).is_inlined())
            && (sharers.len() > 1
                || sharers.iter().any(|&reduction| is_of_few(module, reduction, many))
                || waits_for_few(module, value, many));
        let was_stored = self.holds(value);
        if is_stored != was_stored {
            self.undo.stored.push((value, was_stored));
            self.store(value, is_stored);
        }
    }

    fn store(&mut self, value: InstId, is_stored: bool) {
        if is_stored {
            self.stored.insert(value);
        } else {
            self.stored.remove(&value);
        }
    }
}

/// For each instruction, a sorted list of reductions, so that one of many is found quickly.
type ReductionsOf = FxHashMap<InstId, SmallVec<[InstId; 2]>>;

fn add(map: &mut ReductionsOf, id: InstId, reduction: InstId) {
    let reductions = map.entry(id).or_default();
    if let Err(place) = reductions.binary_search(&reduction) {
        reductions.insert(place, reduction);
    }
}

fn remove(map: &mut ReductionsOf, id: &InstId, reduction: InstId) {
    if let Some(reductions) = map.get_mut(id) {
        if let Ok(place) = reductions.binary_search(&reduction) {
            reductions.remove(place);
        }
        if reductions.is_empty() {
            map.remove(id);
        }
    }
}
