//! `scatter`: combines updates with elements at computed places.

use smallvec::SmallVec;
use tilewright_ir::ops::indexing::ScatterAttrs;
use tilewright_ir::{CompId, Data, Dims, Native, Op};

use super::gather::{Indexing, WindowPlaces};
use super::monoid::{self, Folded, Monoid, Visitor};
use super::{Cx, tuple, unsupported};
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::lanes::{fill, spread};
use crate::limits::Charge;
use crate::strides::{Level, Nest, dim_numbers, place_many};
use crate::value::{Array, Value};

/// Windows that reach outside are left out. Updates are combined in row-major
/// order of the indices, sums of floats accumulate in `f64`.
pub(super) fn scatter(cx: &mut Cx<'_, '_>, attrs: &ScatterAttrs) -> Outcome<Value> {
    let count = cx.operands.len() / 2;
    let (operand, indices) = (cx.array(0)?, cx.array(count)?);
    let updates = cx.array(count + 1)?;
    cx.spend(operand.len().saturating_add(updates.len()).saturating_mul(count))?;
    let places = Places::new(cx, operand, indices, updates, attrs)?;
    for index in 0..count {
        if cx.array(count + 1 + index)?.dims() != updates.dims() {
            return Err(unsupported("its updates differ in dims"));
        }
    }
    let mut results: SmallVec<[Value; 2]> = SmallVec::new();
    if count == 1 && (replaces(cx, attrs.to_apply) || updates.len() == 0) {
        results.push(replace(cx, &places)?);
    } else if count == 1
        && let Some(folded) = fold_monoid(cx, attrs.to_apply, &places)?
    {
        results.push(folded);
    } else {
        results = combine(cx, attrs.to_apply, &places, count)?;
    }
    match results.pop() {
        Some(only) if cx.shape().as_tuple().is_none() => Ok(only),
        last => Ok(tuple(results.into_iter().chain(last))),
    }
}

/// The positions of the windows inside the operand: in the updates and in the operand.
struct Places {
    nest: Nest<2>,
    starts: Vec<[isize; 2]>,
    window: usize,
    _charge: Option<Charge>,
}

impl Places {
    fn new(
        cx: &Cx<'_, '_>,
        operand: &Array,
        indices: &Array,
        updates: &Array,
        attrs: &ScatterAttrs,
    ) -> Outcome<Self> {
        let gone =
            [dim_numbers(&attrs.inserted_window_dims), dim_numbers(&attrs.input_batching_dims)]
                .concat();
        let mut window_dims = dim_numbers(&attrs.update_window_dims).into_iter();
        let sizes: Option<Dims> = (0..operand.rank())
            .map(|dim| {
                if gone.contains(&dim) {
                    return Some(1);
                }
                window_dims.next().and_then(|d| updates.dims().get(d).copied())
            })
            .collect();
        let malformed = || unsupported("its dimension numbers do not fit its operands");
        let indexing = Indexing {
            operand: operand.dims(),
            sizes: sizes.ok_or_else(malformed)?,
            index_map: &attrs.scatter_dims_to_operand_dims,
            operand_batching: &attrs.input_batching_dims,
            index_batching: &attrs.scatter_indices_batching_dims,
            vector_dim: attrs.index_vector_dim,
            window_dims: &attrs.update_window_dims,
            collapsed: &attrs.inserted_window_dims,
        };
        if updates.len() == 0 || operand.len() == 0 {
            return Ok(Self { nest: Nest::new([]), starts: Vec::new(), window: 0, _charge: None });
        }
        let windows = WindowPlaces::new(cx, &indexing, indices, updates.dims())?;
        let mut starts = Vec::with_capacity(windows.moved.len());
        let inside = windows.moved.iter().enumerate();
        starts.extend(inside.filter_map(|(w, &from)| Some([from, windows.inside(w)?])));
        Ok(Self { starts, window: windows.len, nest: windows.nest, _charge: Some(windows.charge) })
    }
}

/// Checks whether a computation yields the update unchanged.
fn replaces(cx: &Cx<'_, '_>, computation: CompId) -> bool {
    let root = cx.module().computation(computation).root();
    root.is_some_and(|root| matches!(cx.module().op(root), Op::Parameter(p) if p.number == 1))
}

fn replace(cx: &mut Cx<'_, '_>, places: &Places) -> Outcome<Value> {
    let updates = cx.take(2)?.into_array()?;
    // The walk's first array is the one that is written.
    let nest = places.nest.swapped();
    let _starts = cx.scratch(size_of::<[isize; 2]>(), places.starts.len())?;
    let starts: Vec<[isize; 2]> = places.starts.iter().map(|&[from, to]| [to, from]).collect();
    let operand = cx.take(0)?.into_array()?;
    operand.modify(&cx.evaluator.ledger, |data| place_many(data, updates.data(), &nest, &starts))
}

fn fold_monoid(cx: &Cx<'_, '_>, reducer: CompId, places: &Places) -> Outcome<Option<Value>> {
    let result = cx.allocate(cx.leaf_shape(0)?)?;
    if cx.array(2)?.element_type() != result.element_type {
        return Ok(None);
    }
    let _scratch = cx.scratch(2 * size_of::<f64>(), result.len)?;
    let (operand, updates) = (Folded::operand(cx, 0)?, Folded::operand(cx, 2)?);
    let fold = Fold { operand: &operand.data, updates: &updates.data, places };
    let folded = monoid::visit_common(
        cx.module(),
        cx.evaluator.numbers(),
        reducer,
        result.element_type,
        fold,
    );
    let data = folded.transpose()?.map(|data| Folded::result(data, result.element_type));
    data.transpose()?.map(|data| result.with(data)).transpose()
}

struct Fold<'a> {
    operand: &'a Data,
    updates: &'a Data,
    places: &'a Places,
}

impl Visitor for Fold<'_> {
    type Output = Outcome<Data>;

    fn visit<T: Native, M: Monoid<T>>(self) -> Outcome<Data> {
        let operand: &[T] = self.operand.as_slice().ok_or(WRONG_STORAGE)?;
        let updates: &[T] = self.updates.as_slice().ok_or(WRONG_STORAGE)?;
        let mut totals = vec![M::IDENTITY; operand.len()];
        for (total, &element) in totals.iter_mut().zip(operand) {
            *total = M::lift(element);
        }
        let Level { size, strides: [from_step, to_step] } = self.places.nest.inner();
        for &start in &self.places.starts {
            for [from, to] in self.places.nest.positions(start) {
                for i in 0..size.cast_signed() {
                    let update = updates[(from + i * from_step).cast_unsigned()];
                    let total = &mut totals[(to + i * to_step).cast_unsigned()];
                    *total = M::join(*total, M::lift(update));
                }
            }
        }
        Ok(monoid::lowered::<T, M>(&totals))
    }
}

/// Combines by any computation, window after window; the elements of one window are different
/// elements of the operand.
fn combine(
    cx: &mut Cx<'_, '_>,
    reducer: CompId,
    places: &Places,
    count: usize,
) -> Outcome<SmallVec<[Value; 2]>> {
    const LANES: usize = 512;
    let mut targets = Vec::new();
    for index in 0..count {
        let operand = cx.take(index)?.into_array()?;
        targets.push(operand.detach(&cx.evaluator.ledger)?);
    }
    let mut callee = cx.callee(reducer, LANES.min(places.window))?;
    let Level { size, strides: [from_step, to_step] } = places.nest.inner();
    let _pairs = cx.scratch(size_of::<(usize, usize)>(), places.window)?;
    let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(places.window);
    for &start in &places.starts {
        pairs.clear();
        for [from, to] in places.nest.positions(start) {
            pairs.extend((0..size.cast_signed()).map(|i| {
                ((from + i * from_step).cast_unsigned(), (to + i * to_step).cast_unsigned())
            }));
        }
        for block in pairs.chunks(LANES) {
            for (index, target) in targets.iter().enumerate() {
                fill(callee.parameter(index)?, target.data(), block.iter().map(|p| p.1))?;
                let updates = cx.array(count + 1 + index)?.data();
                fill(callee.parameter(count + index)?, updates, block.iter().map(|p| p.0))?;
            }
            callee.run(cx.evaluator, block.len())?;
            for (index, target) in targets.iter_mut().enumerate() {
                let data = target.data_mut().ok_or(Fault::Internal("a result is shared"))?;
                spread(data, callee.result(index)?, block.iter().map(|p| p.1))?;
            }
        }
    }
    Ok(targets.into_iter().map(Value::Array).collect())
}
