//! Chooses which passes run on a module, in which order, and which of their changes are kept.
//!
//! - [`Pass`] and its [`Context`]; [`registry`] lists every pass, [`PIPELINES`] which of them
//!   run when.
//! - [`optimize`] runs a pipeline to its fixpoint, verifies after each pass, and keeps the
//!   result where it pays on the target.
//! - `simplify` makes a rewrite wherever it applies, `attempt` where the instructions around it then
//!   cost less, `module_trial` where the whole module does. `candidate` judges rewrites, spends
//!   fuel and words the notes for all of them.

pub(crate) mod attempt;
pub(crate) mod candidate;
pub(crate) mod costs;
mod cycle_guard;
mod error;
mod evaluate;
mod figures;
pub(crate) mod module_trial;
pub mod numbers;
mod optimize;
mod options;
mod pass;
mod pipelines;
mod plan;
pub(crate) mod reason;
pub mod registry;
mod report;
mod restore;
mod run;
pub(crate) mod simplify;

pub use candidate::{Cycles, Scope};
pub use error::OptimizeError;
pub use evaluate::Evaluate;
pub use optimize::{Optimized, Simplest, optimize};
pub use options::{AddedPass, Options, PassObserver, PassSelection};
pub(crate) use pass::byte_size;
pub use pass::{Context, Pass, Skipped};
pub use pipelines::{PIPELINES, Pipeline, pipeline};
pub use reason::Reason;
pub use report::{Note, Notes, Outcome, PassReport, Place, Report, StopReason, table};
