//! Gives equal things equal numbers.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of a class of equal things. Numbers of one [`Interner`] are equal if and only if
/// the things are: nothing is compared by its hash alone.
pub(super) type Class = u32;

/// The parts of a class: other classes and small numbers.
pub(super) type Parts = SmallVec<[u32; 8]>;

/// Numbers things by their first occurrence.
#[derive(Debug)]
pub(super) struct Interner<K> {
    classes: FxHashMap<K, Class>,
}

impl<K> Default for Interner<K> {
    fn default() -> Self {
        Self { classes: FxHashMap::default() }
    }
}

impl<K: Eq + Hash> Interner<K> {
    /// Returns the class of a thing.
    pub(super) fn class(&mut self, key: K) -> Class {
        let next = number(self.classes.len());
        *self.classes.entry(key).or_insert(next)
    }
}

/// Returns a count as a number. Counts of parts of a module fit, as its ids do.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
