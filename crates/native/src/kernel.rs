//! The inner loops of reductions: they add blocks to accumulators, reduce rows, and merge
//! accumulators. Each loop is written once, over plain slices; `tasks.rs` compiles it for several
//! instruction-set levels, and `fused/fold.rs` calls it for tiles.

use crate::elements::Element;
use crate::folds::Accumulate;

/// Blocks of elements at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct StridedBlocks<T> {
    /// The address of the first element of the first block.
    pub(crate) start: *const T,
    /// The number of blocks.
    pub(crate) count: usize,
    /// The distance from each block to the next one, in elements.
    pub(crate) block_stride: isize,
    /// The stride of the elements within a block, in elements.
    pub(crate) element_stride: isize,
    /// The place of the elements of the first block, and the distance of places from block to
    /// block.
    pub(crate) place: u32,
    pub(crate) place_stride: u32,
}

/// The number of blocks that are combined before they are merged into the accumulators.
pub(crate) const BLOCKS_PER_STEP: usize = 8;

/// Adds blocks to accumulators: element `i` of each block to accumulator `i`.
///
/// # Safety
/// `rows.start + n * rows.block_stride + i * rows.element_stride`, counted in elements, must be the
/// address of a readable element for each `n < rows.count` and each `i < min(firsts.len(),
/// seconds.len())`. Nobody may write these elements during the call.
#[inline(always)]
pub(crate) unsafe fn add_rows<T: Element, F: Accumulate<T>>(
    fold: F,
    firsts: &mut [F::First],
    seconds: &mut [F::Second],
    rows: StridedBlocks<T>,
) {
    let width = firsts.len().min(seconds.len());
    let (firsts, seconds) = (&mut firsts[..width], &mut seconds[..width]);
    let mut row = rows.start;
    let mut place = rows.place;
    let mut left = rows.count;
    if rows.element_stride == 1 {
        // Eight blocks at a time: the accumulators are loaded and stored once for eight blocks, and
        // to combine eight elements first loses fewer digits.
        while left >= BLOCKS_PER_STEP {
            let block = |n: isize| {
                // SAFETY: eight blocks are left and `element_stride` is 1, so the caller guarantees
                // `width` contiguous readable elements in each of them.
                unsafe {
                    std::slice::from_raw_parts(row.wrapping_offset(n * rows.block_stride), width)
                }
            };
            // Eight slices by name: with an array of slices, the compiler does not vectorise the
            // loop.
            let (a, b, c, d) = (block(0), block(1), block(2), block(3));
            let (e, f, g, h) = (block(4), block(5), block(6), block(7));
            for i in 0..width {
                let eight = [a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]];
                let one = fold.of_eight(eight, place, rows.place_stride);
                let (mut all, mut all_2) = (firsts[i], seconds[i]);
                fold.merge(&mut all, &mut all_2, one);
                (firsts[i], seconds[i]) = (all, all_2);
            }
            left -= BLOCKS_PER_STEP;
            row = row.wrapping_offset(rows.block_stride.wrapping_mul(BLOCKS_PER_STEP as isize));
            place = place.wrapping_add(rows.place_stride.wrapping_mul(BLOCKS_PER_STEP as u32));
        }
        for _ in 0..left {
            // SAFETY: this is one of the `left` last blocks and `element_stride` is 1, so the
            // caller guarantees `width` contiguous readable elements.
            let block = unsafe { std::slice::from_raw_parts(row, width) };
            for i in 0..width {
                fold.step(&mut firsts[i], &mut seconds[i], block[i], place);
            }
            row = row.wrapping_offset(rows.block_stride);
            place = place.wrapping_add(rows.place_stride);
        }
        return;
    }
    for _ in 0..left {
        let mut element = row;
        for i in 0..width {
            // SAFETY: `i < width`, so the caller guarantees that this element of the block is
            // readable.
            fold.step(&mut firsts[i], &mut seconds[i], unsafe { *element }, place);
            element = element.wrapping_offset(rows.element_stride);
        }
        row = row.wrapping_offset(rows.block_stride);
        place = place.wrapping_add(rows.place_stride);
    }
}

/// Merges each of the others into the accumulator of the same index.
#[inline(always)]
pub(crate) fn merge_all<T: Element, F: Accumulate<T>>(
    fold: F,
    (firsts, seconds): (&mut [F::First], &mut [F::Second]),
    (other_firsts, other_seconds): (&[F::First], &[F::Second]),
) {
    let width = firsts.len().min(other_firsts.len());
    let (firsts, seconds) = (&mut firsts[..width], &mut seconds[..width]);
    let (other_firsts, other_seconds) = (&other_firsts[..width], &other_seconds[..width]);
    for i in 0..width {
        fold.merge(&mut firsts[i], &mut seconds[i], (other_firsts[i], other_seconds[i]));
    }
}

/// Folds the middle one of three axes of accumulators in row-major order: `outer * len * inner`
/// accumulators become `outer * inner`, which then come first. `spare` is scratch of `outer`
/// accumulators or more.
#[inline(always)]
pub(crate) fn fold_axis<T: Element, F: Accumulate<T>>(
    fold: F,
    (firsts, seconds): (&mut [F::First], &mut [F::Second]),
    (spare, spare_2): (&mut [F::First], &mut [F::Second]),
    [outer, len, inner]: [usize; 3],
) {
    if inner == 1 && len <= MOST_SHORT {
        let all = outer * len;
        let from = (&firsts[..all], &seconds[..all]);
        let to = (&mut spare[..outer], &mut spare_2[..outer]);
        match len {
            2 => fold_short::<T, F, 2>(fold, from, to),
            3 => fold_short::<T, F, 3>(fold, from, to),
            4 => fold_short::<T, F, 4>(fold, from, to),
            5 => fold_short::<T, F, 5>(fold, from, to),
            6 => fold_short::<T, F, 6>(fold, from, to),
            7 => fold_short::<T, F, 7>(fold, from, to),
            _ => fold_short::<T, F, 8>(fold, from, to),
        }
        firsts[..outer].copy_from_slice(&spare[..outer]);
        seconds[..outer].copy_from_slice(&spare_2[..outer]);
        return;
    }
    for o in 0..outer {
        let range = o * len * inner..(o + 1) * len * inner;
        let (firsts_in, seconds_in) = (&mut firsts[range.clone()], &mut seconds[range.clone()]);
        // The later half is merged into the earlier one, until one row of `inner` accumulators is
        // left.
        let mut rows = len;
        while rows > 1 {
            let half = rows.div_ceil(2);
            let (head, tail) = firsts_in.split_at_mut(half * inner);
            let (head_2, tail_2) = seconds_in.split_at_mut(half * inner);
            let moved = (rows - half) * inner;
            merge_all::<T, F>(fold, (head, head_2), (&tail[..moved], &tail_2[..moved]));
            rows = half;
        }
        firsts.copy_within(range.start..range.start + inner, o * inner);
        seconds.copy_within(range.start..range.start + inner, o * inner);
    }
}

/// Rows of at most this many accumulators are merged several at a time: the compiler vectorises the
/// loop over rows by loads of neighbours and shuffles.
pub(crate) const MOST_SHORT: usize = 8;

/// Merges each run of `LEN` neighbouring accumulators into one.
#[inline(always)]
fn fold_short<T: Element, F: Accumulate<T>, const LEN: usize>(
    fold: F,
    (firsts, seconds): (&[F::First], &[F::Second]),
    (to, to_2): (&mut [F::First], &mut [F::Second]),
) {
    let rows = to.len().min(to_2.len()).min(firsts.len() / LEN).min(seconds.len() / LEN);
    let (firsts, seconds) = (&firsts[..rows * LEN], &seconds[..rows * LEN]);
    let (to, to_2) = (&mut to[..rows], &mut to_2[..rows]);
    for row in 0..rows {
        let (mut all, mut all_2) = ([firsts[row * LEN]; LEN], [seconds[row * LEN]; LEN]);
        for i in 1..LEN {
            (all[i], all_2[i]) = (firsts[row * LEN + i], seconds[row * LEN + i]);
        }
        (to[row], to_2[row]) = merged_by_halves::<T, F, LEN>(fold, all, all_2);
    }
}

/// Merges `LEN` accumulators by halves: the later half into the earlier one, until one is left.
#[inline(always)]
fn merged_by_halves<T: Element, F: Accumulate<T>, const LEN: usize>(
    fold: F,
    mut all: [F::First; LEN],
    mut all_2: [F::Second; LEN],
) -> (F::First, F::Second) {
    let mut left = LEN;
    while left > 1 {
        let half = left.div_ceil(2);
        for i in 0..left - half {
            let other = (all[i + half], all_2[i + half]);
            fold.merge(&mut all[i], &mut all_2[i], other);
        }
        left = half;
    }
    (all[0], all_2[0])
}

/// Reduces contiguous rows of `len` elements to one accumulator of `to` each. This is for rare folds, and
/// for CPUs without the instructions of [`Vectors`](crate::level::Vectors): faster loops would take long to
/// compile.
pub(crate) fn reduce_rows<T: Element, F: Accumulate<T>>(
    fold: F,
    elements: &[T],
    len: usize,
    (to, to_2): (&mut [F::First], &mut [F::Second]),
) {
    match len {
        2 => return step_short::<T, F, 2>(fold, elements, (to, to_2)),
        3 => return step_short::<T, F, 3>(fold, elements, (to, to_2)),
        4 => return step_short::<T, F, 4>(fold, elements, (to, to_2)),
        _ => {}
    }
    let few = len <= MOST_SHORT || size_of::<F::First>() == 8 && len >= 16;
    for (row, (to, to_2)) in elements.chunks_exact(len.max(1)).zip(to.iter_mut().zip(to_2)) {
        (*to, *to_2) =
            if few { reduce_by::<T, F, 8>(fold, row) } else { reduce_by::<T, F, 16>(fold, row) };
    }
}

/// Merges `LANES` accumulators by halves until one is left: the second half into the first one.
/// The lengths of all loops are constants, so that the accumulators stay in registers.
#[inline(always)]
fn merged<T: Element, F: Accumulate<T>, const LANES: usize>(
    fold: F,
    mut lanes: [F::First; LANES],
    mut lanes_2: [F::Second; LANES],
) -> (F::First, F::Second) {
    macro_rules! halve {
        ($($half:literal)*) => { $(
            if LANES > $half {
                for i in 0..$half {
                    let other = (lanes[i + $half], lanes_2[i + $half]);
                    fold.merge(&mut lanes[i], &mut lanes_2[i], other);
                }
            }
        )* };
    }
    halve!(32 16 8 4 2 1);
    (lanes[0], lanes_2[0])
}

/// Rows of more elements than this have several vectors of accumulators, so that an addition does
/// not wait for the one before it.
pub(crate) const LONG_ROW: usize = 512;
/// The number of accumulators of a long row; half as many if they have 64 bits.
pub(crate) const ROW_LANES: usize = 64;
/// The number of elements of a part of a row. They are added lane by lane; the results of several
/// parts are merged by halves.
pub(crate) const ROW_PART: usize = 2048;

/// The number of parts of a row that are reduced by one call.
pub(crate) const ROW_PARTS: usize = 16;

/// Merges the results of the parts of a long row by halves: the result of 2^n parts waits for the
/// result of the next 2^n parts.
pub(crate) struct HalvingMerge<T: Element, F: Accumulate<T>> {
    fold: F,
    /// The number of parts so far: bit `n` tells whether `results[n]` holds the result of 2^n
    /// parts.
    parts: usize,
    results: [(F::First, F::Second); usize::BITS as usize],
}

impl<T: Element, F: Accumulate<T>> HalvingMerge<T, F> {
    pub(crate) fn new(fold: F) -> Self {
        Self { fold, parts: 0, results: [fold.start(); usize::BITS as usize] }
    }

    /// Adds the result of the next part.
    #[inline(always)]
    pub(crate) fn push(&mut self, mut all: (F::First, F::Second)) {
        let full = self.parts.trailing_ones() as usize;
        for &held in &self.results[..full] {
            all = self.merged(held, all);
        }
        self.parts += 1;
        if let Some(free) = self.results.get_mut(full) {
            *free = all;
        }
    }

    /// Returns the result of all parts.
    pub(crate) fn finish(&self) -> (F::First, F::Second) {
        let (mut all, mut left) = (self.fold.start(), self.parts);
        while let Some(&held) = self.results.get(left.trailing_zeros() as usize) {
            all = self.merged(held, all);
            left &= left - 1;
        }
        all
    }

    fn merged(
        &self,
        mut earlier: (F::First, F::Second),
        later: (F::First, F::Second),
    ) -> (F::First, F::Second) {
        self.fold.merge(&mut earlier.0, &mut earlier.1, later);
        earlier
    }
}

/// Reduces a part of a long row to one accumulator, and its place if the fold finds places.
#[inline(always)]
pub(crate) fn reduce_part<T: Element, F: Accumulate<T>>(
    fold: F,
    part: &[T],
) -> (F::First, F::Second) {
    if F::PLACES {
        return first_place::<T, F>(fold, part);
    }
    match (size_of::<F::First>(), part.len() <= LONG_ROW) {
        (8, true) => reduce_by::<T, F, 8>(fold, part),
        (8, false) => reduce_by::<T, F, { ROW_LANES / 2 }>(fold, part),
        (_, true) => reduce_by::<T, F, 16>(fold, part),
        (_, false) => reduce_by::<T, F, ROW_LANES>(fold, part),
    }
}

/// Reduces a row by `LANES` accumulators, which are then merged.
#[inline(always)]
fn reduce_by<T: Element, F: Accumulate<T>, const LANES: usize>(
    fold: F,
    row: &[T],
) -> (F::First, F::Second) {
    let (lanes, lanes_2) = lanes_of::<T, F, LANES>(fold, row);
    merged::<T, F, LANES>(fold, lanes, lanes_2)
}

/// Reduces a row to `LANES` accumulators: element `i` goes to accumulator `i % LANES`.
#[inline(always)]
fn lanes_of<T: Element, F: Accumulate<T>, const LANES: usize>(
    fold: F,
    row: &[T],
) -> ([F::First; LANES], [F::Second; LANES]) {
    let (first, second) = fold.start();
    let (mut lanes, mut lanes_2) = ([first; LANES], [second; LANES]);
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut place = 0u32;
    // Each chunk is a copy: if it could lie among the lanes, the compiler would keep these in
    // memory.
    for &chunk in chunks {
        for i in 0..LANES {
            fold.step(&mut lanes[i], &mut lanes_2[i], chunk[i], place.wrapping_add(i as u32));
        }
        place = place.wrapping_add(LANES as u32);
    }
    let Some(&filler) = rest.first() else { return (lanes, lanes_2) };
    // The rest is padded to all lanes: an index that is not constant would keep the lanes in
    // memory.
    let mut window = [filler; LANES];
    for (i, &element) in rest.iter().enumerate() {
        window[i] = element;
    }
    for i in 0..LANES {
        let (mut one, mut one_2) = (lanes[i], lanes_2[i]);
        fold.step(&mut one, &mut one_2, window[i], place.wrapping_add(i as u32));
        lanes[i] = if i < rest.len() { one } else { lanes[i] };
        lanes_2[i] = if i < rest.len() { one_2 } else { lanes_2[i] };
    }
    (lanes, lanes_2)
}

/// Returns the extremum of a row and its first place. The extremum is found by [`ROW_LANES`] running
/// extrema and then searched for, which takes less time than carrying places along.
#[inline(always)]
fn first_place<T: Element, F: Accumulate<T>>(fold: F, row: &[T]) -> (F::First, F::Second) {
    let (start, second) = fold.start();
    let mut best = (start, second);
    let (chunks, short) = row.as_chunks::<ROW_LANES>();
    if !chunks.is_empty() {
        let mut lanes = [start; ROW_LANES];
        for &chunk in chunks {
            for i in 0..ROW_LANES {
                fold.take_extremum(&mut lanes[i], chunk[i]);
            }
        }
        let (lane, _) = merged::<T, F, ROW_LANES>(fold, lanes, [second; ROW_LANES]);
        fold.merge(&mut best.0, &mut best.1, (lane, second));
    }
    for &element in short {
        fold.take_extremum(&mut best.0, element);
    }
    (best.0, fold.first_place(row, best.0).unwrap_or(second))
}

/// Reduces each run of `LEN` neighbouring elements to one accumulator.
#[inline(always)]
fn step_short<T: Element, F: Accumulate<T>, const LEN: usize>(
    fold: F,
    elements: &[T],
    (to, to_2): (&mut [F::First], &mut [F::Second]),
) {
    let rows = to.len().min(to_2.len()).min(elements.len() / LEN);
    let elements = &elements[..rows * LEN];
    let (to, to_2) = (&mut to[..rows], &mut to_2[..rows]);
    let (first, second) = fold.start();
    for row in 0..rows {
        let (mut all, mut all_2) = ([first; LEN], [second; LEN]);
        for i in 0..LEN {
            fold.step(&mut all[i], &mut all_2[i], elements[row * LEN + i], i as u32);
        }
        (to[row], to_2[row]) = merged_by_halves::<T, F, LEN>(fold, all, all_2);
    }
}
