//! Reductions of tiles, and their accumulators.

use smallvec::SmallVec;

use super::program::Reduction;
use super::real::Real;
use super::room::Room;
use super::tile::Expand;
use super::walk::{Loops, Place};
use crate::folds::{Fold, Max, Min, Product, Sum};
use crate::kernel::{
    LONG_ROW, ROW_PART, Rows, add_rows, fold_axis, reduce_part, reduce_row, reduce_rows,
};
use crate::level::{Level, Task};
use crate::vectors;

/// Rows of a tile are added one after the other up to this number, else by halves.
const MOST_ROWS: usize = 128;

/// Accumulators of a reduction, one for each element of its result, in `f64`.
#[derive(Clone, Debug)]
pub(super) struct Accumulators {
    reduction: Reduction,
    /// Sums, products, extrema or means.
    values: Vec<f64>,
    /// The rounding errors of sums, or squared deviations.
    others: Vec<f64>,
    /// The number of elements, for moments.
    counts: Vec<f64>,
}

impl Accumulators {
    pub(super) fn new(reduction: Reduction, len: usize) -> Self {
        let mut all =
            Self { reduction, values: vec![0.0; len], others: Vec::new(), counts: Vec::new() };
        if matches!(reduction, Reduction::Sum | Reduction::Moments) {
            all.others = vec![0.0; len];
        }
        if reduction == Reduction::Moments {
            all.counts = vec![0.0; len];
        }
        all.clear();
        all
    }

    pub(super) fn clear(&mut self) {
        self.values.fill(match self.reduction {
            Reduction::Sum | Reduction::Moments => 0.0,
            Reduction::Product => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        });
        self.others.fill(0.0);
        self.counts.fill(0.0);
    }

    /// Adds what is reduced already: a value, squared deviations, and the number of elements.
    #[inline(always)]
    fn add(&mut self, at: usize, value: f64, other: f64, count: f64) {
        let held = self.values[at];
        self.values[at] = match self.reduction {
            Reduction::Sum => {
                let (sum, lost) = summed(held, value);
                self.others[at] += lost + other;
                sum
            }
            Reduction::Product => held * value,
            Reduction::Max => Max.merged(held, value),
            Reduction::Min => Min.merged(held, value),
            Reduction::Moments => {
                let both = self.counts[at] + count;
                let share = if both == 0.0 { 0.0 } else { count / both };
                let apart = value - held;
                self.others[at] += other + apart * apart * self.counts[at] * share;
                let mean = if self.counts[at] == 0.0 { value } else { held + apart * share };
                self.counts[at] = both;
                mean
            }
        };
    }

    /// Adds sums to neighbours: a loop that becomes vectors.
    #[inline(always)]
    fn add_sums<R: Real>(&mut self, at: usize, parts: &[R]) {
        let values = &mut self.values[at..at + parts.len()];
        let others = &mut self.others[at..at + parts.len()];
        for ((held, other), part) in values.iter_mut().zip(others).zip(parts) {
            let (sum, lost) = summed(*held, part.to_f64());
            *held = sum;
            *other += lost;
        }
    }

    /// Adds the accumulators of another task.
    pub(super) fn merge(&mut self, other: &Self) {
        for at in 0..self.values.len() {
            let [second, count] =
                [&other.others, &other.counts].map(|part| part.get(at).copied().unwrap_or(0.0));
            if self.reduction != Reduction::Moments || count > 0.0 {
                self.add(at, other.values[at], second, count);
            }
        }
    }

    /// The results: the first ones, and for moments the squared deviations.
    pub(super) fn finish<R: Real>(&self, to: &mut [R], deviations: &mut [R]) {
        for (at, to) in to.iter_mut().enumerate() {
            let value = self.values[at];
            // An infinite sum lost nothing that could be told.
            let is_sum = self.reduction == Reduction::Sum && value.is_finite();
            *to = R::from_f64(if is_sum { value + self.others[at] } else { value });
        }
        for (to, &deviations) in deviations.iter_mut().zip(&self.others) {
            *to = R::from_f64(deviations);
        }
    }
}

/// The sum and what it lost, after Knuth, The Art of Computer Programming, 4.2.2.
#[inline(always)]
fn summed(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

trait Merged {
    fn merged(self, a: f64, b: f64) -> f64;
}

impl<F: Fold<f64, First = f64, Second = ()>> Merged for F {
    #[inline(always)]
    fn merged(self, mut a: f64, b: f64) -> f64 {
        self.merge(&mut a, &mut (), (b, ()));
        a
    }
}

/// Room for the parts of a reduction of a tile.
#[derive(Debug)]
pub(super) struct Spare<R> {
    rooms: [Room<R>; 4],
    /// Folds of one part keep nothing in their second one.
    nothing: Vec<()>,
    nothing_2: Vec<()>,
}

impl<R: Real> Spare<R> {
    pub(super) fn new(capacity: usize) -> Self {
        let room = || Room::new(capacity);
        let (nothing, nothing_2) = (vec![(); capacity], vec![(); capacity]);
        Self { rooms: [room(), room(), room(), room()], nothing, nothing_2 }
    }
}

/// Reduces a tile, and adds it to accumulators.
pub(super) struct FoldTile<'a, R> {
    /// The tile.
    pub(super) a: &'a [R],
    pub(super) place: &'a Place,
    /// The axes along which the tile has elements, and those of them that are reduced.
    pub(super) axes: u64,
    pub(super) reduced: u64,
    /// Where the results are added: the place of the first one, and the loops over all.
    pub(super) at: isize,
    pub(super) loops: Loops,
    pub(super) to: &'a mut Accumulators,
    pub(super) spare: &'a mut Spare<R>,
    pub(super) level: Level,
}

impl<R: Real> Task for FoldTile<'_, R> {
    #[inline(always)]
    fn run(self) {
        match self.to.reduction {
            Reduction::Sum => self.fold(Sum),
            Reduction::Product => self.fold(Product),
            Reduction::Max => self.fold(Max),
            Reduction::Min => self.fold(Min),
            Reduction::Moments => self.moments(),
        }
    }
}

impl<R: Real> FoldTile<'_, R> {
    #[inline(always)]
    fn fold(self, fold: impl Fold<R, First = R, Second = ()>) {
        let Self { a, place, axes, reduced, at, loops, to, spare, level } = self;
        let Spare { rooms: [first, second, ..], nothing, nothing_2 } = spare;
        let [first, second] = [first, second].map(Room::all_mut);
        let extents = extents(place, axes, reduced);
        reduce_tile(fold, level, a, &extents, (first, second), (nothing, nothing_2));
        for (from, offset) in loops.runs() {
            let at = at.wrapping_add(offset);
            let parts = &first[from..from + loops.len];
            if loops.stride == 1 && to.reduction == Reduction::Sum {
                to.add_sums(at.cast_unsigned(), parts);
                continue;
            }
            for (i, part) in parts.iter().enumerate() {
                let at = at.wrapping_add(i.cast_signed() * loops.stride);
                to.add(at.cast_unsigned(), part.to_f64(), 0.0, 0.0);
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "a tile has few elements")]
    fn moments(self) {
        let Self { a, place, axes, reduced, at, loops, to, spare, level } = self;
        let Spare { rooms, nothing, nothing_2 } = spare;
        let [means, second, around, squares] = rooms.each_mut().map(Room::all_mut);
        let extents = extents(place, axes, reduced);
        reduce_tile(Sum, level, a, &extents, (means, second), (nothing, nothing_2));
        let count = place.size(axes & reduced) as f64;
        let kept = place.size(axes & !reduced);
        for mean in &mut means[..kept] {
            *mean = *mean / R::from_f64(count);
        }
        let around = &mut around[..a.len()];
        if let [(len, true)] | [_, (len, true)] = extents.as_slice()
            && *len <= ROW_PART
            && let Some(deviations) = vectors::deviations_of::<R>(level)
        {
            // SAFETY: the level, which was detected, has these loops; the tile has `kept` rows.
            unsafe { deviations(a, *len, &means[..kept], &mut squares[..kept]) };
            Self::add_moments(to, (at, &loops), means, squares, count);
            return;
        }
        if let [(len, true)] | [_, (len, true)] = extents.as_slice() {
            squared_deviations_of_rows(a, &means[..kept], *len, around);
        } else {
            let strides = compact(place, axes & !reduced);
            let repeated = place.loops(axes, |axis| strides[axis]);
            Expand { a: &means[..kept], loops: repeated, out: around }.run();
            for i in 0..a.len() {
                let apart = a[i] - around[i];
                around[i] = apart * apart;
            }
        }
        reduce_tile(Sum, level, around, &extents, (squares, second), (nothing, nothing_2));
        Self::add_moments(to, (at, &loops), means, squares, count);
    }

    /// Adds means and squared deviations of `count` elements each.
    #[inline(always)]
    fn add_moments(
        to: &mut Accumulators,
        (at, loops): (isize, &Loops),
        means: &[R],
        squares: &[R],
        count: f64,
    ) {
        for (from, offset) in loops.runs() {
            for i in 0..loops.len {
                let to_at = at.wrapping_add(offset).wrapping_add(i.cast_signed() * loops.stride);
                let (mean, squares) = (means[from + i].to_f64(), squares[from + i].to_f64());
                to.add(to_at.cast_unsigned(), mean, squares, count);
            }
        }
    }
}

/// Writes `(a - mean)^2` for rows of `len` elements, each of which has its mean.
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

/// The distances in a tile of a value that varies along a set of axes; 0 along others.
pub(super) fn compact(place: &Place, set: u64) -> SmallVec<[isize; 8]> {
    let mut strides: SmallVec<[isize; 8]> = SmallVec::from_elem(0, place.extent.len());
    let mut stride = 1isize;
    for (axis, &extent) in place.extent.iter().enumerate().rev() {
        if set >> axis & 1 == 1 {
            strides[axis] = stride;
            stride = stride.wrapping_mul(extent.cast_signed());
        }
    }
    strides
}

/// The axes of a tile, outermost first, each with whether it is reduced; neighbours of one kind are
/// one.
type Extents = SmallVec<[(usize, bool); 8]>;

fn extents(place: &Place, axes: u64, reduced: u64) -> Extents {
    let mut extents = Extents::new();
    for (axis, &extent) in place.extent.iter().enumerate() {
        if axes >> axis & 1 == 0 || extent == 1 {
            continue;
        }
        let is_reduced = reduced >> axis & 1 == 1;
        match extents.last_mut() {
            Some((len, kind)) if *kind == is_reduced => *len *= extent,
            _ => extents.push((extent, is_reduced)),
        }
    }
    extents
}

/// Reduces a tile along some axes, into the first elements of `to`.
#[inline(always)]
fn reduce_tile<R: Real, F: Fold<R, First = R, Second = ()>>(
    fold: F,
    level: Level,
    a: &[R],
    extents: &[(usize, bool)],
    (to, spare): (&mut [R], &mut [R]),
    (nothing, nothing_2): (&mut [()], &mut [()]),
) {
    let Some(last) = extents.iter().rposition(|&(_, is_reduced)| is_reduced) else {
        to[..a.len()].copy_from_slice(a);
        return;
    };
    let (len, inner) =
        (extents[last].0, extents[last + 1..].iter().map(|e| e.0).product::<usize>());
    let mut outer: usize = extents[..last].iter().map(|e| e.0).product();
    if inner == 1
        && len <= ROW_PART
        && let Some(reduce) = vectors::rows_of::<R, F>(level)
    {
        // SAFETY: the level, which was detected, has these loops; the tile has `outer` rows.
        unsafe { reduce(a, len, (&mut to[..outer], &mut nothing[..outer])) };
    } else if inner == 1 && len > LONG_ROW {
        for (to, row) in to.iter_mut().zip(a.chunks_exact(len)) {
            *to = reduce_row(fold, row, |part| reduce_part(fold, part)).0;
        }
    } else if inner == 1 {
        let results = (&mut to[..outer], &mut nothing[..outer]);
        reduce_rows(fold, a, len, results, (spare, nothing_2));
    } else if len <= MOST_ROWS {
        let (start, ()) = fold.start();
        to[..outer * inner].fill(start);
        for (to, block) in to.chunks_exact_mut(inner).zip(a.chunks_exact(len * inner)) {
            let rows = Rows {
                start: block.as_ptr(),
                count: len,
                apart: inner.cast_signed(),
                step: 1,
                place: 0,
                place_apart: 0,
            };
            // SAFETY: the block has `len` rows of `inner` elements, one for each of `to`.
            unsafe { add_rows(fold, to, &mut nothing[..inner], rows) };
        }
    } else {
        to[..a.len()].copy_from_slice(a);
        let all = (&mut *to, &mut *nothing);
        fold_axis::<R, F>(fold, all, (spare, nothing_2), [outer, len, inner]);
    }
    // The results of the axes outside are left, row major.
    let mut inner = inner;
    for &(len, is_reduced) in extents[..last].iter().rev() {
        outer /= len;
        if is_reduced {
            let all = (&mut *to, &mut *nothing);
            fold_axis::<R, F>(fold, all, (spare, nothing_2), [outer, len, inner]);
        } else {
            inner *= len;
        }
    }
}
