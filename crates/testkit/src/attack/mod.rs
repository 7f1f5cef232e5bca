//! An adversary of rewrites: programs, data and a judge that look for numbers gone wrong.
//!
//! ```text
//! program ── ad: gradients and tangents of it
//! inputs ─── data that are far from zero, tied, huge, tiny ...
//! Judge ──── original, rewritten, and the original in f64: whose error is larger
//! shrink ─── the smallest program that still fails
//! mutants ── wrong rewrites that the judge must find
//! ```
//!
//! Nothing here knows of passes: the caller passes in what rewrites a module.

mod ad;
mod data;
mod draft;
mod hunt;
mod judge;
mod mutants;
mod nudge;
mod program;
mod shrink;
mod statistics;

pub use data::{Profile, inputs};
pub use hunt::{Failure, Hunt, Outcome, Rewrite, Rewritten};
pub use judge::{Blame, Contract, Judge, Mode, Verdict};
pub use mutants::{MUTANTS, Mutant};
pub use program::{Program, Sizes, program};
pub use shrink::shrunk;
