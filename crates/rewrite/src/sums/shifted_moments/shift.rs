//! A shift near the mean that is known before the mean.
//!
//! For the mean k of a sample of m of n values and the mean c of all,
//! `n (c-k)^2 <= n/m * sum (x-c)^2` for any values, since the square of a mean is at most the mean
//! of the squares. So a sum about k instead of c is at most `1 + n/m` times as large, which is at
//! most 26 here.

use tilewright_ir::ops::dims::SliceDim;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{ArrayLiteral, Dims, EditError, Literal, Module, Op, Patch, Shape, Value};

use super::moments::Group;
use super::sample::Sample;
use crate::analysis::index_range::{IndexRange, sizes};
use crate::analysis::reduce::{reshape_op, shape_like};
use crate::analysis::whole_number::whole_number;
use crate::sums::factor::Sum;
use crate::sums::product::Factor;

/// The sample of a large array has about one in this many of its values.
const ONE_IN: i64 = 16;

/// The sample of a small array has at most one in this many: a larger one costs too much.
const LEAST_ONE_IN: i64 = 4;

/// The longest step along one dim while other dims can be thinned out.
const LONGEST_STEP: i64 = 4;

/// The shift of an array, and the array less its shift.
pub(super) struct Shift {
    /// The mean of the sample: one value for each result of the sum.
    pub(super) shift: Factor,
    /// The array less its shift.
    pub(super) rest: Factor,
}

/// Adds the shift of a group's array, before `sum`, the first of its sums, as the mean of at least about
/// `sampled` values. `None` if the array has too few of them.
pub(super) fn add(
    module: &mut Module,
    group: &Group,
    sum: &Sum,
    sampled: i64,
) -> Result<Option<Shift>, EditError> {
    let x = &group.x;
    let Some((patch, shift)) = planned(module, group, sum, sampled) else { return Ok(None) };
    let made = patch.apply(module)?;
    let at = |value: Value| match value {
        Value::Old(id) => Some(id),
        Value::New(place) => made.get(place).copied(),
    };
    let ids = at(shift).zip(made.last().copied());
    Ok(ids.map(|(shift, rest)| {
        let kept = group.digits.iter().filter(|digit| !group.is_along(**digit)).copied();
        let digits = group.digits.iter().copied().collect();
        Shift {
            shift: Factor { divides: false, value: shift, ranges: kept.collect(), convert: None },
            rest: Factor { value: rest, convert: None, ranges: digits, ..x.clone() },
        }
    }))
}

/// Returns the edits that compute the shift, and its value. The last instruction of the edits
/// computes the array less the shift.
fn planned(module: &Module, group: &Group, sum: &Sum, sampled: i64) -> Option<(Patch, Value)> {
    let x = &group.x;
    let (Op::Reduce(attrs), &[_, init]) = (module.op(sum.id), module.operands(sum.id)) else {
        return None;
    };
    let (own, like) = (module.array_shape(x.value)?, module.array_shape(sum.id)?);
    let digits = &group.digits;
    let summed: Vec<bool> = digits.iter().map(|&digit| group.is_along(digit)).collect();
    let cut = sizes(digits);
    let one_in = one_in(values(&cut, &summed)?, sampled)?;
    // Dims that are summed in part are whole in the sample, which is cut: where an engine stores a
    // slice of a reshape, that of the array costs less. So are those that devices have parts of: every device
    // takes its part of the sample from its part of the array.
    let is_thinned = |(range, is_divided): (&IndexRange, &bool)| {
        digits.contains(range) && group.is_along(*range) && !is_divided
    };
    let thinned: Vec<bool> = x.ranges.iter().zip(&group.divided).map(is_thinned).collect();
    let steps = steps(own.dims(), &thinned, one_in);
    let sampled: i64 = steps.iter().product();
    (sampled >= LEAST_ONE_IN).then_some(())?;
    let mut patch = Patch::new();
    let (slice, taken) = parts(own.dims(), &steps);
    let from_samples = group.shares_sweeps;
    let sample = Sample { module, before: sum.id, slice, sizes: &taken, from_samples };
    let mut sample = sample.of(&mut patch, x.value)?;
    // The sizes of the sample in the dims that are cut: a dim is thinned out or cut.
    let of_digit = |digit: &IndexRange| {
        let place = x.ranges.iter().position(|range| range == digit);
        place.and_then(|place| taken.get(place).copied()).unwrap_or_else(|| digit.size())
    };
    let in_sample: Dims = digits.iter().map(of_digit).collect();
    let mut add = |op: Op, shape: Shape, operands: &[Value]| {
        patch.add(sum.id, op, shape, operands.iter().copied())
    };
    if x.convert.is_some() {
        sample = add(Op::Convert, shape_like(like, &taken), &[sample]);
    }
    if in_sample != taken {
        sample = add(reshape_op(), shape_like(like, &in_sample), &[sample]);
    }
    let places = |wanted: bool| (0i64..).zip(&summed).filter(move |&(_, is)| *is == wanted);
    let dimensions: Dims = places(true).map(|(dim, _)| dim).collect();
    let kept: Dims = places(false).map(|(dim, _)| dim).collect();
    let left = cut.iter().zip(&summed).filter(|(_, is_summed)| !**is_summed);
    let left: Dims = left.map(|(&size, _)| size).collect();
    let count = in_sample.iter().zip(&summed).filter(|(_, is_summed)| **is_summed);
    let count = count.map(|(&size, _)| size).product();
    let small = shape_like(like, &left);
    let reduce = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }));
    let total = add(reduce, small.clone(), &[sample, Value::Old(init)]);
    let count = ArrayLiteral::new(
        sum.monoid.element_type,
        [],
        whole_number(sum.monoid.element_type, count)?,
    );
    let count = Op::Constant(Box::new(Literal::Array(count.ok()?)));
    let count = add(count, Shape::scalar(sum.monoid.element_type), &[]);
    let everywhere = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
    let count = add(everywhere, small.clone(), &[count]);
    let shift = add(Op::Divide, small, &[total, count]);
    let whole = shape_like(like, own.dims());
    let mut array = Value::Old(x.value);
    if x.convert.is_some() {
        array = add(Op::Convert, whole, &[array]);
    }
    let whole = shape_like(like, &cut);
    if cut.as_slice() != own.dims() {
        array = add(reshape_op(), whole.clone(), &[array]);
    }
    let spread = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: kept }));
    let spread = add(spread, whole.clone(), &[shift]);
    add(Op::Subtract, whole, &[array, spread]);
    Some((patch, shift))
}

/// Returns the number of values along the summed dims; `None` if it overflows.
fn values(dims: &[i64], summed: &[bool]) -> Option<i64> {
    let along = dims.iter().zip(summed).filter(|(_, summed)| **summed);
    along.map(|(&size, _)| size).try_fold(1, i64::checked_mul)
}

/// Returns the number of values of which one is sampled, so that at least about `sampled` are.
fn one_in(values: i64, sampled: i64) -> Option<i64> {
    let one_in = (values / sampled.max(1)).min(ONE_IN);
    (one_in >= LEAST_ONE_IN).then_some(one_in)
}

/// Returns the step between sampled values along each dim, so that about one in `one_in` is
/// sampled. Dims outside of the tiles of vectors are thinned out before the others, and the last
/// one, which runs along the lanes, only if the others are too short.
fn steps(dims: &[i64], summed: &[bool], one_in: i64) -> Dims {
    let mut steps: Dims = dims.iter().map(|_| 1).collect();
    let mut left = one_in;
    let last = dims.len().saturating_sub(1);
    for (longest, dims) in [(LONGEST_STEP, &dims[..last]), (one_in, &dims[..last]), (one_in, dims)]
    {
        let along = steps.iter_mut().zip(dims).zip(summed).filter(|(_, summed)| **summed);
        for ((step, &size), _) in along {
            let longer = (longest.min(size) / *step).min(left);
            if longer > 1 {
                *step *= longer;
                left /= longer;
            }
        }
    }
    steps
}

/// Returns the part of each dim that is sampled, and its size.
fn parts(dims: &[i64], steps: &[i64]) -> (Vec<SliceDim>, Dims) {
    let sizes: Dims = dims.iter().zip(steps).map(|(&size, &step)| taken(size, step)).collect();
    let each = dims.iter().zip(steps).zip(&sizes).enumerate();
    let parts = each.map(|(dim, ((&size, &step), &taken))| match is_in_tiles(dims.len(), dim) {
        false => SliceDim { start: start(step), limit: size, stride: step },
        true => middle(size, taken),
    });
    (parts.collect(), sizes)
}

/// Checks whether a dim is one of the two that vectors have elements along. Elements side by side
/// lie in few vectors there, and values at a distance in all of them.
fn is_in_tiles(rank: usize, dim: usize) -> bool {
    dim + 2 >= rank
}

/// Returns the part of a dim that has this many elements side by side, near the middle, and begins
/// at a multiple of their number: as tiles do where that is a power of two.
fn middle(size: i64, elements: i64) -> SliceDim {
    let start = size / 2 / elements.max(1) * elements;
    SliceDim { start, limit: start + elements, stride: 1 }
}

/// Returns the index of the first sampled value along a dim: not at its border, which may be
/// padding.
fn start(step: i64) -> i64 {
    (step - 1) / 2
}

/// Returns the number of sampled values along a dim that is at least as long as the step.
fn taken(size: i64, step: i64) -> i64 {
    (size - 1 - start(step)) / step + 1
}

#[cfg(test)]
mod tests;
