//! The dims on one side of a reshape, and their ranges in the index.

use std::ops::Range;

use tilewright_ir::types::shape::Dims;

use crate::analysis::index_range::{IndexRange, index_ranges};

/// A dim of size 1: its number, and the low end of its range in the row-major index.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) dim: usize,
    pub(super) low: i64,
}

/// The dims on one side of a reshape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) dims: Dims,
    pub(super) ranges: Vec<IndexRange>,
    /// The digits of every dim.
    pub(super) digits: Vec<Range<usize>>,
}

impl Side {
    /// `None` if the product exceeds `i64`.
    pub(super) fn new(dims: &[i64]) -> Option<Self> {
        let ranges = index_ranges(dims)?;
        Some(Self { dims: dims.into(), ranges, digits: vec![0..0; dims.len()] })
    }

    /// Adds the next digit to the dims in a range, except those of size 1.
    pub(super) fn own(&mut self, digit: usize, dims: &Range<usize>) {
        for dim in dims.clone().filter(|&dim| self.dims[dim] > 1) {
            let digits = &mut self.digits[dim];
            let start = if Range::is_empty(digits) { digit } else { digits.start };
            *digits = start..digit + 1;
        }
    }

    /// Returns the dims of size 1, major to minor.
    pub(super) fn units(&self) -> impl Iterator<Item = Unit> {
        let ranges = self.ranges.iter().enumerate();
        ranges
            .filter(|(_, range)| range.size() == 1)
            .map(|(dim, range)| Unit { dim, low: range.low })
    }

    /// Returns the dims of more than one element, minor to major.
    pub(super) fn minor_to_major(&self) -> Vec<(usize, IndexRange)> {
        let ranges = self.ranges.iter().copied().enumerate().rev();
        ranges.filter(|(_, range)| range.size() > 1).collect()
    }

    pub(super) fn sizes(&self, dims: &[usize]) -> Dims {
        dims.iter().map(|&dim| self.dims[dim]).collect()
    }
}

/// Pairs dims of size 1 in the same place, in order.
pub(super) fn matched(from: &[Unit], to: &[Unit]) -> Vec<(usize, usize)> {
    let mut to = to.iter().peekable();
    let mut pairs = Vec::new();
    for unit in from {
        while to.next_if(|other| other.low > unit.low).is_some() {}
        if let Some(other) = to.next_if(|other| other.low == unit.low) {
            pairs.push((unit.dim, other.dim));
        }
    }
    pairs
}
