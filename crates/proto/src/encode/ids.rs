//! Assigns ids: those that were read, and new ones beside them. Makes names unique.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, InstId, Module};

use super::names::Names;

/// The id of every computation and instruction.
///
/// XLA's ids of instructions have the computation's id in the upper half and a
/// number within the computation in the lower one; older ones are numbers
/// within the module. Both stay; new ones are of the first kind.
#[derive(Debug, Default)]
pub(super) struct Ids {
    computations: FxHashMap<CompId, i64>,
    instructions: FxHashMap<InstId, i64>,
    names: Names,
}

impl Ids {
    pub(super) fn new(module: &Module) -> Self {
        let mut ids = Self { names: Names::new(module), ..Self::default() };
        ids.number_computations(module);
        let mut taken = FxHashSet::default();
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                // The first of two with the same id keeps it.
                if let Some(unique) = module.unique_id(id).filter(|&unique| taken.insert(unique)) {
                    ids.instructions.insert(id, unique);
                }
            }
        }
        for &computation in module.computations() {
            ids.number_instructions(module, computation, &mut taken);
        }
        ids
    }

    pub(super) fn computation(&self, id: CompId) -> i64 {
        self.computations.get(&id).copied().unwrap_or_default()
    }

    pub(super) fn instruction(&self, id: InstId) -> i64 {
        self.instructions.get(&id).copied().unwrap_or_default()
    }

    pub(super) fn name<'a>(&'a self, module: &'a Module, id: InstId) -> &'a str {
        self.names.get(module, id)
    }

    fn number_computations(&mut self, module: &Module) {
        let mut taken = FxHashSet::default();
        for &id in module.computations() {
            let unique = module.computation(id).unique_id();
            if let Some(unique) = unique.filter(|&unique| taken.insert(unique)) {
                self.computations.insert(id, unique);
            }
        }
        let mut next = taken.iter().max().map_or(0, |max| max.saturating_add(1));
        for &id in module.computations() {
            self.computations.entry(id).or_insert_with(|| first_free(&mut next, &mut taken));
        }
    }

    fn number_instructions(
        &mut self,
        module: &Module,
        computation: CompId,
        taken: &mut FxHashSet<i64>,
    ) {
        let half = self.computation(computation);
        // Ids too large for a half, which XLA does not make, get no new ids.
        let base = i64::from(i32::try_from(half).unwrap_or(i32::MAX)) << 32;
        let own = module.instructions(computation).filter_map(|id| self.instructions.get(&id));
        let last = own.filter(|&&unique| unique >> 32 == base >> 32).max();
        let mut next = last.map_or(base, |last| last.saturating_add(1));
        let new: Vec<InstId> = module
            .instructions(computation)
            .filter(|id| !self.instructions.contains_key(id))
            .collect();
        for id in new {
            self.instructions.insert(id, first_free(&mut next, taken));
        }
    }
}

/// Returns the first number from `next` on that is free.
fn first_free(next: &mut i64, taken: &mut FxHashSet<i64>) -> i64 {
    while !taken.insert(*next) {
        *next = next.wrapping_add(1);
    }
    *next
}
