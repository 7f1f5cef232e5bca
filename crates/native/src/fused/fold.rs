//! Reductions of tiles, each to one value for each kept index; `total.rs` adds these up.
//! `compute.rs` and `add_products.rs` run them.

use smallvec::SmallVec;

use super::aligned_buffer::AlignedBuffer;
use super::program::Reduction;
use super::real::Real;
use super::tile::Expand;
use super::total::Total;
use super::walk::{Loops, TileBounds, compact};
use crate::folds::{Accumulate, Max, Min, Product, Sum};
use crate::kernel::{
    HalvingMerge, LONG_ROW, ROW_PART, StridedBlocks, fold_axis, reduce_part, reduce_rows,
};
use crate::level::{Level, Task, on_level};
use crate::tasks::{Add, as_uninit};
use crate::vectors;

/// The most blocks that are added one after the other; the sums of more blocks are added up.
pub(super) const MOST_ROWS: usize = 128;
/// Blocks of fewer elements are not added element by element, if contiguous rows can be reduced.
const LEAST_BLOCK: usize = 16;

/// The number of buffers that a reduction of a tile uses; the buffers after them are for values
/// that are reduced.
pub(super) const USED: usize = 4;
const BUFFERS: usize = USED + 3;

/// Scratch memory for the reduction of a tile.
#[derive(Debug)]
pub(super) struct FoldScratch<R> {
    pub(super) buffers: [AlignedBuffer<R>; BUFFERS],
    /// The second parts of accumulators, which are empty.
    nothing: Vec<()>,
    nothing_2: Vec<()>,
}

impl<R: Real> FoldScratch<R> {
    pub(super) fn new(capacity: usize) -> Self {
        let (nothing, nothing_2) = (vec![(); capacity], vec![(); capacity]);
        Self { buffers: [const { AlignedBuffer::EMPTY }; BUFFERS], nothing, nothing_2 }
    }
}

/// How a tile is reduced.
#[derive(Debug)]
pub(super) struct FoldShape {
    extents: Extents,
    /// The number of results, and of the elements of which each is made.
    pub(super) results: usize,
    count: usize,
    /// The number of elements inside of the outermost axes if these are reduced, else of the tile.
    row: usize,
    /// The loops that repeat the results over such a row; `None` if the row has as many elements.
    repeated: Option<Loops>,
}

/// The lengths of a tile's axes, outermost first, each with whether the axis is reduced.
/// Neighbouring axes of one kind are merged.
type Extents = SmallVec<[(usize, bool); 8]>;

impl FoldShape {
    /// The shape for a tile that varies along `axes`, some of which are `reduced`.
    pub(super) fn of(bounds: &TileBounds, axes: u64, reduced: u64) -> Self {
        let mut extents = Extents::new();
        // The axes inside of the outermost reduced axes, which are a row.
        let mut within = axes;
        for (axis, &extent) in bounds.extent.iter().enumerate() {
            if axes >> axis & 1 == 0 || extent == 1 {
                continue;
            }
            let is_reduced = reduced >> axis & 1 == 1;
            match extents.last_mut() {
                Some((len, kind)) if *kind == is_reduced => *len *= extent,
                _ => extents.push((extent, is_reduced)),
            }
            if extents.len() == 1 && is_reduced {
                within &= !(1 << axis);
            }
        }
        let kept = axes & !reduced;
        let row = bounds.size(within);
        let repeated = (bounds.size(kept) < row).then(|| {
            let strides = compact(bounds, kept);
            bounds.loops(within, |axis| strides[axis])
        });
        let (results, count) = (bounds.size(kept), bounds.size(axes & reduced));
        Self { extents, results, count, row, repeated }
    }

    /// Returns the number of rows and the elements of each, if a tile is few rows that are added
    /// element by element to contiguous results.
    pub(super) fn few_rows(&self, to: &Loops) -> Option<(usize, usize)> {
        match *self.extents.as_slice() {
            [(rows, true), (len, false)]
                if rows < MOST_ROWS / 2 && len >= LEAST_BLOCK && to.is_dense() =>
            {
                Some((rows, len))
            }
            _ => None,
        }
    }

    /// Returns the number of elements of a row, if a tile is contiguous rows that are each reduced
    /// to one result and have no parts.
    pub(super) fn whole_row(&self) -> Option<usize> {
        match *self.extents.as_slice() {
            [(len, true)] | [_, (len, true)] => Some(len).filter(|&len| len <= ROW_PART),
            _ => None,
        }
    }
}

/// Reduces a tile, and adds the results to a total.
pub(super) struct FoldTile<'a, R> {
    /// The elements of the tile.
    pub(super) a: &'a [R],
    pub(super) shape: &'a FoldShape,
    pub(super) kind: Reduction,
    /// The index of the first result in the total, and the loops over all results.
    pub(super) at: isize,
    pub(super) loops: &'a Loops,
    pub(super) to: Total<'a, R>,
    pub(super) spare: &'a mut FoldScratch<R>,
    pub(super) level: Level,
}

impl<R: Real> Task for FoldTile<'_, R> {
    #[inline(always)]
    fn run(self) {
        match self.kind {
            Reduction::Sum => self.sum(),
            Reduction::Product => self.fold(Product),
            Reduction::Max => self.fold(Max),
            Reduction::Min => self.fold(Min),
            Reduction::Moments => self.moments(),
        }
    }
}

impl<R: Real> FoldTile<'_, R> {
    /// Sums a tile. If it is few rows that are added element by element, their sums wait, and those
    /// of several tiles are added to the accumulators together.
    #[inline(always)]
    fn sum(mut self) {
        let (a, level, at) = (self.a, self.level, self.at);
        let rows = self.shape.few_rows(self.loops);
        match (&mut self.to, rows) {
            (Total::Accumulators(to, pending), Some((rows, len))) => {
                let nothing = &mut self.spare.nothing[..];
                let add = |sums: &mut [R]| add_blocks(Sum, level, a, sums, nothing);
                pending.add((rows, len), at.cast_unsigned(), to, add);
            }
            (Total::Accumulators(to, pending), None) => {
                pending.flush(to);
                self.fold(Sum);
            }
            (Total::Results(_), _) => self.fold(Sum),
        }
    }

    /// Reduces the tile by a fold of one part.
    #[inline(always)]
    fn fold(self, fold: impl Accumulate<R, First = R, Second = ()>) {
        let Self { a, shape, kind, at, loops, to, spare, level } = self;
        let FoldScratch { buffers: [first, second, ..], nothing, nothing_2 } = spare;
        let [first, second] = [first, second].map(|buffer| buffer.first_mut(a.len()));
        reduce_tile(fold, level, a, &shape.extents, (first, second), (nothing, nothing_2));
        to.add(kind, (at, loops), first, None, 0.0);
    }

    /// Finds the mean and the squared deviations for each result.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "a tile has few elements")]
    fn moments(self) {
        let Self { a, shape, kind, at, loops, to, spare, level, .. } = self;
        let FoldScratch { buffers, nothing, nothing_2 } = spare;
        let FoldShape { extents, results, row, .. } = shape;
        let [means, second, around, squares, ..] = buffers.each_mut();
        let [means, second] = [means, second].map(|buffer| buffer.first_mut(a.len()));
        reduce_tile(Sum, level, a, extents, (means, second), (nothing, nothing_2));
        let count = shape.count as f64;
        let means = &mut means[..*results];
        for mean in &mut *means {
            *mean = *mean / R::from_f64(count);
        }
        let rows = match extents.as_slice() {
            [(len, true)] | [_, (len, true)] => Some(*len),
            _ => None,
        };
        if let Some(len) = shape.whole_row()
            && let Some((vectors, deviations)) = level.zip(vectors::deviations_of::<R>())
        {
            let squares = squares.first_mut(*results);
            deviations(vectors, a, len, means, squares);
            to.add(kind, (at, loops), means, Some(squares), count);
            return;
        }
        let [around, squares] = [around, squares].map(|buffer| buffer.first_mut(a.len()));
        if let Some(len) = rows {
            squared_deviations_of_rows(a, means, len, around);
        } else if let Some(loops) = &shape.repeated {
            let repeated = &mut second[..*row];
            Expand { a: means, loops, out: repeated }.run();
            squared_deviations_from_row(a, repeated, around);
        } else {
            squared_deviations_from_row(a, means, around);
        }
        reduce_tile(Sum, level, around, extents, (squares, second), (nothing, nothing_2));
        to.add(kind, (at, loops), means, Some(squares), count);
    }
}

/// Writes `(a - mean)^2` for rows of `len` elements, each of which has one mean.
#[inline(always)]
fn squared_deviations_of_rows<R: Real>(a: &[R], means: &[R], len: usize, to: &mut [R]) {
    for (row, &mean) in means.iter().enumerate() {
        let range = row * len..(row + 1) * len;
        let (a, to) = (&a[range.clone()], &mut to[range]);
        for i in 0..len {
            let apart = a[i] - mean;
            to[i] = apart * apart;
        }
    }
}

/// Writes `(a - mean)^2` for rows of as many elements as there are means: element `i` has mean `i`.
#[inline(always)]
fn squared_deviations_from_row<R: Real>(a: &[R], means: &[R], to: &mut [R]) {
    let len = means.len();
    for row in 0..a.len() / len {
        let range = row * len..(row + 1) * len;
        let (a, to) = (&a[range.clone()], &mut to[range]);
        for i in 0..len {
            let apart = a[i] - means[i];
            to[i] = apart * apart;
        }
    }
}

/// Reduces a tile along its reduced axes, into the first elements of `to`.
#[inline(always)]
fn reduce_tile<R: Real, F: Accumulate<R, First = R, Second = ()>>(
    fold: F,
    level: Level,
    a: &[R],
    extents: &[(usize, bool)],
    (to, spare): (&mut [R], &mut [R]),
    (nothing, nothing_2): (&mut [()], &mut [()]),
) {
    let is_block =
        |&(outer, is_reduced): &(usize, bool)| is_reduced && a.len() / outer >= LEAST_BLOCK;
    let mut left = extents;
    let (mut outer, mut inner) = (a.len(), 1);
    match extents {
        // Long blocks are added element by element first, whatever lies within them.
        [first, within @ ..] if is_block(first) => {
            outer /= first.0;
            left = within;
            reduce_blocks(fold, level, a, &mut to[..outer], (spare, nothing));
        }
        [outside @ .., (len, true)] => {
            outer /= len;
            left = outside;
            let to = (&mut to[..outer], &mut nothing[..outer]);
            reduce_rows_of_tile(fold, level, (a, *len), to);
        }
        [outside @ .., (len, true), (kept, _)] => {
            (outer, inner) = (outer / len / kept, *kept);
            left = outside;
            for (to, blocks) in to.chunks_exact_mut(inner).zip(a.chunks_exact(len * inner)) {
                reduce_blocks(fold, level, blocks, to, (spare, nothing));
            }
        }
        _ => to[..a.len()].copy_from_slice(a),
    }
    // Fold the axes that are left; the results lie in row-major order.
    for &(len, is_reduced) in left.iter().rev() {
        outer /= len;
        if is_reduced {
            let all = (&mut *to, &mut *nothing);
            fold_axis::<R, F>(fold, all, (spare, nothing_2), [outer, len, inner]);
        } else {
            inner *= len;
        }
    }
}

/// Reduces rows of `len` elements, one for each of `to`.
#[inline(always)]
fn reduce_rows_of_tile<R: Real, F: Accumulate<R, First = R, Second = ()>>(
    fold: F,
    level: Level,
    (a, len): (&[R], usize),
    to: (&mut [R], &mut [()]),
) {
    if len <= ROW_PART
        && let Some((vectors, reduce)) = level.zip(vectors::rows_of::<R, F>())
    {
        // SAFETY: the function writes nothing but initialised accumulators.
        let to = unsafe { (as_uninit(to.0), as_uninit(to.1)) };
        reduce(vectors, a, len, to);
    } else if len > LONG_ROW {
        for (to, row) in to.0.iter_mut().zip(a.chunks_exact(len)) {
            let mut merge = HalvingMerge::new(fold);
            for part in row.chunks(ROW_PART) {
                merge.push(reduce_part(fold, part));
            }
            *to = merge.finish().0;
        }
    } else {
        reduce_rows(fold, a, len, to);
    }
}

/// Folds blocks into `to`; each block has an element for each of `to`.
#[inline(always)]
fn reduce_blocks<R: Real, F: Accumulate<R, First = R, Second = ()>>(
    fold: F,
    level: Level,
    blocks: &[R],
    to: &mut [R],
    (spare, nothing): (&mut [R], &mut [()]),
) {
    let len = to.len();
    let spare = &mut spare[..len];
    let (start, ()) = fold.start();
    for (number, part) in blocks.chunks(MOST_ROWS * len).enumerate() {
        let sums = if number == 0 { &mut *to } else { &mut *spare };
        sums.fill(start);
        add_blocks(fold, level, part, sums, nothing);
        if number > 0 {
            for i in 0..len {
                fold.merge(&mut to[i], &mut (), (spare[i], ()));
            }
        }
    }
}

/// Adds blocks to the accumulators `to`; each block has an element for each of them.
#[inline(always)]
pub(super) fn add_blocks<R: Real, F: Accumulate<R, First = R, Second = ()>>(
    fold: F,
    level: Level,
    blocks: &[R],
    to: &mut [R],
    nothing: &mut [()],
) {
    let len = to.len();
    let rows = StridedBlocks {
        start: blocks.as_ptr(),
        count: blocks.len() / len,
        block_stride: len.cast_signed(),
        element_stride: 1,
        place: 0,
        place_stride: 0,
    };
    // SAFETY: `blocks` has `count` contiguous blocks of `len` elements, as many as `to` has.
    on_level(level, unsafe { Add::new(fold, (to, &mut nothing[..len]), rows) });
}
