//! Makes rewrites wherever they apply, in one sweep.

use tilewright_ir::{EditError, InstId, Module, Patch};

/// Visits each live instruction once, and applies the patch that `simpler` finds for it. Returns the
/// number of changes.
pub(crate) fn simplify(
    module: &mut Module,
    simpler: impl Fn(&Module, InstId) -> Option<Patch>,
) -> Result<usize, EditError> {
    let mut changes = 0;
    for computation in module.computations().to_vec() {
        let instructions: Vec<InstId> = module.instructions(computation).collect();
        for id in instructions {
            if !module.is_live(id) {
                continue;
            }
            if let Some(patch) = simpler(module, id) {
                patch.apply(module)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}
