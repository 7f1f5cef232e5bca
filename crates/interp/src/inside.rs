//! What the tests of this crate look at from outside: tests within it would compile it once more.

use tilewright_ir::{Literal, Verified};

use crate::error::Outcome;
use crate::frame::foresight;
use crate::region::{Piece, pieces};

/// Returns the sizes of the groups of the entry's instructions that run together.
pub fn regions(module: &Verified) -> Vec<usize> {
    let entry = module.entry().map(|entry| module.instructions(entry).collect::<Vec<_>>());
    let pieces = pieces(module, &entry.unwrap_or_default()).into_iter();
    let sizes = pieces.map(|piece| match piece {
        Piece::One(_) => 1,
        Piece::Together(members) => members.len(),
    });
    sizes.filter(|&size| size > 1).collect()
}

/// Returns the bytes that are foreseen of a module, and those that were in use at one time; nothing if it
/// cannot be evaluated.
pub fn foreseen_and_used(module: &Verified, inputs: &[Literal]) -> Option<(u64, u64)> {
    let found: Outcome<_> = foresight::foreseen_and_used(module, inputs);
    found.ok()
}
