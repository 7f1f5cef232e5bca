//! The tiles of a pass, and loops over the elements of a tile in an array. `run.rs` goes from tile
//! to tile, and steps run the loops.

use smallvec::SmallVec;

use super::plan::TilePlan;
use super::steps::Pass;

/// A tile: for each axis its first index, and the number of its indices.
#[derive(Clone, Debug, Default)]
pub(super) struct TileBounds {
    pub(super) from: SmallVec<[usize; 8]>,
    pub(super) extent: SmallVec<[usize; 8]>,
}

impl TileBounds {
    /// The number of elements that a value along the axes `set` has in the tile.
    #[inline(always)]
    pub(super) fn size(&self, set: u64) -> usize {
        let extents = self.extent.iter().enumerate().filter(|(axis, _)| set >> axis & 1 == 1);
        extents.map(|(_, &extent)| extent).product()
    }

    /// Checks whether the tile begins at index 0 along all axes of a set.
    pub(super) fn is_first(&self, set: u64) -> bool {
        self.from.iter().enumerate().all(|(axis, &from)| set >> axis & 1 == 0 || from == 0)
    }

    /// Returns the loops over a set of axes in an array that has these strides.
    pub(super) fn loops(&self, set: u64, stride: impl Fn(usize) -> isize) -> Loops {
        let mut loops = Loops { around: SmallVec::new(), len: 1, stride: 1 };
        for (axis, &len) in self.extent.iter().enumerate().rev() {
            if set >> axis & 1 == 0 || len == 1 {
                continue;
            }
            let (stride, signed) = (stride(axis), isize::try_from(loops.len).unwrap_or(0));
            if loops.len == 1 && loops.around.is_empty() {
                (loops.len, loops.stride) = (len, stride);
            } else if loops.around.is_empty() && loops.stride.wrapping_mul(signed) == stride {
                loops.len *= len;
            } else {
                loops.around.push((len, stride));
            }
        }
        loops
    }
}

/// The strides of a value that is contiguous in a buffer and varies along a set of axes; 0 along
/// others.
pub(super) fn compact(bounds: &TileBounds, set: u64) -> SmallVec<[isize; 8]> {
    let mut strides: SmallVec<[isize; 8]> = SmallVec::from_elem(0, bounds.extent.len());
    let mut stride = 1isize;
    for (axis, &extent) in bounds.extent.iter().enumerate().rev() {
        if set >> axis & 1 == 1 {
            strides[axis] = stride;
            stride = stride.wrapping_mul(extent.cast_signed());
        }
    }
    strides
}

/// The tiles of a pass over a slab.
#[derive(Debug)]
pub(super) struct Tiles {
    /// The axes of which a tile does not have all indices, innermost first.
    cuts: SmallVec<[AxisCut; 8]>,
    /// The number of tiles of a slab.
    pub(super) count: usize,
}

/// An axis that is cut into parts.
#[derive(Clone, Copy, Debug)]
struct AxisCut {
    axis: usize,
    /// The number of indices of the axis, and of one part.
    len: usize,
    part: usize,
    /// Whether the parts are those of slabs; else they are those of tiles.
    is_outer: bool,
}

impl Tiles {
    /// Returns the tiles of a pass, and moves `bounds` to the first one.
    pub(super) fn of(plan: &TilePlan, pass: &Pass, bounds: &mut TileBounds) -> Self {
        let mut tiles = Self { cuts: SmallVec::new(), count: 1 };
        bounds.from = SmallVec::from_elem(0, plan.space.axes.len());
        bounds.extent = SmallVec::from_elem(1, plan.space.axes.len());
        for (axis, along) in plan.space.axes.iter().enumerate().rev() {
            let is_outer = plan.outer >> axis & 1 == 1;
            let is_tile = plan.tile >> axis & 1 == 1;
            let (len, part) = match plan.cut {
                _ if is_outer => (along.len, plan.part(axis)),
                _ if pass.axes >> axis & 1 == 0 => (1, 1),
                Some((cut, part)) if cut == axis => (along.len, part),
                _ => (along.len, if is_tile { along.len } else { 1 }),
            };
            bounds.extent[axis] = part;
            if part < len {
                tiles.cuts.push(AxisCut { axis, len, part, is_outer });
            }
            if !is_outer {
                tiles.count *= len.div_ceil(part);
            }
        }
        tiles
    }

    /// Moves `bounds` to a tile of a slab.
    pub(super) fn go(&self, mut slab: usize, mut tile: usize, bounds: &mut TileBounds) {
        for &AxisCut { axis, len, part, is_outer } in &self.cuts {
            let left = if is_outer { &mut slab } else { &mut tile };
            let count = len.div_ceil(part);
            let from = *left % count * part;
            *left /= count;
            bounds.from[axis] = from;
            bounds.extent[axis] = part.min(len - from);
        }
    }
}

/// Nested loops over the elements of a tile in an array. In the tile the elements are contiguous.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    /// The loops around the innermost one, from within: the number of indices, and the stride in
    /// elements.
    around: SmallVec<[(usize, isize); 3]>,
    /// The number of indices of the innermost loop.
    pub(super) len: usize,
    /// The stride of the innermost loop, in elements.
    pub(super) stride: isize,
}

impl Loops {
    /// One loop over contiguous elements.
    pub(super) fn side_by_side(len: usize) -> Self {
        Self { around: SmallVec::new(), len, stride: 1 }
    }

    /// Checks whether the elements are contiguous, in the order of the tile.
    pub(super) fn is_dense(&self) -> bool {
        self.around.is_empty() && (self.stride == 1 || self.len == 1)
    }

    /// Returns the runs of the innermost loop: the index of the first element of each in the tile,
    /// and its offset in the array, in elements.
    #[inline(always)]
    pub(super) fn runs(&self) -> Runs<'_> {
        let indices = SmallVec::from_elem(0, self.around.len());
        Runs { loops: self, indices, at: 0, offset: 0, has_more: true }
    }
}

/// The iterator of [`Loops::runs`]. A closure that is called for each run would not be compiled for
/// a task's level.
pub(super) struct Runs<'a> {
    loops: &'a Loops,
    indices: SmallVec<[usize; 3]>,
    at: usize,
    offset: isize,
    has_more: bool,
}

impl Iterator for Runs<'_> {
    type Item = (usize, isize);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.has_more {
            return None;
        }
        let run = (self.at, self.offset);
        self.has_more = !self.loops.around.is_empty() && self.advance();
        Some(run)
    }
}

impl Runs<'_> {
    /// Goes to the next run; returns whether there is one.
    fn advance(&mut self) -> bool {
        self.at += self.loops.len;
        for (index, &(len, stride)) in self.indices.iter_mut().zip(&self.loops.around) {
            *index += 1;
            self.offset = self.offset.wrapping_add(stride);
            if *index < len {
                return true;
            }
            self.offset = self.offset.wrapping_sub(stride.wrapping_mul(len.cast_signed()));
            *index = 0;
        }
        false
    }
}
