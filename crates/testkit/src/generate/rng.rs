//! Random choices, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A stream of random choices.
pub(crate) struct Rng(ChaCha8Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.0.next_u64() % end).unwrap_or(0)
    }

    /// True `percent` times out of a hundred.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.next_u32() % 100 < percent
    }

    /// One of these; `None` if there are none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Returns the index of one of these weights, in proportion to it.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
        let mut at = self.0.next_u64() % total.max(1);
        for (i, &weight) in weights.iter().enumerate() {
            match at.checked_sub(u64::from(weight)) {
                Some(rest) => at = rest,
                None => return i,
            }
        }
        0
    }

    /// Shuffles in place.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.below(end));
        }
    }
}
