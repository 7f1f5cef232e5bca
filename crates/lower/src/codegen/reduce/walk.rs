//! Describes an array in memory as loops over vectors and digits within a vector.

use tilewright_ir::index::{AddressError, row_major_strides};
use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, Physical, Target};

use super::blocks::signed;
use super::place::digit_of;
use crate::error::{LowerError, TooLarge, Unsupported};
use crate::kernel::{Bound, Digit, Expr, Mask};

/// A loop over vectors along a part of a dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outer {
    /// The dim.
    pub(crate) dim: usize,
    /// The difference of the dim's index between two steps.
    pub(crate) unit: u64,
    /// Number of steps.
    pub(crate) count: u64,
    /// Elements of memory between two steps.
    pub(crate) stride: u64,
}

/// A digit of the position in a vector; it represents a part of a dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    /// The dim; `None` for padding after a scalar.
    pub(crate) dim: Option<usize>,
    /// The difference of the dim's index between two values of the digit.
    pub(crate) unit: u64,
    /// Number of valid values of the digit; other values are padding.
    pub(crate) count: u64,
    /// The digit of the position.
    pub(crate) digit: Digit,
}

/// For each loop, the step at which a vector begins, and for each digit, its value in the
/// vector.
pub(crate) type Address<I> = (Vec<Expr<I>>, Vec<Expr<I>>);

/// A part of a dim, before it is assigned to loops or to digits.
struct Part {
    dim: Option<usize>,
    unit: u64,
    count: u64,
    stride: u64,
}

/// The loops and digits of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VectorWalk {
    /// The sizes of the dims.
    pub(crate) dims: Vec<u64>,
    /// The loops, major to minor.
    pub(crate) outer: Vec<Outer>,
    /// The digits, major to minor.
    pub(crate) inner: Vec<Inner>,
    /// Elements of a vector.
    pub(crate) vector: u64,
    /// Elements of the whole array in memory, padding included.
    pub(crate) len: u64,
}

impl VectorWalk {
    /// The walk over an array on a target, in vectors of `vector` elements.
    pub(crate) fn of(target: &Target, shape: &ArrayShape, vector: u64) -> Result<Self, LowerError> {
        if !shape.is_static() {
            return Err(Unsupported::Dynamic.into());
        }
        let physical = Physical::of(target, shape);
        let lows = row_major_strides(shape.dims()).map_err(|error| match error {
            AddressError::Overflow => LowerError::from(TooLarge::Elements),
            _ => Unsupported::Dynamic.into(),
        })?;
        let mut walk = Self {
            dims: shape.dims().iter().map(|&dim| u64::try_from(dim).unwrap_or(1)).collect(),
            outer: Vec::new(),
            inner: Vec::new(),
            vector,
            len: 1,
        };
        for axis in physical.axes().iter().rev() {
            let stride = walk.len;
            walk.len = stride.checked_mul(axis.extent).ok_or(TooLarge::Elements)?;
            if axis.count == 1 && (axis.extent == 1 || stride >= vector) {
                continue;
            }
            let low = axis.dim.and_then(|dim| lows.get(dim)).map_or(0, |low| low.unsigned_abs());
            let unit = axis.low.checked_div(low).unwrap_or(1);
            walk.push(
                target,
                Part { dim: axis.dim, unit, count: axis.count, stride },
                axis.extent,
            )?;
        }
        if walk.inner.is_empty() && vector > 1 {
            // A scalar on a linear memory has one element; the rest of its vector belongs to
            // others.
            let digit = Digit { stride: 1, extent: vector };
            walk.inner.push(Inner { dim: None, unit: 1, count: 1, digit });
        }
        walk.outer.reverse();
        walk.inner.reverse();
        if target.alignment == Alignment::Tiles && !walk.len.is_multiple_of(vector) {
            return Err(Unsupported::Tiles.into());
        }
        Ok(walk)
    }

    /// The walk in vectors of the machine. If elements are wider than a lane and a dim does not
    /// fill the tiles that these vectors are parts of, the walk in tiles.
    pub(crate) fn in_vectors(target: &Target, shape: &ArrayShape) -> Result<Self, LowerError> {
        let tile = target.tile(shape.element_type.bytes().saturating_mul(8));
        let tile = tile.iter().product::<u64>().max(1);
        let tried = [target.vector_elements(shape.element_type), tile];
        // On a machine that aligns to tiles, tiles must be whole vectors.
        let aligned = target.alignment == Alignment::Tiles;
        let fills = |vector: &u64| !aligned || vector.is_multiple_of(tried[0]);
        let walks = tried.into_iter().filter(fills).map(|vector| Self::of(target, shape, vector));
        let mut whole = walks.filter_map(Result::ok).filter(|walk| !walk.overshoots());
        match whole.next() {
            Some(walk) => Ok(walk),
            None => Self::of(target, shape, tried[0]).and(Err(Unsupported::Tiles.into())),
        }
    }

    /// Assigns the next more major part to digits of the vector as far as it fits, then to a
    /// loop.
    fn push(&mut self, target: &Target, part: Part, extent: u64) -> Result<(), LowerError> {
        let Part { dim, unit, count, stride } = part;
        let linear = target.alignment == Alignment::None;
        // On a linear memory a vector holds only elements along the minor-most dim.
        if stride >= self.vector || (linear && stride > 1) || count == 0 {
            let dim = dim.ok_or(Unsupported::Tiles)?;
            self.outer.push(Outer { dim, unit, count, stride });
            return Ok(());
        }
        if !self.vector.is_multiple_of(stride) {
            return Err(Unsupported::Tiles.into());
        }
        let room = self.vector / stride;
        let inside = if linear { room } else { extent.min(room) };
        let cuts = if linear { true } else { extent <= room || extent.is_multiple_of(room) };
        if !cuts || !room.is_multiple_of(inside) {
            return Err(Unsupported::Tiles.into());
        }
        let digit = Digit { stride, extent: inside };
        self.inner.push(Inner { dim, unit, count: count.min(inside), digit });
        if count > inside {
            let dim = dim.ok_or(Unsupported::Tiles)?;
            let count = count.div_ceil(inside);
            let unit = unit.checked_mul(inside).ok_or(TooLarge::Elements)?;
            self.outer.push(Outer { dim, unit, count, stride: self.vector });
        }
        Ok(())
    }

    /// Returns the digits of a dim.
    pub(crate) fn inner_of(&self, dim: usize) -> impl Iterator<Item = &Inner> {
        self.inner.iter().filter(move |inner| inner.dim == Some(dim))
    }

    /// Elements of memory from the first step along a dim to the end of the last.
    pub(crate) fn run(&self, dim: usize) -> u64 {
        let along = self.outer.iter().filter(|outer| outer.dim == dim);
        let runs = along.map(|outer| outer.stride.saturating_mul(outer.count));
        runs.max().unwrap_or(self.vector)
    }

    /// Checks whether a digit exceeds the end of its dim in some steps of the loops.
    pub(crate) fn is_partial(&self, inner: &Inner) -> bool {
        let overshoots = inner.dim.is_some_and(|dim| self.reach(dim) > self.size(inner));
        inner.count < inner.digit.extent || overshoots
    }

    /// Checks whether loops and digits exceed the end of a dim that has no digit to mask, or
    /// several digits that would have to be masked together.
    pub(crate) fn overshoots(&self) -> bool {
        let mut dims = self.dims.iter().enumerate();
        dims.any(|(dim, &size)| self.inner_of(dim).count() != 1 && self.reach(dim) > size)
    }

    /// Checks whether a vector begins past the end of a dim.
    pub(crate) fn passes(&self, dim: usize) -> bool {
        let outer = self.outer.iter().filter(|outer| outer.dim == dim);
        let last = outer.map(|outer| outer.unit.saturating_mul(outer.count.saturating_sub(1)));
        self.dims.get(dim).is_some_and(|&size| last.fold(0, u64::saturating_add) >= size)
    }

    /// Returns the greatest index that the loops and digits of a dim reach, plus one.
    fn reach(&self, dim: usize) -> u64 {
        let outer = self.outer.iter().filter(|outer| outer.dim == dim);
        let parts = outer.map(|outer| (outer.unit, outer.count));
        let inner = self.inner_of(dim).map(|inner| (inner.unit, inner.count));
        let last =
            parts.chain(inner).map(|(unit, count)| unit.saturating_mul(count.saturating_sub(1)));
        last.fold(1, u64::saturating_add)
    }

    /// Returns the mask of the positions of a vector that are not padding, for the index along
    /// each dim of its first element.
    pub(crate) fn mask(
        &self,
        index: &dyn Fn(usize) -> Result<Expr, LowerError>,
    ) -> Result<Mask, LowerError> {
        let partial = self.inner.iter().filter(|inner| self.is_partial(inner));
        partial.map(|inner| self.bound(inner, index)).collect()
    }

    /// Returns the bound of the values of a digit that are not padding.
    pub(crate) fn bound(
        &self,
        inner: &Inner,
        index: &dyn Fn(usize) -> Result<Expr, LowerError>,
    ) -> Result<Bound, LowerError> {
        let digits = self.inner.iter().filter(|other| other.dim == inner.dim);
        let loops = self.outer.iter().any(|outer| Some(outer.dim) == inner.dim);
        if loops && digits.count() > 1 {
            return Err(Unsupported::Tiles.into());
        }
        Ok(Bound { digit: inner.digit, from: Expr::ZERO, to: self.values(inner, index)? })
    }

    /// Returns the number of valid values of a digit in a vector.
    pub(crate) fn values(
        &self,
        inner: &Inner,
        index: &dyn Fn(usize) -> Result<Expr, LowerError>,
    ) -> Result<Expr, LowerError> {
        let index = inner.dim.map_or(Ok(Expr::ZERO), index)?;
        let most = Expr::from(signed(inner.count)?);
        if index == Expr::ZERO {
            return Ok(most);
        }
        // Round up so that a partial last step counts.
        let last = signed(self.size(inner).saturating_add(inner.unit).saturating_sub(1))?;
        Ok((Expr::from(last) + index * -1).quotient(signed(inner.unit)?))
    }

    /// Returns the address of an element, for its index along each dim: the step of each loop
    /// and the value of each digit.
    pub(crate) fn address<I: Copy + PartialEq>(
        &self,
        index: &[Expr<I>],
    ) -> Result<Address<I>, LowerError> {
        let part = |dim: Option<usize>, unit: u64| {
            let Some(dim) = dim else { return Ok(Expr::ZERO) };
            let units = self.outer.iter().map(|outer| (Some(outer.dim), outer.unit));
            let units = units.chain(self.inner.iter().map(|inner| (inner.dim, inner.unit)));
            let above = units.filter(|&(of, other)| of == Some(dim) && other > unit);
            let above = above.map(|(_, other)| other).min();
            let size = self.dims.get(dim).copied().unwrap_or(1);
            digit_of(index.get(dim).unwrap_or(&Expr::ZERO), unit, above, size)
        };
        let outer = self.outer.iter().map(|outer| part(Some(outer.dim), outer.unit));
        let outer: Result<Vec<Expr<I>>, LowerError> = outer.collect();
        let inner = self.inner.iter().map(|inner| part(inner.dim, inner.unit));
        Ok((outer?, inner.collect::<Result<_, _>>()?))
    }

    /// Returns the size of the dim of a digit.
    pub(crate) fn size(&self, inner: &Inner) -> u64 {
        inner.dim.and_then(|dim| self.dims.get(dim)).copied().unwrap_or(1)
    }
}
