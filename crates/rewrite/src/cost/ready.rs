//! When values are there: in which sweep over main memory they can be computed at the
//! earliest.

use tilewright_ir::{ArrayShape, InstId, Module, Op, SecondaryMap};

use super::CostModel;
use super::sweeps::{Places, filled, same_but_ones};
use crate::analysis::reduce::reduced_arrays;

/// When a value is there; in order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    /// The sweep over main memory in which it can be read.
    pub(super) sweep: u32,
    /// Whether only its own row can read it in this sweep, all others in the next one.
    row_only: bool,
}

impl Ready {
    /// When all rows can read it.
    fn whole(self) -> Self {
        if self.row_only { self.next() } else { self }
    }

    /// After this sweep.
    fn next(self) -> Self {
        Self { sweep: self.sweep.saturating_add(1), row_only: false }
    }

    /// In this sweep, for its own row only.
    fn for_its_row(self) -> Self {
        Self { row_only: true, ..self }
    }
}

/// When all operands are there.
pub(super) fn waits(module: &Module, id: InstId, ready: &SecondaryMap<InstId, Ready>) -> Ready {
    module.operands(id).iter().map(|&operand| ready[operand]).max().unwrap_or_default()
}

/// When the results of all instructions are there; `reads` says which are in main memory
/// or computed in place of what is.
pub(super) fn readiness_of_all(
    module: &Module,
    order: &[InstId],
    model: &CostModel<'_>,
    places: Places<'_>,
    reads: &SecondaryMap<InstId, bool>,
) -> SecondaryMap<InstId, Ready> {
    let large = order.iter().copied().filter(|&id| (places.is_large)(id));
    let largest = large.map(|id| places.facts[id].footprint.padded_bytes).max();
    let rows = Rows { model, largest: largest.unwrap_or(0) };
    let mut ready: SecondaryMap<InstId, Ready> = filled(module, order.len());
    for &id in order {
        ready.set(id, readiness(module, id, waits(module, id, &ready), &rows, places, reads));
    }
    ready
}

/// When the result of an instruction is there whose operands are there at `waits`.
fn readiness(
    module: &Module,
    id: InstId,
    waits: Ready,
    rows: &Rows<'_>,
    places: Places<'_>,
    reads: &SecondaryMap<InstId, bool>,
) -> Ready {
    let (whole, next) = (waits.whole(), waits.next());
    let of_large = module.operands(id).iter().any(|&operand| reads[operand]);
    match module.op(id) {
        Op::Reduce(attrs) => {
            let arrays = || {
                let arrays = reduced_arrays(module, id).iter();
                arrays.map(|&array| module.array_shape(array))
            };
            let dims = &attrs.dimensions;
            if of_large {
                let one_row = arrays().all(|a| a.is_some_and(|a| rows.holds_row(a, dims)));
                if one_row { waits.for_its_row() } else { next }
            } else {
                // Rows side by side are a longer row.
                let one_row = arrays().all(|a| a.is_some_and(|a| rows.holds_rows(a, dims)));
                if one_row { waits } else { whole }
            }
        }
        Op::GetTupleElement(_) | Op::Tuple | Op::OptimizationBarrier => waits,
        _ if places.is_inlined(id) || same_but_ones(module, id) => waits,
        Op::Slice(_) => whole,
        // Rows keep their order.
        Op::Reshape(_) if !of_large => waits,
        _ if places.is_alias(id) => whole,
        _ if of_large => next,
        _ => whole,
    }
}

/// Which rows vector memory holds.
struct Rows<'a> {
    model: &'a CostModel<'a>,
    /// The bytes of the largest array.
    largest: u64,
}

impl Rows<'_> {
    /// Whether it holds what is reduced of an array to one result.
    fn holds_row(&self, array: &ArrayShape, dims: &[i64]) -> bool {
        let rank = array.rank();
        let first = rank.saturating_sub(dims.len());
        let row = (0..rank).map(|dim| if dim < first { 1 } else { array.dims()[dim] });
        let row = ArrayShape::new(array.element_type, row).into();
        are_side_by_side(array, dims) && self.model.stays_on_chip(self.model.weigh(&row))
    }

    /// Whether it holds all of the largest array that goes into one result, where an
    /// array of results for rows is reduced.
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

/// Whether what is reduced to one result lies side by side.
fn are_side_by_side(array: &ArrayShape, dims: &[i64]) -> bool {
    let first = array.rank().saturating_sub(dims.len());
    array.has_default_layout()
        && dims.iter().all(|&dim| usize::try_from(dim).is_ok_and(|d| d >= first))
}
