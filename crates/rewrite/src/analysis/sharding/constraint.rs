//! Constraints: custom calls that state how an array lies over devices.

use tilewright_ir::metadata::Extras;
use tilewright_ir::{InstId, Module, Op};

use super::mesh::DeviceMesh;

/// Checks whether a constraint is one of a whole array by itself, with nothing attached but its
/// sharding. XLA needs those beside another custom call, such as the one that leads to the shards of
/// an array.
pub fn stands_alone(module: &Module, constraint: InstId) -> bool {
    let (&[operand], Some(extras)) = (module.operands(constraint), module.extras(constraint))
    else {
        return false;
    };
    let is_other_call = |id: InstId| {
        let op = module.op(id);
        matches!(op, Op::CustomCall(_)) && !op.is_sharding_constraint()
    };
    let mut beside = module.uses(constraint).map(|found| found.user).chain([operand]);
    module.op(constraint).is_sharding_constraint()
        && extras.control_predecessors.is_empty()
        && module.shape(constraint) == module.shape(operand)
        && !beside.any(is_other_call)
}

impl DeviceMesh {
    /// Returns what a constraint carries if its array has other dims with as many elements, so that
    /// each device keeps the same elements; `None` if no sharding of these dims says so.
    ///
    /// `Sharding[a](reshape(x)) = reshape(Sharding[b](x))`
    pub fn constraint_in(
        &self,
        module: &Module,
        constraint: InstId,
        dims: &[i64],
    ) -> Option<Extras> {
        let from = module.array_shape(constraint)?.dims();
        let stated = self.stated(module.extras(constraint)?, from.len())?;
        let moved = stated.reshaped(from, dims, self)?;
        let is_same = moved.reshaped(dims, from, self)? == stated;
        is_same.then(|| self.constraint(&moved))
    }
}
