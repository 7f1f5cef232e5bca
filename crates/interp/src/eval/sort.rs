//! Sorting, by any comparator.

use tilewright_ir::ops::elementwise::{CompareOrder, Direction};
use tilewright_ir::ops::reduce::{SortAttrs, TopKAttrs};
use tilewright_ir::{CompId, Data, Op};

use super::{Cx, elementwise, tuple, unsupported};
use crate::algebra::{Numbers, field};
use crate::error::{Fault, Outcome};
use crate::lanes::{Callee, fill};
use crate::strides::{extent, row_major};
use crate::value::Value;

/// Sorts stably, which is right for sorts that need not be stable too.
pub(super) fn sort(cx: &mut Cx<'_, '_>, attrs: &SortAttrs) -> Outcome<Value> {
    let dim = attrs.dimensions.first().map_or(usize::MAX, |&d| extent(d));
    let first = cx.array(0)?;
    let (len, dims) = (first.len(), first.dims());
    let size = dims.get(dim).map(|&d| extent(d)).ok_or(Fault::Internal("no such dim"))?;
    let stride = row_major(dims)[dim].cast_unsigned();
    // Places, a line of them twice, keys.
    let _scratch = cx.scratch(4 * std::mem::size_of::<usize>(), len)?;
    let mut sorter = Sorter::new(cx, attrs.to_apply)?;
    let mut places: Vec<usize> = vec![0; len];
    // A line starts wherever the index in the sorted dim is 0.
    let starts = (0..len).filter(|at| size > 0 && (at / stride).is_multiple_of(size));
    for start in starts {
        let line: Vec<usize> = (0..size).map(|i| start + i * stride).collect();
        cx.spend(size)?;
        let sorted = merge_sort(line, |a, b| sorter.is_before(cx, a, b))?;
        for (i, place) in sorted.into_iter().enumerate() {
            places[start + i * stride] = place;
        }
    }
    let mut results = Vec::with_capacity(cx.operands.len());
    for index in 0..cx.operands.len() {
        let allocation = cx.allocate(cx.leaf_shape(index)?)?;
        let data = cx.array(index)?.data().gather(places.iter().copied());
        results.push(allocation.with(data)?);
    }
    match results.pop() {
        Some(only) if cx.shape().as_tuple().is_none() => Ok(only),
        last => Ok(tuple(results.into_iter().chain(last))),
    }
}

/// Decides which of two elements comes first.
enum Sorter {
    Ascending(Keys),
    Descending(Keys),
    Computation(Callee),
}

/// Numbers that are ordered as the elements are.
enum Keys {
    Int(Vec<i64>),
    Float(Vec<f64>),
}

impl Keys {
    /// Keys of real numbers.
    fn new(cx: &Cx<'_, '_>, operand: usize, total: bool) -> Outcome<Option<Self>> {
        if let (Numbers::Field, Data::F64(elements)) =
            (cx.evaluator.numbers(), cx.array(operand)?.data())
        {
            let keys = elements.iter().map(|element| field::order(element.to_bits()));
            return Ok(Some(Self::Int(keys.collect())));
        }
        Ok(match elementwise::keys(cx.array(operand)?, total) {
            Some(Data::S64(keys)) => Some(Self::Int(keys)),
            Some(Data::F64(keys)) => Some(Self::Float(keys)),
            _ => None,
        })
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        match self {
            Self::Int(keys) => keys[a] < keys[b],
            Self::Float(keys) => keys[a] < keys[b],
        }
    }
}

impl Sorter {
    fn new(cx: &mut Cx<'_, '_>, comparator: CompId) -> Outcome<Self> {
        if let Some((operand, ascending, total)) = single_comparison(cx, comparator)
            && let Some(keys) = Keys::new(cx, operand, total)?
        {
            return Ok(if ascending { Self::Ascending(keys) } else { Self::Descending(keys) });
        }
        Ok(Self::Computation(cx.callee(comparator, 1)?))
    }

    fn is_before(&mut self, cx: &mut Cx<'_, '_>, a: usize, b: usize) -> Outcome<bool> {
        match self {
            Self::Ascending(keys) => Ok(keys.is_less(a, b)),
            Self::Descending(keys) => Ok(keys.is_less(b, a)),
            Self::Computation(callee) => {
                for index in 0..cx.operands.len() {
                    let data = cx.array(index)?.data();
                    fill(callee.parameter(2 * index)?, data, std::iter::once(a))?;
                    fill(callee.parameter(2 * index + 1)?, data, std::iter::once(b))?;
                }
                callee.run(cx.evaluator, 1)?;
                Ok(callee.result(0)?.as_slice::<bool>() == Some(&[true]))
            }
        }
    }
}

/// Returns the operand that a comparator looks at, whether it sorts upwards, and whether in
/// total order, if it does a single strict comparison.
fn single_comparison(cx: &Cx<'_, '_>, comparator: CompId) -> Option<(usize, bool, bool)> {
    let module = cx.module();
    let callee = module.computation(comparator);
    let root = callee.root()?;
    let Op::Compare(attrs) = module.op(root) else { return None };
    let [left, right] = module.operands(root) else { return None };
    let place = |id| callee.parameters().iter().position(|&p| p == id);
    let (left, right) = (place(*left)?, place(*right)?);
    let operand = left / 2;
    if operand != right / 2 || left == right {
        return None;
    }
    let ascending = match attrs.direction {
        Direction::Lt => left < right,
        Direction::Gt => left > right,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    Some((operand, ascending, attrs.order == Some(CompareOrder::TotalOrder)))
}

/// Sorts stably. For any `is_before`, it ends and keeps every item; a comparator that
/// contradicts itself only leaves them in some order.
fn merge_sort(
    mut items: Vec<usize>,
    mut is_before: impl FnMut(usize, usize) -> Outcome<bool>,
) -> Outcome<Vec<usize>> {
    let mut merged = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        merged.clear();
        for pair in items.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                if is_before(*b, *a)? {
                    merged.push(*b);
                    right = right_rest;
                } else {
                    merged.push(*a);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut items, &mut merged);
        width *= 2;
    }
    Ok(items)
}

pub(super) fn topk(cx: &mut Cx<'_, '_>, attrs: &TopKAttrs) -> Outcome<Value> {
    largest(cx, extent(attrs.k), attrs.largest)
}

/// The first `k` of each line of the minor dim, sorted, in total order with
/// NaN as the greatest; among equals the first. Downwards, unless the smallest
/// are asked for.
pub(super) fn largest(cx: &mut Cx<'_, '_>, k: usize, largest: bool) -> Outcome<Value> {
    let operand = cx.array(0)?;
    let size = operand.dims().last().map_or(0, |&d| extent(d));
    let k = k.min(size);
    let element_type = operand.element_type();
    let _scratch = cx.scratch(4 * std::mem::size_of::<usize>(), operand.len())?;
    let keys = Keys::new(cx, 0, true)?;
    let keys = keys.ok_or_else(|| unsupported(format!("{element_type} has no order")))?;
    let values = cx.allocate(cx.leaf_shape(0)?)?;
    let indices = cx.allocate(cx.leaf_shape(1)?)?;
    let mut places = Vec::with_capacity(values.len);
    for start in (0..operand.len()).step_by(size.max(1)) {
        cx.spend(size)?;
        let line = (start..start + size).collect();
        let before = |a, b| Ok(if largest { keys.is_less(b, a) } else { keys.is_less(a, b) });
        places.extend(merge_sort(line, before)?.into_iter().take(k));
    }
    let numbers = places.iter().map(|&place| i32::try_from(place % size.max(1)).unwrap_or(-1));
    let indices = indices.of(numbers.collect::<Vec<i32>>())?;
    let values = values.with(operand.data().gather(places.iter().copied()))?;
    Ok(tuple([values, indices]))
}
