//! Walks over dims: an odometer over the outer dims, a tight loop inside.
//!
//! All ops that move or fold elements describe what they do as strides of
//! several arrays over common dims, and leave the loop to a [`Nest`].

use smallvec::SmallVec;
use tilewright_ir::Data;

use crate::error::{Fault, Outcome};
use crate::value::{alike, map_data, with_data};

/// One dim of a walk: its size, and how far each array moves per step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level<const N: usize> {
    pub(crate) size: usize,
    pub(crate) strides: [isize; N],
}

/// A walk over dims for `N` arrays at once: dims of size 1 are dropped, dims
/// that all arrays walk through without a jump are one.
#[derive(Clone, Debug)]
pub(crate) struct Nest<const N: usize> {
    outer: SmallVec<[Level<N>; 5]>,
    inner: Level<N>,
}

impl<const N: usize> Nest<N> {
    /// A walk over these dims, the outermost first.
    pub(crate) fn new(levels: impl IntoIterator<Item = Level<N>>) -> Self {
        let mut outer: SmallVec<[Level<N>; 5]> = SmallVec::new();
        for level in levels {
            if level.size == 0 {
                let inner = Level { size: 0, strides: [0; N] };
                return Self { outer: SmallVec::new(), inner };
            }
            if level.size == 1 {
                continue;
            }
            // Beside a 0 that comes later, sizes may be too large to multiply.
            let merged = outer.last().filter(|last| continues(last, &level));
            let merged = merged.and_then(|last| last.size.checked_mul(level.size));
            match (outer.last_mut(), merged) {
                (Some(last), Some(size)) => *last = Level { size, strides: level.strides },
                _ => outer.push(level),
            }
        }
        let inner = outer.pop().unwrap_or(Level { size: 1, strides: [1; N] });
        Self { outer, inner }
    }

    /// Returns the innermost dim.
    pub(crate) fn inner(&self) -> Level<N> {
        self.inner
    }

    /// Returns all dims, the outermost first.
    pub(crate) fn levels(&self) -> SmallVec<[Level<N>; 6]> {
        self.outer.iter().copied().chain([self.inner]).collect()
    }

    /// Visits every position of the outer dims, in order: where each array then is.
    pub(crate) fn positions(&self, start: [isize; N]) -> Positions<'_, N> {
        let next = (self.inner.size > 0).then_some(start);
        Positions { outer: &self.outer, counts: SmallVec::from_elem(0, self.outer.len()), next }
    }
}

/// The positions of the outer dims of a [`Nest`].
pub(crate) struct Positions<'a, const N: usize> {
    outer: &'a [Level<N>],
    counts: SmallVec<[usize; 5]>,
    next: Option<[isize; N]>,
}

impl<const N: usize> Iterator for Positions<'_, N> {
    type Item = [isize; N];

    fn next(&mut self) -> Option<[isize; N]> {
        let here = self.next.take()?;
        let mut at = here;
        for (count, level) in self.counts.iter_mut().zip(self.outer).rev() {
            *count += 1;
            if *count < level.size {
                step(&mut at, level, 1);
                self.next = Some(at);
                break;
            }
            step(&mut at, level, 1 - level.size.cast_signed());
            *count = 0;
        }
        Some(here)
    }
}

fn continues<const N: usize>(outer: &Level<N>, inner: &Level<N>) -> bool {
    let steps = |stride: isize| stride.checked_mul(inner.size.cast_signed());
    outer.strides.iter().zip(inner.strides).all(|(&o, i)| steps(i) == Some(o))
}

fn step<const N: usize>(at: &mut [isize; N], level: &Level<N>, times: isize) {
    for (at, stride) in at.iter_mut().zip(level.strides) {
        *at += stride * times;
    }
}

/// Returns the strides of a row-major array, in elements.
pub(crate) fn row_major(dims: &[i64]) -> SmallVec<[isize; 6]> {
    let mut strides: SmallVec<[isize; 6]> = dims.iter().map(|_| 1).collect();
    let mut stride: isize = 1;
    for (slot, &size) in strides.iter_mut().zip(dims).rev() {
        *slot = stride;
        // The product of the dims of an array that exists fits. An empty dim
        // counts as one element, so that no two dims have the same stride.
        stride = stride.saturating_mul(extent(size).max(1).cast_signed());
    }
    strides
}

/// Returns the index of a place in row-major order.
pub(crate) fn index_of(mut place: usize, sizes: &[usize]) -> SmallVec<[usize; 4]> {
    let mut index: SmallVec<[usize; 4]> = sizes
        .iter()
        .rev()
        .map(|&size| {
            let along = place.checked_rem(size).unwrap_or(0);
            place = place.checked_div(size).unwrap_or(0);
            along
        })
        .collect();
    index.reverse();
    index
}

/// Returns a dim's size, which is not negative.
pub(crate) fn extent(size: i64) -> usize {
    usize::try_from(size).unwrap_or(0)
}

/// Element numbers of an attribute's dims.
pub(crate) fn dim_numbers(dims: &[i64]) -> SmallVec<[usize; 6]> {
    dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect()
}

/// Returns the elements that a walk over one array meets, in a row.
pub(crate) fn collect(data: &Data, nest: &Nest<1>, start: isize) -> Data {
    map_data!(data, values => collect_typed(values, nest, start))
}

fn collect_typed<T: Copy + Default>(values: &[T], nest: &Nest<1>, start: isize) -> Vec<T> {
    if let Some(tiles) = Tiles::of(nest) {
        return tiles.collect(values, start);
    }
    let total = nest.outer.iter().map(|l| l.size).product::<usize>() * nest.inner.size;
    let mut out = Vec::with_capacity(total);
    let Level { size, strides: [stride] } = nest.inner;
    for [at] in nest.positions([start]) {
        extend_row(&mut out, values, at, size, stride);
    }
    out
}

/// Appends a row of elements that are `stride` apart.
pub(crate) fn extend_row<T: Copy>(
    out: &mut Vec<T>,
    values: &[T],
    at: isize,
    size: usize,
    stride: isize,
) {
    let first = at.cast_unsigned();
    match stride {
        1 => out.extend_from_slice(&values[first..first + size]),
        0 => out.extend(std::iter::repeat_n(values[first], size)),
        2.. if size > 0 => {
            let step = stride.cast_unsigned();
            // The row as a whole is in range, so each of its elements is.
            let row = &values[first..=first + (size - 1) * step];
            out.extend((0..size).map(|i| row[i * step]));
        }
        _ => {
            let back = stride.unsigned_abs();
            out.extend(values[..=first].iter().rev().step_by(back).take(size));
        }
    }
}

impl Nest<1> {
    /// Checks whether it meets elements that follow each other.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.outer.is_empty() && (self.inner.size < 2 || self.inner.strides == [1])
    }

    /// Appends the elements that a walk from 0 meets from its `first`th step
    /// on, `count` of them.
    pub(crate) fn extend_part<T: Copy>(
        &self,
        out: &mut Vec<T>,
        values: &[T],
        first: usize,
        count: usize,
    ) {
        let Level { size, strides: [stride] } = self.inner;
        if size == 0 {
            return;
        }
        let mut column = first % size;
        let mut rest = first / size;
        let mut counts: SmallVec<[usize; 5]> = self.outer.iter().map(|_| 0).collect();
        let mut at = 0;
        for (digit, level) in counts.iter_mut().zip(&self.outer).rev() {
            *digit = rest % level.size;
            rest /= level.size;
            at += level.strides[0] * digit.cast_signed();
        }
        let mut left = count;
        while left > 0 {
            let run = left.min(size - column);
            extend_row(out, values, at + stride * column.cast_signed(), run, stride);
            left -= run;
            column = 0;
            for (digit, level) in counts.iter_mut().zip(&self.outer).rev() {
                *digit += 1;
                at += level.strides[0];
                if *digit < level.size {
                    break;
                }
                at -= level.strides[0] * level.size.cast_signed();
                *digit = 0;
            }
        }
    }
}

/// A transpose done in square tiles, so that both reads and writes stay within
/// few cache lines.
struct Tiles {
    /// The other dims, for source and result.
    rest: Nest<2>,
    /// The dim that is contiguous in the source.
    rows: Level<2>,
    /// The dim that is contiguous in the result.
    columns: Level<2>,
    total: usize,
}

impl Tiles {
    const SIDE: usize = 16;

    /// The tiles of a walk whose innermost dim is not the source's.
    fn of(nest: &Nest<1>) -> Option<Self> {
        let levels: SmallVec<[Level<1>; 6]> =
            nest.outer.iter().copied().chain([nest.inner]).collect();
        let [inner] = nest.inner.strides;
        let contiguous = levels.iter().position(|l| l.strides == [1] && l.size >= 4)?;
        if inner.unsigned_abs() < 2 || nest.inner.size < 4 || contiguous + 1 == levels.len() {
            return None;
        }
        let mut stride = 1;
        let mut both: SmallVec<[Level<2>; 6]> = SmallVec::new();
        for level in levels.iter().rev() {
            both.push(Level { size: level.size, strides: [level.strides[0], stride] });
            stride *= level.size.cast_signed();
        }
        both.reverse();
        let columns = both.pop()?;
        let rows = both.remove(contiguous);
        Some(Self { rest: Nest::single_steps(both), rows, columns, total: stride.cast_unsigned() })
    }

    fn collect<T: Copy + Default>(&self, values: &[T], start: isize) -> Vec<T> {
        let mut out = vec![T::default(); self.total];
        for [from, to] in self.rest.positions([start, 0]) {
            for row in (0..self.rows.size).step_by(Self::SIDE) {
                for column in (0..self.columns.size).step_by(Self::SIDE) {
                    self.tile(values, &mut out, from, to, row, column);
                }
            }
        }
        out
    }

    fn tile<T: Copy>(
        &self,
        values: &[T],
        out: &mut [T],
        from: isize,
        to: isize,
        first_row: usize,
        first_column: usize,
    ) {
        let (row_strides, column_strides) = (self.rows.strides, self.columns.strides);
        let last_column = self.columns.size.min(first_column + Self::SIDE);
        for row in first_row..self.rows.size.min(first_row + Self::SIDE) {
            let row = row.cast_signed();
            let mut at = from + row * row_strides[0];
            at += first_column.cast_signed() * column_strides[0];
            let to = (to + row * row_strides[1]).cast_unsigned();
            for slot in &mut out[to + first_column..to + last_column] {
                *slot = values[at.cast_unsigned()];
                at += column_strides[0];
            }
        }
    }
}

impl Nest<2> {
    /// A walk whose every step is at a single position: no inner loop.
    pub(crate) fn single_steps(levels: impl IntoIterator<Item = Level<2>>) -> Self {
        let outer: SmallVec<[Level<2>; 5]> = levels.into_iter().filter(|l| l.size != 1).collect();
        let size = usize::from(outer.iter().all(|l| l.size != 0));
        Self { outer, inner: Level { size, strides: [1; 2] } }
    }

    /// The same walk with the two arrays in the other order.
    pub(crate) fn swapped(&self) -> Self {
        let swap = |level: &Level<2>| {
            let [a, b] = level.strides;
            Level { size: level.size, strides: [b, a] }
        };
        Self { outer: self.outer.iter().map(swap).collect(), inner: swap(&self.inner) }
    }
}

/// Copies elements of one array to places of another: `nest` walks the target
/// first, the source second.
pub(crate) fn place(
    target: &mut Data,
    source: &Data,
    nest: &Nest<2>,
    start: [isize; 2],
) -> Outcome<()> {
    place_many(target, source, nest, &[start])
}

/// Like [`place`], for the same walk from several starts.
pub(crate) fn place_many(
    target: &mut Data,
    source: &Data,
    nest: &Nest<2>,
    starts: &[[isize; 2]],
) -> Outcome<()> {
    with_data!(target, out => {
        let values = alike(out, source)?;
        starts.iter().try_for_each(|&start| place_typed(out, values, nest, start))
    })
}

fn place_typed<T: Copy>(
    out: &mut [T],
    values: &[T],
    nest: &Nest<2>,
    start: [isize; 2],
) -> Outcome<()> {
    let Level { size, strides } = nest.inner;
    for [to, from] in nest.positions(start) {
        let (first, from) = (to.cast_unsigned(), from.cast_unsigned());
        if strides == [1, 1] {
            out[first..first + size].copy_from_slice(&values[from..from + size]);
            continue;
        }
        let [Ok(to_step), Ok(from_step)] = strides.map(usize::try_from) else {
            return Err(Fault::Internal("a copy walks backwards"));
        };
        for i in 0..size {
            out[first + i * to_step] = values[from + i * from_step];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a transpose by the definition.
    fn permuted(dims: &[i64], order: &[usize]) -> Vec<i32> {
        let strides = row_major(dims);
        let mut places = vec![0isize];
        for &dim in order {
            let steps = 0..dims[dim] as isize;
            places = places
                .iter()
                .flat_map(|at| steps.clone().map(move |i| (at, i)))
                .map(|(at, i)| at + i * strides[dim])
                .collect();
        }
        places.into_iter().map(|at| at as i32).collect()
    }

    #[test]
    fn collects_in_any_order_of_dims() {
        let dims = [5, 1, 18, 33];
        let count: i64 = dims.iter().product();
        let data = Data::S32((0..count as i32).collect());
        let strides = row_major(&dims);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1], [0, 3, 2, 1], [1, 0, 3, 2]] {
            let levels =
                order.map(|d: usize| Level { size: extent(dims[d]), strides: [strides[d]] });
            let found = collect(&data, &Nest::new(levels), 0);
            assert_eq!(found.as_slice::<i32>(), Some(&*permuted(&dims, &order)), "{order:?}");
        }
    }

    #[test]
    fn dims_without_a_jump_are_one() {
        let level = |size, stride| Level { size, strides: [stride] };
        let nest = Nest::new([level(2, 12), level(3, 4), level(1, 99), level(4, 1)]);
        assert_eq!((nest.outer.len(), nest.inner), (0, level(24, 1)));
        let nest = Nest::new([level(2, 0), level(3, 4), level(4, 1)]);
        assert_eq!((nest.outer.len(), nest.inner), (1, level(12, 1)));
        let nest = Nest::new([level(2, 3), level(0, 1)]);
        assert_eq!((nest.inner.size, nest.positions([0]).next()), (0, None));
        assert_eq!(Nest::<1>::new([]).positions([7]).collect::<Vec<_>>(), [[7]]);
    }
}
