//! The results of pieces, merged in a fixed tree while tasks end in any order. `run/mod.rs` uses
//! them for units that are divided into pieces.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The results of pieces that wait for their neighbours, and results whose memory can be used
/// again.
///
/// If pieces end in order, as many results wait at a time as the tree of merges has levels. Fresh
/// memory for each piece would take longer than reading the piece, since the operating system
/// clears each new page.
pub(crate) struct Pieces<A> {
    /// The number of pieces of each unit.
    count: usize,
    /// One slot for each piece of each unit. Whichever of two neighbours in the tree ends first
    /// waits for the other one in the slot of the later neighbour's first piece.
    waiting: Vec<Mutex<Option<A>>>,
    unused: Mutex<Vec<A>>,
}

impl<A> Pieces<A> {
    /// Makes empty slots for `units` units of `count` pieces each.
    pub(crate) fn new(units: usize, count: usize) -> Self {
        let mut waiting = Vec::new();
        waiting.resize_with(units * count, Mutex::default);
        Self { count, waiting, unused: Mutex::default() }
    }

    /// Returns a result that is no longer used, if there is one.
    pub(crate) fn unused(&self) -> Option<A> {
        held(&self.unused).pop()
    }

    /// Takes a result that is no longer used, so that its memory can be used again.
    pub(crate) fn give_back(&self, result: A) {
        held(&self.unused).push(result);
    }

    /// Takes the result of a piece. Returns the result of the whole unit if this is its last piece
    /// to end.
    ///
    /// `merge` merges the later neighbour into the earlier one. Pieces 0 and 1 are merged, 2 and 3,
    /// then these pairs, and so on, in whatever order the pieces end.
    pub(crate) fn done(
        &self,
        unit: usize,
        piece: usize,
        result: A,
        merge: impl Fn(&mut A, &A),
    ) -> Option<A> {
        let (mut first, mut apart, mut all) = (piece, 1, result);
        while apart < self.count {
            let earlier = first - first % (apart * 2);
            let later = earlier + apart;
            if later < self.count {
                let other = {
                    let mut waiting = held(&self.waiting[unit * self.count + later]);
                    let Some(other) = waiting.take() else {
                        *waiting = Some(all);
                        return None;
                    };
                    other
                };
                let (mut one, two) = if first == earlier { (all, other) } else { (other, all) };
                merge(&mut one, &two);
                self.give_back(two);
                all = one;
            }
            (first, apart) = (earlier, apart * 2);
        }
        Some(all)
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock: results are moved in and out as
/// a whole, so none is half written.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Pieces;

    /// Hands in the pieces in this order, and merges their numbers to a text whose parentheses show
    /// the tree.
    fn merged(count: usize, order: impl Iterator<Item = usize>) -> Option<String> {
        let pieces = Pieces::new(2, count);
        let mut result = None;
        for piece in order {
            assert!(result.is_none(), "the unit is done before its last piece");
            let merge = |one: &mut String, other: &String| *one = format!("({one} {other})");
            result = pieces.done(1, piece, piece.to_string(), merge);
        }
        result
    }

    #[test]
    fn neighbours_are_merged_in_any_order() {
        assert_eq!(merged(1, 0..1).as_deref(), Some("0"));
        assert_eq!(merged(4, 0..4).as_deref(), Some("((0 1) (2 3))"));
        let five = "(((0 1) (2 3)) 4)";
        assert_eq!(merged(5, 0..5).as_deref(), Some(five));
        for step in 1..5 {
            assert_eq!(merged(5, (0..5).map(|n| n * step % 5)).as_deref(), Some(five));
        }
        let seven = "(((0 1) (2 3)) ((4 5) 6))";
        for step in 1..7 {
            assert_eq!(merged(7, (0..7).rev().map(|n| n * step % 7)).as_deref(), Some(seven));
        }
    }
}
