//! Results that are written out while others are worked on.
//!
//! A window is a part of every result: what all loops of the grid but the outermost
//! ones put there. It lies in vector memory in an order of its own, and goes to
//! main memory once all of it is there. So that nothing is written twice, windows
//! begin and end where vectors of the results do.

use super::place::Placement;
use super::walk::Outer;

/// A loop over blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Which of the walk's loops it is a part of.
    pub(crate) place: usize,
    /// What it walks along.
    pub(crate) outer: Outer,
}

/// The kept loops over blocks, in order.
#[derive(Debug, Default)]
pub(crate) struct Arranged {
    /// Those around windows.
    pub(crate) outer: Vec<Grid>,
    /// How many steps of the last of these share a window.
    pub(crate) group: u64,
    /// Those that go through a window.
    pub(crate) inner: Vec<Grid>,
}

/// How large windows are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Results of at most so many bytes are one window.
    pub(crate) whole: u64,
    /// Others are cut into windows of about so many.
    pub(crate) window: u64,
}

/// A part of one result, as it lies in vector memory.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The loops over what it holds, major to minor.
    pub(crate) loops: Vec<WindowLoop>,
    /// Elements.
    pub(crate) len: u64,
}

/// A loop over the vectors of a window; on a linear memory, over its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLoop {
    /// What it walks along, in all of the result in main memory; the dim is that
    /// of the array.
    pub(crate) outer: Outer,
    /// How many steps of it a window holds.
    pub(crate) count: u64,
    /// Elements between steps in vector memory.
    pub(crate) stride: u64,
}

impl Arranged {
    /// One window holds all.
    pub(crate) fn whole(kept: Vec<Grid>) -> Self {
        Self { outer: Vec::new(), group: 1, inner: kept }
    }

    /// Puts loops in an order in which windows are small enough, if there is one.
    pub(crate) fn of(kept: Vec<Grid>, results: &[(&Placement, u64)], sizes: Sizes) -> Self {
        let whole = Self::whole(kept);
        if whole.bytes(results) <= sizes.whole {
            return whole;
        }
        let mut arranged = Self::aligned(whole.inner, results);
        arranged.grow(results, sizes.window);
        arranged
    }

    /// As many loops around windows as can be: a step of each is whole vectors of
    /// every result, or several steps are.
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

    /// Makes windows larger while they are small: fewer copies are waited for.
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

    /// How much of a dim a window holds; `None` where it is all.
    fn extent(&self, dim: usize) -> Option<u64> {
        extent(self.outer.iter().map(|grid| &grid.outer), self.group, dim)
    }
}

/// How much of a dim a window holds within these loops; `None` where it is all.
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

/// How many steps of so many elements make whole vectors of every result; `None`
/// where only the whole dim does.
fn steps_of_vectors(dim: usize, unit: u64, results: &[(&Placement, u64)]) -> Option<u64> {
    results.iter().try_fold(1u64, |steps, (placement, _)| {
        let whole = placement.whole_vectors(dim)?;
        let these = whole / common(whole, unit).max(1);
        (steps / common(steps, these).max(1)).checked_mul(these)
    })
}

/// The greatest common divisor.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
