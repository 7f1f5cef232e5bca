//! Maps vectors of an array to vectors of the result.
//!
//! A kept dim can lie in the vectors of the array and of the result in different ways. A dim
//! with the same digits in both keeps its position. Every other dim is taken out of the vector
//! value by value, and each value is stored alone. If a vector of the array spans several
//! vectors of the result, these are its *parts*.

use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Alignment, Target};

use super::blocks::signed;
use super::walk::{Inner, Outer, VectorWalk};
use super::window::{Window, WindowLoop};
use crate::error::{LowerError, TooLarge, Unsupported};
use crate::kernel::{Bound, Digit, Expr, Mask, after};

/// The layout of one array's result, relative to the layout of the array.
#[derive(Debug)]
pub(crate) struct Placement {
    result: VectorWalk,
    /// The loops over the result, with dim numbers of the array: over elements on a linear
    /// memory, over vectors otherwise.
    loops: Vec<Outer>,
    /// The dims of the array that the result keeps, in order.
    kept: Vec<usize>,
    /// The dims of the array whose digits keep their position.
    direct: Vec<usize>,
    /// The digits whose values are taken out one by one.
    pub(crate) moved: Vec<Inner>,
    /// The digits that select the part of a vector of the array.
    pub(crate) parts: Vec<Inner>,
    linear: bool,
    /// Elements of a vector of the array.
    vector: u64,
    /// Elements of a part.
    pub(crate) part: u64,
}

/// The reduced dims of an array, and the dim of which elements are selected.
#[derive(Clone, Copy)]
struct Dims<'a> {
    reduced: &'a [usize],
    chosen: Option<usize>,
}

impl Dims<'_> {
    /// Checks whether the result has a dim.
    fn keep(self, dim: usize) -> bool {
        !self.reduced.contains(&dim) || self.chosen == Some(dim)
    }
}

impl Placement {
    /// The placement of a result. A selection has some values of the dim `chosen`, and each
    /// value it stores is present at all positions along that dim.
    pub(crate) fn of(
        target: &Target,
        walk: &VectorWalk,
        shape: &ArrayShape,
        reduced: &[usize],
        chosen: Option<usize>,
    ) -> Result<Self, LowerError> {
        let linear = target.alignment == Alignment::None;
        let own = target.vector_elements(shape.element_type);
        if !linear && own > walk.vector {
            return Err(Unsupported::Narrow.into());
        }
        if !linear && !walk.vector.is_multiple_of(own) {
            return Err(Unsupported::Tiles.into());
        }
        let dims = Dims { reduced, chosen };
        if linear {
            return Self::in_parts(target, walk, shape, dims, walk.vector);
        }
        // Several vectors of the result can make up a row of tiles.
        Self::in_parts(target, walk, shape, dims, own)
            .or_else(|_| Self::in_parts(target, walk, shape, dims, walk.vector))
    }

    /// The placement for stores of `part` elements at once.
    fn in_parts(
        target: &Target,
        walk: &VectorWalk,
        shape: &ArrayShape,
        dims: Dims<'_>,
        part: u64,
    ) -> Result<Self, LowerError> {
        let linear = target.alignment == Alignment::None;
        let result = VectorWalk::of(target, shape, part)?;
        let (low, high) = cut(&walk.inner, part)?;
        let kept: Vec<usize> = (0..walk.dims.len()).filter(|&dim| dims.keep(dim)).collect();
        let stays = |place: usize, dim: usize| {
            let low = low.iter().filter(|inner| inner.dim == Some(dim));
            let here = low.map(|inner| (inner.unit, inner.digit));
            here.eq(result.inner_of(place).map(|inner| (inner.unit, inner.digit)))
        };
        let is_chosen = |dim: usize| dims.chosen == Some(dim);
        let direct = kept.iter().enumerate().filter(|&(p, &d)| !is_chosen(d) && stays(p, d));
        let direct: Vec<usize> = direct.map(|(_, &dim)| dim).collect();
        // Vectors past the end of a dim have an address in the result only if the tiles are the
        // same.
        let same_loops = |(place, dim): (usize, usize)| {
            let here = walk.outer.iter().filter(|outer| outer.dim == dim);
            let here = here.map(|outer| (outer.unit, outer.count));
            let there = result.outer.iter().filter(|outer| outer.dim == place);
            here.eq(there.map(|outer| (outer.unit, outer.count)))
        };
        let mut stay = kept.iter().copied().enumerate().filter(|(_, dim)| direct.contains(dim));
        if stay.any(|(place, dim)| walk.passes(dim) && !same_loops((place, dim))) {
            return Err(Unsupported::Tiles.into());
        }
        // Padding of the array's tiles must not be moved into the result.
        let is_moved = |inner: &&Inner| match inner.dim {
            Some(dim) => kept.contains(&dim) && !direct.contains(&dim) && !is_chosen(dim),
            None => direct != kept,
        };
        let moved = walk.inner.iter().filter(is_moved).copied().collect();
        let is_direct = |dim: Option<usize>| dim.is_some_and(|dim| direct.contains(&dim));
        let parts = high.into_iter().filter(|inner| is_direct(inner.dim)).collect();
        // On a linear memory each element that is taken out is stored alone.
        let kept_dim = |place: usize| kept.get(place).copied();
        let stay = result.inner.iter().any(|inner| is_direct(inner.dim.and_then(kept_dim)));
        let elements = VectorWalk::of(target, shape, if linear { 1 } else { part })?;
        let along = |outer: &Outer| Some(Outer { dim: kept_dim(outer.dim)?, ..*outer });
        let loops = elements.outer.iter().filter_map(along).collect();
        let result = if linear && !stay { elements } else { result };
        let vector = walk.vector;
        Ok(Self { result, loops, kept, direct, moved, parts, linear, vector, part })
    }

    /// Elements of the result in memory, padding included.
    pub(crate) fn len(&self) -> u64 {
        self.result.len
    }

    /// Number of elements along a dim after which a vector is complete; `None` if only the whole
    /// dim completes one.
    pub(crate) fn whole_vectors(&self, dim: usize) -> Option<u64> {
        self.loops.iter().filter(|outer| outer.dim == dim).map(|outer| outer.unit).max()
    }

    /// Returns the window that holds `extent` elements of each dim, or the whole dim for
    /// `None`.
    pub(crate) fn window(&self, extent: &dyn Fn(usize) -> Option<u64>) -> Window {
        if self.loops.iter().all(|outer| extent(outer.dim).is_none()) {
            // A window of the whole result has the layout of main memory.
            let same =
                |&outer: &Outer| WindowLoop { outer, count: outer.count, stride: outer.stride };
            return Window { loops: self.loops.iter().map(same).collect(), len: self.len() };
        }
        let mut loops = Vec::with_capacity(self.loops.len());
        let mut len = self.step();
        for &outer in self.loops.iter().rev() {
            let held = extent(outer.dim).map_or(u64::MAX, |e| e.div_ceil(outer.unit.max(1)));
            let count = outer.count.min(held);
            loops.push(WindowLoop { outer, count, stride: len });
            len = len.saturating_mul(count);
        }
        loops.reverse();
        Window { loops, len }
    }

    /// Elements of a step of the minor-most loop of a window.
    pub(crate) fn step(&self) -> u64 {
        if self.linear { 1 } else { self.part }
    }

    /// Returns the address in a window at which a vector of results is stored, and the mask of
    /// the stored elements. The arguments are the indices along each dim of the array, in the
    /// whole array and in the window: for dims that keep their position, those of the first
    /// element of the vector; for other dims, those of the element.
    pub(crate) fn at(
        &self,
        window: &Window,
        index: &dyn Fn(usize) -> Expr,
        local: &dyn Fn(usize) -> Expr,
    ) -> Result<(Expr, Mask), LowerError> {
        let mut address = Expr::ZERO;
        for at in &window.loops {
            let Outer { dim, unit, .. } = at.outer;
            let along = window.loops.iter().filter(|other| other.outer.dim == dim);
            let above = along.map(|other| other.outer.unit).filter(|&other| other > unit).min();
            let digit = digit_of(&local(dim), unit, above, self.size(dim))?;
            address = address + digit * signed(at.stride)?;
        }
        Ok((address, self.mask(index)?))
    }

    fn mask(&self, index: &dyn Fn(usize) -> Expr) -> Result<Mask, LowerError> {
        let mut mask = Mask::new();
        for (place, &dim) in self.kept.iter().enumerate() {
            let is_direct = self.direct.contains(&dim);
            let (index, size) = (index(dim), self.size(dim));
            let outer = self.loops.iter().filter(|outer| outer.dim == dim);
            let mut above = outer.map(|outer| outer.unit).min();
            let mut inner: Vec<_> = self.result.inner_of(place).collect();
            inner.sort_by_key(|inner| std::cmp::Reverse(inner.unit));
            for inner in inner {
                if !is_direct {
                    let from = digit_of(&index, inner.unit, above, size)?;
                    let to = after(&from);
                    mask.push(Bound { digit: inner.digit, from, to });
                } else if self.linear && self.result.is_partial(inner) {
                    let left = Expr::from(signed(size)?) + index.clone() * -1;
                    mask.push(Bound { digit: inner.digit, from: Expr::ZERO, to: left });
                }
                above = Some(inner.unit);
            }
        }
        if self.linear && self.result.inner.is_empty() && self.vector > 1 {
            let (from, to) = (Expr::ZERO, Expr::Constant(1));
            mask.push(Bound { digit: Digit { stride: 1, extent: self.vector }, from, to });
        }
        Ok(mask)
    }

    /// Returns the size of a kept dim of the array.
    pub(crate) fn size(&self, dim: usize) -> u64 {
        let place = self.kept.iter().position(|&kept| kept == dim);
        place.and_then(|place| self.result.dims.get(place)).copied().unwrap_or(1)
    }
}

/// Splits the digits of a vector into those within a part and those that select the part.
fn cut(digits: &[Inner], part: u64) -> Result<(Vec<Inner>, Vec<Inner>), LowerError> {
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for &inner in digits {
        let Digit { stride, extent } = inner.digit;
        let reach = stride.checked_mul(extent).ok_or(TooLarge::Elements)?;
        if reach <= part {
            low.push(inner);
        } else if stride >= part {
            let digit = Digit { stride: stride / part, extent };
            high.push(Inner { digit, ..inner });
        } else {
            let here = part / stride.max(1);
            if here.checked_mul(stride) != Some(part) || !extent.is_multiple_of(here) {
                return Err(Unsupported::Tiles.into());
            }
            let count = inner.count.min(here);
            low.push(Inner { count, digit: Digit { stride, extent: here }, ..inner });
            let (unit, count) = (inner.unit.saturating_mul(here), inner.count.div_ceil(here));
            let digit = Digit { stride: 1, extent: extent / here };
            high.push(Inner { unit, count, digit, ..inner });
        }
    }
    Ok((low, high))
}

/// Returns the digit of an index at a unit, below the unit of the next greater digit.
pub(crate) fn digit_of<I: Copy + PartialEq>(
    index: &Expr<I>,
    unit: u64,
    above: Option<u64>,
    size: u64,
) -> Result<Expr<I>, LowerError> {
    let below = match above {
        Some(above) if above < size => index.clone().remainder(signed(above)?),
        Some(_) | None => index.clone(),
    };
    Ok(below.quotient(signed(unit)?))
}
