//! The steps in which a reduction is computed, from its axes alone.

use smallvec::SmallVec;
use tilewright_ir::reducer::{Monoid, Reducer};
use tilewright_ir::{ElementType, Opcode};

use crate::cost::reduce_speed::{
    Axes, Axis, ReduceEngine, TREE, UNROLLED, has_odd_rows, is_short, merged, most_unrolled,
};

/// A step of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Combine the elements of an axis that lie `len / slices` apart, `slices` of each. What
    /// remains beside whole slices waits for the next step.
    Fold {
        /// The number of the axis.
        axis: usize,
        /// The number of slices that become one.
        slices: i64,
        /// The op that combines them.
        by: By,
    },
    /// Reduce along all axes but the innermost one.
    Outer,
    /// Combine the elements along the innermost axis, which is taken apart into columns.
    Columns,
    /// Reduce all that remains.
    Rest,
}

/// The op of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A reduce, which is fused with what computes its operand.
    Reduce,
    /// A window, which is not fused with the step before.
    Window,
}

/// The slices that a step combines: as many as registers hold at once.
const SLICES: i64 = 8;
/// The most slices of floats of 16 bits, which are converted first.
const MOST_NARROW: i64 = 10;
/// The elements of a vector of 32 bits each.
const VECTOR: i64 = 8;
/// The elements of a slice that are computed in vectors but for few of them.
const LONG_SLICE: i64 = 32;
/// The least elements of a slice of rows.
const LEAST_ROW: i64 = 3;
/// The least slices that are combined at once so that none is left over.
const LEAST_DIVISOR: i64 = 4;
/// The elements of an innermost loop that the library computes fast.
const WIDE: i64 = 64;
/// The least slices that a step of the library leaves: XLA would merge a step that reduces a whole
/// dim with the next one.
const LEFT: i64 = 4;
/// The least slices that are worth a step of the library.
const LEAST_SLICES: i64 = 8;
/// At most this many elements are reduced at once, in whichever way: another step takes as long.
const SMALL: i64 = 4096;
/// The least row of which extrema are slow in one loop.
const LONG_ROW: i64 = 512;

pub(super) type Steps = SmallVec<[Step; 8]>;

/// The ops that compute an array where it is reduced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Producers {
    /// Whether it is converted.
    pub(super) convert: bool,
    /// Whether functions are among them that are fast in whole vectors alone.
    pub(super) have_functions: bool,
}

/// Returns the steps for a reduction of these axes of an array; `None` if it is best as it is. The
/// first step of a loop is one that is `aligned`, if there is one.
pub(super) fn steps(
    reducer: &Reducer,
    element_type: ElementType,
    producers: Producers,
    axes: &Axes,
    aligned: &dyn Fn(Step) -> bool,
) -> Option<Steps> {
    match ReduceEngine::of(reducer)? {
        ReduceEngine::Pairs => {
            let is_short = most_unrolled(axes, element_type, true) < UNROLLED;
            let most = if is_short { MOST_NARROW } else { UNROLLED };
            let is_slow = !is_fast_pair(axes, element_type);
            is_slow.then(|| folds(axes, most, false, &|_| By::Reduce, &|_| true))
        }
        ReduceEngine::Loops if are_fast_rows(reducer.monoid()?, producers.convert, axes) => None,
        ReduceEngine::Loops => {
            let first = |step| if step == 0 { By::Reduce } else { By::Window };
            // If a reduced dim stays outside of the first one that is folded, XLA:CPU fuses the reshape
            // behind that step with it, and computes truth values bit by bit.
            let in_order = element_type == ElementType::Pred;
            let steps = folds(axes, UNROLLED, in_order, &first, aligned);
            let first = *steps.first()?;
            let is_aligned = aligned(first);
            let is_vectorised = is_vectorised(axes, first);
            let fits = if is_aligned {
                is_vectorised || !producers.have_functions
            } else {
                is_whole(axes, first) && (is_vectorised || !producers.convert)
            };
            (steps.len() > 1 && fits).then_some(steps)
        }
        ReduceEngine::Library => library(reducer.monoid()?, element_type, axes),
    }
}

/// Checks whether LLVM vectorises a reduction of whole numbers along rows and one short outer dim, with
/// kept dims between. Sums of converted arrays are fast up to the size at which XLA:CPU divides a reduction,
/// and extrema beyond it: sums of `s8[6,4096,14,24]` along 0 and 3 took 2.3 times as long in steps, minima
/// of `u32[16,384,224]` along 0 and 2 1.5 times.
fn are_fast_rows(monoid: Monoid, is_converted: bool, axes: &Axes) -> bool {
    let mut reduced = axes.iter().filter(|axis| axis.reduced).map(|axis| axis.len);
    let (Some(outer), Some(row), None) = (reduced.next(), reduced.next(), reduced.next()) else {
        return false;
    };
    let are_rows = axes.last().is_some_and(|axis| axis.reduced) && outer <= TREE;
    let is_fast = match monoid.opcode {
        Opcode::Add if outer <= SLICES => row <= TREE || row < LONG_ROW && !is_converted,
        Opcode::Add => row <= TREE && row > UNROLLED,
        Opcode::Maximum | Opcode::Minimum => row > UNROLLED && row < LONG_ROW,
        _ => false,
    };
    are_rows
        && is_fast
        && !monoid.element_type.is_float()
        && monoid.element_type != ElementType::Pred
}

/// Checks whether the slices of a step are whole vectors, or long. XLA:CPU computes functions in others one
/// element after the other: counts of `tanh` in rows of 49 took 3 times as long in 7 slices of 7. Conversions
/// behind a barrier are slow there, too: counts in `pred[12,480,186]` along 0 and 2 took twice as long in
/// slices of 31.
fn is_vectorised(axes: &Axes, step: Step) -> bool {
    let Step::Fold { axis, slices, .. } = step else { return true };
    let is_row = axis + 1 == axes.len();
    let slice = axes.get(axis).map_or(0, |axis| axis.len / slices.max(1));
    !is_row || slice % VECTOR == 0 || slice > LONG_SLICE
}

/// Checks whether the slices of a step make up the whole axis. If they are not aligned and leave a rest, the
/// steps take longer than the reduction: `pred[17,1000,49]` along 0 and 2 took 1.5 times as long.
fn is_whole(axes: &Axes, step: Step) -> bool {
    let Step::Fold { axis, slices, .. } = step else { return true };
    axes.get(axis).is_none_or(|axis| axis.len % slices.max(1) == 0)
}

/// Checks whether LLVM vectorises a reduction of pairs along these axes.
pub(super) fn is_fast_pair(axes: &Axes, element_type: ElementType) -> bool {
    let limit = most_unrolled(axes, element_type, true);
    let is_long = axes.iter().any(|axis| axis.reduced && axis.len > limit);
    !is_long && !has_odd_rows(axes, element_type)
}

/// Returns the axes after a step.
pub(super) fn after(axes: &Axes, step: Step) -> Axes {
    let mut left = axes.clone();
    match step {
        Step::Fold { axis, slices, .. } => {
            if let Some(axis) = left.get_mut(axis) {
                axis.len = axis.len / slices.max(1) + axis.len % slices.max(1);
            }
        }
        Step::Outer => {
            let innermost = left.pop();
            left.retain(|axis| !axis.reduced);
            left.extend(innermost);
        }
        Step::Columns => {
            left.pop();
        }
        Step::Rest => left.retain(|axis| !axis.reduced),
    }
    merged(left.into_iter().filter(|axis| axis.len > 1 || !axis.reduced))
}

/// Returns steps that fold one axis after the other, the outermost first: what lies inside of it
/// stays side by side. A step combines `most` slices at most. Longer axes come before all others, unless
/// they are folded `in_order`. The first step is one that `fits`, if there is one.
fn folds(
    axes: &Axes,
    most: i64,
    in_order: bool,
    by: &dyn Fn(usize) -> By,
    fits: &dyn Fn(Step) -> bool,
) -> Steps {
    let mut left = axes.clone();
    let mut steps = Steps::new();
    loop {
        let elements = left.iter().fold(1i64, |all, axis| all.saturating_mul(axis.len));
        if !steps.is_empty() && elements <= SMALL && left.iter().any(|axis| axis.reduced) {
            steps.push(Step::Rest);
            return steps;
        }
        let reduced = |(_, axis): &(usize, &Axis)| axis.reduced;
        let mut all = left.iter().enumerate().filter(reduced);
        let long = all.clone().find(|(_, axis)| axis.len > most && !in_order);
        let Some((axis, &Axis { len, .. })) = long.or_else(|| all.next()) else { return steps };
        let is_row = axis + 1 == left.len();
        let step = |slices: i64| Step::Fold { axis, slices, by: by(steps.len()) };
        let fits = |slices: i64| !steps.is_empty() || fits(step(slices));
        let slices = if len > most { slices_of(len, most, is_row, &fits) } else { len };
        let step = step(slices);
        steps.push(step);
        left = after(&left, step);
    }
}

/// Checks whether the first step of a loop reads slices that are rows of the array, of some of its dims.
/// XLA:CPU computes the place of an element of other slices by divisions, one element after the other,
/// if the array has more than two dims and no barrier stands before the loop: maxima of `s32[2,50,6400]` took
/// twice as long in steps.
pub(super) fn is_aligned(dims: &[i64], axes: &Axes, step: Step) -> bool {
    let Step::Fold { axis, slices, .. } = step else { return true };
    if dims.iter().filter(|&&dim| dim > 1).count() <= 2 {
        return true;
    }
    let within = |axes: &[Axis]| axes.iter().fold(1i64, |all, axis| all.saturating_mul(axis.len));
    let Some(Axis { len, .. }) = axes.get(axis) else { return false };
    // Scalars and rows that are broadcast are read in their own ways.
    if within(axes) != dims.iter().fold(1i64, |all, &dim| all.saturating_mul(dim)) {
        return true;
    }
    let slice = (len / slices.max(1)).saturating_mul(within(&axes[axis + 1..]));
    let mut inside = 1i64;
    for &dim in dims.iter().rev() {
        let row = inside.saturating_mul(dim);
        if row >= slice {
            return slice % inside == 0 && row % slice == 0;
        }
        inside = row;
    }
    true
}

/// Returns the number of slices for an axis, `most` at most: one that divides it, and `fits` if there is
/// such a one. Slices of rows have three elements or more, since XLA:CPU does not vectorise along two.
fn slices_of(len: i64, most: i64, is_row: bool, fits: &dyn Fn(i64) -> bool) -> i64 {
    let least = if is_row { LEAST_ROW } else { 1 };
    let divides = |slices: &i64| len % slices == 0 && len / slices >= least;
    let near: Vec<i64> =
        (SLICES..=most).chain((LEAST_DIVISOR..SLICES).rev()).filter(divides).collect();
    let fitting: Vec<i64> = near.iter().copied().filter(|&slices| fits(slices)).collect();
    let best = best_of(&fitting, len, most, is_row).or_else(|| best_of(&near, len, most, is_row));
    best.unwrap_or(SLICES.min(len / least))
}

/// Returns one of several numbers of slices. Slices of rows are a number of whole vectors, if that is
/// possible: rows of 112 `tanh` take 5 times as long in 8 slices of 14 as in 14 of 8. Otherwise they are few
/// enough for one more step.
fn best_of(near: &[i64], len: i64, most: i64, is_row: bool) -> Option<i64> {
    let ends = |slices: &i64| len / slices <= most;
    let is_whole = |slices: &i64| len / slices % VECTOR == 0;
    let find = |is: &dyn Fn(&i64) -> bool| near.iter().copied().find(|slices| is(slices));
    let of_row = || {
        let both = find(&|slices| is_whole(slices) && ends(slices));
        both.or_else(|| find(&is_whole)).or_else(|| find(&ends))
    };
    let best = if is_row { of_row() } else { None };
    best.or_else(|| near.first().copied())
}

/// Returns the steps for a library that is slow where the innermost axis is short.
fn library(monoid: Monoid, element_type: ElementType, axes: &Axes) -> Option<Steps> {
    let innermost = axes.last().copied().filter(|&axis| is_short(axis, element_type))?;
    if let Some(wide) = widest(axes) {
        return Some(Steps::from_slice(&[wide, Step::Rest]));
    }
    let columns = innermost.reduced && innermost.len <= most_columns(monoid, element_type);
    // The columns come last: XLA:CPU would store each before it leaves their sums to the library.
    let is_last = axes.iter().filter(|axis| axis.reduced).count() == 1;
    columns.then(|| {
        let steps = [Step::Outer, Step::Columns];
        Steps::from_slice(if is_last { &steps[1..] } else { &steps })
    })
}

/// Returns the step that folds the longest axis that lies around others, so that what it leaves is
/// wide.
fn widest(axes: &Axes) -> Option<Step> {
    let (_, outer) = axes.split_last()?;
    let reduced = outer.iter().enumerate().filter(|(_, axis)| axis.reduced);
    let (axis, &Axis { len, .. }) = reduced.max_by_key(|(_, axis)| axis.len)?;
    let inside = axes[axis + 1..].iter().fold(1i64, |all, axis| all.saturating_mul(axis.len));
    let least = LEFT.max(WIDE.div_euclid(inside) + i64::from(WIDE % inside > 0));
    let left = (least..=least * 4).find(|left| len % left == 0).unwrap_or(least);
    let slices = len / left;
    (slices >= LEAST_SLICES).then_some(Step::Fold { axis, slices, by: By::Reduce })
}

/// The most columns that are combined one by one. Extrema take an instruction more for NaN.
fn most_columns(monoid: Monoid, element_type: ElementType) -> i64 {
    match (monoid.opcode, element_type) {
        (_, ElementType::BF16) => 2,
        (Opcode::Add, _) => 8,
        _ => 4,
    }
}
