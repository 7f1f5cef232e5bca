//! Reductions, scans and sorts.

use smallvec::SmallVec;

use super::attr::attributes;
use super::shaping::single_dim;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape};

attributes! {
    /// Attributes of `reduce`.
    pub struct ReduceAttrs {
        /// The dims that vanish.
        dimensions: Dims = "dimensions",
        /// Combines accumulators (first half of its parameters) with elements.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `scan`.
    pub struct ScanAttrs {
        /// The one dim along which it runs.
        dimensions: Dims = "dimensions",
        /// How many operands, from the last, are carried values.
        num_carries: i64 = "num_carries",
        /// Whether it runs from the last index to the first.
        is_reverse: bool = "is_reverse" or false,
        /// Whether the computation is known to be associative.
        is_associative: Option<bool> = "is_associative",
        /// One step.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `sort`.
    pub struct SortAttrs {
        /// The one dim along which it sorts.
        dimensions: Dims = "dimensions",
        /// Whether equal elements keep their order.
        is_stable: bool = "is_stable" or false,
        /// Whether the first of two elements goes before the second.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `topk`.
    pub struct TopKAttrs {
        /// How many elements of the minor dim stay.
        k: i64 = "k",
        /// The largest, or else the smallest.
        largest: bool = "largest" or true,
    }
}

/// The operands' first half are arrays, the second half their initial values.
pub(super) fn reduce(q: &ShapeQuery<'_>, attrs: &ReduceAttrs) -> Result<Shape, ShapeError> {
    let count = q.operands.len() / 2;
    if !q.operands.len().is_multiple_of(2) {
        return Err(ShapeError::operand("`reduce` takes as many initial values as arrays"));
    }
    let first = q.array(0)?;
    check_dims("`reduce` dimensions", &attrs.dimensions, first.rank())?;
    let (mut accumulators, mut elements) = (Vec::new(), Vec::new());
    for index in 0..count {
        let (array, init) = (q.array(index)?, q.array(count + index)?);
        if !array.same_dims(first) {
            return Err(ShapeError::operand(format!(
                "the arrays of `reduce` differ in dims: {first} and {array}"
            )));
        }
        if init.rank() != 0 {
            return Err(ShapeError::operand(format!(
                "initial values of `reduce` are scalars, not {init}"
            )));
        }
        accumulators.push(init.element_type);
        elements.push(array.element_type);
    }
    let result = q.check_reducer(attrs.to_apply, &accumulators, &elements)?;
    let kept = |dim: usize| !attrs.dimensions.iter().any(|&d| usize::try_from(d) == Ok(dim));
    let dims: Dims = (0..first.rank()).filter(|&d| kept(d)).map(|d| first.dims()[d]).collect();
    let dynamic: SmallVec<[bool; 6]> =
        (0..first.rank()).filter(|&d| kept(d)).map(|d| first.dim_is_dynamic(d)).collect();
    let array = |result: &Shape| {
        let element_type = result.as_array().map_or(first.element_type, |r| r.element_type);
        Shape::Array(ArrayShape::new(element_type, dims.iter().copied()).with_dynamic(&dynamic))
    };
    Ok(match result.as_tuple() {
        Some(results) => Shape::Tuple(results.iter().map(array).collect()),
        None => array(result),
    })
}

pub(super) fn scan(q: &ShapeQuery<'_>, attrs: &ScanAttrs) -> Result<Shape, ShapeError> {
    if attrs.num_carries < 0 {
        return Err(ShapeError::attribute("`scan` num_carries is negative"));
    }
    q.declared().cloned()
}

/// Several operands of the same dims are sorted together, by the comparator.
pub(super) fn sort(q: &ShapeQuery<'_>, attrs: &SortAttrs) -> Result<Shape, ShapeError> {
    let first = q.array(0)?;
    single_dim("`sort` dimensions", &attrs.dimensions, first.rank())?;
    let mut parameters = Vec::with_capacity(2 * q.operands.len());
    for index in 0..q.operands.len() {
        let array = q.array(index)?;
        if !array.same_dims(first) {
            return Err(ShapeError::operand(format!(
                "the operands of `sort` differ in dims: {first} and {array}"
            )));
        }
        let element = Shape::scalar(array.element_type);
        parameters.extend([element.clone(), element]);
    }
    let parameters: SmallVec<[&Shape; 4]> = parameters.iter().collect();
    let result = q.check_callee(attrs.to_apply, &parameters)?;
    if !result.compatible(&Shape::scalar(ElementType::Pred)) {
        return Err(ShapeError::callee(format!(
            "the comparator of `sort` yields pred[], not {result}"
        )));
    }
    let mut results: Vec<Shape> = q.operands.iter().map(|s| s.without_layout()).collect();
    match results.pop() {
        Some(only) if results.is_empty() => Ok(only),
        Some(last) => {
            results.push(last);
            Ok(Shape::Tuple(results))
        }
        None => Err(ShapeError::operand("`sort` takes at least one operand")),
    }
}

/// Values and their indices along the minor dim.
pub(super) fn topk(q: &ShapeQuery<'_>, attrs: &TopKAttrs) -> Result<Shape, ShapeError> {
    let from = q.array(0)?;
    let Some((&last, rest)) = from.dims().split_last() else {
        return Err(ShapeError::operand("`topk` takes an array of rank 1 or more"));
    };
    if attrs.k < 0 || attrs.k > last {
        return Err(ShapeError::attribute(format!(
            "`topk` cannot keep {} of {last} elements",
            attrs.k
        )));
    }
    let dims: Dims = rest.iter().copied().chain([attrs.k]).collect();
    Ok(Shape::Tuple(vec![
        Shape::array(from.element_type, dims.iter().copied()),
        Shape::array(ElementType::S32, dims),
    ]))
}
