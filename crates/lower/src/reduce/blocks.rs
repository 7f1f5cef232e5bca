//! Which vectors are copied together, and in which order the blocks come.
//!
//! A block is a run of memory: the minor-most loops over vectors, and a part of
//! the next. The others make the grid, the kept ones outside of the reduced
//! ones, so that what is accumulated of a block is done before the next kept
//! one begins, and nothing but one block's results is ever held.

use tilewright_target::Target;

use super::LowerError;
use super::walk::{Outer, Walk};
use crate::kernel::{Expr, IndexId};

/// A loop of the grid, or within a block.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// What it walks along.
    pub(crate) outer: Outer,
    /// Whether that is reduced.
    pub(crate) reduced: bool,
    /// How many steps, the last of several blocks having fewer.
    pub(crate) count: Expr,
    /// Its index.
    pub(crate) index: IndexId,
}

/// A walk cut into blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// The loops over blocks: kept ones, then reduced ones.
    pub(crate) grid: Vec<Loop>,
    /// The loops within one, major to minor.
    pub(crate) within: Vec<Loop>,
    /// Where a block begins.
    pub(crate) start: Expr,
    /// Elements of a block; of the last of several, fewer.
    pub(crate) len: Expr,
    /// The most elements of a block.
    pub(crate) most: u64,
}

/// How many bytes are copied at a time: twice what main memory sends in the time
/// that it takes to answer, so that there is always something under way, and at
/// most an eighth of vector memory.
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
    /// Cuts a walk into blocks of about so many elements.
    pub(crate) fn of(
        walk: &Walk,
        reduced: &[usize],
        elements: u64,
        mut index: impl FnMut(&Outer, bool) -> IndexId,
    ) -> Result<Self, LowerError> {
        let Cut { whole, part } = Cut::of(walk, elements);
        let is_reduced = |outer: &Outer| reduced.contains(&outer.dim);
        let mut grid = Vec::new();
        let mut within = Vec::new();
        let (mut start, mut len) = (Expr::ZERO, None);
        let (mut last_start, mut last_len) = (0u64, None);
        let mut most = walk.vector;
        for (place, &outer) in walk.outer.iter().enumerate() {
            let reduced = is_reduced(&outer);
            if place >= whole {
                let index = index(&outer, false);
                within.push(Loop { outer, reduced, count: signed(outer.count)?.into(), index });
                let reach = outer.stride.checked_mul(outer.count).ok_or(LowerError::TooLarge)?;
                most = most.max(reach);
                continue;
            }
            let steps = if place + 1 == whole { part } else { 1 };
            let count = outer.count.div_ceil(steps.max(1));
            let stride = outer.stride.checked_mul(steps).ok_or(LowerError::TooLarge)?;
            let unit = outer.unit.checked_mul(steps).ok_or(LowerError::TooLarge)?;
            let over = Outer { unit, count, stride, ..outer };
            let id = index(&over, true);
            start = start + Expr::from(id) * signed(stride)?;
            last_start = last_start.saturating_add(stride.saturating_mul(count.saturating_sub(1)));
            grid.push(Loop { outer: over, reduced, count: signed(count)?.into(), index: id });
            if steps > 1 {
                let left = Expr::from(signed(outer.count)?) + Expr::from(id) * -signed(steps)?;
                let even = outer.count.is_multiple_of(steps);
                let whole: Expr = signed(steps)?.into();
                let count = if even { whole } else { whole.least(left) };
                len = Some(count.clone() * signed(outer.stride)?);
                let before = steps.saturating_mul(over.count.saturating_sub(1));
                last_len = Some(outer.stride.saturating_mul(outer.count.saturating_sub(before)));
                let index = index(&outer, false);
                within.push(Loop { outer, reduced, count, index });
                most = most.max(stride);
            }
        }
        // Stable: each kind stays in the order of memory.
        grid.sort_by_key(|grid_loop| grid_loop.reduced);
        let most = most.min(walk.len);
        let mut len = len.map_or_else(|| signed(most).map(Expr::from), Ok)?;
        // The last vector of an array on a linear memory need not be whole.
        if last_start.saturating_add(last_len.unwrap_or(most)) > walk.len {
            len = len.least(Expr::from(signed(walk.len)?) + start.clone() * -1);
        }
        Ok(Self { grid, within, start, len, most })
    }
}

/// Where the loops are cut.
struct Cut {
    /// The first loop that lies within a block as a whole.
    whole: usize,
    /// How many steps of the loop before it do, too.
    part: u64,
}

impl Cut {
    fn of(walk: &Walk, elements: u64) -> Self {
        let reach = |outer: &Outer| outer.stride.saturating_mul(outer.count);
        let fits = |outer: &&Outer| reach(outer) <= elements;
        let whole = walk.outer.len() - walk.outer.iter().rev().take_while(fits).count();
        let Some(next) = whole.checked_sub(1).and_then(|place| walk.outer.get(place)) else {
            return Self { whole, part: 1 };
        };
        let most = (elements / next.stride.max(1)).clamp(1, next.count.max(1));
        // Blocks of one size, unless they would be less than half as large.
        let even = (most.div_ceil(2)..=most).rev().find(|&steps| next.count.is_multiple_of(steps));
        Self { whole, part: even.unwrap_or(most) }
    }
}

/// A number as kernels count.
pub(crate) fn signed(count: u64) -> Result<i64, LowerError> {
    i64::try_from(count).map_err(|_| LowerError::TooLarge)
}
