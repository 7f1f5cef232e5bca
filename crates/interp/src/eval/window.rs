//! Windows that move over an array.
//!
//! Only elements of the array count: padding and the holes of a dilated array
//! contribute nothing, and the initial value counts once.

use std::rc::Rc;

use smallvec::SmallVec;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::ops::window::{ReduceWindowAttrs, SelectAndScatterAttrs};
use tilewright_ir::{CompId, Data, Native};

use super::monoid::{self, Folded, Monoid, Visitor};
use super::running::running_totals;
use super::taps::{Taps, taps, walk_taps};
use super::{Allocation, Cx, elementwise, tuple, unsupported};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::lanes::{Callee, fill, spread};
use crate::limits::{Charge, Ledger};
use crate::strides::{Level, Nest, row_major};
use crate::value::Value;

/// A window over an array: its taps, and how both arrays are walked.
struct Windows {
    ledger: Rc<Ledger>,
    taps: Vec<Taps>,
    /// Strides of the array of window positions, and of the array.
    outer: SmallVec<[isize; 6]>,
    inner: SmallVec<[isize; 6]>,
    /// The memory of the taps.
    _charges: Vec<Charge>,
}

/// Visits the window positions of a tap: the walk over them, and where it begins.
type Visit<'a> = &'a mut dyn FnMut(&Nest<2>, [isize; 2]) -> Outcome<()>;

/// Places of window positions and of elements.
type Pairs<'a> = &'a [(usize, usize)];

impl Windows {
    fn new(cx: &Cx<'_, '_>, window: &[WindowDim], array: &[i64], outer: &[i64]) -> Outcome<Self> {
        // Without elements, windows may have any size.
        let nothing = array.contains(&0) || outer.contains(&0);
        let (mut all, mut charges) = (Vec::new(), Vec::new());
        for (window, (&size, &positions)) in window.iter().zip(array.iter().zip(outer)) {
            let (taps, charge) = taps(cx, window, if nothing { 0 } else { size }, positions)?;
            all.push(taps);
            charges.push(charge);
        }
        let ledger = Rc::clone(&cx.evaluator.ledger);
        let (outer, inner) = (row_major(outer), row_major(array));
        Ok(Self { ledger, taps: all, outer, inner, _charges: charges })
    }

    /// Calls `f` for every tap with the walk over all window positions for
    /// which it is inside the array.
    fn walk(&self, f: Visit<'_>) -> Outcome<()> {
        walk_taps(&self.taps, &mut |taps| {
            let mut start = [0, 0];
            let mut levels: SmallVec<[Level<2>; 6]> = SmallVec::new();
            for (tap, (&outer, &inner)) in taps.iter().zip(self.outer.iter().zip(&self.inner)) {
                start[0] += tap.output.cast_signed() * outer;
                start[1] += tap.input.cast_signed() * inner;
                levels.push(tap.level(outer, inner));
            }
            let work: usize = taps.iter().map(|tap| tap.count).product();
            self.ledger.spend(u64::try_from(work).unwrap_or(u64::MAX))?;
            f(&Nest::new(levels), start)
        })
    }

    /// Like [`Windows::walk`], with the places of window positions and elements in pairs.
    fn walk_pairs(&self, f: &mut dyn FnMut(Pairs<'_>) -> Outcome<()>) -> Outcome<()> {
        let mut pairs = Vec::new();
        self.walk(&mut |nest, start| {
            pairs.clear();
            let Level { size, strides: [outer, inner] } = nest.inner();
            for [to, from] in nest.positions(start) {
                pairs.extend((0..size.cast_signed()).map(|i| {
                    ((to + i * outer).cast_unsigned(), (from + i * inner).cast_unsigned())
                }));
            }
            f(&pairs)
        })
    }
}

pub(super) fn reduce_window(cx: &mut Cx<'_, '_>, attrs: &ReduceWindowAttrs) -> Outcome<Value> {
    let count = cx.operands.len() / 2;
    let mut results: SmallVec<[Allocation; 2]> = SmallVec::new();
    for index in 0..count {
        let result = cx.allocate(cx.leaf_shape(index)?)?;
        if cx.array(count + index)?.element_type() != result.element_type {
            return Err(unsupported("its computation changes the type of what it accumulates"));
        }
        results.push(result);
    }
    if let Some(data) = running_totals(cx, attrs.to_apply, &attrs.window, &results)?
        && let Some(result) = results.pop()
    {
        let value = result.with(data)?;
        return Ok(if cx.shape().as_tuple().is_some() { tuple([value]) } else { value });
    }
    let first = results.first().ok_or(Fault::Internal("it has no operands"))?;
    let windows = Windows::new(cx, &attrs.window, cx.array(0)?.dims(), &first.dims)?;
    let _scratch = cx.scratch(3 * size_of::<usize>(), first.len)?;
    let data = match fold_monoid(cx, attrs.to_apply, &windows, &results)? {
        Some(data) => vec![data],
        None => fold_general(cx, attrs.to_apply, &windows, &results)?,
    };
    let values = results.into_iter().zip(data).map(|(result, data)| result.with(data));
    let mut values: SmallVec<[Value; 2]> = values.collect::<Outcome<_>>()?;
    match values.pop() {
        Some(only) if cx.shape().as_tuple().is_none() => Ok(only),
        last => Ok(tuple(values.into_iter().chain(last))),
    }
}

fn fold_monoid(
    cx: &Cx<'_, '_>,
    reducer: CompId,
    windows: &Windows,
    results: &[Allocation],
) -> Outcome<Option<Data>> {
    let [result] = results else { return Ok(None) };
    if cx.array(0)?.element_type() != result.element_type {
        return Ok(None);
    }
    let (values, init) = (Folded::operand(cx, 0)?, Folded::operand(cx, 1)?);
    let fold = Fold { values: &values, init: &init, windows, len: result.len };
    let folded = monoid::visit_common(
        cx.module(),
        cx.evaluator.numbers(),
        reducer,
        result.element_type,
        fold,
    );
    folded.transpose()?.map(|data| Folded::result(data, result.element_type)).transpose()
}

struct Fold<'a> {
    values: &'a Folded<'a>,
    init: &'a Folded<'a>,
    windows: &'a Windows,
    len: usize,
}

impl Visitor for Fold<'_> {
    type Output = Outcome<Data>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Outcome<Data> {
        let values = self.values.slice::<T>()?;
        let init = self.init.slice::<T>()?.first().copied();
        let init = init.ok_or(Fault::Internal("an initial value is missing"))?;
        let mut totals = vec![M::lift(init); self.len];
        self.windows.walk(&mut |nest, start| {
            let Level { size, strides } = nest.inner();
            let [Ok(to_step), Ok(from_step)] = strides.map(usize::try_from) else {
                return Err(Fault::Internal("a window walks backwards"));
            };
            for [to, from] in nest.positions(start) {
                let (to, from) = (to.cast_unsigned(), from.cast_unsigned());
                if strides == [1, 1] {
                    let row = &values[from..from + size];
                    for (total, &element) in totals[to..to + size].iter_mut().zip(row) {
                        *total = M::join(*total, M::lift(element));
                    }
                } else {
                    for i in 0..size {
                        let total = &mut totals[to + i * to_step];
                        *total = M::join(*total, M::lift(values[from + i * from_step]));
                    }
                }
            }
            Ok(())
        })?;
        Ok(monoid::lowered::<T, M>(&totals))
    }
}

/// The number of window positions on which a computation works at once.
const LANES: usize = 512;

fn fold_general(
    cx: &mut Cx<'_, '_>,
    reducer: CompId,
    windows: &Windows,
    results: &[Allocation],
) -> Outcome<Vec<Data>> {
    let count = results.len();
    let mut totals = Vec::new();
    for (index, result) in results.iter().enumerate() {
        totals.push(elementwise::repeat(cx.array(count + index)?.data(), result.len));
    }
    let mut callee = cx.callee(reducer, LANES)?;
    // Within a tap no two pairs are of the same window.
    windows.walk_pairs(&mut |pairs| {
        for block in pairs.chunks(LANES) {
            for (index, total) in totals.iter().enumerate() {
                fill(callee.parameter(index)?, total, block.iter().map(|p| p.0))?;
                let values = cx.array(index)?.data();
                fill(callee.parameter(count + index)?, values, block.iter().map(|p| p.1))?;
            }
            callee.run(cx.evaluator, block.len())?;
            for (index, total) in totals.iter_mut().enumerate() {
                spread(total, callee.result(index)?, block.iter().map(|p| p.0))?;
            }
        }
        Ok(())
    })?;
    Ok(totals)
}

pub(super) fn select_and_scatter(
    cx: &mut Cx<'_, '_>,
    attrs: &SelectAndScatterAttrs,
) -> Outcome<Value> {
    let result = cx.allocate_result()?;
    let (array, source) = (cx.array(0)?, cx.array(1)?);
    if source.element_type() != result.element_type
        || cx.array(2)?.element_type() != result.element_type
    {
        return Err(unsupported("its operands differ in type"));
    }
    let windows = Windows::new(cx, &attrs.window, array.dims(), source.dims())?;
    let _scratch = cx.scratch(4 * size_of::<usize>(), source.len())?;
    let chosen = select(cx, attrs.select, &windows)?;
    let (source, init) = (Folded::operand(cx, 1)?, Folded::operand(cx, 2)?);
    let scatter = Scatter { source: &source, init: &init, chosen: &chosen, len: result.len };
    let folded = monoid::visit_common(
        cx.module(),
        cx.evaluator.numbers(),
        attrs.scatter,
        result.element_type,
        scatter,
    );
    let folded = folded.transpose()?;
    drop((source, init));
    let data = match folded {
        Some(data) => Folded::result(data, result.element_type)?,
        None => scatter_general(cx, attrs.scatter, &chosen, result.len)?,
    };
    result.with(data)
}

/// A window without elements chooses none.
const NONE: usize = usize::MAX;

/// Returns the place of each window's chosen element: the first, unless a later one is
/// preferred.
fn select(cx: &mut Cx<'_, '_>, select: CompId, windows: &Windows) -> Outcome<Vec<usize>> {
    let mut chosen = vec![NONE; cx.array(1)?.len()];
    let mut callee = cx.callee(select, LANES)?;
    windows.walk_pairs(&mut |pairs| {
        for block in pairs.chunks(LANES) {
            for &(window, element) in block {
                if chosen[window] == NONE {
                    chosen[window] = element;
                }
            }
            prefer(cx, &mut callee, &mut chosen, block)?;
        }
        Ok(())
    })?;
    Ok(chosen)
}

fn prefer(
    cx: &mut Cx<'_, '_>,
    callee: &mut Callee,
    chosen: &mut [usize],
    block: &[(usize, usize)],
) -> Outcome<()> {
    let values = cx.array(0)?.data();
    fill(callee.parameter(0)?, values, block.iter().map(|p| chosen[p.0]))?;
    fill(callee.parameter(1)?, values, block.iter().map(|p| p.1))?;
    callee.run(cx.evaluator, block.len())?;
    let keeps: &[bool] = callee.result(0)?.as_slice().ok_or(WRONG_STORAGE)?;
    for (&(window, element), &keep) in block.iter().zip(keeps) {
        if !keep {
            chosen[window] = element;
        }
    }
    Ok(())
}

struct Scatter<'a> {
    source: &'a Folded<'a>,
    init: &'a Folded<'a>,
    chosen: &'a [usize],
    len: usize,
}

impl Visitor for Scatter<'_> {
    type Output = Outcome<Data>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Outcome<Data> {
        let source = self.source.slice::<T>()?;
        let init = self.init.slice::<T>()?.first().copied();
        let init = init.ok_or(Fault::Internal("an initial value is missing"))?;
        let mut totals = vec![M::lift(init); self.len];
        for (&place, &value) in self.chosen.iter().zip(source) {
            if let Some(total) = totals.get_mut(place) {
                *total = M::join(*total, M::lift(value));
            }
        }
        Ok(monoid::lowered::<T, M>(&totals))
    }
}

fn scatter_general(
    cx: &mut Cx<'_, '_>,
    scatter: CompId,
    chosen: &[usize],
    len: usize,
) -> Outcome<Data> {
    let mut out = elementwise::repeat(cx.array(2)?.data(), len);
    let mut callee = cx.callee(scatter, 1)?;
    for (window, &place) in chosen.iter().enumerate().filter(|&(_, &place)| place != NONE) {
        fill(callee.parameter(0)?, &out, std::iter::once(place))?;
        fill(callee.parameter(1)?, cx.array(1)?.data(), std::iter::once(window))?;
        callee.run(cx.evaluator, 1)?;
        spread(&mut out, callee.result(0)?, std::iter::once(place))?;
    }
    Ok(out)
}
