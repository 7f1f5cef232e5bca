//! Reductions.

use rayon::iter::{IndexedParallelIterator as _, ParallelIterator as _};
use rayon::slice::{ParallelSlice as _, ParallelSliceMut as _};
use smallvec::SmallVec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::{CompId, Data, ElementType, Native};

use super::monoid::{self, Folded, Monoid, Visitor, fold_row};
use super::{Allocation, Cx, elementwise, tuple, unsupported};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::lanes::{append, fill};
use crate::strides::{Level, Nest, dim_numbers, extent, row_major};
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
    let walk = Walk::new(cx.array(0)?.dims(), &attrs.dimensions);
    if count == 1
        && let Some(result) = results.pop()
    {
        let _scratch = cx.scratch(size_of::<f64>(), result.len)?;
        let data = match fold_monoid(cx, attrs.to_apply, &walk, &result)? {
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

/// The dims of a reduction's operand, with strides in the operand and, 0 where
/// they are reduced, in the result.
struct Walk {
    levels: SmallVec<[Level<2>; 6]>,
}

impl Walk {
    fn new(dims: &[i64], reduced: &[i64]) -> Self {
        let reduced = dim_numbers(reduced);
        let is_kept = |dim: &usize| !reduced.contains(dim);
        let kept: SmallVec<[i64; 6]> =
            (0..dims.len()).filter(is_kept).map(|dim| dims[dim]).collect();
        let mut to = row_major(&kept).into_iter();
        let from = row_major(dims);
        let levels = (0..dims.len()).map(|dim| {
            let stride = if is_kept(&dim) { to.next().unwrap_or(0) } else { 0 };
            Level { size: extent(dims[dim]), strides: [from[dim], stride] }
        });
        Self { levels: levels.collect() }
    }

    /// Offsets in the operand of all positions of the kept or reduced dims.
    fn offsets(&self, kept: bool) -> Vec<usize> {
        let levels = self.levels.iter().filter(|l| (l.strides[1] != 0) == kept);
        let nest = Nest::new(levels.map(|l| Level { size: l.size, strides: [l.strides[0]] }));
        let Level { size, strides: [stride] } = nest.inner();
        let mut offsets = Vec::new();
        nest.for_each([0], |[at]| {
            offsets.extend((0..size).map(|i| (at + stride * i.cast_signed()).cast_unsigned()));
        });
        offsets
    }
}

/// Reduces by one of the usual reducers; `None` if it is another.
fn fold_monoid(
    cx: &Cx<'_, '_>,
    reducer: CompId,
    walk: &Walk,
    result: &Allocation,
) -> Outcome<Option<Data>> {
    if cx.array(0)?.element_type() != result.element_type {
        return Ok(None);
    }
    let (values, init) = (Folded::operand(cx, 0)?, Folded::operand(cx, 1)?);
    let fold = Fold { values: &values.data, init: &init.data, walk, len: result.len };
    let folded = monoid::visit(cx.module(), reducer, result.element_type, fold).transpose()?;
    folded.map(|data| Folded::result(data, result.element_type)).transpose()
}

struct Fold<'a> {
    values: &'a Data,
    init: &'a Data,
    walk: &'a Walk,
    len: usize,
}

/// Fewer elements than this are folded by one thread.
const ELEMENTS_OF_A_THREAD: usize = 1 << 16;

/// Totals that a part has at least: shorter runs cost more than they save.
const LEAST_RUN: usize = 64;

impl Visitor for Fold<'_> {
    type Output = Outcome<Data>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Outcome<Data> {
        let values: &[T] = self.values.as_slice().ok_or(WRONG_STORAGE)?;
        let init: &[T] = self.init.as_slice().ok_or(WRONG_STORAGE)?;
        let init = *init.first().ok_or(Fault::Internal("an initial value is missing"))?;
        let mut totals = vec![M::lift(init); self.len];
        let outermost = self.walk.levels.iter().position(|l| l.strides[1] != 0 && l.size > 1);
        match (outermost, totals.as_mut_slice()) {
            (Some(dim), totals) => fold_parts::<T, M>(values, totals, &self.walk.levels, dim),
            (None, [total]) => *total = fold_all::<T, M>(*total, values),
            (None, _) => {}
        }
        Ok(T::wrap(totals.into_iter().map(M::lower).collect()))
    }
}

/// Folds what belongs to each part of the outermost kept dim. In the result
/// that part is a run, so that parts can be folded at the same time; each total
/// takes its elements in the order of the operand, whatever the parts are.
fn fold_parts<T: Native, M: Monoid<T>>(
    values: &[T],
    totals: &mut [M::Accumulator],
    levels: &[Level<2>],
    dim: usize,
) {
    let Level { size, strides: [from_step, to_step] } = levels[dim];
    let to_step = to_step.unsigned_abs();
    let count = match values.len() {
        0..ELEMENTS_OF_A_THREAD => size,
        _ => size.div_ceil(2 * rayon::current_num_threads()).max(LEAST_RUN.div_ceil(to_step)),
    };
    totals.par_chunks_mut(count * to_step).enumerate().for_each(|(part, totals)| {
        let mut levels: SmallVec<[Level<2>; 6]> = SmallVec::from_slice(levels);
        levels[dim].size = totals.len() / to_step;
        let start = from_step * (part * count).cast_signed();
        fold_walk::<T, M>(values, totals, &Nest::new(levels), start);
    });
}

fn fold_walk<T: Native, M: Monoid<T>>(
    values: &[T],
    totals: &mut [M::Accumulator],
    nest: &Nest<2>,
    start: isize,
) {
    // Walked in its own order, the operand's rows are contiguous.
    let Level { size, strides: [_, stride] } = nest.inner();
    nest.for_each([start, 0], |[from, to]| {
        let (from, to) = (from.cast_unsigned(), to.cast_unsigned());
        let row = &values[from..from + size];
        if stride == 0 {
            totals[to] = fold_row::<T, M>(totals[to], row);
        } else {
            for (total, &element) in totals[to..to + size].iter_mut().zip(row) {
                *total = M::join(*total, M::lift(element));
            }
        }
    });
}

/// Folds all elements into one: run by run, then the runs in order.
fn fold_all<T: Native, M: Monoid<T>>(total: M::Accumulator, values: &[T]) -> M::Accumulator {
    let runs = values.par_chunks(ELEMENTS_OF_A_THREAD);
    let folded: Vec<M::Accumulator> = runs.map(|run| fold_row::<T, M>(M::IDENTITY, run)).collect();
    folded.into_iter().fold(total, M::join)
}

/// How many results a computation accumulates at once.
const LANES: usize = 512;

/// Reduces by any computation, one element after the other in row-major order,
/// many results at once.
fn general(
    cx: &mut Cx<'_, '_>,
    reducer: CompId,
    walk: &Walk,
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
