//! Chooses among forms of a module by measuring them.
//!
//! [`candidates()`] makes the forms, the most promising first by the model. Whoever can run them records
//! times in a [`Race`], which says what to run next and which form wins. [`Decisions`] remembers what won.

mod candidates;
mod decisions;
mod measured;
mod race;
mod stats;

pub use candidates::{Candidate, MOST_CANDIDATES, candidate, candidates};
pub use decisions::{DECISIONS, Decision, Decisions, Program, default_path};
pub use measured::{Form, Measured, printable, table};
pub use race::{Lane, Race, RaceOptions, Standing};
