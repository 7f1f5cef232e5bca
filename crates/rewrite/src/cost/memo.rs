//! Stores the footprints of arrays and the costs of reshapes and transposes, for
//! [`super::CostModel`].
//!
//! A module has few shapes and many instructions, and each instruction is weighed many times. The
//! footprint of each shape, and the cost of each move from one shape to another, is computed once.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use tilewright_ir::{ArrayShape, Dims};
use tilewright_target::{Footprint, ReshapeCost, Target};

/// The results computed so far for one target. Each target needs a memo of its own.
#[derive(Debug, Default)]
pub struct Memo {
    footprints: RefCell<FxHashMap<ArrayShape, Footprint>>,
    reshapes: RefCell<FxHashMap<ArrayShape, FxHashMap<ArrayShape, ReshapeCost>>>,
    transposes: RefCell<FxHashMap<ArrayShape, FxHashMap<ArrayShape, Transposes>>>,
}

/// The cost of each permutation that turns one shape into another.
type Transposes = FxHashMap<Dims, ReshapeCost>;

impl Memo {
    /// Returns the footprint of an array on the target.
    pub(super) fn footprint(&self, target: &Target, array: &ArrayShape) -> Footprint {
        if let Some(&found) = self.footprints.borrow().get(array) {
            return found;
        }
        let footprint = target.footprint(array);
        self.footprints.borrow_mut().insert(array.clone(), footprint);
        footprint
    }

    /// Returns the cost of a reshape on the target.
    pub(super) fn reshape(
        &self,
        target: &Target,
        from: &ArrayShape,
        to: &ArrayShape,
    ) -> ReshapeCost {
        if let Some(&found) = self.reshapes.borrow().get(from).and_then(|of| of.get(to)) {
            return found;
        }
        let cost = target.reshape_cost(from, to);
        let mut reshapes = self.reshapes.borrow_mut();
        reshapes.entry(from.clone()).or_default().insert(to.clone(), cost);
        cost
    }

    /// Returns the cost of a transpose on the target.
    pub(super) fn transpose(
        &self,
        target: &Target,
        [from, to]: [&ArrayShape; 2],
        permutation: &[i64],
    ) -> ReshapeCost {
        let mut transposes = self.transposes.borrow_mut();
        let known = transposes.get(from).and_then(|of| of.get(to)?.get(permutation));
        if let Some(&found) = known {
            return found;
        }
        let cost = target.transpose_cost(from, to, permutation);
        let known = transposes.entry(from.clone()).or_default().entry(to.clone()).or_default();
        known.insert(permutation.into(), cost);
        cost
    }
}
