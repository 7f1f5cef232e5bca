//! Passes that depend on the backend: on the kernels that it makes, the arrays that it stores
//! between them, and the forms of a reduction that it computes fastest.

pub mod cluster_sibling_reductions;
pub mod convolution_barrier;
pub mod native_calls;
pub mod reduce_form;
pub mod rematerialize;
pub mod tree_reduce;

use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position, Use};

use crate::cost::shared::fused_computations;

/// Adds an optimization barrier of a value, makes the uses in `users` read the barrier, and returns
/// it.
pub(crate) fn add_barrier(
    module: &mut Module,
    value: InstId,
    users: &[Use],
) -> Result<InstId, EditError> {
    // A user of `value` stands after it, so `value` has a next instruction.
    let position = Position::Before(module.next_instruction(value).unwrap_or(value));
    let (shape, name) = (module.shape(value).clone(), module.fresh_name("opt-barrier"));
    let barrier = module.insert(position, Op::OptimizationBarrier, shape, &[value], name)?;
    module.copy_metadata(value, barrier);
    for one in users {
        module.set_operand(one.user, one.operand, barrier)?;
    }
    Ok(barrier)
}

/// Returns the computations whose instructions can be kernels of their own: all except the bodies
/// of fusions, each of which is one kernel.
fn outside_of_fusions(module: &Module) -> Vec<CompId> {
    let fused = fused_computations(module);
    module.computations().iter().copied().filter(|id| !fused.contains(id)).collect()
}
