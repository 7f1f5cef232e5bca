//! The accumulators of one unit, in tiers that keep chains of rounded additions short. `run/` adds
//! blocks to them.

use std::marker::PhantomData;

use crate::elements::Element;
use crate::folds::Accumulate;
use crate::kernel::BLOCKS_PER_STEP;
use crate::level::{Level, on_level};
use crate::plan::Plan;
use crate::tasks::{Empty, Merge, Parts};

/// The number of steps or merges after which a tier is merged into the next one, if merging
/// rounds. A step adds up to [`BLOCKS_PER_STEP`] blocks.
const CHAIN: usize = 16;
/// The most tiers; they hold 16^16 steps.
const TIERS: usize = 16;

/// The accumulators of one unit: one tier, or several if merging rounds.
pub(crate) struct Accumulators<T: Element, F: Accumulate<T>> {
    fold: F,
    level: Level,
    width: usize,
    tiers: usize,
    pub(crate) firsts: Vec<F::First>,
    pub(crate) seconds: Vec<F::Second>,
    /// Scratch for the results of rows, and for folding axes within the block.
    pub(crate) spare: Vec<F::First>,
    pub(crate) spare_2: Vec<F::Second>,
    /// The number of steps (tier 0) or of merges (other tiers) since each tier was emptied.
    held: [usize; TIERS],
    element: PhantomData<T>,
}

impl<T: Element, F: Accumulate<T>> Accumulators<T, F> {
    /// Makes empty accumulators for the units of a plan, to each of which `steps` blocks are added.
    pub(crate) fn new(fold: F, level: Level, plan: &Plan, steps: usize) -> Self {
        let (width, spare) = (plan.accumulators(), plan.spare());
        let (mut tiers, mut left) = (1, steps.div_ceil(BLOCKS_PER_STEP));
        while F::ROUNDS && left > CHAIN && tiers < TIERS {
            (tiers, left) = (tiers + 1, left.div_ceil(CHAIN));
        }
        let (first, second) = fold.start();
        let len = width.saturating_mul(tiers);
        Self {
            fold,
            level,
            width,
            tiers,
            firsts: vec![first; len],
            seconds: vec![second; len],
            spare: vec![first; spare],
            spare_2: vec![second; spare],
            held: [0; TIERS],
            element: PhantomData,
        }
    }

    /// Makes one accumulator for each of `count` rows. There is no scratch, since no axis within
    /// the block is left to fold.
    pub(crate) fn of_rows(fold: F, level: Level, count: usize) -> Self {
        let (first, second) = fold.start();
        Self {
            fold,
            level,
            width: count,
            tiers: 1,
            firsts: vec![first; count],
            seconds: vec![second; count],
            spare: Vec::new(),
            spare_2: Vec::new(),
            held: [0; TIERS],
            element: PhantomData,
        }
    }

    /// The number of blocks that may be added before [`stepped`](Self::stepped) is called.
    pub(crate) fn room(&self) -> usize {
        let room = CHAIN - self.held[0].min(CHAIN - 1);
        if self.tiers > 1 { room * BLOCKS_PER_STEP } else { usize::MAX }
    }

    /// Counts `steps` blocks that were added, and merges each full tier into the next one.
    pub(crate) fn stepped(&mut self, steps: usize) {
        if self.tiers == 1 {
            return;
        }
        self.held[0] += steps.div_ceil(BLOCKS_PER_STEP);
        let mut tier = 0;
        while tier + 1 < self.tiers && self.held[tier] >= CHAIN {
            self.carry(tier);
            tier += 1;
        }
    }

    /// Merges a tier into the next one, and empties it.
    pub(crate) fn carry(&mut self, tier: usize) {
        let (at, width) = (tier * self.width, self.width);
        let (low, high) = self.firsts.split_at_mut(at + width);
        let (low_2, high_2) = self.seconds.split_at_mut(at + width);
        let to = (&mut high[..width], &mut high_2[..width]);
        merge(self.fold, self.level, to, (&low[at..], &low_2[at..]));
        self.empty(tier);
        self.held[tier + 1] += 1;
    }

    /// Merges all tiers into the first one, and empties the others.
    pub(crate) fn gather(&mut self) {
        for tier in 1..self.tiers {
            if self.held[tier] == 0 {
                continue;
            }
            let (at, width) = (tier * self.width, self.width);
            let (low, high) = self.firsts.split_at_mut(at);
            let (low_2, high_2) = self.seconds.split_at_mut(at);
            let other = (&high[..width], &high_2[..width]);
            merge(self.fold, self.level, (&mut low[..width], &mut low_2[..width]), other);
            self.empty(tier);
        }
    }

    /// Merges the first tier of another piece's accumulators into the first tier of these.
    pub(crate) fn merge(&mut self, other: &Self) {
        let width = self.width;
        let to = (&mut self.firsts[..width], &mut self.seconds[..width]);
        let other = (&other.firsts[..width], &other.seconds[..width]);
        merge(self.fold, self.level, to, other);
    }

    /// Sets all accumulators to the start of the fold.
    pub(crate) fn clear(&mut self) {
        for tier in 0..self.tiers {
            if tier == 0 || self.held[tier] != 0 {
                self.empty(tier);
            }
        }
    }

    fn empty(&mut self, tier: usize) {
        let all = tier * self.width..(tier + 1) * self.width;
        let to = (&mut self.firsts[all.clone()], &mut self.seconds[all]);
        on_level(self.level, Empty { fold: self.fold, to });
        self.held[tier] = 0;
    }
}

/// Merges each of `other` into the accumulator of the same index.
fn merge<T: Element, F: Accumulate<T>>(
    fold: F,
    level: Level,
    to: Parts<'_, T, F>,
    other: (&[F::First], &[F::Second]),
) {
    on_level(level, Merge { fold, to, other });
}
