//! Dead code elimination: removes instructions without users and side effects, and computations
//! that nothing calls.

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, EditError, InstId, Module};

use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct DeadCode;

impl Pass for DeadCode {
    fn name(&self) -> &'static str {
        "dce"
    }

    fn summary(&self) -> &'static str {
        "remove instructions and computations that nothing uses"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _: &mut Context<'_>) -> Result<usize, EditError> {
        let effectful = module.effectful_computations();
        Ok(remove_unused(module, &effectful)? + remove_uncalled(module))
    }
}

/// Removes the instructions without users and side effects, and returns their number; `effectful`
/// are the computations with side effects.
pub(crate) fn remove_unused(
    module: &mut Module,
    effectful: &FxHashSet<CompId>,
) -> Result<usize, EditError> {
    let mut removed = 0;
    for computation in module.computations().to_vec() {
        // Users stand after operands, so one backward sweep is enough.
        let backwards: Vec<InstId> = module.instructions(computation).rev().collect();
        for id in backwards {
            if module.is_removable(id) && !module.has_side_effect(id, effectful) {
                module.remove(id)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Removes those of these instructions that have no users and no side effects, and what only they
/// used; `effectful` are the computations with side effects.
pub(crate) fn remove_cascade(
    module: &mut Module,
    effectful: &FxHashSet<CompId>,
    mut next: Vec<InstId>,
) -> Result<(), EditError> {
    while let Some(id) = next.pop() {
        if module.is_removable(id) && !module.has_side_effect(id, effectful) {
            next.extend_from_slice(module.operands(id));
            let extras = module.extras(id).into_iter();
            next.extend(extras.flat_map(|extras| &extras.control_predecessors));
            module.remove(id)?;
        }
    }
    Ok(())
}

fn remove_uncalled(module: &mut Module) -> usize {
    let Some(entry) = module.entry() else { return 0 };
    let called: FxHashSet<CompId> = module.call_order(entry).into_iter().collect();
    let before = module.computations().len();
    module.retain_computations(|id| called.contains(&id));
    before - module.computations().len()
}
