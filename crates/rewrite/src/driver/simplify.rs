//! Sweeps of rewrites that are made wherever they apply.

use tilewright_ir::{EditError, InstId, Module, Patch};

/// Goes once over all that is used, and does what `simpler` finds; the number
/// of changes.
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
