//! Undoes the changes that no cost-gated pass had a part in: the module that comes out differs
//! from the one that went in around what was gained alone.
//!
//! A run brings all of a module into its simplest form first, so that the cost-gated passes find what
//! pays. Backends do so themselves, and some know what they fuse by the form in which it is
//! usually written. Passes put equal values in each other's place, so that an instruction
//! that is still there computes what it did; where its operands differ, the old one and the
//! new one are equal. So each such difference can be undone, whatever becomes of the others.

mod build;
mod diff;

use tilewright_ir::Module;
use tilewright_ir::verify::{Verified, verify};

use build::build;
use diff::edges_of_gains;

/// The original module with those changes alone in which a cost-gated pass had a part; `simplest` is
/// the module that the cost-gated passes began with. `None` where changes cannot be told apart.
pub(super) fn restored(original: &Module, simplest: &Module, changed: &Module) -> Option<Verified> {
    let edges = edges_of_gains(original, simplest, changed)?;
    verify(build(original, changed, &edges).ok()??).ok()
}
