//! Computes the cycles that a sum of columns loses because it keeps few processors busy.
//! [`CostModel`] charges them, and the pass `tree-reduce` divides such columns.

use std::ops::Range;

use tilewright_ir::{ArrayShape, Op};

use super::{CostModel, Operand, as_f64};
use crate::analysis::reduce::is_plain;

/// The columns of a reduction: the longest run of neighbouring reduced dims of an array, if the
/// dims inside of the run (the more minor ones) have several elements. The elements of a column
/// then do not lie side by side.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// The neighbouring dims that make up the run.
    pub(crate) dims: Range<usize>,
    /// The number of elements of the dims outside of the run, of the run, and of the dims inside of
    /// it.
    around: [i64; 3],
}

impl Columns {
    /// Returns the columns of a reduction of `dims` of an array. `None` if the array is dynamic,
    /// empty or not row-major, or if the dims inside of the longest run of reduced dims have one
    /// element.
    pub(crate) fn of(array: &ArrayShape, dims: &[i64]) -> Option<Self> {
        array.num_elements().filter(|&elements| elements > 0 && is_plain(array))?;
        let sizes = array.dims();
        let product = |range: Range<usize>| sizes[range].iter().product::<i64>();
        let is_reduced = |&dim: &usize| dims.iter().any(|&one| usize::try_from(one) == Ok(dim));
        let mut longest: Option<Self> = None;
        let mut next = 0;
        while let Some(first) = (next..sizes.len()).find(is_reduced) {
            next = (first..sizes.len()).find(|dim| !is_reduced(dim)).unwrap_or(sizes.len());
            let around = [product(0..first), product(first..next), product(next..sizes.len())];
            if longest.as_ref().is_none_or(|longest| longest.len() < around[1]) {
                longest = Some(Self { dims: first..next, around });
            }
        }
        longest.filter(|longest| longest.around[2] > 1)
    }

    /// Returns the number of elements of a column.
    pub(crate) fn len(&self) -> i64 {
        self.around[1]
    }
}

/// The fewest parts per processor. With one part per processor, a number of parts slightly above
/// the number of processors would leave most processors idle in a second round.
const LEAST_PARTS: u64 = 2;

impl CostModel<'_> {
    /// Returns the number of processors that a sum of columns keeps busy, one for each vector of
    /// results:
    /// `elements outside * ceil(elements inside / lanes)`.
    /// `None` if the sum keeps all processors busy, or if the columns are so long that the compiler
    /// itself divides them (`longest_column`).
    fn busy(&self, columns: &Columns) -> Option<u64> {
        let Columns { around: [before, len, within], .. } = columns;
        if len.unsigned_abs() > self.target.longest_column {
            return None;
        }
        let vectors = within.unsigned_abs().div_ceil(self.target.lanes.max(1).into());
        let busy = before.unsigned_abs().saturating_mul(vectors);
        (busy < self.target.processors.into()).then_some(busy)
    }

    /// Returns the fewest parts into which columns must be divided to keep all processors busy:
    /// `ceil(2 * processors / busy)`.
    /// `None` under the conditions of [`Self::busy`].
    pub(crate) fn least_parts(&self, columns: &Columns) -> Option<u64> {
        let all = LEAST_PARTS * u64::from(self.target.processors);
        self.busy(columns).map(|busy| all.div_ceil(busy.max(1)))
    }

    /// Computes the cycles by which idle processors lengthen a reduce:
    /// `cycles to read its arrays from main memory * (processors / busy - 1)`.
    pub(super) fn idle_cycles(&self, op: &Op, operands: &[Operand<'_>]) -> f64 {
        let Op::Reduce(attrs) = op else { return 0.0 };
        if self.target.processors == 1 {
            return 0.0;
        }
        let (arrays, _inits) = operands.split_at(operands.len() / 2);
        let shape = arrays.first().and_then(|first| first.value.shape.as_array());
        let columns = shape.and_then(|shape| Columns::of(shape, &attrs.dimensions));
        let Some(busy) = columns.and_then(|columns| self.busy(&columns)) else { return 0.0 };
        let crossings: f64 = arrays.iter().map(|array| self.crossing(array.value.footprint)).sum();
        crossings * (f64::from(self.target.processors) / as_f64(busy.max(1)) - 1.0)
    }
}
