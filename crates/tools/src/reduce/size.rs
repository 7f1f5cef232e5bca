//! How large a module is: what reductions make less of.

use tilewright::ir::{Module, Shape};

use super::walk::{all_instructions, is_leaf};

/// The size of a module. Sizes are compared field by field, the first field first; a candidate is
/// tried only if it is smaller than the best module so far, so that the search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[non_exhaustive]
pub struct ReducedSize {
    /// Instructions other than parameters, constants, iotas and broadcasts of constants.
    pub ops: usize,
    /// All instructions.
    pub instructions: usize,
    /// Elements of all values, the bounds of dynamic dims taken as sizes.
    pub elements: u64,
    /// Bytes of the module's text.
    pub text: usize,
}

impl ReducedSize {
    pub(super) fn of(module: &Module, text: &str) -> Self {
        let ops = all_instructions(module).filter(|&id| !is_leaf(module, id)).count();
        let elements = all_instructions(module)
            .map(|id| elements(module.shape(id)))
            .fold(0u64, u64::saturating_add);
        Self { ops, instructions: module.instruction_count(), elements, text: text.len() }
    }
}

fn elements(shape: &Shape) -> u64 {
    let of_leaf = |leaf: &Shape| {
        let count = leaf.as_array().map_or(Some(1), tilewright::ir::ArrayShape::num_elements);
        count.and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX)
    };
    shape.leaves().into_iter().map(of_leaf).fold(0, u64::saturating_add)
}
