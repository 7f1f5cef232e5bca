//! Divides an array into blocks that are copied together, and orders the blocks.
//!
//! A block is a run of memory: the minor-most loops over vectors and a part of the next loop.
//! The other loops are the grid, kept ones outside of reduced ones. So all results of one kept
//! step are finished before the next begins, and only one block's results are held.

use tilewright_target::Target;

use super::chain::MOST_TRIED;
use super::walk::{Outer, VectorWalk};
use super::window::{Arranged, Grid};
use crate::error::{LowerError, TooLarge};
use crate::kernel::{Expr, IndexId};

/// A loop of the grid or inside a block.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The part of a dim that it walks along.
    pub(crate) outer: Outer,
    /// Whether that dim is reduced.
    pub(crate) reduced: bool,
    /// The number of steps; the last of several blocks can have fewer.
    pub(crate) count: Expr,
    /// The loop index.
    pub(crate) index: IndexId,
}

/// A walk divided into blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// The loops over blocks: kept ones first, starting with those around windows of the
    /// results, then reduced ones.
    pub(crate) grid: Vec<Loop>,
    /// The number of loops around windows.
    pub(crate) windowed: usize,
    /// The number of steps of the last of these that share a window.
    pub(crate) group: u64,
    /// The loops inside a block, major to minor.
    pub(crate) within: Vec<Loop>,
    /// The address at which a block begins.
    pub(crate) start: Expr,
    /// Elements of a block; the last of several can have fewer.
    pub(crate) len: Expr,
    /// Largest number of elements of a block.
    pub(crate) most: u64,
}

/// Bytes copied at a time: twice what main memory sends during its latency, so that a copy is
/// always under way, and at most an eighth of vector memory.
pub(crate) fn block_bytes(target: &Target) -> u64 {
    let flight = target.hbm_latency_cycles * target.hbm_bytes_per_cycle;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size to aim at, bounded by the next line"
    )]
    let wanted = (2.0 * flight) as u64;
    wanted.min(target.vector_memory_bytes / 8).max(target.vector_bytes())
}

impl Blocks {
    /// Divides a walk into blocks of about `elements` elements. `arrange` orders the kept loops
    /// over blocks.
    pub(crate) fn of(
        walk: &VectorWalk,
        reduced: &[usize],
        elements: u64,
        arrange: impl FnOnce(Vec<Grid>) -> Arranged,
        mut index: impl FnMut(&Outer, bool) -> IndexId,
    ) -> Result<Self, LowerError> {
        let cut = GridCut::of(walk, elements);
        let is_reduced = |outer: &Outer| reduced.contains(&outer.dim);
        let (over_reduced, over_kept): (Vec<Grid>, Vec<Grid>) =
            cut.over(walk)?.into_iter().partition(|grid| is_reduced(&grid.outer));
        let Arranged { outer, group, inner } = arrange(over_kept);
        let mut blocks = Self {
            grid: Vec::new(),
            windowed: outer.len(),
            group,
            within: Vec::new(),
            start: Expr::ZERO,
            len: Expr::ZERO,
            most: walk.vector,
        };
        let mut before = Before::default();
        for grid in outer.into_iter().chain(inner).chain(over_reduced) {
            let id = index(&grid.outer, true);
            before.add(walk, &cut, &grid, id)?;
            blocks.push_grid(grid.outer, is_reduced(&grid.outer), id)?;
        }
        let mut last_len = None;
        let halved = cut.whole.checked_sub(1).and_then(|place| walk.outer.get(place));
        if let Some(&outer) = halved.filter(|_| cut.part > 1) {
            let id = index(&outer, false);
            last_len = Some(before.last_len(&outer));
            blocks.push_part(outer, cut.part, before.steps, is_reduced(&outer), id)?;
        }
        for &outer in walk.outer.iter().skip(cut.whole) {
            let (reduced, count) = (is_reduced(&outer), signed(outer.count)?.into());
            let index = index(&outer, false);
            blocks.push_within(Loop { outer, reduced, count, index })?;
        }
        blocks.most = blocks.most.min(walk.len);
        if last_len.is_none() {
            blocks.len = signed(blocks.most)?.into();
        }
        // On a linear memory the last vector of an array can be partial.
        if before.last_start.saturating_add(last_len.unwrap_or(blocks.most)) > walk.len {
            blocks.len =
                blocks.len.least(Expr::from(signed(walk.len)?) + blocks.start.clone() * -1);
        }
        Ok(blocks)
    }

    /// Adds a loop over blocks.
    fn push_grid(&mut self, outer: Outer, reduced: bool, index: IndexId) -> Result<(), LowerError> {
        self.start = self.start.clone() + Expr::from(index) * signed(outer.stride)?;
        let count = signed(outer.count)?.into();
        self.grid.push(Loop { outer, reduced, count, index });
        Ok(())
    }

    /// Adds the part of the cut loop that lies inside a block: `part` steps, or fewer if the loop
    /// ends before. `before` are its steps before the block.
    fn push_part(
        &mut self,
        outer: Outer,
        part: u64,
        before: Expr,
        reduced: bool,
        index: IndexId,
    ) -> Result<(), LowerError> {
        let steps: Expr = signed(part)?.into();
        let left = Expr::from(signed(outer.count)?) + before * -1;
        let even = outer.count.is_multiple_of(part);
        let count = if even { steps } else { steps.least(left) };
        self.len = count.clone() * signed(outer.stride)?;
        self.push_within(Loop { outer: Outer { count: part, ..outer }, reduced, count, index })
    }

    /// Adds a loop inside a block and extends the block to the length of the loop.
    fn push_within(&mut self, within: Loop) -> Result<(), LowerError> {
        let Outer { stride, count, .. } = within.outer;
        self.most = self.most.max(stride.checked_mul(count).ok_or(TooLarge::Elements)?);
        self.within.push(within);
        Ok(())
    }

    /// Returns the address within a block of the vector at the current step of the loops.
    pub(crate) fn address<'a>(
        mut loops: impl Iterator<Item = &'a Loop>,
    ) -> Result<Expr, LowerError> {
        loops.try_fold(Expr::ZERO, |at, l| Ok(at + Expr::from(l.index) * signed(l.outer.stride)?))
    }

    /// Returns the index along a dim, in elements, at the current step of the loops.
    pub(crate) fn index<'a>(
        loops: impl Iterator<Item = &'a Loop>,
        dim: usize,
    ) -> Result<Expr, LowerError> {
        loops
            .filter(|l| l.outer.dim == dim)
            .try_fold(Expr::ZERO, |sum, l| Ok(sum + Expr::from(l.index) * signed(l.outer.unit)?))
    }
}

/// The position at which the loops are cut into grid and block.
struct GridCut {
    /// The first loop that lies completely inside a block.
    whole: usize,
    /// Number of steps of the loop before it that lie inside a block.
    part: u64,
}

impl GridCut {
    /// Returns the loops over blocks: those that do not lie completely inside a block.
    fn over(&self, walk: &VectorWalk) -> Result<Vec<Grid>, LowerError> {
        let mut over = Vec::with_capacity(self.whole);
        for (place, &outer) in walk.outer.iter().enumerate().take(self.whole) {
            let steps = if place + 1 == self.whole { self.part.max(1) } else { 1 };
            let stride = outer.stride.checked_mul(steps).ok_or(TooLarge::Elements)?;
            let unit = outer.unit.checked_mul(steps).ok_or(TooLarge::Elements)?;
            let count = outer.count.div_ceil(steps);
            over.push(Grid { place, outer: Outer { unit, count, stride, ..outer } });
        }
        Ok(over)
    }

    fn of(walk: &VectorWalk, elements: u64) -> Self {
        let reach = |outer: &Outer| outer.stride.saturating_mul(outer.count);
        let fits = |outer: &&Outer| reach(outer) <= elements;
        let whole = walk.outer.len() - walk.outer.iter().rev().take_while(fits).count();
        let Some(next) = whole.checked_sub(1).and_then(|place| walk.outer.get(place)) else {
            return Self { whole, part: 1 };
        };
        let most = (elements / next.stride.max(1)).clamp(1, next.count.max(1));
        // Prefer blocks of equal size unless they would be less than half as large.
        let mut tried = (most.div_ceil(2)..=most).rev().take(MOST_TRIED);
        let even = tried.find(|&steps| next.count.is_multiple_of(steps));
        Self { whole, part: even.unwrap_or(most) }
    }
}

/// The part of a walk that comes before a block.
struct Before {
    /// The steps of the cut loop before the block.
    steps: Expr,
    /// The steps of the cut loop before the last block.
    most_steps: u64,
    /// The address at which the last block begins.
    last_start: u64,
}

impl Default for Before {
    fn default() -> Self {
        Self { steps: Expr::ZERO, most_steps: 0, last_start: 0 }
    }
}

impl Before {
    /// Adds the steps of a loop over blocks.
    fn add(
        &mut self,
        walk: &VectorWalk,
        cut: &GridCut,
        grid: &Grid,
        id: IndexId,
    ) -> Result<(), LowerError> {
        let Grid { place, outer } = grid;
        let last = outer.count.saturating_sub(1);
        self.last_start = self.last_start.saturating_add(outer.stride.saturating_mul(last));
        if place + 1 == cut.whole {
            let steps = outer.stride / walk.outer[*place].stride.max(1);
            self.steps = self.steps.clone() + Expr::from(id) * signed(steps)?;
            self.most_steps = self.most_steps.saturating_add(steps.saturating_mul(last));
        }
        Ok(())
    }

    /// Returns the elements of the last block, if the cut loop is this one.
    fn last_len(&self, cut: &Outer) -> u64 {
        cut.stride.saturating_mul(cut.count.saturating_sub(self.most_steps))
    }
}

/// Returns a count as the signed type of kernels.
pub(crate) fn signed(count: u64) -> Result<i64, LowerError> {
    i64::try_from(count).map_err(|_| TooLarge::Elements.into())
}
