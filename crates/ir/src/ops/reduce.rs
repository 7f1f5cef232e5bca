//! Reductions, scans and sorts.

use smallvec::SmallVec;

use super::attr::attributes;
use super::shaping::single_dim;
use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery, check_dims};
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Dims, Shape, UNBOUNDED};

attributes! {
    /// Attributes of `reduce`.
    pub struct ReduceAttrs {
        /// The reduced dims.
        dimensions: Dims = "dimensions",
        /// Combines accumulators (first half of its parameters) with elements.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `scan`.
    pub struct ScanAttrs {
        /// The one dim along which it runs.
        dimensions: Dims = "dimensions",
        /// The number of carried values, which are the last operands.
        num_carries: i64 = "num_carries",
        /// Whether it runs from the last index to the first.
        is_reverse: bool = "is_reverse" or false,
        /// Whether the computation is known to be associative.
        is_associative: Option<bool> = "is_associative",
        /// Computes one step.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `sort`.
    pub struct SortAttrs {
        /// The one dim along which it sorts.
        dimensions: Dims = "dimensions",
        /// Whether equal elements keep their order.
        is_stable: bool = "is_stable" or false,
        /// Whether the first of two elements precedes the second.
        to_apply: CompId = "to_apply",
    }

    /// Attributes of `topk`.
    pub struct TopKAttrs: Default {
        /// Number of elements selected along the minor dim.
        k: i64 = "k",
        /// Whether the largest elements are selected; otherwise the smallest.
        largest: bool = "largest" or true,
        /// Whether equal elements keep their order.
        is_stable: bool = "is_stable" or true,
    }
}

/// The first half of the operands are arrays, the second half their inits.
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
        if !array.dims_agree(first) {
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

/// Operands are inputs, then initial carries. A step takes a slice of each input and the
/// carries; it returns a slice of each output, then the next carries.
pub(super) fn scan(q: &ShapeQuery<'_>, attrs: &ScanAttrs) -> Result<Shape, ShapeError> {
    let carries = carry_count(q, attrs)?;
    let inputs = q.operands.len() - carries;
    let [dim] = attrs.dimensions[..] else {
        let count = attrs.dimensions.len();
        return Err(ShapeError::attribute(format!(
            "`scan` dimensions names {count} dims, not one"
        )));
    };
    let mut parameters = Vec::with_capacity(q.operands.len());
    for index in 0..inputs {
        parameters.push(Shape::Array(scanned_slice(q, index, dim)?));
    }
    parameters.extend(q.operands[inputs..].iter().copied().cloned());
    let parameters: SmallVec<[&Shape; 4]> = parameters.iter().collect();
    let stepped = q.check_callee(attrs.to_apply, &parameters)?;
    let results = stepped.as_tuple().unwrap_or(std::slice::from_ref(stepped));
    let outputs = results.len().checked_sub(carries).ok_or_else(|| {
        ShapeError::callee(format!(
            "`scan` carries {carries} values, but its step yields {stepped}"
        ))
    })?;
    let (slices, next) = results.split_at(outputs);
    for (index, (carried, next)) in parameters[inputs..].iter().zip(next).enumerate() {
        if !q.compatible(next, carried) {
            return Err(ShapeError::callee(format!(
                "carry {index} of `scan` is {carried}, but its step yields {next}"
            )));
        }
    }
    if inputs == 0 && outputs == 0 {
        return Err(ShapeError::operand("`scan` has neither inputs nor outputs"));
    }
    let mut shapes = Vec::with_capacity(results.len());
    for slice in slices {
        shapes.push(stacked(q, slice, dim, inputs)?);
    }
    shapes.extend(next.iter().map(Shape::without_layout));
    Ok(one_or_tuple(shapes, q.declared.unwrap_or(stepped)))
}

fn carry_count(q: &ShapeQuery<'_>, attrs: &ScanAttrs) -> Result<usize, ShapeError> {
    let (carries, operands) = (attrs.num_carries, q.operands.len());
    if carries < 0 {
        return Err(ShapeError::attribute("`scan` num_carries is negative"));
    }
    usize::try_from(carries).ok().filter(|&carries| carries <= operands).ok_or_else(|| {
        ShapeError::attribute(format!(
            "`scan` of {operands} operands cannot carry {carries} of them"
        ))
    })
}

/// Returns the slice of an input that a step takes: all dims but the scanned one.
fn scanned_slice(q: &ShapeQuery<'_>, index: usize, dim: i64) -> Result<ArrayShape, ShapeError> {
    let (first, input) = (q.array(0)?, q.array(index)?);
    let dim = single_dim("`scan` dimensions", &[dim], input.rank())?;
    if first.dims().get(dim) != input.dims().get(dim) {
        return Err(ShapeError::operand(format!(
            "the inputs of `scan` differ in dim {dim}: {first} and {input}"
        )));
    }
    let kept = || (0..input.rank()).filter(|&d| d != dim);
    let dynamic: SmallVec<[bool; 6]> = kept().map(|d| input.dim_is_dynamic(d)).collect();
    let slice = ArrayShape::new(input.element_type, kept().map(|d| input.dims()[d]));
    Ok(slice.with_dynamic(&dynamic))
}

/// Returns the shape of all steps' slices, stacked along the scanned dim.
fn stacked(
    q: &ShapeQuery<'_>,
    slice: &Shape,
    dim: i64,
    inputs: usize,
) -> Result<Shape, ShapeError> {
    let Some(slice) = slice.as_array() else {
        return Err(ShapeError::callee(format!("a step of `scan` outputs arrays, not {slice}")));
    };
    let at = single_dim("`scan` dimensions", &[dim], slice.rank().saturating_add(1))?;
    let steps = if inputs > 0 { q.array(0)? } else { declared_output(q)? };
    let Some(&size) = steps.dims().get(at) else {
        return Err(ShapeError::result(format!("output 0 of `scan` is {steps}, without dim {at}")));
    };
    let mut dims = Dims::from(slice.dims());
    dims.insert(at, size);
    let mut dynamic: SmallVec<[bool; 6]> =
        (0..slice.rank()).map(|d| slice.dim_is_dynamic(d)).collect();
    dynamic.insert(at, steps.dim_is_dynamic(at));
    Ok(ArrayShape::new(slice.element_type, dims).with_dynamic(&dynamic).into())
}

/// Without inputs, the first output determines the number of steps.
fn declared_output<'a>(q: &ShapeQuery<'a>) -> Result<&'a ArrayShape, ShapeError> {
    let declared = q.declared()?;
    let first = declared.as_tuple().map_or(Some(declared), <[Shape]>::first);
    first.and_then(Shape::as_array).ok_or_else(|| {
        ShapeError::result(format!("output 0 of `scan` is an array; it is not in {declared}"))
    })
}

/// A single shape is not in a tuple if `like` is not one.
fn one_or_tuple(mut shapes: Vec<Shape>, like: &Shape) -> Shape {
    match shapes.pop() {
        Some(only) if shapes.is_empty() && like.as_tuple().is_none() => only,
        last => {
            shapes.extend(last);
            Shape::Tuple(shapes)
        }
    }
}

/// Several operands of the same dims are sorted together by the comparator.
pub(super) fn sort(q: &ShapeQuery<'_>, attrs: &SortAttrs) -> Result<Shape, ShapeError> {
    let first = q.array(0)?;
    single_dim("`sort` dimensions", &attrs.dimensions, first.rank())?;
    let mut parameters = Vec::with_capacity(2 * q.operands.len());
    for index in 0..q.operands.len() {
        let array = q.array(index)?;
        if !array.dims_agree(first) {
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
    if attrs.k < 0 || (attrs.k > last && last != UNBOUNDED) {
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
