//! Which reductions XLA:CPU computes without vectors, and what that costs.
//!
//! XLA:CPU has three ways. Sums and extrema of most floats are left to a library
//! (`xla/backends/cpu/ynn_support.cc`), which is fast unless its innermost loop is shorter than a
//! vector. Other reductions of one array are loops that LLVM vectorises if they reduce one dim, or
//! rows of two dims of which it unrolls the inner one.
//! Pairs (a maximum and its place, two sums at once) are loops that LLVM vectorises if the reduced
//! dim is so short that it is unrolled. The figures are parts of the target's
//! `scalar_reduce_cycles`; `benches/reduce_peer.py` measures them.

use smallvec::SmallVec;
use tilewright_ir::reducer::{Monoid, Reducer};
use tilewright_ir::{ArrayShape, ElementType, Module, Op, Opcode, Shape};

use super::{Cost, CostModel, Operand, as_f64, shared};
use crate::analysis::reduce::is_plain;

/// The way in which XLA:CPU computes a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceEngine {
    /// A sum or an extremum of floats, by the library.
    Library,
    /// Another reduction of one array.
    Loops,
    /// Several arrays at once.
    Pairs,
}

/// A reduced dim of this many elements is unrolled in whichever loop.
pub const UNROLLED: i64 = 16;
/// The fewest elements that are reduced in another way: fewer take no time to speak of.
pub const LEAST_ELEMENTS: i64 = 1 << 15;
/// The bits of a vector.
const VECTOR_BITS: i64 = 256;
/// XLA:CPU divides reductions of longer dims in two, and stores what it would have computed in
/// place for one (`TreeReductionRewriter`).
pub const TREE: i64 = 32;
/// The part of `scalar_reduce_cycles` that it takes to start on a run of elements, if the run is
/// shorter than a vector.
const SHORT_RUN: f64 = 0.4;
/// The part that each element takes in a reduction along several dims, which is a nest of loops.
const NEST: f64 = 0.13;
/// LLVM unrolls a loop of at most this many iterations within another one, which it vectorises if it
/// has at least as many.
const INNER: i64 = 8;
/// The part that each pair takes in short rows whose number is no multiple of [`ROWS`].
const ODD_ROWS: f64 = 0.3;
/// LLVM reduces this many short rows at a time where their number is a multiple of it, else one
/// row after the other.
pub const ROWS: i64 = 8;

/// Adjacent dims of an array that are all kept or all reduced, as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The number of indices, more than 1.
    pub len: i64,
    /// Whether it is reduced.
    pub reduced: bool,
}

/// The axes of an array, outermost first.
pub type Axes = SmallVec<[Axis; 6]>;

/// Returns the axes of a row-major array of which `dims` are reduced. `None` if it has no elements
/// or a size overflows.
pub fn axes_of(array: &ArrayShape, dims: &[i64]) -> Option<Axes> {
    array.num_elements().filter(|&elements| elements > 0 && is_plain(array))?;
    let all = (0i64..).zip(array.dims()).filter(|&(_, &len)| len > 1);
    Some(merged(all.map(|(dim, &len)| Axis { len, reduced: dims.contains(&dim) })))
}

/// Merges neighbours that are both kept or both reduced.
pub fn merged(axes: impl Iterator<Item = Axis>) -> Axes {
    let mut merged = Axes::new();
    for axis in axes {
        match merged.last_mut() {
            Some(Axis { len, reduced }) if *reduced == axis.reduced => {
                *len = len.saturating_mul(axis.len);
            }
            _ => merged.push(axis),
        }
    }
    merged
}

impl ReduceEngine {
    /// Returns the way in which a reducer is computed; `None` if nobody measured it.
    pub fn of(reducer: &Reducer) -> Option<Self> {
        use ElementType::{BF16, F32, F64, Pred, S32, S64, U32, U64};
        let Some(Monoid { opcode, element_type }) = reducer.monoid() else {
            return Some(Self::Pairs);
        };
        let is_extremum = matches!(opcode, Opcode::Maximum | Opcode::Minimum);
        match element_type {
            F32 | F64 if is_extremum || opcode == Opcode::Add => Some(Self::Library),
            BF16 if is_extremum => Some(Self::Library),
            F32 | F64 | S32 | S64 | U32 | U64 | Pred => Some(Self::Loops),
            _ => None,
        }
    }
}

/// The longest reduced dim of pairs that is unrolled, and so vectorised along kept dims. Ops that are
/// fused with the reduce count, such as those that convert floats of 16 bits. LLVM weighs the unrolled
/// loop, so the limit differs by an element or two: a dim that may be unrolled passes for one that is.
pub fn most_unrolled(axes: &Axes, element_type: ElementType, is_fused: bool) -> i64 {
    if matches!(element_type, ElementType::BF16 | ElementType::F16) {
        return 13;
    }
    let are_rows = axes.last().is_some_and(|axis| axis.reduced);
    let alone = if are_rows { 27 } else { 24 };
    // Whole numbers are not looked at for NaN.
    alone - if is_fused { 2 } else { 0 } + if element_type.is_float() { 0 } else { 2 }
}

/// Checks whether elements side by side along the innermost axis fill less than a vector.
pub fn is_short(innermost: Axis, element_type: ElementType) -> bool {
    innermost.len.saturating_mul(i64::from(element_type.bits())) < VECTOR_BITS
}

impl CostModel<'_> {
    /// Computes what a reduce takes beside the work that vectors would do.
    pub(super) fn scalar_reduce(&self, module: &Module, op: &Op, operands: &[Operand<'_>]) -> Cost {
        let mut cost = Cost::default();
        if let Op::ReduceWindow(_) = op {
            cost.cycles += self.scalar_window(operands);
        }
        let (Op::Reduce(attrs), Some(&first)) = (op, operands.first()) else { return cost };
        let Some(array) = first.value.shape.as_array().filter(|_| self.has_scalar_reduces()) else {
            return cost;
        };
        if array.num_elements().is_none_or(|elements| elements < LEAST_ELEMENTS) {
            return cost;
        }
        let Some(axes) = axes_of(array, &attrs.dimensions) else { return cost };
        let longest = axes.iter().filter(|axis| axis.reduced).map(|axis| axis.len).max();
        let (Some(&innermost), Some(longest)) = (axes.last(), longest) else { return cost };
        let Some(reducer) = Reducer::of(module, attrs.to_apply) else { return cost };
        let Some(engine) = ReduceEngine::of(&reducer) else { return cost };
        let elements = as_f64(array.num_elements().unwrap_or(0).unsigned_abs());
        let part = match engine {
            ReduceEngine::Pairs
                if longest > most_unrolled(&axes, array.element_type, first.fused) =>
            {
                1.0
            }
            ReduceEngine::Pairs if has_odd_rows(&axes, array.element_type) => ODD_ROWS,
            ReduceEngine::Pairs => 0.0,
            ReduceEngine::Library => {
                let is_slow = !innermost.reduced && is_short(innermost, array.element_type);
                let run = as_f64(innermost.len.unsigned_abs());
                if is_slow { SHORT_RUN / run } else { 0.0 }
            }
            ReduceEngine::Loops => {
                let nest = is_nest(&reducer, array, &axes, &attrs.dimensions);
                if first.fused && longest > TREE {
                    cost += self.stored(first.value);
                    cost += self.load(first.value);
                }
                // A vector holds half as many elements of 64 bits, so less is lost without.
                let part = NEST * 32.0 / f64::from(array.element_type.bits().max(32));
                if nest { part } else { 0.0 }
            }
        };
        cost.cycles += elements * part * self.target.scalar_reduce_cycles;
        cost
    }

    /// Computes the cycles that windows over several arrays take beside the work that vectors
    /// would do.
    fn scalar_window(&self, operands: &[Operand<'_>]) -> f64 {
        let array = operands.first().and_then(|operand| operand.value.shape.as_array());
        let elements = array.and_then(ArrayShape::num_elements).unwrap_or(0).unsigned_abs();
        if operands.len() > 2 { as_f64(elements) * self.target.scalar_reduce_cycles } else { 0.0 }
    }

    /// Checks whether the target computes some reductions without vectors.
    pub fn has_scalar_reduces(&self) -> bool {
        self.target.scalar_reduce_cycles > 0.0
    }
}

/// Checks whether rows of floats are reduced that are not vectorised for their number; rows of
/// integers are, whatever their number.
pub fn has_odd_rows(axes: &Axes, element_type: ElementType) -> bool {
    let is_odd = |rows: &Axis| element_type.is_float() && rows.len % ROWS != 0;
    matches!(axes.as_slice(), [rows, row] if row.reduced && is_odd(rows))
}

/// Returns the opcode of a reduce or reduce-window that adds up one array in a 16-bit float type,
/// if an op with this result is one.
pub fn narrow_sum(module: &Module, op: &Op, result: &Shape) -> Option<Opcode> {
    let to_apply = match op {
        Op::Reduce(attrs) => attrs.to_apply,
        Op::ReduceWindow(attrs) => attrs.to_apply,
        _ => return None,
    };
    let is_narrow = shared::is_narrow(result.as_array()?);
    let adds = || Monoid::of(module, to_apply).is_some_and(|by| by.opcode == Opcode::Add);
    (is_narrow && adds()).then(|| op.opcode())
}

/// Checks whether a reduction by loops is a nest of them that LLVM does not vectorise. Along rows of
/// several dims it vectorises sums of whole numbers, and others if the innermost dim is short. It
/// unrolls nests of few iterations, which serves products of floats.
fn is_nest(reducer: &Reducer, array: &ArrayShape, axes: &Axes, dims: &[i64]) -> bool {
    let all = (0i64..).zip(array.dims()).filter(|&(_, &len)| len > 1);
    let all: Axes = all.map(|(dim, &len)| Axis { len, reduced: dims.contains(&dim) }).collect();
    if all.iter().filter(|axis| axis.reduced).count() < 2 {
        return false;
    }
    let reduced = all.iter().filter(|axis| axis.reduced);
    let count = reduced.fold(1i64, |count, axis| count.saturating_mul(axis.len));
    let multiplies = |by: Monoid| by.opcode == Opcode::Multiply && by.element_type.is_float();
    if count <= UNROLLED && reducer.monoid().is_some_and(multiplies) {
        return false;
    }
    let adds = |by: Monoid| by.opcode == Opcode::Add && !by.element_type.is_float();
    let mut innermost = all.iter().rev();
    let (inner, outer) = (innermost.next(), innermost.next());
    let is_short = inner.is_some_and(|axis| axis.reduced && axis.len <= INNER)
        && outer.is_some_and(|axis| axis.reduced && axis.len >= INNER);
    let are_rows = axes.last().is_some_and(|axis| axis.reduced)
        && axes.iter().filter(|axis| axis.reduced).count() == 1;
    !(are_rows && (is_short || reducer.monoid().is_some_and(adds)))
}
