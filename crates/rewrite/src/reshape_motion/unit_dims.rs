//! Unit dims: compute a region with or without dims of size 1, whichever costs less.
//!
//! `reshape(f(reshape(X), broadcast(Y))) = f(X, broadcast(Y))` where the
//! reshapes only add and drop dims of size 1. JAX's `keepdims=True` leaves
//! such regions on every norm: `[B,T,1]` fills one lane of 128, `[B,T]` all.
//!
//! The moves are those of [`super::reshape_out_of_region`]. This pass runs first, so that the other
//! one sees small values in their cheapest form. A group norm with one group, or with one channel
//! in each group, needs only this pass.

use tilewright_ir::{EditError, Module};

use super::region_move::{
    MoveSearch, around_reshape, dims_of_reshapes, move_regions, same_but_ones,
};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "unit-dims";

pub(super) const SEARCH: MoveSearch = MoveSearch {
    pass: NAME,
    starts: around_reshape,
    candidates: |module, region| dims_of_reshapes(module, region, same_but_ones),
    cuts: true,
};

/// See the module.
pub struct UnitDims;

impl Pass for UnitDims {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "compute without dims of size 1 where that costs less"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        move_regions(module, cx, SEARCH)
    }
}
