//! Indexing by run-time values.

use smallvec::SmallVec;
use tilewright_ir::Data;
use tilewright_ir::ops::indexing::DynamicSliceAttrs;

use super::{Cx, unsupported};
use crate::error::Outcome;
use crate::strides::{Level, Nest, collect, extent, place, row_major};
use crate::value::{Array, Value};

pub(super) use super::gather::gather;
pub(super) use super::scatter::scatter;

/// Returns index elements as numbers; a number that does not fit becomes the largest one.
pub(super) fn index_values(array: &Array) -> Outcome<Vec<i64>> {
    fn wide<T: Copy + Into<i64>>(values: &[T]) -> Vec<i64> {
        values.iter().map(|&v| v.into()).collect()
    }
    Ok(match array.data() {
        Data::Pred(v) => wide(v),
        Data::S8(v) => wide(v),
        Data::S16(v) => wide(v),
        Data::S32(v) => wide(v),
        Data::S64(v) => v.clone(),
        Data::U8(v) if array.element_type().is_integer() => wide(v),
        Data::U16(v) => wide(v),
        Data::U32(v) => wide(v),
        Data::U64(v) => v.iter().map(|&v| i64::try_from(v).unwrap_or(i64::MAX)).collect(),
        Data::U8(_)
        | Data::F16(_)
        | Data::BF16(_)
        | Data::F32(_)
        | Data::F64(_)
        | Data::C64(_)
        | Data::C128(_) => {
            return Err(unsupported(format!("indices of type {}", array.element_type())));
        }
    })
}

/// Returns the start of a part of these sizes, moved so that the part fits.
fn clamped_start(
    cx: &Cx<'_, '_>,
    first_index: usize,
    dims: &[i64],
    sizes: &[i64],
) -> Outcome<SmallVec<[i64; 6]>> {
    let mut indices = Vec::new();
    for operand in &cx.operands[first_index..] {
        indices.extend(index_values(operand.array()?)?);
    }
    if indices.len() != dims.len() {
        return Err(unsupported("another number of indices than dims"));
    }
    let room = dims.iter().zip(sizes).map(|(dim, size)| (dim - size).max(0));
    Ok(indices.into_iter().zip(room).map(|(index, room)| index.clamp(0, room)).collect())
}

fn offset(start: &[i64], strides: &[isize]) -> isize {
    start.iter().zip(strides).map(|(&at, stride)| extent(at).cast_signed() * stride).sum()
}

pub(super) fn dynamic_slice(cx: &mut Cx<'_, '_>, _attrs: &DynamicSliceAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let result = cx.allocate_result()?;
    let operand = cx.array(0)?;
    let start = clamped_start(cx, 1, operand.dims(), &result.dims)?;
    let strides = row_major(operand.dims());
    let levels = result.dims.iter().zip(&strides);
    let nest = Nest::new(levels.map(|(&size, &s)| Level { size: extent(size), strides: [s] }));
    let data = collect(operand.data(), &nest, offset(&start, &strides));
    result.with(data)
}

/// Changes the operand in place if nothing else needs it.
pub(super) fn dynamic_update_slice(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let (operand, update) = (cx.array(0)?, cx.array(1)?);
    if operand.len() == 0 || update.len() == 0 {
        return cx.take(0);
    }
    let start = clamped_start(cx, 2, operand.dims(), update.dims())?;
    cx.spend(update.len())?;
    let (to, from) = (row_major(operand.dims()), row_major(update.dims()));
    let levels = update.dims().iter().zip(to.iter().zip(&from));
    let nest =
        Nest::new(levels.map(|(&size, (&t, &f))| Level { size: extent(size), strides: [t, f] }));
    let operand = cx.take(0)?.into_array()?;
    let update = cx.take(1)?.into_array()?;
    operand.modify(&cx.evaluator.ledger, |data| {
        place(data, update.data(), &nest, [offset(&start, &to), 0])
    })
}
