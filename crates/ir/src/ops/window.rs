//! Windows that move over an array.

use smallvec::SmallVec;

use super::attr::attributes;
use super::dims::WindowDim;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, scalar};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape};

attributes! {
    /// Attributes of `reduce-window`.
    pub struct ReduceWindowAttrs {
        /// The window and how it moves.
        window: SmallVec<[WindowDim; 2]> = "window" or SmallVec::new(),
        /// Combines accumulators with elements.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `select-and-scatter`.
    pub struct SelectAndScatterAttrs {
        /// The window and how it moves.
        window: SmallVec<[WindowDim; 2]> = "window" or SmallVec::new(),
        /// Whether the window selects the first of two elements.
        select: CompId = "select",
        /// Combines values that are scattered to the same element.
        scatter: CompId = "scatter",
    }
}

/// Returns an array with one element of the base's type per window position; positions along a
/// dynamic dim are dynamic.
fn windowed(window: &[WindowDim], base: &ArrayShape) -> Result<ArrayShape, ShapeError> {
    if window.len() != base.rank() {
        return Err(ShapeError::attribute(format!(
            "the window has {} dims, but the array is {base}",
            window.len()
        )));
    }
    let dims = window.iter().zip(base.dims()).map(|(w, &size)| w.output_size(size));
    let dims = dims
        .collect::<Option<Dims>>()
        .ok_or_else(|| ShapeError::attribute(format!("the window over {base} is malformed")))?;
    let dynamic: SmallVec<[bool; 6]> = (0..base.rank()).map(|d| base.dim_is_dynamic(d)).collect();
    Ok(ArrayShape::new(base.element_type, dims).with_dynamic(&dynamic))
}

/// The first half of the operands are arrays, the second half their inits.
pub(super) fn reduce_window(
    q: &ShapeQuery<'_>,
    attrs: &ReduceWindowAttrs,
) -> Result<Shape, ShapeError> {
    if !q.operands.len().is_multiple_of(2) {
        return Err(ShapeError::operand("`reduce-window` takes as many initial values as arrays"));
    }
    let count = q.operands.len() / 2;
    let first = q.array(0)?;
    let positions = windowed(&attrs.window, first)?;
    let (mut accumulators, mut elements) = (Vec::new(), Vec::new());
    for index in 0..count {
        let (array, init) = (q.array(index)?, q.array(count + index)?);
        if !array.dims_agree(first) || init.rank() != 0 {
            return Err(ShapeError::operand(format!(
                "`reduce-window` takes arrays of the same dims and scalars, not {array} and {init}"
            )));
        }
        accumulators.push(init.element_type);
        elements.push(array.element_type);
    }
    let result = q.check_reducer(attrs.to_apply, &accumulators, &elements)?;
    let array =
        |&element_type: &ElementType| positions.clone().with_element_type(element_type).into();
    let mut results: Vec<Shape> = accumulators.iter().map(array).collect();
    match results.pop() {
        Some(only) if result.as_tuple().is_none() => Ok(only),
        last => Ok(Shape::Tuple(results.into_iter().chain(last).collect())),
    }
}

/// Operands: the array, the values to scatter, the initial value.
pub(super) fn select_and_scatter(
    q: &ShapeQuery<'_>,
    attrs: &SelectAndScatterAttrs,
) -> Result<Shape, ShapeError> {
    let (base, source, init) = (q.array(0)?, q.array(1)?, q.array(2)?);
    let positions = windowed(&attrs.window, base)?;
    if !source.dims_agree(&positions)
        || !q.same_type(source.element_type, base.element_type)
        || !q.same_type(init.element_type, base.element_type)
        || init.rank() != 0
    {
        return Err(ShapeError::operand(format!(
            "`select-and-scatter` over {base} takes one value for each window position {:?} and a scalar, all of one type, not {source} and {init}",
            positions.dims()
        )));
    }
    let element = scalar(base.element_type);
    let chosen = q.check_callee(attrs.select, &[&element, &element])?;
    if !chosen.compatible(&scalar(ElementType::Pred)) {
        return Err(ShapeError::callee(format!(
            "`select` of `select-and-scatter` yields pred[], not {chosen}"
        )));
    }
    q.check_reducer(attrs.scatter, &[source.element_type], &[source.element_type])?;
    Ok(base.clone().with_layout(None).into())
}
