//! The plans of a module's reduces.

use std::sync::atomic::AtomicBool;

use tilewright_ir::{InstId, Op, Verified};
use tilewright_target::Target;

use super::{lowerable, lowered};
use crate::error::{LowerError, check};
use crate::plan::ReductionPlan;
use crate::strategy::Strategy;

/// The plan of one reduce of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The reduce.
    pub id: InstId,
    /// The reduced dims. All arrays of the reduce have the same dims.
    pub axes: Vec<usize>,
    /// Its plan.
    pub plan: ReductionPlan,
    /// Bytes of main memory for arrays between kernels, padding included; `None` if the strategy
    /// has no kernels for the reduce.
    pub workspace_bytes: Option<u64>,
}

/// Returns the plan of every reduce of a module in the order of its text, in the entry and in
/// all called computations. Only the workspace depends on the target and the strategy.
///
/// # Errors
/// Returns an error if a reduce has no plan: its array is too large to address, or its layout
/// combines dims in tiles.
pub fn plans(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
) -> Result<Vec<Planned>, LowerError> {
    plans_with_cancel(module, target, strategy, &AtomicBool::new(false))
}

/// As [`plans`], until another thread sets `cancel`.
///
/// # Errors
/// The errors of [`plans`]; also if it is cancelled.
pub fn plans_with_cancel(
    module: &Verified,
    target: &Target,
    strategy: Strategy,
    cancel: &AtomicBool,
) -> Result<Vec<Planned>, LowerError> {
    let planned = |id| match check(cancel) {
        Ok(()) => planned(module, id, target, strategy).transpose(),
        Err(cancelled) => Some(Err(cancelled)),
    };
    lowerable(module).filter_map(planned).collect()
}

fn planned(
    module: &Verified,
    id: InstId,
    target: &Target,
    strategy: Strategy,
) -> Result<Option<Planned>, LowerError> {
    let Op::Reduce(attrs) = module.op(id) else { return Ok(None) };
    let operand = module.operands(id).first();
    let Some(array) = operand.and_then(|&array| module.array_shape(array)) else {
        return Ok(None);
    };
    let axes = attrs.dimensions.iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    let axes: Vec<usize> = axes.collect();
    let plan = ReductionPlan::of_array(array, &axes)
        .map_err(|why| LowerError::from(why).at(module.name_of(id)))?;
    let workspace_bytes = match strategy {
        Strategy::Fused => Some(0),
        _ => lowered(module, id, target, strategy).ok().map(|lowered| lowered.workspace_bytes()),
    };
    Ok(Some(Planned { id, axes, plan, workspace_bytes }))
}
