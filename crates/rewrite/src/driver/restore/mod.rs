//! Undoes the changes that no cost-gated pass had a part in, so that the result differs from the
//! original only around the gains.
//!
//! A run first brings the whole module into its simplest form, so that the cost-gated passes find
//! the rewrites that pay. Backends do so themselves, and some recognise the code that they fuse
//! only in the form in which it is usually written. Passes replace values by equal ones, so an
//! instruction that both modules have computes the same value in both; where its operands differ,
//! the old and the new operand are equal. Each such difference can therefore be undone, whether or
//! not the others are.

mod build;
mod diff;

use tilewright_ir::Module;
use tilewright_ir::verify::{Verified, verify};

use build::build;
use diff::edges_of_gains;

/// Returns the original module with only those changes in which a cost-gated pass had a part;
/// `simplest` is the module that the cost-gated passes began with. Returns `None` if the changes
/// cannot be told apart.
pub(super) fn restored(original: &Module, simplest: &Module, changed: &Module) -> Option<Verified> {
    let edges = edges_of_gains(original, simplest, changed)?;
    verify(build(original, changed, &edges).ok()??).ok()
}
