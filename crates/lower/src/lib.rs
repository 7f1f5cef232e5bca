//! Lowers modules, reductions and top-k to kernels.
//!
//! [`lower()`] takes a verified module and makes each instruction a part of a kernel or a host
//! call with a reason. A [`ReductionPlan`] describes how one pass reduces any set of axes of an
//! array in any layout: which blocks are accumulated from which addresses, without workspace and
//! without transpose. A [`kernel`] is a program for a vector machine. A [`Selection`] describes
//! a top-k and is lowered to such a kernel too.

mod codegen;
pub mod error;
pub mod kernel;
mod module;
mod plan;
mod strategy;

pub use codegen::reduce::{Elements, Neutral, ReductionSpec, Selection, Source};
pub use error::{ErrorKind, LowerError};
pub use module::{
    Group, HostCall, HostReason, Lowered, Planned, executed, fused, lower, lower_with_cancel,
    lowerable, lowered, outlined, plans, plans_with_cancel, reduction, selection,
};
pub use plan::axis::{Axis, AxisKind};
pub use plan::{Order, PlanError, ReductionPlan, Step};
pub use strategy::{Input, NoSuchStrategy, Sequence, Stage, Strategy};
