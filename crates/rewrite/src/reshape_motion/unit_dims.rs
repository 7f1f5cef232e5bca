//! Degenerate dims: what is computed in dims with and without some of size 1
//! is computed in those that cost less.
//!
//! `reshape(f(reshape(X), broadcast(Y))) = f(X, broadcast(Y))` where the
//! reshapes only add and drop dims of size 1. JAX's `keepdims=True` leaves
//! such regions on every norm: `[B,T,1]` fills one lane of 128, `[B,T]` all.
//!
//! The same moves as of [`super::reshape_out_of_region`], made before them, so
//! that those weigh small values in their cheapest form. A group norm with one
//! group, or one channel in each, is all of this kind.

use tilewright_ir::{EditError, Module};

use super::region_move::{Search, around_reshape, dims_of_reshapes, move_regions, same_but_ones};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "unit-dims";

pub(super) const SEARCH: Search = Search {
    pass: NAME,
    starts: around_reshape,
    offers: |module, region| dims_of_reshapes(module, region, same_but_ones),
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
