//! Runs sweeps of rewrites that are made wherever they apply.

use tilewright_ir::{EditError, InstId, Module, Patch};

/// Visits all used instructions once and applies the simplification that `simpler` finds.
/// Returns the number of changes.
pub(crate) fn simplify(
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
