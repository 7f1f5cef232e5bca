//! Guards: conditionals whose first branch returns its argument, and whose second branch, which is
//! seldom taken, computes the same value in another way.

use tilewright_ir::metadata::value_of;
use tilewright_ir::{InstId, Module, Opcode};

/// The frontend attribute that marks a guard; its value says what it guards.
pub(crate) const GUARD: &str = "tilewright_guard";

/// Checks whether an instruction is a guard.
pub(crate) fn is_guard(module: &Module, id: InstId) -> bool {
    module.opcode(id) == Opcode::Conditional
        && module
            .extras(id)
            .is_some_and(|extras| value_of(&extras.frontend_attributes, GUARD).is_some())
}
