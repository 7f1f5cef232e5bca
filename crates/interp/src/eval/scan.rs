//! `scan`: a computation run along a dim, with values carried from step to step.

use smallvec::SmallVec;
use tilewright_ir::ArrayShape;
use tilewright_ir::ops::reduce::ScanAttrs;

use super::shaping::{join, part};
use super::{Cx, tuple};
use crate::error::{Fault, Outcome};
use crate::strides::extent;
use crate::value::{Array, Value};

/// The computation takes a part of each array at one index of the dim, without
/// the dim, and the carried values; it yields parts of the results and the next
/// carried values. Whether it is associative makes no difference here.
pub(super) fn scan(cx: &mut Cx<'_, '_>, attrs: &ScanAttrs) -> Outcome<Value> {
    let dim = attrs.dimensions.first().map_or(0, |&dim| extent(dim));
    let operands = std::mem::take(&mut cx.operands);
    let carried = extent(attrs.num_carries);
    let arrays = operands.len().checked_sub(carried);
    let arrays = arrays.ok_or(Fault::Internal("it carries more values than it has"))?;
    let mut carries: Vec<Value> = operands[arrays..].to_vec();
    let arrays = operands[..arrays].iter().map(Value::array).collect::<Outcome<Vec<_>>>()?;
    let leaves = cx.shape().as_tuple().map_or(1, <[_]>::len);
    let results = leaves.checked_sub(carried);
    let results = results.ok_or(Fault::Internal("it yields fewer values than it carries"))?;
    let length = length(cx, &arrays, results, dim)?;
    let mut parts: Vec<Vec<Array>> = vec![Vec::new(); results];
    for step in 0..length {
        let at = if attrs.is_reverse { length - 1 - step } else { step };
        let mut arguments: SmallVec<[Value; 4]> = SmallVec::new();
        for array in &arrays {
            arguments.push(slice(cx, array, dim, at)?);
        }
        arguments.extend(carries.drain(..));
        let mut pieces = pieces(cx.call(attrs.to_apply, arguments)?);
        if pieces.len() != leaves {
            return Err(Fault::Internal("its computation yields another number of values"));
        }
        carries = pieces.split_off(results);
        for (index, (parts, piece)) in parts.iter_mut().zip(pieces).enumerate() {
            let dims = with_dim(cx.leaf_shape(index)?.dims(), dim);
            parts.push(piece.into_array()?.reshaped(&dims)?);
        }
    }
    let mut values = Vec::with_capacity(leaves);
    for (index, mut parts) in parts.into_iter().enumerate() {
        if attrs.is_reverse {
            parts.reverse();
        }
        let parts: Vec<&Array> = parts.iter().collect();
        values.push(join(cx, cx.leaf_shape(index)?, &parts, dim)?);
    }
    values.append(&mut carries);
    match values.pop() {
        Some(only) if cx.shape().as_tuple().is_none() => Ok(only),
        last => Ok(tuple(values.into_iter().chain(last))),
    }
}

/// Returns the number of steps: the size of the dim, in the arrays or, without any, in the
/// results.
fn length(cx: &Cx<'_, '_>, arrays: &[&Array], results: usize, dim: usize) -> Outcome<usize> {
    let mut sizes = arrays.iter().map(|array| array.dims().get(dim).copied());
    let size = match sizes.next() {
        Some(size) => size,
        None if results > 0 => cx.leaf_shape(0)?.dims().get(dim).copied(),
        None => Some(0),
    };
    let size = size.ok_or(Fault::Internal("an operand has no such dim"))?;
    if sizes.any(|other| other != Some(size)) {
        return Err(super::unsupported("its arrays differ in size along the dim"));
    }
    Ok(extent(size))
}

/// Returns an array at one index of a dim, without it.
fn slice(cx: &Cx<'_, '_>, array: &Array, dim: usize, at: usize) -> Outcome<Value> {
    let dims = with_dim(array.dims(), dim);
    let shape = ArrayShape::new(array.element_type(), dims.iter().copied());
    let slab = part(cx, &shape, array, dim, at)?.into_array()?;
    let mut dims = dims;
    dims.remove(dim);
    slab.reshaped(&dims).map(Value::Array)
}

/// Returns the dims with one of them set to size 1.
fn with_dim(dims: &[i64], dim: usize) -> Vec<i64> {
    let mut dims = dims.to_vec();
    if let Some(size) = dims.get_mut(dim) {
        *size = 1;
    }
    dims
}

/// Returns the values that a computation yields, one or a tuple of them.
fn pieces(value: Value) -> Vec<Value> {
    match value {
        Value::Tuple(elements) => {
            std::rc::Rc::try_unwrap(elements).unwrap_or_else(|shared| (*shared).clone())
        }
        one => vec![one],
    }
}
