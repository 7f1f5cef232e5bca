//! Modules to better modules.
//!
//! - [`analysis`]: reshapes as digits, elementwise regions, sums of products, monoids,
//!   costs.
//! - [`passes`]: one file per pass; the heart is
//!   [`passes::reduce_through_reshape`] (T1),
//!   [`passes::reshape_out_of_region`] (T2) and [`passes::factored_sums`] (T3).
//! - [`optimize`]: pipelines that run passes until nothing changes, verify
//!   after each, and keep the result only where it pays on the target.

pub mod analysis;
mod evaluate;
pub mod numbers;
mod pass;
pub mod passes;
mod pipeline;
pub mod registry;
mod report;

pub use analysis::cost::{Cost, InstructionCost, instruction_costs, module_cost};
pub use evaluate::Evaluate;
pub use pass::{Context, Pass, Skipped};
pub use pipeline::{
    OptimizeError, Optimized, Options, PIPELINES, Passes, Pipeline, optimize, optimize_observed,
    pipeline,
};
pub use report::{Note, PassReport, Report, StopReason, Verdict};
