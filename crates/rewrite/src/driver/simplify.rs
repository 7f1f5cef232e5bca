//! Makes rewrites wherever they apply, in one sweep.

use tilewright_ir::{EditError, InstId, Module, Patch};

use super::swept::Due;

/// Visits each live instruction that is due once, and applies the patch that `simpler` finds for
/// it. After the first change, all instructions are due. Returns the number of changes.
pub(crate) fn simplify(
    module: &mut Module,
    due: &Due,
    simpler: impl Fn(&Module, InstId) -> Option<Patch>,
) -> Result<usize, EditError> {
    let mut changes = 0;
    if due.is_empty() {
        return Ok(changes);
    }
    for computation in module.computations().to_vec() {
        let instructions: Vec<InstId> = module.instructions(computation).collect();
        for id in instructions {
            let used = module.is_live(id);
            if changes == 0 && !due.holds(id) {
                debug_assert!(
                    !used || simpler(module, id).is_none(),
                    "`{}` must be looked at",
                    module.name_of(id)
                );
                continue;
            }
            if let (true, Some(patch)) = (used, simpler(module, id)) {
                patch.apply(module)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}
