//! Notices when passes repeat an earlier state of a module.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_ir::{InstId, Module, SecondaryMap};

use super::run::Snapshot;
use crate::cost::pays;

/// The states that a list with cost-gated passes has reached. Such a list has no cleanup between
/// these passes after which costs could be compared, so it may return to an earlier state.
#[derive(Default)]
pub(super) struct Trail<'a> {
    /// The [`fingerprint`]s of the modules reached.
    seen: FxHashSet<u64>,
    /// The cheapest module reached.
    best: Option<Snapshot<'a>>,
}

impl<'a> Trail<'a> {
    /// Records a module. Returns the cheapest one reached if this module was reached before.
    pub(super) fn leads_back_to(&mut self, now: Snapshot<'a>) -> Option<Snapshot<'a>> {
        if !self.seen.insert(fingerprint(&now.module)) {
            return self.best.take();
        }
        if self.best.as_ref().is_none_or(|best| pays(best.cycles, now.cycles)) {
            self.best = Some(now);
        }
        None
    }
}

/// Returns a hash of a module without its names. Two modules with the same hash count as the same.
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
