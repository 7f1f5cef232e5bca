//! Dims of a size known only at run time (`f32[<=8,3]`, `f32[?]`).
//!
//! A value has its actual dims, without the elements between its size and the bound. A dynamic
//! instruction is therefore evaluated as a static one with its operands' actual shapes, and
//! this module only infers the shape of the result. If that is not certain, it returns an error
//! that says so.

mod cut;
mod infer;
mod reshape;

use std::rc::Rc;

use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, InstId, Opcode, Shape, Verified};

use crate::error::Outcome;
use crate::eval::{Operands, unsupported};
use crate::limits::Ledger;
use crate::value::Value;

/// Checks whether an instruction's result depends on sizes known only at run time. Instructions
/// that only pass values on need no such check.
pub(crate) fn is_dynamic(module: &Verified, id: InstId) -> bool {
    let opcode = module.opcode(id);
    if opcode.takes_values_whole() {
        return false;
    }
    let has_dynamic = |id: InstId| any_dynamic(module.shape(id));
    // Their sizes are values, regardless of the declared shape.
    matches!(opcode, Opcode::SetDimensionSize | Opcode::DynamicReshape)
        || has_dynamic(id)
        || module.operands(id).iter().any(|&operand| has_dynamic(operand))
}

/// Checks whether a value of this shape has sizes known only at run time.
pub(crate) fn any_dynamic(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => !array.is_static(),
        Shape::Tuple(elements) => elements.iter().any(any_dynamic),
        Shape::Buffer(inner) => any_dynamic(inner),
        Shape::Token | Shape::Opaque => false,
    }
}

/// Returns the shape, of static dims, that a dynamic instruction's result has with these
/// operands; an operand that reaches beyond the others is cut.
pub(crate) fn result_shape(
    module: &Verified,
    id: InstId,
    operands: &mut Operands,
    ledger: &Rc<Ledger>,
) -> Outcome<Shape> {
    cut::to_the_shortest(module, id, operands, ledger)?;
    let shape = infer::shape(module, id, operands)?;
    let declared = module.shape(id);
    if admits(declared, &shape) {
        return Ok(shape);
    }
    let declared = declared.without_layout();
    Err(unsupported(format!("at run time it yields {shape}, which is no {declared}")))
}

/// Checks whether a value of this shape, whose dims are static, can be one of the declared
/// shape.
pub(crate) fn admits(declared: &Shape, actual: &Shape) -> bool {
    match (declared, actual) {
        (Shape::Array(declared), Shape::Array(actual)) => {
            declared.element_type == actual.element_type && admits_dims(declared, actual.dims())
        }
        (Shape::Tuple(declared), Shape::Tuple(actual)) => {
            declared.len() == actual.len() && declared.iter().zip(actual).all(|(d, a)| admits(d, a))
        }
        (Shape::Token, Shape::Token) => true,
        (
            Shape::Array(_) | Shape::Tuple(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque,
            _,
        ) => false,
    }
}

/// Checks whether an array of a declared shape can have these dims.
pub(crate) fn admits_dims(declared: &ArrayShape, dims: &[i64]) -> bool {
    let fits = |(dim, (&declared_size, &size)): (usize, (&i64, &i64))| {
        size == declared_size
            || declared.dim_is_dynamic(dim)
                && size >= 0
                && (declared_size == UNBOUNDED || size < declared_size)
    };
    declared.rank() == dims.len() && declared.dims().iter().zip(dims).enumerate().all(fits)
}

/// Returns the shape that a value has.
pub(crate) fn shape_of(value: &Value) -> Shape {
    match value {
        Value::Array(array) => Shape::array(array.element_type(), array.dims().iter().copied()),
        Value::Tuple(elements) => Shape::Tuple(elements.iter().map(shape_of).collect()),
        Value::Token => Shape::Token,
    }
}
