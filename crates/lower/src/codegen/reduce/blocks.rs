//! Divides an array into blocks that are copied together, and orders the blocks.
//!
//! A block is a run of memory: the minor-most loops over vectors and a part of the next loop.
//! The other loops are the grid, kept ones outside of reduced ones. So all results of one kept
//! step are finished before the next begins, and only one block's results are held.
//! one begins, and nothing but one block's results is ever held.

use tilewright_target::Target;

use super::chain::MOST_TRIED;
use super::walk::{Outer, Walk};
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
        walk: &Walk,
        reduced: &[usize],
        elements: u64,
        arrange: impl FnOnce(Vec<Grid>) -> Arranged,
        mut index: impl FnMut(&Outer, bool) -> IndexId,
    ) -> Result<Self, LowerError> {
        let cut = Cut::of(walk, elements);
        let Cut { whole, part } = cut;
        let over = cut.over(walk)?;
        let is_reduced = |outer: &Outer| reduced.contains(&outer.dim);
        let (over_reduced, over_kept): (Vec<Grid>, Vec<Grid>) =
            over.into_iter().partition(|grid| is_reduced(&grid.outer));
        let Arranged { outer, group, inner } = arrange(over_kept);
        let windowed = outer.len();
        let mut blocks = Self {
            grid: Vec::new(),
            windowed,
            group,
            within: Vec::new(),
            start: Expr::ZERO,
            len: Expr::ZERO,
            most: walk.vector,
        };
        // The steps of the cut loop that come before a block, and before the last block.
        let (mut before, mut most_before) = (Expr::ZERO, 0u64);
        let mut last_start = 0u64;
        for Grid { place, outer } in outer.into_iter().chain(inner).chain(over_reduced) {
            let id = index(&outer, true);
            blocks.start = blocks.start + Expr::from(id) * signed(outer.stride)?;
            let last = outer.count.saturating_sub(1);
            last_start = last_start.saturating_add(outer.stride.saturating_mul(last));
            if place + 1 == whole {
                let steps = outer.stride / walk.outer[place].stride.max(1);
                before = before + Expr::from(id) * signed(steps)?;
                most_before = most_before.saturating_add(steps.saturating_mul(last));
            }
            let (reduced, count) = (is_reduced(&outer), signed(outer.count)?.into());
            blocks.grid.push(Loop { outer, reduced, count, index: id });
        }
        let mut last_len = None;
        let halved = whole.checked_sub(1).and_then(|place| walk.outer.get(place));
        if let Some(&outer) = halved.filter(|_| part > 1) {
            let steps: Expr = signed(part)?.into();
            let left = Expr::from(signed(outer.count)?) + before * -1;
            let even = outer.count.is_multiple_of(part);
            let count = if even { steps } else { steps.least(left) };
            blocks.len = count.clone() * signed(outer.stride)?;
            last_len = Some(outer.stride.saturating_mul(outer.count.saturating_sub(most_before)));
            let index = index(&outer, false);
            let outer = Outer { count: part, ..outer };
            blocks.push_within(Loop { outer, reduced: is_reduced(&outer), count, index })?;
        }
        for &outer in walk.outer.iter().skip(whole) {
            let (reduced, count) = (is_reduced(&outer), signed(outer.count)?.into());
            let index = index(&outer, false);
            blocks.push_within(Loop { outer, reduced, count, index })?;
        }
        blocks.most = blocks.most.min(walk.len);
        if last_len.is_none() {
            blocks.len = signed(blocks.most)?.into();
        }
        // On a linear memory the last vector of an array can be partial.
        if last_start.saturating_add(last_len.unwrap_or(blocks.most)) > walk.len {
            blocks.len =
                blocks.len.least(Expr::from(signed(walk.len)?) + blocks.start.clone() * -1);
        }
        Ok(blocks)
    }

    /// Adds a loop inside a block and extends the block to the length of the loop.
    fn push_within(&mut self, within: Loop) -> Result<(), LowerError> {
        let Outer { stride, count, .. } = within.outer;
        self.most = self.most.max(stride.checked_mul(count).ok_or(TooLarge::Elements)?);
        self.within.push(within);
        Ok(())
    }

    /// The address within a block of the vector at the current step of the loops.
    pub(crate) fn address<'a>(
        mut loops: impl Iterator<Item = &'a Loop>,
    ) -> Result<Expr, LowerError> {
        loops.try_fold(Expr::ZERO, |at, l| Ok(at + Expr::from(l.index) * signed(l.outer.stride)?))
    }

    /// The index along a dim, in elements, at the current step of the loops.
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
struct Cut {
    /// The first loop that lies completely inside a block.
    whole: usize,
    /// Number of steps of the loop before it that lie inside a block.
    part: u64,
}

impl Cut {
    /// The loops over blocks: those that do not lie completely inside a block.
    fn over(&self, walk: &Walk) -> Result<Vec<Grid>, LowerError> {
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

    fn of(walk: &Walk, elements: u64) -> Self {
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

/// A count as the signed type of kernels.
pub(crate) fn signed(count: u64) -> Result<i64, LowerError> {
    i64::try_from(count).map_err(|_| TooLarge::Elements.into())
}
