//! Undoes the changes in which no cost-gated pass had a part. The resulting module differs from
//! the original only around the gains.
//!
//! A run first brings the whole module into its simplest form, so that the cost-gated passes
//! find the rewrites that pay. Backends do this themselves, and some recognise what they fuse
//! by its usual form. Passes only replace values by equal ones. An instruction that is still
//! there therefore computes the same value; where its operands differ, the old one and the new
//! one are equal. So each difference can be undone independently of the others.

mod build;
mod diff;

use tilewright_ir::Module;
use tilewright_ir::verify::{Verified, verify};

use build::build;
use diff::edges_of_gains;

/// Restores the original module except for the changes in which a cost-gated pass had a part;
/// `simplest` is the module with which the cost-gated passes began. Returns `None` if the
/// changes cannot be told apart.
pub(super) fn restored(original: &Module, simplest: &Module, changed: &Module) -> Option<Verified> {
    let edges = edges_of_gains(original, simplest, changed)?;
    verify(build(original, changed, &edges).ok()??).ok()
}
