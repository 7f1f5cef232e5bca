//! Finds the steps of each form of a reduction from its axes (`analysis::axes`) alone. `build.rs`
//! plans the instructions of each step.

use smallvec::SmallVec;
use tilewright_target::reductions::Form;

use crate::analysis::axes::{Axes, Axis, elements, merged};

/// A step of a reduction, which reduces some elements of its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Combine the elements of an axis that lie `len / slices` (rounded down) apart, `slices` of
    /// each. The `len % slices` elements beside whole slices wait for the next step.
    Fold {
        /// The index of the axis.
        axis: usize,
        /// The number of slices that become one.
        slices: i64,
        /// The op that combines the slices.
        op: FoldOp,
    },
    /// Reduce along all axes but the innermost one.
    Outer,
    /// Combine the columns of the innermost axis by elementwise ops.
    Columns,
    /// Reduce all axes that remain, at once.
    ReduceAll,
}

/// The op that combines the slices of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldOp {
    /// A reduce, which is fused with the ops that compute its operand.
    Reduce,
    /// A window, which is not fused with the step before.
    Window,
}

pub(super) type Steps = SmallVec<[Step; 8]>;

/// The most slices that [`Form::Folds`] and [`Form::Windows`] combine at once: as many as registers
/// hold.
const MOST_SLICES: i64 = 16;
/// The number of slices if no number from [`LEAST_SLICES`] to [`MOST_SLICES`] divides an axis, and
/// the fewest slices of [`Form::Wide`].
const SLICES: i64 = 8;
/// The fewest slices that are tried for a long axis.
const LEAST_SLICES: i64 = 4;
/// The most elements that are reduced at once in a last step, in whichever way: a further step
/// would take as long.
const SMALL: i64 = 4096;
/// The number of elements that [`Form::Wide`] leaves side by side: eight vectors of 8.
const WIDE: i64 = 64;
/// The least length of the axis that [`Form::Wide`] leaves: XLA would merge a step that reduces a
/// whole dim with the next step.
const LEFT: i64 = 4;
/// The most columns that [`Form::Columns`] combines.
const MOST_COLUMNS: i64 = 8;

/// Returns the steps of a form for a reduction of these axes; `None` if the reduction has no such
/// form. Slices of the innermost axis are whole vectors of `lanes` elements where possible.
pub(super) fn steps(form: Form, axes: &Axes, lanes: i64) -> Option<Steps> {
    let steps = match form {
        Form::AsIs | Form::InF32 | Form::Copied | Form::Kernel => return None,
        Form::Merged => Steps::from_slice(&[Step::ReduceAll]),
        Form::Folds => folds(axes, lanes, |_| FoldOp::Reduce),
        Form::Windows => {
            folds(axes, lanes, |step| if step == 0 { FoldOp::Reduce } else { FoldOp::Window })
        }
        Form::Wide => Steps::from_slice(&[widest(axes)?, Step::ReduceAll]),
        Form::Columns => columns(axes)?,
    };
    let is_form = form == Form::Merged || form == Form::Columns || steps.len() > 1;
    is_form.then_some(steps)
}

/// Returns the axes that remain after a step.
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
        Step::ReduceAll => left.retain(|axis| !axis.reduced),
    }
    merged(left.into_iter().filter(|axis| axis.len > 1 || !axis.reduced))
}

/// Returns steps that fold one axis after the other, the outermost long one first, so that the
/// elements of the axes inside of it stay side by side.
fn folds(axes: &Axes, lanes: i64, op: impl Fn(usize) -> FoldOp) -> Steps {
    let mut left = axes.clone();
    let mut steps = Steps::new();
    loop {
        if !steps.is_empty() && elements(&left) <= SMALL && left.iter().any(|axis| axis.reduced) {
            steps.push(Step::ReduceAll);
            return steps;
        }
        let mut reduced = left.iter().enumerate().filter(|(_, axis)| axis.reduced);
        let long = reduced.clone().find(|(_, axis)| axis.len > MOST_SLICES);
        let Some((axis, &Axis { len, .. })) = long.or_else(|| reduced.next()) else { return steps };
        let vector = if axis + 1 == left.len() { lanes } else { 1 };
        let slices = if len > MOST_SLICES { slices_of(len, vector) } else { len };
        let step = Step::Fold { axis, slices, op: op(steps.len()) };
        steps.push(step);
        left = after(&left, step);
    }
}

/// Returns the number of slices for a long axis: one that divides the axis into whole vectors of
/// `vector` elements if there is one, otherwise one that divides it, otherwise [`SLICES`].
fn slices_of(len: i64, vector: i64) -> i64 {
    let near = (SLICES..=MOST_SLICES).chain((LEAST_SLICES..SLICES).rev());
    let mut divisors = near.filter(|slices| len % slices == 0 && len / slices > 2);
    let whole = divisors.clone().find(|slices| len / slices % vector.max(1) == 0);
    whole.or_else(|| divisors.next()).unwrap_or(SLICES)
}

/// Returns the step that folds the longest reduced axis other than the innermost axis. The step
/// leaves about the shortest length of that axis with which [`WIDE`] elements lie side by side.
fn widest(axes: &Axes) -> Option<Step> {
    let (_, outer) = axes.split_last()?;
    let reduced = outer.iter().enumerate().filter(|(_, axis)| axis.reduced);
    let (axis, &Axis { len, .. }) = reduced.max_by_key(|(_, axis)| axis.len)?;
    let inside = elements(&axes[axis + 1..]).max(1);
    let least = LEFT.max(WIDE.div_euclid(inside) + i64::from(WIDE % inside > 0));
    let left = (least..=least * 4).find(|left| len % left == 0).unwrap_or(least);
    let slices = len / left;
    (slices >= SLICES).then_some(Step::Fold { axis, slices, op: FoldOp::Reduce })
}

/// Returns steps that reduce the outer axes, if there are any, and then combine the columns of a
/// short innermost axis.
fn columns(axes: &Axes) -> Option<Steps> {
    let innermost = axes.last().filter(|axis| axis.reduced && axis.len <= MOST_COLUMNS);
    innermost?;
    let is_last = axes.iter().filter(|axis| axis.reduced).count() == 1;
    let steps = [Step::Outer, Step::Columns];
    Some(Steps::from_slice(if is_last { &steps[1..] } else { &steps }))
}
