//! Reductions and elementwise regions on the other side of reshapes, transposes and
//! broadcasts, so that large arrays stay where they are: one pass per file, made where the
//! cost model says that it pays.
//!
//! [`reduce_through_reshape`] is T1, [`reshape_out_of_region`] T2.

mod broadcast_plan;
pub mod merged_dims;
pub mod reduce_as_window;
pub mod reduce_of_broadcast;
mod reduce_of_reshape;
pub mod reduce_through_reshape;
pub mod reduce_through_transpose;
mod region_move;
pub mod reshape_out_of_region;
pub mod unit_dims;

use crate::analysis::reduce::MonoidReduce;
use crate::driver::numbers::{Class, FloatMode};
use crate::pattern::Match;

/// What it does to floats to reduce otherwise what `reduce` of a match reduces: `most` where it
/// combines floats; nothing is allowed of reduces by no monoid.
fn class_of_reduce(found: &Match<'_>, most: Class) -> Option<Class> {
    let reduce = MonoidReduce::of(found.module(), found.get("reduce")?, FloatMode::Regroup)?;
    Some(if reduce.reducer.regroups_exactly() { Class::Exact } else { most })
}
