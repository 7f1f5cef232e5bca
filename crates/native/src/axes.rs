//! The axes of an array in memory, each kept or reduced, sorted by stride and merged. `plan.rs`
//! makes blocks of them.

use smallvec::SmallVec;

use crate::error::Error;

/// An axis of an array, perhaps merged from several dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The number of indices.
    pub(crate) len: usize,
    /// The stride in the array, in elements.
    pub(crate) stride: isize,
    /// Whether the axis is kept or reduced.
    pub(crate) role: Role,
}

/// Whether an axis stays in the result or is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The axis stays in the result, where this is its stride in elements.
    Kept(usize),
    /// The axis is reduced. The places of two neighbours along it differ by this number; a place is
    /// the row-major index of an element among the elements that are reduced to one.
    Reduced(usize),
}

impl Axis {
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.role, Role::Kept(_))
    }

    /// Returns the axis of `len` indices, each of which stands for `step` indices of this axis.
    pub(crate) fn part(&self, len: usize, step: usize) -> Self {
        let role = match self.role {
            Role::Kept(stride) => Role::Kept(stride.saturating_mul(step)),
            Role::Reduced(stride) => Role::Reduced(stride.saturating_mul(step)),
        };
        let step = isize::try_from(step).unwrap_or(isize::MAX);
        Self { len, stride: self.stride.saturating_mul(step), role }
    }

    /// The stride of a kept axis in the result, or the distance of places along a reduced axis.
    fn role_stride(&self) -> usize {
        match self.role {
            Role::Kept(stride) | Role::Reduced(stride) => stride,
        }
    }

    /// Checks whether `self` and `inner` can become one axis: both are kept or both reduced, and
    /// each stride of `self` is `inner.len` times that of `inner`.
    fn continues(&self, inner: &Self) -> bool {
        let len = isize::try_from(inner.len).ok();
        let strides = len.and_then(|len| inner.stride.checked_mul(len));
        self.is_kept() == inner.is_kept()
            && strides == Some(self.stride)
            && inner.role_stride().checked_mul(inner.len) == Some(self.role_stride())
    }
}

/// Axes in the order of the size of their strides, the smallest first, but 0 last.
pub(crate) type Axes = SmallVec<[Axis; 6]>;

/// The axes of an array, and the dims of the result of its reduction.
pub(crate) struct Reduced {
    pub(crate) axes: Axes,
    pub(crate) dims: Vec<usize>,
    /// The number of elements that are reduced to one.
    pub(crate) count: usize,
}

/// Returns for each dim whether `axes` names it; negative axes count from the end.
pub(crate) fn named(rank: usize, axes: &[i64]) -> Result<SmallVec<[bool; 6]>, Error> {
    let mut named: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    for &axis in axes {
        let out_of_range = Error::AxisOutOfRange { axis, rank };
        let signed = i64::try_from(rank).map_err(|_| Error::TooLarge)?;
        let from_start = if axis < 0 { axis.checked_add(signed) } else { Some(axis) };
        let index = from_start.and_then(|axis| usize::try_from(axis).ok());
        let slot = index.and_then(|index| named.get_mut(index)).ok_or(out_of_range)?;
        if std::mem::replace(slot, true) {
            return Err(Error::AxisRepeated(index.unwrap_or(0)));
        }
    }
    Ok(named)
}

/// Returns the axes of an array with these dims and strides, sorted and merged; dims of size 1 are
/// left out. Axes of stride 0 come last, since no contiguous block can be made along them.
pub(crate) fn axes_of(dims: &[usize], strides: &[isize], axes: &[i64]) -> Result<Reduced, Error> {
    let named = named(dims.len(), axes)?;
    let (mut kept, mut count) = (1usize, 1usize);
    let mut all: Axes = Axes::new();
    for ((&len, &stride), &reduced) in dims.iter().zip(strides).zip(&named).rev() {
        let role_stride = if reduced { &mut count } else { &mut kept };
        let role = if reduced { Role::Reduced(*role_stride) } else { Role::Kept(*role_stride) };
        *role_stride = role_stride.checked_mul(len).ok_or(Error::TooLarge)?;
        if len != 1 {
            all.push(Axis { len, stride, role });
        }
    }
    all.sort_by_key(|axis| match axis.stride.unsigned_abs() {
        0 => usize::MAX,
        distance => distance,
    });
    let mut merged: Axes = Axes::new();
    for axis in all {
        match merged.last_mut() {
            Some(inner) if axis.continues(inner) => inner.len = inner.len.saturating_mul(axis.len),
            _ => merged.push(axis),
        }
    }
    let dims = dims.iter().zip(&named).filter(|&(_, &reduced)| !reduced).map(|(&dim, _)| dim);
    Ok(Reduced { axes: merged, dims: dims.collect(), count })
}
