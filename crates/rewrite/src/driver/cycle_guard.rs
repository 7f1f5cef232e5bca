//! Notices where passes go round in circles.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_ir::{InstId, Module, SecondaryMap};

use super::run::Snapshot;
use crate::cost::pays;

/// Where a list with cost-gated passes has been: it has no cleanup between
/// them after which costs could be compared, and may come back to where it was.
#[derive(Default)]
pub(super) struct Trail {
    /// The [`fingerprint`]s of modules.
    seen: FxHashSet<u64>,
    /// The best module on the way.
    best: Option<Snapshot>,
}

impl Trail {
    /// Goes on to a module. The best one on the way, if it has been there.
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

/// A hash of a module without its names. Two forms of one module that have it in
/// common are the same.
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
