//! Rewrites modules into equal ones that cost less.
//!
//! - [`driver`]: passes, pipelines, [`optimize`].
//! - [`cost`]: modelled cycles, and where values live.
//! - [`analysis`]: reshapes as digits, elementwise regions, equal computations.
//! - [`pattern`]: rules, which rewrite one expression into another.
//! - [`guards`]: conditionals that choose a fast form where a test holds.
//! - The passes, one module per family: [`canonicalize`], [`reshape_motion`] (T1, T2), [`sums`]
//!   (T3, T4), [`loops`], [`sharded`], [`backend`].

pub mod analysis;
pub mod backend;
pub mod canonicalize;
pub mod cost;
pub mod driver;
pub mod guards;
pub mod loops;
pub mod pattern;
pub mod reshape_motion;
pub mod sharded;
pub mod sums;

pub use cost::{Cost, InstructionCost, ModuleCosts, instruction_costs, module_cost};
#[doc(hidden)]
pub use driver::table;
pub use driver::{
    AddedPass, Context, Cycles, Evaluate, Note, Notes, OptimizeError, Optimized, Options, Outcome,
    PIPELINES, Pass, PassObserver, PassReport, PassSelection, Pipeline, Place, Reason, Report,
    Scope, Simplest, Skipped, StopReason, numbers, optimize, pipeline, registry,
};
