//! Stores the readers of an array in main memory. `sweeps.rs` collects them, and counts each as one
//! read of the array.

use smallvec::SmallVec;
use tilewright_ir::InstId;

/// The most readers of one array that are counted, and the most sums whose sweep is not chosen yet.
pub(super) const MOST_READERS: usize = 64;

/// A reader of an array, which reads the array once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reader {
    /// All instructions that read the array in the sweep of this number.
    Sweep(u32),
    /// An instruction that shares its read with no other.
    Instruction(InstId),
}

/// The readers of an array, each listed once and in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    known: SmallVec<[Reader; 2]>,
    /// The sums whose sweep is not chosen yet, as indices into the list of all such sums.
    waiting: SmallVec<[u32; 2]>,
}

impl Readers {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len() + self.waiting.len()
    }

    /// Returns the readers whose sweep is known.
    pub(super) fn known(&self) -> &[Reader] {
        &self.known
    }

    /// Returns the sums whose sweep is not chosen yet.
    pub(super) fn waiting(&self) -> &[u32] {
        &self.waiting
    }

    pub(super) fn insert(&mut self, reader: Reader) {
        insert(&mut self.known, reader);
    }

    pub(super) fn insert_waiting(&mut self, sum: u32) {
        insert(&mut self.waiting, sum);
    }

    /// Replaces a waiting sum by the reader that was chosen for it.
    pub(super) fn decide(&mut self, sum: u32, reader: Reader) {
        self.waiting.retain(|&mut other| other != sum);
        self.insert(reader);
    }

    /// Adds all readers of `others`.
    pub(super) fn extend(&mut self, others: &Self) {
        merge(&mut self.known, &others.known);
        merge(&mut self.waiting, &others.waiting);
    }
}

fn insert<T: Ord>(all: &mut SmallVec<[T; 2]>, one: T) {
    if let Err(place) = all.binary_search(&one)
        && all.len() < MOST_READERS
    {
        all.insert(place, one);
    }
}

/// Merges one ordered list into another, up to [`MOST_READERS`]. Mostly the two lists are equal.
fn merge<T: Ord + Copy>(all: &mut SmallVec<[T; 2]>, others: &[T]) {
    if others.is_empty() || all[..] == *others {
        return;
    }
    if let [one] = *others {
        return insert(all, one);
    }
    let mut merged: SmallVec<[T; 2]> = SmallVec::with_capacity(all.len() + others.len());
    let (mut own, mut others) = (all.iter().peekable(), others.iter().peekable());
    while merged.len() < MOST_READERS {
        let next = match (own.peek(), others.peek()) {
            (Some(a), Some(b)) if b < a => others.next(),
            (Some(a), Some(b)) => {
                if a == b {
                    others.next();
                }
                own.next()
            }
            (Some(_), None) => own.next(),
            (None, _) => others.next(),
        };
        let Some(&next) = next else { break };
        merged.push(next);
    }
    *all = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sweeps: impl IntoIterator<Item = u32>) -> Readers {
        let mut readers = Readers::default();
        sweeps.into_iter().for_each(|sweep| readers.insert(Reader::Sweep(sweep)));
        readers
    }

    #[test]
    fn readers_are_each_there_once_and_in_order() {
        let mut readers = of([5, 1, 3, 1]);
        readers.extend(&of([4, 3, 9, 5]));
        let sweeps = [1, 3, 4, 5, 9].map(Reader::Sweep);
        assert_eq!(readers.known(), sweeps);
        readers.extend(&of([2]));
        readers.extend(&of([]));
        assert_eq!(readers.len(), 6);
    }

    #[test]
    fn what_waited_is_decided_once() {
        let mut readers = of([2]);
        readers.insert_waiting(7);
        let mut others = Readers::default();
        others.insert_waiting(3);
        others.insert_waiting(7);
        readers.extend(&others);
        assert_eq!(readers.waiting(), [3, 7]);
        readers.decide(7, Reader::Sweep(2));
        assert_eq!((readers.waiting(), readers.known()), (&[3][..], &[Reader::Sweep(2)][..]));
    }

    #[test]
    fn no_more_than_so_many_are_told_apart() {
        let mut readers = of((0..100).map(|n| 2 * n));
        assert_eq!(readers.len(), MOST_READERS);
        readers.extend(&of((0..100).map(|n| 2 * n + 1)));
        assert_eq!(readers.len(), MOST_READERS);
    }
}
