//! Computes when values are ready: the earliest sweep over main memory that can compute them.

use tilewright_ir::{ArrayShape, InstId, Module, Op};

use super::CostModel;
use super::roles::{Role, Timing};
use crate::analysis::reduce::reduced_arrays;

/// The time at which a value is ready; ordered by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    /// The sweep over main memory in which the value can be read.
    pub(super) sweep: u32,
    /// Whether only the value's own row can read it in this sweep, and all others in the next
    /// one.
    row_only: bool,
}

impl Ready {
    /// Returns the time at which all rows can read the value.
    fn whole(self) -> Self {
        if self.row_only { self.next() } else { self }
    }

    /// Returns the time after this sweep.
    fn next(self) -> Self {
        Self { sweep: self.sweep.saturating_add(1), row_only: false }
    }

    /// Returns this sweep, for the value's own row only.
    fn for_its_row(self) -> Self {
        Self { row_only: true, ..self }
    }
}

/// Computes when the result of an instruction is ready. Its operands are ready at `waits`;
/// `of_large` tells whether any operand is in main memory or computed in place from such an
/// array.
pub(super) fn readiness(
    module: &Module,
    id: InstId,
    role: Role,
    (waits, of_large): (Ready, bool),
    rows: &Rows<'_>,
) -> Ready {
    match role.timing {
        Timing::AsOperands => waits,
        Timing::WholeOperands => waits.whole(),
        Timing::Reduce => reduced(module, id, waits, of_large, rows),
        Timing::Reshape if !of_large => waits,
        Timing::Reshape if role.is_alias() => waits.whole(),
        Timing::Reshape | Timing::AfterLarge => {
            if of_large {
                waits.next()
            } else {
                waits.whole()
            }
        }
    }
}

/// Computes when the result of a reduction is ready.
fn reduced(module: &Module, id: InstId, waits: Ready, of_large: bool, rows: &Rows<'_>) -> Ready {
    let Op::Reduce(attrs) = module.op(id) else { return waits };
    let are_held = |holds: &dyn Fn(&ArrayShape, &[i64]) -> bool| {
        let mut arrays = reduced_arrays(module, id).iter();
        arrays.all(|&a| module.array_shape(a).is_some_and(|a| holds(a, &attrs.dimensions)))
    };
    if of_large {
        let is_held = are_held(&|array, dims| rows.holds_row(array, dims));
        if is_held { waits.for_its_row() } else { waits.next() }
    } else {
        // Adjacent rows form a longer row.
        let are_held = are_held(&|array, dims| rows.holds_rows(array, dims));
        if are_held { waits } else { waits.whole() }
    }
}

/// The rule for the rows that vector memory can hold.
pub(super) struct Rows<'a> {
    pub(super) model: &'a CostModel<'a>,
    /// The bytes of the largest array.
    pub(super) largest: u64,
}

impl Rows<'_> {
    /// Checks whether vector memory holds the elements of an array that are reduced to one
    /// result.
    fn holds_row(&self, array: &ArrayShape, dims: &[i64]) -> bool {
        let rank = array.rank();
        let first = rank.saturating_sub(dims.len());
        let row = (0..rank).map(|dim| if dim < first { 1 } else { array.dims()[dim] });
        let row = ArrayShape::new(array.element_type, row).into();
        are_side_by_side(array, dims) && self.model.stays_on_chip(self.model.weigh(&row))
    }

    /// Checks whether vector memory holds all elements of the largest array that go into one
    /// result, when an array with one result per row is reduced.
    fn holds_rows(&self, array: &ArrayShape, dims: &[i64]) -> bool {
        let first = array.rank().saturating_sub(dims.len());
        let results = array
            .dims()
            .iter()
            .take(first)
            .fold(1, |n: u64, &dim| n.saturating_mul(dim.max(1).unsigned_abs()));
        are_side_by_side(array, dims) && self.model.holds_on_chip(self.largest / results)
    }
}

/// Checks whether the elements that are reduced to one result are adjacent.
fn are_side_by_side(array: &ArrayShape, dims: &[i64]) -> bool {
    let first = array.rank().saturating_sub(dims.len());
    array.has_default_layout()
        && dims.iter().all(|&dim| usize::try_from(dim).is_ok_and(|d| d >= first))
}
