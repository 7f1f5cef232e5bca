//! Detects passes that go round in circles.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_ir::{InstId, Module, SecondaryMap};

use super::run::Snapshot;
use crate::cost::pays;

/// The modules that a list with cost-gated passes has passed through. A list has no cleanup
/// after which costs could be compared, so it may return to an earlier module.
#[derive(Default)]
pub(super) struct Trail {
    /// The [`fingerprint`]s of modules.
    seen: FxHashSet<u64>,
    /// The best module on the way.
    best: Option<Snapshot>,
}

impl Trail {
    /// Records a module. If it was recorded before, returns the best module since the start.
    pub(super) fn leads_back_to(&mut self, now: Snapshot) -> Option<Snapshot> {
        if !self.seen.insert(fingerprint(&now.module)) {
            return self.best.take();
        }
        if self.best.as_ref().is_none_or(|best| pays(best.cycles, now.cycles)) {
            self.best = Some(now);
        }
        None
    }
}

/// Hashes a module without its names. Two forms of one module with the same hash are the same.
fn fingerprint(module: &Module) -> u64 {
    let mut hasher = FxHasher::default();
    let mut places: SecondaryMap<InstId, usize> = SecondaryMap::new();
    for &computation in module.computations() {
        for (place, id) in module.instructions(computation).enumerate() {
            places.set(id, place);
            (module.op(id), module.instruction(id).shape_id()).hash(&mut hasher);
            module.operands(id).iter().for_each(|&operand| places[operand].hash(&mut hasher));
            module.is_root(id).hash(&mut hasher);
        }
    }
    hasher.finish()
}
