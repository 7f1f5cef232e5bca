//! Plans a reduction of any set of axes in one pass.
//!
//! Source: the patent application on reducing tensors over several axes. Its method: make kept
//! and reduced axes alternate and walk them from one end. For every reduced axis record the
//! number of results that advance together (*base*), the distance between entries along the axis
//! (*offset*), and the number of independent repetitions (*parallel*). Blocks of `base` elements
//! from all those addresses are accumulated into the result at once, so that every element is
//! read once and nothing is stored in between.

pub(crate) mod axis;

use std::fmt;

use thiserror::Error;
use tilewright_ir::shape::ArrayShape;
use tilewright_target::Physical;

use axis::{Axis, AxisKind};

/// The end from which the axes are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Left to right: offsets are addresses if the first axis is minor-most.
    Forward,
    /// Right to left: offsets are addresses if the last axis is minor-most.
    Reverse,
}

impl Order {
    /// Its name: `forward` or `reverse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

/// The accumulation of one axis. Counts are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The number of the axis in the plan.
    pub axis: usize,
    /// Number of entries along it.
    pub extent: u64,
    /// Number of results that advance together: the kept elements of the *first block*, which is
    /// all axes that the walk has passed. 1 if there are none.
    pub base: u64,
    /// Distance between entries: all elements of the first block, padding included.
    pub offset: u64,
    /// Number of independent repetitions: the kept elements between this axis and the next
    /// reduced one, or the end.
    pub parallel: u64,
}

impl Step {
    /// Returns the addresses of the entries along the axis: 0, offset, 2*offset, ...
    pub fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let offset = self.offset;
        (0..self.extent).map_while(move |entry| entry.checked_mul(offset))
    }
}

/// The plan of a reduction. It needs no workspace.
///
/// ```
/// use tilewright_lower::{Order, ReductionPlan};
///
/// let plan = ReductionPlan::of_dims(&[2, 3, 2, 3, 6], &[1, 3], Order::Reverse)?;
/// assert_eq!(plan.kinds(), "dadad");
/// let [last, first] = plan.steps.as_slice() else { panic!("two axes are reduced") };
/// assert_eq!((last.base, last.offset, last.parallel), (6, 6, 2));
/// assert_eq!((first.base, first.offset, first.parallel), (12, 36, 2));
/// assert_eq!(first.addresses().collect::<Vec<_>>(), [0, 36, 72]);
/// # Ok::<(), tilewright_lower::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReductionPlan {
    /// The axes in normal form.
    pub axes: Vec<Axis>,
    /// The end from which they are walked.
    pub order: Order,
    /// One step per reduced axis, in the order of the walk.
    pub steps: Vec<Step>,
    /// Whether tiles cut a dim that they do not divide. The axes then exceed its end, and
    /// elements there must be masked.
    pub masked: bool,
}

/// The reason why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The array does not have a named axis.
    #[error("the array has no such axis: name dims from 0 up to its rank")]
    NoSuchAxis,
    /// An axis is named twice.
    #[error("an axis is reduced twice: name each once")]
    Twice,
    /// Sizes do not fit in addresses.
    #[error("the array has more than 2^64 elements, padding included")]
    TooLarge,
    /// A tile like `T(*,128)` combines kept and reduced dims into one axis.
    #[error("the layout's tiles combine dims, of which parts cannot be told apart")]
    Combined,
}

impl ReductionPlan {
    /// Reduces `reduced` of the given consecutive dims: the last is minor-most for
    /// [`Order::Reverse`], the first for [`Order::Forward`].
    ///
    /// # Errors
    /// Returns an error if an axis does not exist or is named twice, or sizes overflow.
    pub fn of_dims(dims: &[u64], reduced: &[usize], order: Order) -> Result<Self, PlanError> {
        let axes = axis::of_dims(dims, reduced, order == Order::Reverse)?;
        Self::new(axes, order, false)
    }

    /// Reduces `reduced` dims of an array in its layout: dims in any order, explicit padding,
    /// tiles. The axes are those of memory. If the first dim is minor-most and so on, they are
    /// walked forward, otherwise major to minor and in reverse. Dynamic dims count as their
    /// bounds.
    ///
    /// # Errors
    /// Returns an error if an axis does not exist or is named twice, sizes overflow, or tiles
    /// combine dims (`T(*,128)`).
    pub fn of_array(shape: &ArrayShape, reduced: &[usize]) -> Result<Self, PlanError> {
        let physical = Physical::of_layout(shape);
        let mut axes = axis::of_memory(shape, &physical, reduced)?;
        let minor_to_major = &shape.layout_or_default().minor_to_major;
        let ascending = minor_to_major.len() > 1 && minor_to_major.is_sorted();
        if ascending {
            axes.reverse();
        }
        let order = if ascending { Order::Forward } else { Order::Reverse };
        Self::new(axes, order, physical.is_ragged())
    }

    fn new(axes: Vec<Axis>, order: Order, masked: bool) -> Result<Self, PlanError> {
        let axes = axis::normalized(axes, order == Order::Reverse);
        let steps = match order {
            Order::Forward => walk(axes.iter().copied().enumerate())?,
            Order::Reverse => walk(axes.iter().copied().enumerate().rev())?,
        };
        Ok(Self { axes, order, steps, masked })
    }

    /// Returns a `d` for every kept axis and an `a` for every reduced one, such as `dadad`.
    pub fn kinds(&self) -> String {
        self.axes.iter().map(|axis| axis.kind.letter()).collect()
    }
}

/// One step for each reduced axis, in the order of the walk.
fn walk(axes: impl Iterator<Item = (usize, Axis)>) -> Result<Vec<Step>, PlanError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut kept = 1u64;
    for (place, axis) in axes {
        let Axis { kind, extent, stride } = axis;
        match kind {
            AxisKind::Kept => {
                let longer = |n: u64| n.checked_mul(extent).ok_or(PlanError::TooLarge);
                kept = longer(kept)?;
                if let Some(step) = steps.last_mut() {
                    step.parallel = longer(step.parallel)?;
                }
            }
            AxisKind::Reduced => {
                steps.push(Step { axis: place, extent, base: kept, offset: stride, parallel: 1 });
            }
        }
    }
    Ok(steps)
}

/// Displays the axes on one line, then one line per step.
impl fmt::Display for ReductionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.axes.iter().map(|a| a.extent.to_string()).collect();
        let masked = if self.masked { ", tiles that are not full" } else { "" };
        writeln!(f, "({}) {} {}{masked}", extents.join(","), self.kinds(), self.order.name())?;
        for Step { axis, extent, base, offset, parallel } in &self.steps {
            writeln!(
                f,
                "  axis {axis} of {extent}: base {base}, offset {offset}, parallel {parallel}"
            )?;
        }
        Ok(())
    }
}
