//! Reductions, lowered.
//!
//! [`ReductionPlan`] says how any set of axes of an array, however it lies in
//! memory, is reduced in one pass: which blocks are accumulated from which
//! addresses, with no workspace and no transpose.

mod axis;
mod plan;

pub use axis::{Axis, Kind};
pub use plan::{Order, PlanError, ReductionPlan, Step};
