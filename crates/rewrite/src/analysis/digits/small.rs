//! The reshape that remains once the input dims apart from all kept dims are dropped.

use tilewright_ir::types::shape::Dims;

use super::Digits;
use super::side::{Unit, matched};
use crate::analysis::index_range::IndexRange;

/// A reshape without the dropped input dims.
pub(super) struct SmallReshape {
    /// The remaining input dims, and size-1 dims that match one in `to`; ascending.
    pub(super) from: Vec<usize>,
    /// The output dims.
    pub(super) to: Vec<Piece>,
}

impl SmallReshape {
    pub(super) fn to_sizes(&self) -> Dims {
        self.to.iter().map(Piece::size).collect()
    }
}

/// An output dim of a [`SmallReshape`].
pub(super) struct Piece {
    low: i64,
    high: i64,
    /// The output dim of the original reshape that it equals; `None` for a piece between those.
    pub(super) dim: Option<usize>,
}

impl Piece {
    fn size(&self) -> i64 {
        self.high / self.low
    }
}

/// The output dims of a [`SmallReshape`] under construction, from minor to major.
struct Pieces {
    done: Vec<Piece>,
    /// The high end of the last piece.
    low: i64,
    /// The low ends of the input dims, major to minor; each is a multiple of the next.
    cuts: Vec<i64>,
}

impl Pieces {
    fn push(&mut self, high: i64, dim: Option<usize>) {
        self.done.push(Piece { low: self.low, high, dim });
        self.low = high;
    }

    fn keep(&mut self, dim: usize, size: i64) {
        self.push(self.low * size, Some(dim)); // At most the element count.
    }

    /// Fills the gap below `end` with one piece for each input dim, or fewer if an input dim does
    /// not end on a multiple of `low` that divides `end`.
    fn fill_up_to(&mut self, end: i64) {
        let low = self.low;
        let fits = |&cut: &i64| low < cut && cut < end && cut % low == 0 && end % cut == 0;
        let cuts: Vec<i64> = self.cuts.iter().rev().copied().filter(fits).collect();
        for cut in cuts {
            self.push(cut, None);
        }
        if self.low < end {
            self.push(end, None);
        }
    }
}

/// Input dims dropped from the index.
struct Dropped(Vec<IndexRange>);

impl Dropped {
    /// Returns the new position of the end of a range that is apart from all dropped ones.
    fn moved(&self, end: i64) -> i64 {
        self.0.iter().filter(|range| range.high <= end).fold(end, |end, range| end / range.size())
    }
}

impl Digits {
    /// Returns the reshape without the input dims that are apart from all kept output dims.
    pub(super) fn restrict(&self, kept: &[bool]) -> SmallReshape {
        let kept_ranges: Vec<IndexRange> = (self.to.ranges.iter().zip(kept))
            .filter(|&(range, &kept)| kept && range.size() > 1)
            .map(|(&range, _)| range)
            .collect();
        let (dropped, mut from): (Vec<usize>, Vec<usize>) = (0..self.from.dims.len())
            .filter(|&dim| self.from.dims[dim] > 1)
            .partition(|&dim| kept_ranges.iter().all(|kept| kept.apart(self.from.ranges[dim])));
        let dropped = Dropped(dropped.iter().map(|&dim| self.from.ranges[dim]).collect());
        let cuts = from.iter().map(|&dim| dropped.moved(self.from.ranges[dim].low)).collect();
        let to = self.pieces(kept, &dropped, cuts);
        let units = to.iter().enumerate().filter(|(_, piece)| piece.size() == 1);
        let units: Vec<Unit> = units.map(|(dim, piece)| Unit { dim, low: piece.low }).collect();
        let from_units: Vec<Unit> = self
            .from
            .units()
            .map(|Unit { dim, low }| Unit { dim, low: dropped.moved(low) })
            .collect();
        from.extend(matched(&from_units, &units).into_iter().map(|(dim, _)| dim));
        from.sort_unstable();
        SmallReshape { from, to }
    }

    /// Returns the output dims of the small reshape: the kept ones, and the pieces between
    /// them, cut at the ends of the input dims.
    fn pieces(&self, kept: &[bool], dropped: &Dropped, cuts: Vec<i64>) -> Vec<Piece> {
        let end = dropped.moved(self.to.ranges.first().map_or(1, |range| range.high));
        let mut pieces = Pieces { done: Vec::new(), low: 1, cuts };
        // A size-1 dim stays above the same dims, kept or not.
        let (mut units, mut between) = (Vec::new(), false);
        for (dim, &range) in self.to.ranges.iter().enumerate().rev() {
            match (kept[dim], range.size() == 1) {
                (false, is_unit) => between |= !is_unit,
                (true, true) if between => units.push(dim),
                (true, true) => pieces.keep(dim, 1),
                (true, false) => {
                    pieces.fill_up_to(dropped.moved(range.low));
                    units.drain(..).for_each(|unit| pieces.keep(unit, 1));
                    pieces.keep(dim, range.size());
                    between = false;
                }
            }
        }
        pieces.fill_up_to(end);
        units.drain(..).for_each(|unit| pieces.keep(unit, 1));
        pieces.done.reverse();
        pieces.done
    }
}
