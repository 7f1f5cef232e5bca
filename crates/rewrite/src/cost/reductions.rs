//! Looks up reductions in the target's table of measured times ([`Target::reductions`]): for
//! [`CostModel`], which adds the cycles beyond those of vector operations, and for the passes that
//! write a reduction in another form.
//!
//! [`Target::reductions`]: tilewright_target::Target::reductions

use smallvec::SmallVec;
use tilewright_ir::reducer::{Monoid, Reducer};
use tilewright_ir::{ArrayShape, ElementType, Module, Op, Opcode};
use tilewright_target::reductions::{Folding, ReductionFeatures, Source, Walk};

use super::{CostModel, Operand, as_f64};
use crate::analysis::axes::{axes_of, elements};

/// Describes a reduction of `dims` of an array in the terms of the target's table. For a reduction
/// of several arrays, `array` is the first of them. `None` if the array is dynamic, empty or not
/// row-major, or if all reduced dims have size 1.
pub fn reduction(
    reducer: &Reducer,
    array: &ArrayShape,
    dims: &[i64],
    source: Source,
) -> Option<ReductionFeatures> {
    let axes = axes_of(array, dims)?;
    let innermost = *axes.last()?;
    let reduced = || axes.iter().filter(|axis| axis.reduced);
    let walk = match (reduced().count(), innermost.reduced) {
        (0, _) => return None,
        (1, true) if axes.len() == 1 => Walk::Whole,
        (1, true) => Walk::Rows,
        (1, false) => Walk::Columns,
        (_, true) => Walk::MixedRows,
        (_, false) => Walk::MixedColumns,
    };
    Some(ReductionFeatures {
        folding: folding(reducer),
        // The table has one entry for both: the sign makes no difference to the time.
        element_type: match array.element_type {
            ElementType::U32 => ElementType::S32,
            other => other,
        },
        source,
        walk,
        nested: is_nested(array.dims(), dims),
        several: false,
        innermost: innermost.len,
        longest: reduced().map(|axis| axis.len).max()?,
        elements: elements(&axes),
    })
}

/// Returns the source of elements that only one reduction reads: fused ops, or an array in memory.
pub fn source_of(is_computed: bool) -> Source {
    if is_computed { Source::Computed } else { Source::Stored }
}

/// Checks whether two neighbouring dims are both reduced, dims of size 1 aside.
fn is_nested(dims: &[i64], reduced: &[i64]) -> bool {
    let large = (0i64..).zip(dims).filter(|&(_, &size)| size != 1);
    let taken: SmallVec<[bool; 6]> = large.map(|(dim, _)| reduced.contains(&dim)).collect();
    taken.windows(2).any(|pair| pair == [true, true])
}

fn folding(reducer: &Reducer) -> Folding {
    match (reducer, reducer.monoid()) {
        (Reducer::ArgExtremum(_), _) => Folding::Place,
        (Reducer::Each(_), None) => Folding::Several,
        (_, Some(Monoid { opcode, .. })) => match opcode {
            Opcode::Add => Folding::Sum,
            Opcode::Multiply => Folding::Product,
            Opcode::Maximum | Opcode::Minimum => Folding::Extremum,
            _ => Folding::Logical,
        },
    }
}

impl CostModel<'_> {
    /// Computes the cycles that a reduce takes beyond its vector operations, as measured:
    /// `elements * (ns per element - ns per element of the fastest kind) * cycles_per_ns`,
    /// where the fastest kind has the same element type and source. 0 if the table has no such
    /// reduce.
    pub(super) fn reduce_excess(&self, module: &Module, op: &Op, operands: &[Operand<'_>]) -> f64 {
        let table = &self.target.reductions;
        let (Op::Reduce(attrs), Some(&first), false) = (op, operands.first(), table.is_empty())
        else {
            return 0.0;
        };
        let found = || {
            let array = first.value.shape.as_array()?;
            let reducer = Reducer::of(module, attrs.to_apply)?;
            reduction(&reducer, array, &attrs.dimensions, source_of(first.fused))
        };
        let Some(found) = found() else { return 0.0 };
        let elements = as_f64(found.elements.unsigned_abs());
        elements * table.excess(&found) * self.target.cycles_per_ns
    }
}
