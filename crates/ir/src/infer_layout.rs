//! Infers the layout of a result whose shape is not in the text.
//!
//! XLA's shape inference copies an operand's shape with its layout for ops that keep its dims,
//! and creates a row-major shape for others (`xla/service/shape_inference.cc`). A text without
//! shapes implies these layouts.

use smallvec::SmallVec;

use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::layout::Layout;
use crate::types::shape::{ArrayShape, Shape};

/// Sets the layout of an inferred shape: the layout of an operand if the op's row has the flag
/// `LAYOUT`, and for a `transpose` the layout in which it moves no element.
pub fn infer_layout(op: &Op, operands: &[&Shape], inferred: &mut Shape) {
    if !op.opcode().keeps_layout() {
        return;
    }
    match inferred {
        Shape::Array(result) => {
            if let Some(given) = layout_operand(op.opcode(), operands) {
                result.layout = handed_on(op, operands, given, result);
            }
        }
        Shape::Tuple(elements) => {
            // Training and gradient norms also return statistics, whose layout is not an
            // operand's.
            let is_norm = matches!(op, Op::BatchNormTraining(_) | Op::BatchNormGrad(_));
            let like_operands = if is_norm { 1 } else { elements.len() };
            for (element, operand) in elements.iter_mut().zip(operands).take(like_operands) {
                if let (Shape::Array(element), Shape::Array(operand)) = (element, operand) {
                    element.layout = operand.layout.clone();
                }
            }
        }
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => {}
    }
}

/// Returns the operand whose layout the result has.
fn layout_operand<'a>(opcode: Opcode, operands: &[&'a Shape]) -> Option<&'a ArrayShape> {
    let second = match operands.first()? {
        Shape::Array(condition) if opcode == Opcode::Select => condition.rank() == 0,
        _ => matches!(opcode, Opcode::Clamp | Opcode::TriangularSolve),
    };
    operands.get(usize::from(second))?.as_array()
}

fn handed_on(
    op: &Op,
    operands: &[&Shape],
    given: &ArrayShape,
    result: &ArrayShape,
) -> Option<Layout> {
    let mut layout = given.layout_or_default();
    // The value of padding elements can change through the op.
    layout.padding = None;
    if let Op::Transpose(attrs) = op {
        layout.minor_to_major = permuted(&layout, &attrs.dimensions)?;
    }
    if let Op::Select = op {
        layout.element_size_in_bits = packing(operands.get(1)?.as_array()?);
    } else if !keeps_packing(op.opcode(), operands.len(), given, result) {
        layout.element_size_in_bits = 0;
    }
    Some(layout).filter(|layout| !layout.is_default())
}

/// Checks whether the result keeps the operand's packing. XLA drops it for ops that set a new
/// element type, unless the new type is narrower than a byte.
fn keeps_packing(opcode: Opcode, operands: usize, given: &ArrayShape, to: &ArrayShape) -> bool {
    let made_anew =
        (opcode.is_elementwise() && operands == 2) || given.element_type != to.element_type;
    !made_anew || (to.element_type.bits() < 8 && to.element_type != ElementType::Pred)
}

fn packing(shape: &ArrayShape) -> i64 {
    shape.layout.as_ref().map_or(0, |layout| layout.element_size_in_bits)
}

/// Returns the layout in which operand dim `d` of a transpose is the result dim that refers to
/// it.
fn permuted(layout: &Layout, dimensions: &[i64]) -> Option<SmallVec<[u32; 6]>> {
    let becomes = |&dim: &u32| {
        let place = dimensions.iter().position(|&from| from == i64::from(dim))?;
        u32::try_from(place).ok()
    };
    layout.minor_to_major.iter().map(becomes).collect()
}
