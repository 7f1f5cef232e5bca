//! Reductions.

use smallvec::SmallVec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::{CompId, Data, ElementType};

use super::fold::{self, FoldShape, accumulator_bytes, fold_array, reduced_levels};
use super::monoid::Folded;
use super::{Allocation, Cx, elementwise, tuple, unsupported};
use crate::error::{Fault, Outcome};
use crate::lanes::{append, fill};
use crate::strides::{Level, Nest};
use crate::value::Value;

pub(super) use super::scan::scan;
pub(super) use super::sort::{sort, topk};

pub(super) fn reduce(cx: &mut Cx<'_, '_>, attrs: &ReduceAttrs) -> Outcome<Value> {
    let count = cx.operands.len() / 2;
    let mut results: SmallVec<[Allocation; 2]> = SmallVec::new();
    for index in 0..count {
        results.push(cx.allocate(cx.leaf_shape(index)?)?);
        cx.spend(cx.array(index)?.len())?;
    }
    let walk = ReducedDims { levels: reduced_levels(cx.array(0)?.dims(), &attrs.dimensions) };
    if count == 1
        && let Some(result) = results.pop()
    {
        let data = match fold_monoid(cx, attrs, &result)? {
            Some(data) => data,
            None => {
                let mut all = general(cx, attrs.to_apply, &walk, std::slice::from_ref(&result))?;
                all.pop().ok_or(Fault::Internal("a reduction has no result"))?
            }
        };
        return wrap(cx, [result.with(data)?]);
    }
    let data = general(cx, attrs.to_apply, &walk, &results)?;
    let values = results.into_iter().zip(data).map(|(result, data)| result.with(data));
    let values: SmallVec<[Value; 2]> = values.collect::<Outcome<_>>()?;
    wrap(cx, values)
}

/// One value may still be a tuple of one.
fn wrap(cx: &Cx<'_, '_>, values: impl IntoIterator<Item = Value>) -> Outcome<Value> {
    let mut values = values.into_iter();
    if cx.shape().as_tuple().is_some() {
        return Ok(tuple(values));
    }
    values.next().ok_or(Fault::Internal("a reduction has no result"))
}

/// The dims of a reduction's operand, as of [`reduced_levels`].
struct ReducedDims {
    levels: SmallVec<[Level<2>; 6]>,
}

impl ReducedDims {
    /// Offsets in the operand of all positions of the kept or reduced dims.
    fn offsets(&self, kept: bool) -> Vec<usize> {
        let levels = self.levels.iter().filter(|l| (l.strides[1] != 0) == kept);
        let nest = Nest::new(levels.map(|l| Level { size: l.size, strides: [l.strides[0]] }));
        let Level { size, strides: [stride] } = nest.inner();
        let mut offsets = Vec::new();
        for [at] in nest.positions([0]) {
            offsets.extend((0..size).map(|i| (at + stride * i.cast_signed()).cast_unsigned()));
        }
        offsets
    }
}

/// Reduces by one of the usual reducers; `None` for another reducer.
fn fold_monoid(cx: &Cx<'_, '_>, attrs: &ReduceAttrs, result: &Allocation) -> Outcome<Option<Data>> {
    let (operand, element_type) = (cx.array(0)?, result.element_type);
    if operand.element_type() != element_type {
        return Ok(None);
    }
    let shape = FoldShape::new(operand.dims(), &attrs.dimensions, result.len);
    let _totals = cx.scratch(accumulator_bytes(element_type), shape.totals())?;
    let (values, init) = (Folded::operand(cx, 0)?, Folded::operand(cx, 1)?);
    let numbers = cx.evaluator.numbers();
    let fold = fold::begin(cx.module(), numbers, attrs, element_type, &init.data, &shape)?;
    let Some(mut fold) = fold else { return Ok(None) };
    fold_array(&mut *fold, &shape, &values.data)?;
    Folded::result(fold.finish(), element_type).map(Some)
}

/// The number of results that a computation accumulates at once.
const LANES: usize = 512;

/// Reduces by any computation, one element after the other in row-major order,
/// many results at once.
fn general(
    cx: &mut Cx<'_, '_>,
    reducer: CompId,
    walk: &ReducedDims,
    results: &[Allocation],
) -> Outcome<Vec<Data>> {
    let count = results.len();
    let len = results.first().map_or(0, |r| r.len);
    let types: SmallVec<[ElementType; 2]> = results.iter().map(|r| r.element_type).collect();
    for (index, element_type) in types.iter().enumerate() {
        if cx.array(count + index)?.element_type() != *element_type {
            return Err(unsupported("its computation changes the type of what it accumulates"));
        }
    }
    let _scratch = cx.scratch(size_of::<usize>(), cx.array(0)?.len().max(len))?;
    let (kept, reduced) =
        if len == 0 { (Vec::new(), Vec::new()) } else { (walk.offsets(true), walk.offsets(false)) };
    let mut out: Vec<Data> = types.iter().map(|&t| elementwise::empty(t, len)).collect();
    let mut callee = cx.callee(reducer, LANES.min(len))?;
    for block in kept.chunks(LANES) {
        for index in 0..count {
            let init = cx.array(count + index)?.data();
            *callee.parameter(index)? = elementwise::repeat(init, block.len());
        }
        for offset in &reduced {
            for index in 0..count {
                let places = block.iter().map(|at| at + offset);
                fill(callee.parameter(count + index)?, cx.array(index)?.data(), places)?;
            }
            callee.run(cx.evaluator, block.len())?;
            callee.feed_back()?;
        }
        for (index, out) in out.iter_mut().enumerate() {
            append(out, callee.parameter(index)?, 0, block.len())?;
        }
    }
    Ok(out)
}
