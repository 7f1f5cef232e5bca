//! Reductions and selections, lowered.
//!
//! [`ReductionPlan`] says how any set of axes of an array, however it lies in
//! memory, is reduced in one pass: which blocks are accumulated from which
//! addresses, with no workspace and no transpose. A [`kernel`] says it as a
//! program for a vector machine, and a [`Selection`] becomes one for the first
//! elements of rows.

mod axis;
mod function;
mod fuse;
pub mod kernel;
mod plan;
mod reduce;
mod strategy;

pub use axis::{Axis, Kind};
pub use function::function;
pub use fuse::{Group, Lowered, Reductions, fused, groups, outline};
pub use plan::{Order, PlanError, ReductionPlan, Step};
pub use reduce::{Elements, LowerError, Neutral, Reduction, Selection, Source};
pub use strategy::{Input, NoSuchStrategy, Sequence, Stage, Strategy};
