//! **T2: compute in the dims from which an elementwise region was reshaped.**
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
//! `f` is any DAG of elementwise ops. What goes in: reshapes (of X, which is
//! then used itself), broadcasts (Y is broadcast only over the missing digits
//! of dims that the reshape mixes, reshaped while small, then broadcast to
//! full size), iotas (as broadcasts of one dim), constants (written in the new
//! dims), transposes that keep together what the reshape merges (of the operand,
//! reshaped), anything else (reshaped at full size, which costs). What comes out:
//! reshapes back (gone), reduces (by T1; of several arrays where the others are iotas or
//! broadcasts), anything else (reshaped at full size).
//!
//! What has a sharding, control edge, other attribute or layout of its own keeps
//! its dims, and the rest may move around it.
//!
//! Of all dims that its reshapes offer, and of all parts of the region, those are
//! chosen that cost least on the target (by a minimum cut), and only if that is
//! less than it costs now. So a patch norm, whose inner broadcast would be as large
//! as the image, stays as it is.
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reshape(f(reshape(X), broadcast(Y)))`; generalised to regions with several
//! live-ins and live-outs.

use tilewright_ir::{EditError, Module};

use super::region_move::{Search, around_reshape, dims_of_reshapes, move_regions, same_but_ones};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

const NAME: &str = "reshape-out-of-region";

pub(super) const SEARCH: Search = Search {
    pass: NAME,
    starts: around_reshape,
    offers: |module, region| dims_of_reshapes(module, region, |from, to| !same_but_ones(from, to)),
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
