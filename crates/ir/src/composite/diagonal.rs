//! Diagonals of the matrices that two dims form.

use crate::ops::indexing::GatherAttrs;
use crate::types::literal::{ArrayLiteral, Data};
use crate::{BuildError, Builder, Dims, ElementType, InstId, Opcode, Shape};

use super::operand::CompositeOperand;

/// Returns the elements whose index in `dim2` is `offset` more than their index in `dim1`. Both
/// dims are removed; the diagonal is the last dim, after all others.
///
/// As `numpy.diagonal(x, offset, dim1, dim2)`: `offset` may be negative, and the result empty. A
/// gather, so elements are copied bit for bit.
///
/// # Errors
/// Returns an error if `x` is not an array, `dim1` and `dim2` are not two dims of it, or s32
/// cannot count their elements.
pub fn diagonal(
    b: &mut Builder,
    x: InstId,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of(b, "diagonal", "x", x)?;
    let [dim1, dim2] = [operand.dim("dim1", dim1)?, operand.dim("dim2", dim2)?];
    let gone = operand.distinct("dim2", Dims::from_slice(&[dim1, dim2]))?;
    // A negative start belongs to the other dim.
    let start = [offset.checked_neg().unwrap_or(i64::MAX).max(0), offset.max(0)];
    let left = |dim, start| operand.size(dim).saturating_sub(start).max(0);
    let length = left(dim1, start[0]).min(left(dim2, start[1]));
    let batch = operand.other_dims(&gone);
    if length == 0 {
        return empty(b, &operand, &batch);
    }
    let indices = indices(b, &operand, start, length)?;
    let sizes = (0..).zip(operand.shape.dims());
    let attrs = GatherAttrs {
        offset_dims: (0..).zip(&batch).map(|(place, _)| place).collect(),
        collapsed_slice_dims: gone.clone(),
        start_index_map: [dim1, dim2].into_iter().collect(),
        index_vector_dim: 1,
        slice_sizes: sizes.map(|(d, &size)| if gone.contains(&d) { 1 } else { size }).collect(),
        indices_are_sorted: true,
        ..GatherAttrs::default()
    };
    b.gather(x, indices, attrs)
}

/// `start`, `start + 1` ... as rows.
fn indices(
    b: &mut Builder,
    operand: &CompositeOperand,
    start: [i64; 2],
    length: i64,
) -> Result<InstId, BuildError> {
    let narrow = |start: i64| {
        let last = start.checked_add(length).and_then(|end| i32::try_from(end).ok());
        i32::try_from(start).ok().filter(|_| last.is_some())
    };
    let [Some(row), Some(column)] = start.map(narrow) else {
        return Err(
            operand.error("x", format!("s32 does not tell all places in {}", operand.shape))
        );
    };
    let places = b.iota(Shape::array(ElementType::S32, [length, 2]), 0)?;
    if start == [0, 0] {
        return Ok(places);
    }
    let start = ArrayLiteral::new(ElementType::S32, [2], Data::S32(vec![row, column]))?;
    let start = b.constant(start.into())?;
    let start = b.broadcast(start, [length, 2], [1])?;
    b.binary(Opcode::Add, places, start)
}

/// Returns an array without elements: the other dims and one of size 0.
fn empty(b: &mut Builder, operand: &CompositeOperand, batch: &[i64]) -> Result<InstId, BuildError> {
    let element_type = operand.element_type();
    let mut dims = operand.sizes(batch);
    dims.push(0);
    let nothing = ArrayLiteral::new(element_type, [0], Data::zeros(element_type, 0))?;
    let nothing = b.constant(nothing.into())?;
    let last = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    b.broadcast(nothing, &dims, [last])
}
