//! One pass per file.

pub mod adjacent_sums;
pub mod algebra;
mod attempt;
pub mod broadcast;
pub mod control;
pub mod convert;
pub mod cse;
pub mod dce;
pub mod dead_elements;
pub mod degenerate;
pub mod factored_sums;
pub mod fold;
pub mod inline;
mod loop_state;
pub mod merged_dims;
pub mod reduce;
pub mod reduce_as_window;
pub mod reduce_of_broadcast;
pub mod reduce_of_reduce;
mod reduce_of_reshape;
pub mod reduce_through_reshape;
pub mod reduce_through_transpose;
mod region_move;
pub mod reshape;
pub mod reshape_out_of_loop;
pub mod reshape_out_of_region;
pub mod shifted_moments;
mod sum_build;
pub mod transpose;
pub mod tuple;
pub mod unshare;
mod weight;
pub mod wide_sums;

use tilewright_ir::{EditError, InstId, Module, Patch};

/// Goes once over all that is used, and does what `simpler` finds; the number
/// of changes.
fn simplify(
    module: &mut Module,
    simpler: impl Fn(&Module, InstId) -> Option<Patch>,
) -> Result<usize, EditError> {
    let mut changes = 0;
    for computation in module.computations().to_vec() {
        let instructions: Vec<InstId> = module.instructions(computation).collect();
        for id in instructions {
            let used = module.is_live(id);
            if let (true, Some(patch)) = (used, simpler(module, id)) {
                patch.apply(module)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}
