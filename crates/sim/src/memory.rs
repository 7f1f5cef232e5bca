//! Memory that records which of its elements were written.

use std::ops::Range;

use tilewright_ir::{Data, ElementType};

/// Elements of one type, each written or poisoned.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    data: Data,
    known: Vec<bool>,
}

impl Memory {
    /// Memory without written elements.
    pub fn poisoned(element_type: ElementType, len: usize) -> Self {
        Self { data: Data::zeros(element_type, len), known: vec![false; len] }
    }

    /// Memory with these elements, all written.
    pub fn written(data: Data) -> Self {
        let known = vec![true; data.len()];
        Self { data, known }
    }

    /// Returns the elements, written or not.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Checks whether an element was written.
    pub fn is_known(&self, place: usize) -> bool {
        self.known.get(place).copied().unwrap_or(false)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Checks whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the first position of a range that was not written; the end of the memory if the
    /// range exceeds it.
    pub fn first_poisoned(&self, range: Range<usize>) -> Option<usize> {
        match self.known.get(range.clone()) {
            Some(known) => known.iter().position(|known| !known).map(|at| range.start + at),
            None => Some(self.known.len()),
        }
    }

    /// A copy of a range, poison included; empty if the range exceeds the memory.
    pub(crate) fn clone_range(&self, range: &Range<usize>) -> Self {
        let known = self.known.get(range.clone()).unwrap_or_default().to_vec();
        Self { data: self.data.gather(range.clone().take(known.len())), known }
    }

    /// Poisons all elements.
    pub(crate) fn poison(&mut self) {
        self.known.fill(false);
    }

    /// Copies a range of other memory, poison included. Returns `false` if a range exceeds its
    /// memory, or the types differ.
    pub(crate) fn copy_from(&mut self, at: usize, other: &Self, from: Range<usize>) -> bool {
        let Some(known) = other.known.get(from.clone()) else { return false };
        let Some(places) = at.checked_add(known.len()).and_then(|end| self.known.get_mut(at..end))
        else {
            return false;
        };
        places.copy_from_slice(known);
        self.data.copy_from(at, &other.data, from)
    }

    /// Sets the element at each first position to the element of `data` at the second position.
    /// Returns `false` if the types differ.
    pub fn set_from(
        &mut self,
        data: &Data,
        pairs: impl Iterator<Item = (usize, usize)> + Clone,
    ) -> bool {
        for (place, _) in pairs.clone() {
            if let Some(known) = self.known.get_mut(place) {
                *known = true;
            }
        }
        self.data.set_from(data, pairs)
    }

    /// Overwrites the elements from `at` with all of `data`.
    pub(crate) fn store(&mut self, at: usize, data: &Data) -> bool {
        let Some(known) = at.checked_add(data.len()).and_then(|end| self.known.get_mut(at..end))
        else {
            return false;
        };
        known.fill(true);
        self.data.copy_from(at, data, 0..data.len())
    }
}
