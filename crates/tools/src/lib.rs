//! Tools on modules, made of the verbs of [`tilewright`]: [`diff`](mod@diff) pairs the instructions of two
//! modules, [`explain()`] groups what an optimisation did by the layers of a model, [`reduce()`]
//! makes a module smaller that shows a failure, and [`tune`] chooses among forms of a module by measuring
//! them.

pub mod diff;
pub mod explain;
mod reduce;
pub mod tune;

pub use explain::explain;
pub use reduce::{Candidate, Ended, ReduceOptions, ReduceStep, ReducedSize, Reduction, reduce};
