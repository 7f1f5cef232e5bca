//! Writes out finished results while others are computed.
//!
//! A window is the part of each result that all grid loops except the outermost ones produce. It
//! has its own layout in vector memory and is copied to main memory when it is complete. Windows
//! begin and end on vector boundaries of the results, so nothing is written twice.

use super::place::Placement;
use super::walk::Outer;

/// A loop over blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// The number of the walk's loop that it is a part of.
    pub(crate) place: usize,
    /// The part of a dim that it walks along.
    pub(crate) outer: Outer,
}

/// The kept loops over blocks, in order.
#[derive(Debug, Default)]
pub(crate) struct Arranged {
    /// The loops around windows.
    pub(crate) outer: Vec<Grid>,
    /// The number of steps of the last of these that share a window.
    pub(crate) group: u64,
    /// The loops inside a window.
    pub(crate) inner: Vec<Grid>,
}

/// The sizes of windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Results of at most this many bytes are one window.
    pub(crate) whole: u64,
    /// Larger results are divided into windows of about this many bytes.
    pub(crate) window: u64,
}

/// A part of one result, as it is laid out in vector memory.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The loops over its elements, major to minor.
    pub(crate) loops: Vec<WindowLoop>,
    /// Number of elements.
    pub(crate) len: u64,
}

/// A loop over the vectors of a window; on a linear memory, over its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLoop {
    /// The loop over the whole result in main memory; the dim is a dim of the array.
    pub(crate) outer: Outer,
    /// The number of its steps that a window holds.
    pub(crate) count: u64,
    /// Elements of vector memory between two steps.
    pub(crate) stride: u64,
}

impl Arranged {
    /// One window for the whole result.
    pub(crate) fn whole(kept: Vec<Grid>) -> Self {
        Self { outer: Vec::new(), group: 1, inner: kept }
    }

    /// Orders the loops so that windows are small enough, if such an order exists.
    pub(crate) fn of(kept: Vec<Grid>, results: &[(&Placement, u64)], sizes: Sizes) -> Self {
        let whole = Self::whole(kept);
        if whole.bytes(results) <= sizes.whole {
            return whole;
        }
        let mut arranged = Self::aligned(whole.inner, results);
        arranged.grow(results, sizes.window);
        arranged
    }

    /// Puts as many loops around windows as possible. One or several steps of each must be whole
    /// vectors of every result.
    fn aligned(kept: Vec<Grid>, results: &[(&Placement, u64)]) -> Self {
        let mut arranged = Self { group: 1, ..Self::default() };
        let mut grouped = None;
        for grid in kept {
            let Outer { dim, unit, count, stride } = grid.outer;
            let group = steps_of_vectors(dim, unit, results).filter(|&group| group < count);
            match group {
                None => arranged.inner.push(grid),
                Some(1) => arranged.outer.push(grid),
                Some(group) if count.is_multiple_of(group) => {
                    let (unit, stride) = (unit.saturating_mul(group), stride.saturating_mul(group));
                    let outer = Outer { dim, unit, count: count / group, stride };
                    arranged.outer.push(Grid { outer, ..grid });
                    let outer = Outer { count: group, ..grid.outer };
                    arranged.inner.push(Grid { outer, ..grid });
                }
                Some(group) if grouped.is_none() => grouped = Some((grid, group)),
                Some(_) => arranged.inner.push(grid),
            }
        }
        if let Some((grid, group)) = grouped {
            arranged.outer.push(grid);
            arranged.group = group;
        }
        arranged
    }

    /// Makes small windows larger, so that there are fewer copies to wait for.
    fn grow(&mut self, results: &[(&Placement, u64)], bytes: u64) {
        while let Some(last) = self.outer.last().copied() {
            let times = (bytes / self.bytes(results).max(1)).max(1);
            self.group = self.group.saturating_mul(times);
            if self.group < last.outer.count {
                return;
            }
            self.outer.pop();
            self.inner.insert(0, last);
            self.group = 1;
        }
    }

    fn bytes(&self, results: &[(&Placement, u64)]) -> u64 {
        let bytes = |&(placement, bytes): &(&Placement, u64)| {
            placement.window(&|dim| self.extent(dim)).len.saturating_mul(bytes)
        };
        results.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Returns the part of a dim that a window holds; `None` for the whole dim.
    fn extent(&self, dim: usize) -> Option<u64> {
        extent(self.outer.iter().map(|grid| &grid.outer), self.group, dim)
    }
}

/// Returns the part of a dim that these loops span; `None` for the whole dim.
pub(crate) fn extent<'a>(
    loops: impl DoubleEndedIterator<Item = &'a Outer> + ExactSizeIterator,
    group: u64,
    dim: usize,
) -> Option<u64> {
    let along = loops.rev().enumerate().filter(|(_, outer)| outer.dim == dim);
    let reach = |(place, outer): (usize, &Outer)| {
        outer.unit.saturating_mul(if place == 0 { group } else { 1 })
    };
    along.map(reach).min()
}

/// Returns the number of steps of `unit` elements that make whole vectors of every result;
/// `None` if only the whole dim does.
fn steps_of_vectors(dim: usize, unit: u64, results: &[(&Placement, u64)]) -> Option<u64> {
    results.iter().try_fold(1u64, |steps, (placement, _)| {
        let whole = placement.whole_vectors(dim)?;
        let these = whole / common(whole, unit).max(1);
        (steps / common(steps, these).max(1)).checked_mul(these)
    })
}

/// Returns the greatest common divisor.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
