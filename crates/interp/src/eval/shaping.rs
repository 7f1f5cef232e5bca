//! Ops that move, repeat or name elements and compute none.

use smallvec::SmallVec;
use tilewright_ir::ops::shaping::{
    BroadcastAttrs, ConcatenateAttrs, GetDimensionSizeAttrs, IotaAttrs, PadAttrs, ParameterAttrs,
    ReshapeAttrs, ReverseAttrs, SetDimensionSizeAttrs, SliceAttrs, TransposeAttrs,
};
use tilewright_ir::{ArrayShape, Data, ElementType, Literal};

use super::{Cx, bits, elementwise, memory, unsupported};
use crate::error::{Fault, Outcome};
use crate::strides::{Level, Nest, collect, dim_numbers, extent, place, row_major};
use crate::value::{Array, Value, alike, map_data, with_data};

pub(super) fn parameter(_cx: &mut Cx<'_, '_>, _attrs: &ParameterAttrs) -> Outcome<Value> {
    Err(Fault::Internal("a parameter is evaluated by its frame"))
}

pub(super) fn constant(cx: &mut Cx<'_, '_>, _value: &Literal) -> Outcome<Value> {
    cx.evaluator.constant(cx.id)
}

pub(super) fn copy(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    cx.take(0)
}

pub(super) fn reshape(cx: &mut Cx<'_, '_>, _attrs: &ReshapeAttrs) -> Outcome<Value> {
    let dims = cx.array_shape()?.dims();
    Ok(Value::Array(cx.take(0)?.into_array()?.reshaped(dims)?))
}

/// Row major to row major, a bitcast is a reshape; otherwise elements go where
/// the two layouts say.
pub(super) fn bitcast(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    cx.array_shape()?;
    let numbers = cx.evaluator.numbers();
    let declared = |id| {
        let shape = cx.module().array_shape(id)?.clone();
        let kept = numbers.kept(shape.element_type);
        Some(shape.with_element_type(kept))
    };
    let from = cx.module().operands(cx.id).first().copied().and_then(declared);
    let from = &from.ok_or_else(|| unsupported("its operand is not an array"))?;
    let to = &declared(cx.id).ok_or(Fault::Internal("its result is not an array"))?;
    if from.compatible(to) && from.layout_or_default() == to.layout_or_default() {
        return cx.take(0);
    }
    let row_major = from.has_default_layout() && to.has_default_layout();
    let same_elements =
        from.element_type == to.element_type && from.num_elements() == to.num_elements();
    if row_major && same_elements {
        let dims = cx.array_shape()?.dims();
        return Ok(Value::Array(cx.take(0)?.into_array()?.reshaped(dims)?));
    }
    memory::bitcast(cx, from, to)
}

pub(super) fn bitcast_convert(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let from = cx.array(0)?.element_type();
    let allocation = cx.allocate_result()?;
    let _bytes = cx.scratch(from.bytes() as usize, cx.array(0)?.len())?;
    let data = bits::reinterpret(cx.array(0)?.data(), from, allocation.element_type)?;
    allocation.with(data)
}

/// Returns a result whose dims have these strides in the operand.
fn strided(
    cx: &Cx<'_, '_>,
    start: isize,
    strides: impl IntoIterator<Item = isize>,
) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let levels = allocation.dims.iter().zip(strides);
    let nest =
        Nest::new(levels.map(|(&size, stride)| Level { size: extent(size), strides: [stride] }));
    let data = collect(cx.array(0)?.data(), &nest, start);
    allocation.with(data)
}

pub(super) fn broadcast(cx: &mut Cx<'_, '_>, attrs: &BroadcastAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let shape = cx.array_shape()?;
    let operand = cx.array(0)?;
    if operand.dims() == shape.dims() && attrs.dimensions.is_sorted() {
        return cx.take(0);
    }
    let mut strides: SmallVec<[isize; 6]> = shape.dims().iter().map(|_| 0).collect();
    for (stride, dim) in row_major(operand.dims()).into_iter().zip(dim_numbers(&attrs.dimensions)) {
        strides[dim] = stride;
    }
    strided(cx, 0, strides)
}

pub(super) fn transpose(cx: &mut Cx<'_, '_>, attrs: &TransposeAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    if attrs.dimensions.is_sorted() {
        return cx.take(0);
    }
    let from = row_major(cx.array(0)?.dims());
    strided(cx, 0, dim_numbers(&attrs.dimensions).into_iter().map(|dim| from[dim]))
}

pub(super) fn reverse(cx: &mut Cx<'_, '_>, attrs: &ReverseAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let operand = cx.array(0)?;
    let mut strides = row_major(operand.dims());
    let mut start = 0;
    for dim in dim_numbers(&attrs.dimensions) {
        start += strides[dim] * (operand.dims()[dim] as isize - 1);
        strides[dim] = -strides[dim];
    }
    strided(cx, start, strides)
}

pub(super) fn slice(cx: &mut Cx<'_, '_>, attrs: &SliceAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let strides = row_major(cx.array(0)?.dims());
    let mut start = 0;
    for (stride, part) in strides.iter().zip(&attrs.slice) {
        start += stride * part.start as isize;
    }
    let steps = strides.iter().zip(&attrs.slice);
    let steps: SmallVec<[isize; 6]> =
        steps.map(|(stride, part)| stride.saturating_mul(part.stride as isize)).collect();
    strided(cx, start, steps)
}

/// The number of elements of `iota` made at a time.
const COUNTS: usize = 1024;

/// `0, 1, 2 ...` in the result's type, repeated over the other dims.
pub(super) fn iota(cx: &mut Cx<'_, '_>, attrs: &IotaAttrs) -> Outcome<Value> {
    let allocation = cx.allocate_result()?;
    let mut out = elementwise::empty(allocation.element_type, allocation.len);
    if allocation.len == 0 {
        return allocation.with(out);
    }
    let dim = usize::try_from(attrs.dimension).unwrap_or(usize::MAX);
    let size = allocation.dims.get(dim).copied().ok_or(Fault::Internal("it has no such dim"))?;
    // Every number stands there once for each position of the minor dims.
    let repeats = allocation.dims.iter().skip(dim + 1).map(|&d| extent(d)).product();
    let convert = elementwise::convert_kernel(ElementType::S64, allocation.element_type)?;
    let mut counts = Data::zeros(allocation.element_type, 0);
    for first in (0..size).step_by(COUNTS) {
        let numbers: Vec<i64> = (first..size).take(COUNTS).collect();
        let made = numbers.len();
        convert(&[&Data::S64(numbers)], made, &mut counts)?;
        with_data!(&mut out, out => for &count in alike(out, &counts)? {
            out.extend(std::iter::repeat_n(count, repeats));
        });
    }
    with_data!(&mut out, out => {
        let period = out.len();
        while out.len() < allocation.len {
            out.extend_from_within(..period);
        }
    });
    allocation.with(out)
}

pub(super) fn concatenate(cx: &mut Cx<'_, '_>, attrs: &ConcatenateAttrs) -> Outcome<Value> {
    let dim = attrs.dimensions.first().map_or(0, |&d| extent(d));
    let operands = cx.operands.iter().map(Value::array).collect::<Outcome<Vec<_>>>()?;
    join(cx, cx.array_shape()?, &operands, dim)
}

/// Arrays one after the other along a dim, in an array of this shape.
pub(super) fn join(
    cx: &Cx<'_, '_>,
    shape: &ArrayShape,
    parts: &[&Array],
    dim: usize,
) -> Outcome<Value> {
    let allocation = cx.allocate(shape)?;
    cx.spend(allocation.len)?;
    if allocation.len == 0 {
        let nothing = Data::zeros(allocation.element_type, 0);
        return allocation.with(nothing);
    }
    // From this dim on, every part has a run of elements for each position of
    // the dims before.
    let runs = allocation.dims.iter().take(dim).map(|&d| extent(d)).product::<usize>();
    let first = parts.first().ok_or(Fault::Internal("there is nothing to join"))?;
    let data = map_data!(first.data(), first => {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            pieces.push((alike(first, part.data())?, part.len() / runs.max(1)));
        }
        let mut out = Vec::with_capacity(allocation.len);
        for run in 0..runs {
            for (values, length) in &pieces {
                out.extend_from_slice(&values[run * length..(run + 1) * length]);
            }
        }
        out
    });
    allocation.with(data)
}

/// Returns the part of an array from `start` on along a dim, in an array of this shape, which
/// has the same sizes in all other dims.
pub(super) fn part(
    cx: &Cx<'_, '_>,
    shape: &ArrayShape,
    whole: &Array,
    dim: usize,
    start: usize,
) -> Outcome<Value> {
    let allocation = cx.allocate(shape)?;
    cx.spend(allocation.len)?;
    let mut out = Data::zeros(allocation.element_type, allocation.len);
    if allocation.len > 0 {
        let strides = row_major(whole.dims());
        let own = row_major(&allocation.dims);
        // Elements beyond the whole stay zero.
        let sizes = allocation.dims.iter().zip(whole.dims()).map(|(&size, &whole)| size.min(whole));
        let levels = sizes.zip(own.iter().zip(&strides));
        let nest = Nest::new(
            levels.map(|(size, (&to, &from))| Level { size: extent(size), strides: [to, from] }),
        );
        let from = strides.get(dim).copied().unwrap_or(0).saturating_mul(start as isize);
        place(&mut out, whole.data(), &nest, [0, from])?;
    }
    allocation.with(out)
}

/// Pads an array. Negative padding cuts off; elements outside the result are not copied.
pub(super) fn pad(cx: &mut Cx<'_, '_>, attrs: &PadAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let allocation = cx.allocate_result()?;
    let operand = cx.array(0)?;
    let mut out = elementwise::repeat(cx.array(1)?.data(), allocation.len);
    if operand.len() == 0 {
        return allocation.with(out);
    }
    let (to, from) = (row_major(&allocation.dims), row_major(operand.dims()));
    let mut start = [0, 0];
    let mut levels: SmallVec<[Level<2>; 6]> = SmallVec::new();
    for (dim, pad) in attrs.padding.iter().enumerate() {
        let (size, room) = (operand.dims()[dim], allocation.dims[dim]);
        let (low, step) = (i128::from(pad.low), i128::from(pad.interior) + 1);
        // The elements i with 0 <= low + i * step < room.
        let first = (-low).max(0).unsigned_abs().div_ceil(step.unsigned_abs()).cast_signed();
        let end = (i128::from(room) - low).max(0).unsigned_abs().div_ceil(step.unsigned_abs());
        let end = end.cast_signed().min(i128::from(size));
        let count = usize::try_from(end - first).unwrap_or(0);
        // If nothing is copied, starts and steps do not matter.
        let narrow = |value: i128| if count == 0 { 0 } else { value as isize };
        start[0] += to[dim] * narrow(low + first * step);
        start[1] += from[dim] * narrow(first);
        let step = if count < 2 { 0 } else { step as isize };
        levels.push(Level { size: count, strides: [to[dim] * step, from[dim]] });
    }
    place(&mut out, operand.data(), &Nest::new(levels), start)?;
    allocation.with(out)
}

/// Returns the actual size of the operand, not its bound.
pub(super) fn get_dimension_size(
    cx: &mut Cx<'_, '_>,
    attrs: &GetDimensionSizeAttrs,
) -> Outcome<Value> {
    let dim = attrs.dimensions.first().map_or(usize::MAX, |&d| extent(d));
    let size = cx.array(0)?.dims().get(dim).copied().ok_or(Fault::Internal("no such dim"))?;
    let size = i32::try_from(size).map_err(|_| unsupported("a dim of more than 2^31 elements"))?;
    cx.allocate_result()?.of(vec![size])
}

pub(super) fn set_dimension_size(
    cx: &mut Cx<'_, '_>,
    attrs: &SetDimensionSizeAttrs,
) -> Outcome<Value> {
    let shape = cx.array_shape()?;
    if cx.array(0)?.dims() == shape.dims() {
        return cx.take(0);
    }
    // The elements that a dim gains are undefined, and zeros here.
    let dim = attrs.dimensions.first().map_or(usize::MAX, |&dim| extent(dim));
    part(cx, shape, cx.array(0)?, dim, 0)
}

/// Elements stay in row-major order.
pub(super) fn dynamic_reshape(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let dims = cx.array_shape()?.dims();
    Ok(Value::Array(cx.take(0)?.into_array()?.reshaped(dims)?))
}
