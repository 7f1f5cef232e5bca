//! The normal form of the kept and reduced axes of an array in memory.

use tilewright_ir::shape::ArrayShape;
use tilewright_target::Physical;

use super::PlanError;

/// Whether an axis is kept or reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisKind {
    /// It is an axis of the result (`d`).
    Kept,
    /// It is accumulated (`a`).
    Reduced,
}

impl AxisKind {
    /// `Reduced` if the argument is true, `Kept` otherwise.
    pub fn of(reduced: bool) -> Self {
        if reduced { Self::Reduced } else { Self::Kept }
    }

    /// Returns the letter for it in plans.
    pub fn letter(self) -> char {
        match self {
            Self::Kept => 'd',
            Self::Reduced => 'a',
        }
    }
}

/// An axis of an array in memory: one dim, a part of a dim that tiles cut, or several adjacent
/// dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Whether it is kept or reduced.
    pub kind: AxisKind,
    /// Number of elements along it, without padding.
    pub extent: u64,
    /// Distance in memory between two neighbours along it, in elements, padding included.
    pub stride: u64,
}

impl Axis {
    /// Merges this axis with the next more minor one, if no padding lies between them.
    fn merged(self, minor: Self) -> Option<Self> {
        let follows = minor.stride.checked_mul(minor.extent) == Some(self.stride);
        let extent = self.extent.checked_mul(minor.extent)?;
        (follows && self.kind == minor.kind).then_some(Self { extent, ..minor })
    }
}

/// Returns the axes of consecutive dims, each kept or reduced; the last or the first dim is
/// minor-most.
pub(crate) fn of_dims(
    dims: &[u64],
    reduced: &[usize],
    last_is_minor: bool,
) -> Result<Vec<Axis>, PlanError> {
    let kinds = kinds(dims.len(), reduced)?;
    let mut axes: Vec<Axis> = kinds
        .into_iter()
        .zip(dims)
        .map(|(kind, &extent)| Axis { kind, extent, stride: 1 })
        .collect();
    let mut stride = 1u64;
    let mut place = |axis: &mut Axis| {
        axis.stride = stride;
        stride = stride.checked_mul(axis.extent).ok_or(PlanError::TooLarge)?;
        Ok(())
    };
    if last_is_minor {
        axes.iter_mut().rev().try_for_each(&mut place)?;
    } else {
        axes.iter_mut().try_for_each(&mut place)?;
    }
    Ok(axes)
}

/// Returns the axes of an array in memory, major to minor.
pub(crate) fn of_memory(
    shape: &ArrayShape,
    physical: &Physical,
    reduced: &[usize],
) -> Result<Vec<Axis>, PlanError> {
    let kinds = kinds(shape.rank(), reduced)?;
    let mut axes = Vec::with_capacity(physical.axes().len());
    let mut stride = 1u64;
    for digit in physical.axes().iter().rev() {
        if digit.count > 1 || digit.count == 0 {
            let kind =
                *kinds.get(digit.dim.ok_or(PlanError::Combined)?).ok_or(PlanError::NoSuchAxis)?;
            axes.push(Axis { kind, extent: digit.count, stride });
        }
        stride = stride.checked_mul(digit.extent).ok_or(PlanError::TooLarge)?;
    }
    axes.reverse();
    Ok(axes)
}

fn kinds(rank: usize, reduced: &[usize]) -> Result<Vec<AxisKind>, PlanError> {
    let mut kinds = vec![AxisKind::Kept; rank];
    for &axis in reduced {
        let kind = kinds.get_mut(axis).ok_or(PlanError::NoSuchAxis)?;
        if std::mem::replace(kind, AxisKind::Reduced) == AxisKind::Reduced {
            return Err(PlanError::Twice);
        }
    }
    Ok(kinds)
}

/// Merges adjacent axes of one kind, so that kept and reduced axes alternate as far as padding
/// allows. Axes of size 1 are dropped.
pub(crate) fn normalized(axes: Vec<Axis>, last_is_minor: bool) -> Vec<Axis> {
    let mut normal: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes.into_iter().filter(|axis| axis.extent != 1) {
        let one = normal.last().and_then(|&before| match last_is_minor {
            true => before.merged(axis),
            false => axis.merged(before),
        });
        match (one, normal.last_mut()) {
            (Some(one), Some(before)) => *before = one,
            _ => normal.push(axis),
        }
    }
    normal
}
