//! The pieces of units, whose results are merged as soon as neighbours are done.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The results of pieces that wait for their neighbours, and memory that can be used again.
///
/// A reduction in order needs as many results at a time as there are steps to the top of the tree
/// of merges. Fresh memory for each piece would take longer than the reading of the piece: the kernel
/// clears it, page by page.
pub(crate) struct Pieces<A> {
    /// The pieces of each unit.
    count: usize,
    /// For each piece the result that waits to be merged with its neighbour: that of either one of
    /// two neighbours is here, by the first piece of the later one.
    waiting: Vec<Mutex<Option<A>>>,
    unused: Mutex<Vec<A>>,
}

impl<A> Pieces<A> {
    /// No results yet of so many units.
    pub(crate) fn new(units: usize, count: usize) -> Self {
        let mut waiting = Vec::new();
        waiting.resize_with(units * count, Mutex::default);
        Self { count, waiting, unused: Mutex::default() }
    }

    /// Returns a result that is not used any more, if there is one.
    pub(crate) fn unused(&self) -> Option<A> {
        held(&self.unused).pop()
    }

    /// Takes a result that is not used any more.
    pub(crate) fn give_back(&self, result: A) {
        held(&self.unused).push(result);
    }

    /// Takes the result of a piece; returns that of its unit if no other piece is left.
    ///
    /// Results are merged by `merge`, the later one into the earlier one: those of pieces 0 and 1, of 2
    /// and 3, then those of both, in whatever order they come.
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

/// Locks, also after a thread panicked: results are moved in and out as a whole, so none is half done.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Pieces;

    /// Merges the numbers of pieces, which come in some order, to text with parentheses.
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
