//! **T2: compute an elementwise region in the dims before its reshapes.**
//!
//! ```text
//! reshape(f(reshape(X), broadcast(Y))) = f(X, broadcast(reshape(broadcast(Y))))
//!
//!      X[B,H,W,C]                                X[B,H,W,C]
//!          │ reshape                                 │
//!      [B,H,W,G,K]   Y[B,G]                          │      Y[B,G]
//!          │        ⁄ broadcast                      │        │ broadcast [B,G,K]
//!          f ──────────── reduce [B,G]   becomes     │        │ reshape   [B,C]
//!          │ reshape                                 │      ⁄ broadcast [B,H,W,C]
//!      [B,H,W,C]                                     f ──────────── T1 ── [B,G]
//! ```
//!
//! `f` is any DAG of elementwise ops. Its live-ins move to the new dims as follows:
//! - a reshape of X becomes X;
//! - a broadcast of Y becomes a broadcast over only the missing digits of dims that the reshape
//!   mixes, reshaped while small, then broadcast to full size; an iota is a broadcast of one dim;
//! - a constant is written in the new dims;
//! - a transpose that keeps together the dims that the reshape merges becomes a transpose of the
//!   reshaped operand;
//! - any other array is reshaped at full size, which costs.
//!
//! Among its live-outs, a reshape back disappears; a reduce becomes T1, and may reduce several
//! arrays if the others are iotas or broadcasts; any other use gets a reshape at full size.
//!
//! An instruction with a sharding, control edge, other attribute or layout of its own keeps its
//! dims; the rest may move around it.
//!
//! The pass is cost-gated: a minimum cut chooses the cheapest part of the region to move, for each
//! of the dims that the region's reshapes offer. So a patch norm, whose inner broadcast would be as
//! large as the normalised array, stays unchanged.
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reshape(f(reshape(X), broadcast(Y)))`; generalised to regions with several
//! live-ins and live-outs.

use tilewright_ir::{EditError, Module};

use super::region_move::{
    MoveSearch, around_reshape, dims_of_reshapes, move_regions, same_but_ones,
};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "reshape-out-of-region";

pub(super) const SEARCH: MoveSearch = MoveSearch {
    pass: NAME,
    starts: around_reshape,
    candidates: |module, region| {
        dims_of_reshapes(module, region, |from, to| !same_but_ones(from, to))
    },
    cuts: true,
};

/// See the module.
pub struct ReshapeOutOfRegion;

impl Pass for ReshapeOutOfRegion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "T2: compute elementwise regions in the dims they were reshaped from"
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
