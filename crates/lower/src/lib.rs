//! Kernels of modules, and of reductions and top-k by themselves.
//!
//! [`lower()`] takes a verified module and says what each instruction becomes: a part
//! of a kernel, or a host call, with the reason. A [`ReductionPlan`] says how any set of
//! axes of an array, however it lies in memory, is reduced in one pass: which blocks are
//! accumulated from which addresses, with no workspace and no transpose. A [`kernel`]
//! says it as a program for a vector machine, and a [`Selection`] becomes one for the
//! first elements of rows.

mod codegen;
pub mod error;
pub mod kernel;
mod module;
mod plan;
mod strategy;

pub use codegen::reduce::{Elements, Neutral, Reduction, Selection, Source};
pub use error::{ErrorKind, LowerError};
pub use module::{
    Group, HostCall, HostReason, Lowered, Planned, fused, lower, lowerable, lowered, plans,
    reduction, selection,
};
pub use plan::axis::{Axis, Kind};
pub use plan::{Order, PlanError, ReductionPlan, Step};
pub use strategy::{Input, NoSuchStrategy, Sequence, Stage, Strategy};
