//! Evaluates `ragged-dot`: a dot in which one of the left dims is divided into groups whose
//! lengths are known at run time.
//!
//! | the ragged dim is | the right operand has | the result is |
//! |---|---|---|
//! | free | a matrix for each group | rows, each times its group's matrix |
//! | contracting | one matrix | a product for each group, of its columns |
//! | batch | one matrix for each batch | products of the batches in groups |
//!
//! Elements after the last group contribute nothing.

use smallvec::SmallVec;
use tilewright_ir::Data;
use tilewright_ir::ops::contract::RaggedDotAttrs;

use super::contract::{arranged, rounded, sum_type};
use super::indexing::index_values;
use super::matmul::{self, Product, Visitor};
use super::{Cx, unsupported};
use crate::error::{Fault, Outcome};
use crate::limits::Charge;
use crate::strides::{dim_numbers, extent};
use crate::value::{Array, Value};

type DimNumbers = SmallVec<[usize; 6]>;

pub(super) fn ragged_dot(cx: &mut Cx<'_, '_>, attrs: &RaggedDotAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let (left, right) = (cx.array(0)?, cx.array(1)?);
    let result = cx.allocate_result()?;
    if left.len() == 0 || right.len() == 0 {
        let nothing = Data::zeros(result.element_type, result.len);
        return result.with(nothing);
    }
    let plan = Plan::new(left, right, attrs)?;
    let groups = Groups::new(cx, left, &plan)?;
    cx.spend(plan.products())?;
    let sum_type = sum_type(
        cx.evaluator.numbers(),
        [left.element_type(), right.element_type(), result.element_type],
    )?;
    let (x, _x) = arranged(cx, left, sum_type, &plan.left_order)?;
    let (y, _y) = arranged(cx, right, sum_type, &plan.right_order)?;
    let _sums = cx.scratch(sum_type.bytes() as usize, result.len)?;
    let products = Products { x: &x, y: &y, plan: &plan, groups: &groups, len: result.len };
    let sums = matmul::visit(sum_type, products)?;
    let data = rounded(cx, &sums, sum_type, result.element_type)?;
    result.with(data)
}

/// The kind of the ragged dim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Free,
    Contracting,
    Batch,
}

/// A ragged dot as products of matrices.
struct Plan {
    mode: Mode,
    batches: usize,
    rows: usize,
    inner: usize,
    columns: usize,
    /// Batch, free, contracted.
    left_order: DimNumbers,
    /// Group, batch, contracted, free.
    right_order: DimNumbers,
    /// The dims of the left operand that have groups of their own for each index: those before
    /// the ragged dim in its kind.
    outer: DimNumbers,
    ragged: usize,
    /// Positions of the dims behind the ragged one among its kind.
    behind: usize,
}

impl Plan {
    fn new(left: &Array, right: &Array, attrs: &RaggedDotAttrs) -> Outcome<Self> {
        let left_batch = dim_numbers(&attrs.lhs_batch_dims);
        let left_inner = dim_numbers(&attrs.lhs_contracting_dims);
        let right_batch = dim_numbers(&attrs.rhs_batch_dims);
        let right_inner = dim_numbers(&attrs.rhs_contracting_dims);
        let group = dim_numbers(&attrs.rhs_group_dims);
        let free = |rank: usize, taken: &[&[usize]]| -> DimNumbers {
            (0..rank).filter(|dim| taken.iter().all(|dims| !dims.contains(dim))).collect()
        };
        let left_free = free(left.rank(), &[&left_batch, &left_inner]);
        let right_free = free(right.rank(), &[&group, &right_batch, &right_inner]);
        let ragged = dim_numbers(&attrs.lhs_ragged_dims).first().copied();
        let ragged = ragged.ok_or(Fault::Internal("no dim is ragged"))?;
        let (mode, kind) = if left_batch.contains(&ragged) {
            (Mode::Batch, &left_batch)
        } else if left_inner.contains(&ragged) {
            (Mode::Contracting, &left_inner)
        } else {
            (Mode::Free, &left_free)
        };
        let at = kind.iter().position(|&dim| dim == ragged);
        let at = at.ok_or(Fault::Internal("the ragged dim is none of the operand's"))?;
        let own_groups = if mode == Mode::Batch { &[] } else { left_batch.as_slice() };
        Ok(Self {
            mode,
            batches: count(left, &left_batch),
            rows: count(left, &left_free),
            inner: count(left, &left_inner),
            columns: count(right, &right_free),
            outer: own_groups.iter().chain(&kind[..at]).copied().collect(),
            ragged,
            behind: count(left, &kind[at + 1..]),
            left_order: [&left_batch[..], &left_free, &left_inner].concat().into(),
            right_order: [&group[..], &right_batch, &right_inner, &right_free].concat().into(),
        })
    }

    fn products(&self) -> usize {
        let sides = [self.batches, self.rows, self.inner, self.columns];
        sides.into_iter().fold(1, usize::saturating_mul)
    }

    /// Returns the position along the dims outside the ragged dim's kind, and along the dims of
    /// its kind.
    fn ragged_place(&self, batch: usize, row: usize, k: usize) -> (usize, usize) {
        match self.mode {
            Mode::Batch => (0, batch),
            Mode::Free => (batch, row),
            Mode::Contracting => (batch, k),
        }
    }
}

/// Positions of some dims.
fn count(array: &Array, dims: &[usize]) -> usize {
    let sizes = dims.iter().map(|&dim| array.dims().get(dim).map_or(0, |&size| extent(size)));
    sizes.fold(1, usize::saturating_mul)
}

/// The group of each position of the ragged dim, for each position of the dims outside it.
struct Groups {
    count: usize,
    /// Positions of the ragged dim.
    size: usize,
    /// The number of positions of the dims outside the ragged dim, within its kind.
    outer: usize,
    /// For each position of the outer dims, for each of the ragged one; past
    /// the last group it is the number of groups.
    of: Vec<usize>,
    _charge: Charge,
}

impl Groups {
    fn new(cx: &Cx<'_, '_>, left: &Array, plan: &Plan) -> Outcome<Self> {
        let lengths = cx.array(2)?;
        let groups = lengths.dims().last().map_or(0, |&size| extent(size));
        let outer_dims = plan.outer.as_slice();
        let all_outer = count(left, outer_dims);
        let own = if plan.mode == Mode::Batch { 1 } else { plan.batches };
        let size = count(left, &[plan.ragged]);
        let values = index_values(lengths)?;
        // Lengths of rank 1 apply to every position of the outer dims.
        let shared = lengths.rank() == 1;
        if !shared && values.len() != all_outer.saturating_mul(groups) {
            return Err(unsupported(
                "lengths of groups for other dims than those outside of the ragged one; give \
                 them one dim, or each of those dims before that of the groups",
            ));
        }
        let charge = cx.scratch(size_of::<usize>(), all_outer.saturating_mul(size))?;
        let mut of = Vec::with_capacity(all_outer.saturating_mul(size));
        for outer in 0..all_outer {
            let first = if shared { 0 } else { outer * groups };
            of.extend(groups_of(&values[first..first + groups], size));
        }
        Ok(Self { count: groups, size, outer: all_outer / own.max(1), of, _charge: charge })
    }

    /// Returns the group of a position of the dims of the ragged one's kind.
    fn at(&self, batch: usize, place: usize, behind: usize) -> Option<usize> {
        let (outer, ragged) = (place / behind / self.size, place / behind % self.size);
        let at = (batch * self.outer + outer) * self.size + ragged;
        self.of.get(at).copied().filter(|&group| group < self.count)
    }
}

/// Returns the group of each position: the first whose end, the sum of the lengths so far, is
/// past it.
fn groups_of(lengths: &[i64], size: usize) -> impl Iterator<Item = usize> {
    let mut end: i64 = 0;
    let mut ends = Vec::with_capacity(lengths.len());
    for &length in lengths {
        end = end.saturating_add(length);
        ends.push(end);
    }
    (0..size).map(move |at| {
        let is_past = |&end: &i64| usize::try_from(end).is_ok_and(|end| at < end);
        ends.iter().position(is_past).unwrap_or(ends.len())
    })
}

struct Products<'a> {
    x: &'a Data,
    y: &'a Data,
    plan: &'a Plan,
    groups: &'a Groups,
    len: usize,
}

impl Visitor for Products<'_> {
    fn visit<T: Product>(self) -> Outcome<Data> {
        let Plan { mode, batches, rows, inner, columns, behind, .. } = *self.plan;
        let (x, y) = (matmul::view::<T>(self.x)?, matmul::view::<T>(self.y)?);
        let mut sums = vec![T::ZERO; self.len];
        for batch in 0..batches {
            for row in 0..rows {
                for k in 0..inner {
                    let (outer, place) = self.plan.ragged_place(batch, row, k);
                    let Some(group) = self.groups.at(outer, place, behind) else { continue };
                    let factor = x[(batch * rows + row) * inner + k];
                    let right = if mode == Mode::Free { group } else { 0 };
                    let result = if mode == Mode::Contracting { group } else { 0 };
                    let y = &y[((right * batches + batch) * inner + k) * columns..][..columns];
                    let sums = &mut sums[((result * batches + batch) * rows + row) * columns..];
                    for (sum, &y) in sums.iter_mut().zip(y) {
                        *sum = sum.multiply_add(factor, y);
                    }
                }
            }
        }
        Ok(T::wrap(sums))
    }
}
