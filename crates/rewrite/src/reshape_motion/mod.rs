//! Passes that move reductions and elementwise regions to the other side of reshapes, transposes
//! and broadcasts, so that large arrays are not copied: one pass per file, cost-gated.
//!
//! [`reduce_through_reshape`] is T1, [`reshape_out_of_region`] T2.

pub(crate) mod broadcast_plan;
pub mod layout_of_region;
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

/// Returns how a rewrite of the matched `reduce` changes floats: by `most` if regrouping the
/// reduce rounds differently. Returns `None`, which allows no rewrite, if it is no
/// [`MonoidReduce`].
fn class_of_reduce(found: &Match<'_>, most: Class) -> Option<Class> {
    let reduce = MonoidReduce::of(found.module(), found.get("reduce")?, FloatMode::Guarded)?;
    Some(if reduce.reducer.regroups_exactly() { Class::Exact } else { most })
}
