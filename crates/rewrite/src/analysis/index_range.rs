//! The ranges of dims in a row-major index.
//!
//! An [`IndexRange`] describes which part of the index a dim is, so that dims on both sides of a
//! reshape can be compared.

use tilewright_ir::types::shape::Dims;

/// The range of a dim in a row-major index: the dim is `index / low % (high / low)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexRange {
    /// The product of the dims after it; at least 1.
    pub low: i64,
    /// `low` times its size.
    pub high: i64,
}

impl IndexRange {
    /// Returns the number of values of the dim.
    pub fn size(self) -> i64 {
        self.high / self.low.max(1)
    }

    /// Checks whether steps along a dim with one range leave the index in a dim with the other
    /// unchanged; always so if one has size 1.
    pub fn apart(self, other: Self) -> bool {
        self.size() == 1
            || other.size() == 1
            || self.low % other.high == 0
            || other.low % self.high == 0
    }

    /// Checks whether the range lies within another.
    pub fn within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }
}

/// Returns the ranges of dims; `None` unless the number of elements is positive and fits `i64`.
pub fn index_ranges(dims: &[i64]) -> Option<Vec<IndexRange>> {
    let mut low = 1;
    let mut ranges = vec![IndexRange { low, high: low }; dims.len()];
    for (range, &size) in ranges.iter_mut().zip(dims).rev() {
        let high = i64::checked_mul(low, size).filter(|&high| high > 0)?;
        *range = IndexRange { low, high };
        low = high;
    }
    Some(ranges)
}

/// Returns the ranges of size above 1, neighbours joined, minor to major.
pub fn joined(ranges: impl IntoIterator<Item = IndexRange>) -> Vec<IndexRange> {
    let mut sorted: Vec<IndexRange> = ranges.into_iter().filter(|range| range.size() > 1).collect();
    sorted.sort_unstable();
    let mut joined: Vec<IndexRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if last.high >= range.low => last.high = last.high.max(range.high),
            _ => joined.push(range),
        }
    }
    joined
}

/// A row-major index cut into digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// The cuts, from 1 to the number of elements; each divides the next.
    at: Vec<i64>,
}

impl Cuts {
    /// The index of `elements` (at least one), cut at the ends of all these ranges; `None` if an
    /// end does not divide the next.
    pub fn of(elements: i64, ranges: impl IntoIterator<Item = IndexRange>) -> Option<Self> {
        let mut at = vec![1, elements];
        at.extend(ranges.into_iter().flat_map(|range| [range.low, range.high]));
        at.sort_unstable();
        at.dedup();
        at.windows(2).all(|pair| pair[1] % pair[0] == 0).then_some(Self { at })
    }

    /// Returns the pieces between the cuts, major to minor.
    pub fn digits(&self) -> Vec<IndexRange> {
        self.at.windows(2).rev().map(|pair| IndexRange { low: pair[0], high: pair[1] }).collect()
    }
}

/// Returns the sizes of dims with these ranges.
pub fn sizes(ranges: &[IndexRange]) -> Dims {
    ranges.iter().map(|range| range.size()).collect()
}
