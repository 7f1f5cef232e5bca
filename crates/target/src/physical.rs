//! The physical array behind a shape: its dims in the order of memory, cut
//! into tiles.

use smallvec::{SmallVec, smallvec};
use tilewright_ir::layout::{Layout, Tile};
use tilewright_ir::shape::ArrayShape;

use crate::footprint::element_bits;
use crate::target::{Alignment, Target};

/// Returns the size of a dim for costs; 1 if it is unbounded.
pub(crate) fn size(dim: i64) -> u64 {
    u64::try_from(dim).unwrap_or(1)
}

/// A digit of an array's row-major index, as one axis of its memory.
///
/// All digits together read an index as a clock reads seconds: divide by the greatest `low` for
/// its digit, then continue with the remainder and the next lower `low`. Cutting a digit into
/// tiles of `t` therefore makes two digits, at `low` and `t*low`, whether or not `t` divides
/// its count.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    /// The dim that it is a part of; `None` if tiles combine several.
    pub dim: Option<usize>,
    /// Distance in the index between neighbours along the axis.
    pub low: u64,
    /// Number of values.
    pub count: u64,
    /// Number of values with padding.
    pub extent: u64,
}

impl Digit {
    /// An axis whose only value is 0.
    fn constant(extent: u64) -> Self {
        Self { dim: None, low: 1, count: 1, extent }
    }
}

pub(crate) type Tiles = SmallVec<[Tile; 1]>;

/// An array in its memory layout.
#[derive(Clone, Debug)]
pub struct Physical {
    /// The axes, major to minor.
    pub(crate) axes: SmallVec<[Digit; 8]>,
    /// The tiles that cut them.
    pub(crate) tiles: Tiles,
    /// Whether the axes have the right extents but not the right digits:
    /// tiles combine dims that do not follow each other.
    pub(crate) opaque: bool,
    /// Whether a tile cuts a dim that it does not divide.
    ragged: bool,
}

impl Physical {
    /// The layout of the elements of `shape`. The digits are valid if the element count fits in
    /// `u64`.
    pub fn of(target: &Target, shape: &ArrayShape) -> Self {
        Self::with_lows(target, shape, &lows(shape.dims()))
    }

    /// The same, with a given distance in the row-major index between neighbours along each dim:
    /// a transposed array can be described by the index of its operand.
    pub(crate) fn with_lows(target: &Target, shape: &ArrayShape, lows: &[u64]) -> Self {
        let padding = shape.layout.as_ref().and_then(|layout| layout.padding.as_ref());
        let padded = match target.alignment {
            Alignment::None => &[],
            Alignment::Tiles => padding.map_or(&[][..], |padding| &padding.dims),
        };
        Self::cut_by(shape, lows, padded, tiles(target, shape))
    }

    /// The layout of the elements of `shape` on any machine, by its layout alone: row major if
    /// it has none, with tiles and padding only if it has them.
    pub fn of_layout(shape: &ArrayShape) -> Self {
        let layout = shape.layout.as_ref();
        let padding = layout.and_then(|layout| layout.padding.as_ref());
        let padded = padding.map_or(&[][..], |padding| &padding.dims);
        let tiles = layout.map_or_else(Tiles::new, |layout| layout.tiles.clone());
        Self::cut_by(shape, &lows(shape.dims()), padded, tiles)
    }

    /// Returns the axes, major to minor: of whole tiles first, inside of tiles last.
    pub fn axes(&self) -> &[Digit] {
        &self.axes
    }

    /// Checks whether a tile cuts a dim that it does not divide, so that the axes together
    /// reach past the dim's end.
    pub fn is_ragged(&self) -> bool {
        self.ragged
    }

    fn cut_by(shape: &ArrayShape, lows: &[u64], padded: &[i64], tiles: Tiles) -> Self {
        let axes = order(shape.layout.as_ref(), shape.rank()).into_iter().map(|dim| {
            let count = size(shape.dims()[dim]);
            let extent = padded.get(dim).map_or(count, |&padded| count.max(size(padded)));
            Digit { dim: Some(dim), low: lows[dim], count, extent }
        });
        let axes = axes.collect();
        let mut physical = Self { axes, tiles: Tiles::new(), opaque: false, ragged: false };
        for tile in &tiles {
            physical.cut(tile);
        }
        physical.tiles = tiles;
        physical
    }

    /// Cuts the minor-most axes by a tile: all outer axes come before all
    /// inner ones.
    fn cut(&mut self, tile: &Tile) {
        let missing = tile.dims.len().saturating_sub(self.axes.len());
        self.axes.insert_many(0, std::iter::repeat_n(Digit::constant(1), missing));
        let first = self.axes.len() - tile.dims.len();
        let tail: SmallVec<[Digit; 4]> = self.axes.drain(first..).collect();
        let mut inner: SmallVec<[Digit; 4]> = SmallVec::new();
        let mut combined: Option<Digit> = None;
        for (axis, &along) in tail.into_iter().zip(&tile.dims) {
            let axis = combined.take().map_or(axis, |major| self.combine(major, axis));
            if along == Tile::COMBINE {
                combined = Some(axis);
            } else {
                let along = size(along).max(1);
                self.ragged |= axis.count > along && !axis.count.is_multiple_of(along);
                let (outside, inside) = split(axis, along);
                self.axes.push(outside);
                inner.push(inside);
            }
        }
        self.axes.extend(combined);
        self.axes.extend(inner);
    }

    /// One axis of two (`T(*,128)`).
    fn combine(&mut self, major: Digit, minor: Digit) -> Digit {
        let extent = major.extent.saturating_mul(minor.extent);
        let follows = minor.low.checked_mul(minor.count) == Some(major.low);
        if major.count == 1 {
            Digit { extent, ..minor }
        } else if minor.extent == 1 {
            Digit { extent, ..major }
        } else {
            self.opaque |= !follows || minor.extent != minor.count;
            let count = major.count.saturating_mul(minor.count);
            Digit { dim: None, low: minor.low, count, extent }
        }
    }
}

/// Splits an axis into blocks of `along` and the elements inside them.
fn split(axis: Digit, along: u64) -> (Digit, Digit) {
    let blocks = axis.extent.div_ceil(along);
    if axis.count <= along {
        (Digit::constant(blocks), Digit { extent: along, ..axis })
    } else {
        let low = axis.low.saturating_mul(along);
        let count = axis.count.div_ceil(along);
        let outside = Digit { dim: axis.dim, low, count, extent: blocks };
        (outside, Digit { count: along, extent: along, ..axis })
    }
}

/// Returns how far apart in the row-major index neighbours along each dim are.
pub(crate) fn lows(dims: &[i64]) -> SmallVec<[u64; 6]> {
    let mut lows: SmallVec<[u64; 6]> = smallvec![1; dims.len()];
    let mut low = 1u64;
    for (slot, &dim) in lows.iter_mut().zip(dims).rev() {
        *slot = low;
        low = low.saturating_mul(size(dim));
    }
    lows
}

/// Returns the dims in the order of memory, the major-most first. A dim that the layout does
/// not name (none in a verified module) is major.
fn order(layout: Option<&Layout>, rank: usize) -> SmallVec<[usize; 6]> {
    let Some(layout) = layout else {
        return (0..rank).collect();
    };
    let mut unnamed: SmallVec<[bool; 6]> = smallvec![true; rank];
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    for &dim in &layout.minor_to_major {
        let dim = dim as usize;
        if unnamed.get(dim).copied().unwrap_or(false) {
            unnamed[dim] = false;
            order.push(dim);
        }
    }
    order.extend((0..rank).rev().filter(|&dim| unnamed[dim]));
    order.reverse();
    order
}

/// Returns the tiles of a shape: those of its layout, or else those of the target.
fn tiles(target: &Target, shape: &ArrayShape) -> Tiles {
    if target.alignment == Alignment::None {
        return Tiles::new();
    }
    match &shape.layout {
        Some(layout) if !layout.tiles.is_empty() => layout.tiles.clone(),
        _ => {
            let [rows, lanes] =
                target.tile(element_bits(shape)).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let dims = if shape.rank() < 2 {
                smallvec![rows.saturating_mul(lanes)]
            } else {
                smallvec![rows, lanes]
            };
            smallvec![Tile { dims }]
        }
    }
}
