//! Infers shapes of instructions with floats of different precision, which XLA's passes produce
//! for devices that support them.

use super::{ShapeError, ShapeQuery, infer_shape};
use crate::module::Module;
use crate::ops::{Op, Opcode};
use crate::types::shape::Shape;

/// The result shape of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inferred {
    /// The shape, as [`infer_shape`] returns it.
    pub shape: Shape,
    /// Whether operands, result or called computation have floats of different precision,
    /// although the op's rule requires equal types.
    pub mixes_precision: bool,
}

/// Like [`infer_shape`], but floats may differ in precision if the op computes its result: XLA
/// has `f32[8] add(f32[8], bf16[8])` and `bf16[8] add(f32[8], f32[8])`. Ops that return an
/// operand or read its bits keep its type.
///
/// # Errors
/// As [`infer_shape`].
pub fn infer_mixed(
    module: &Module,
    op: &Op,
    operands: &[&Shape],
    declared: Option<&Shape>,
) -> Result<Inferred, ShapeError> {
    let error = match infer_shape(module, op, operands, declared) {
        Ok(shape) => return Ok(Inferred { shape, mixes_precision: false }),
        Err(error) => error,
    };
    if keeps_precision(op.opcode()) {
        return Err(error);
    }
    let query = ShapeQuery { op, operands, declared, module, mixes_precision: true };
    let fits = |shape: &Shape| match (declared, op.opcode()) {
        (None, _) => true,
        // The updated array keeps its type, independent of the type of the update.
        (Some(declared), Opcode::DynamicUpdateSlice) => declared.agrees(shape),
        (Some(declared), _) => declared.agrees_up_to_precision(shape),
    };
    match query.yielded() {
        Ok(shape) if fits(&shape) => Ok(Inferred { shape, mixes_precision: true }),
        _ => Err(error),
    }
}

/// Checks whether an op returns its operand unchanged or reads its bits.
fn keeps_precision(opcode: Opcode) -> bool {
    opcode.takes_values_whole()
        || matches!(
            opcode,
            Opcode::Bitcast
                | Opcode::BitcastConvert
                | Opcode::Broadcast
                | Opcode::Constant
                | Opcode::DynamicReshape
                | Opcode::Parameter
                | Opcode::Reshape
        )
}
