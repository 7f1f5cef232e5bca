//! The roles of instructions in a region.

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, ElementType, InstId, Op, Verified};

use crate::eval::elementwise::kernel;
use crate::strides::{Level, Nest, extent, row_major};

/// The role of an instruction that may be part of a region.
pub(super) enum Role {
    /// Computes from operands that have as many lanes, or one element.
    Compute,
    /// Has the lanes of its operand.
    Alias,
    /// Repeats a smaller operand.
    Broadcast(Nest<1>),
}

pub(super) fn static_shape(module: &Verified, id: InstId) -> Option<&ArrayShape> {
    module.array_shape(id).filter(|shape| shape.is_static())
}

pub(super) fn lanes_of(module: &Verified, id: InstId) -> Option<usize> {
    usize::try_from(static_shape(module, id)?.num_elements()?).ok()
}

pub(super) fn role(module: &Verified, id: InstId) -> Option<Role> {
    let shape = static_shape(module, id)?;
    let operands = module.operands(id);
    let first = operands.first().and_then(|&operand| static_shape(module, operand))?;
    match module.op(id) {
        Op::Reshape(_) | Op::Copy => {
            (first.element_type == shape.element_type).then_some(Role::Alias)
        }
        Op::Broadcast(attrs) => {
            let increasing = attrs.dimensions.windows(2).all(|pair| pair[0] < pair[1]);
            if lanes_of(module, id) == lanes_of(module, *operands.first()?) {
                return increasing.then_some(Role::Alias);
            }
            broadcast_walk(first, shape, &attrs.dimensions).map(Role::Broadcast)
        }
        op => {
            let mut types: SmallVec<[ElementType; 3]> = SmallVec::new();
            for &operand in operands {
                let operand_shape = static_shape(module, operand)?;
                let fits = operand_shape.rank() == 0 || operand_shape.dims() == shape.dims();
                types.push(Some(operand_shape.element_type).filter(|_| fits)?);
            }
            let kernel = kernel(op, &types, shape.element_type).ok()?;
            kernel.map(|_| Role::Compute)
        }
    }
}

/// Returns the lanes of a broadcast as a walk over its operand.
fn broadcast_walk(from: &ArrayShape, to: &ArrayShape, dimensions: &[i64]) -> Option<Nest<1>> {
    let strides = row_major(from.dims());
    let mut levels: SmallVec<[Level<1>; 6]> =
        to.dims().iter().map(|&size| Level { size: extent(size), strides: [0] }).collect();
    for (&dim, &stride) in dimensions.iter().zip(&strides) {
        levels.get_mut(usize::try_from(dim).ok()?)?.strides = [stride];
    }
    Some(Nest::new(levels))
}
