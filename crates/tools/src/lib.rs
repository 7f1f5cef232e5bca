//! Tools on modules, made of the verbs of [`tilewright`]: [`diff`](mod@diff) pairs the instructions of two
//! modules, [`explain()`] groups what an optimisation did by the layers of a model, and [`reduce()`]
//! makes a module smaller that shows a failure.

pub mod diff;
pub mod explain;
mod reduce;

pub use explain::explain;
pub use reduce::{Candidate, Ended, ReduceOptions, ReduceStep, ReducedSize, Reduction, reduce};
