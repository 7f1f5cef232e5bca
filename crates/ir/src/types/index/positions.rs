//! Walks over the positions of an array.

use super::super::shape::Dims;
use super::{IndexError, check_index_by};

/// A walk over the positions of an array in row-major order, from any start
/// to the last position: an odometer whose digit `i` carries at `dims[i]`.
///
/// Rank 0 has one position, the empty one; an array with a dim of size 0 has
/// none. As an [`Iterator`] it yields owned positions; without allocating:
///
/// ```
/// # use tilewright_ir::types::index::PositionIterator;
/// let mut walk = PositionIterator::over(&[2, 3])?;
/// let mut sum = 0;
/// while let Some(position) = walk.current() {
///     sum += position[0] * 3 + position[1];
///     walk.advance();
/// }
/// assert_eq!(sum, 15);
/// # Ok::<(), tilewright_ir::types::index::IndexError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionIterator {
    position: Dims,
    dims: Dims,
    ended: bool,
}

impl PositionIterator {
    /// The positions of an array of these dims, from `start` on.
    ///
    /// # Errors
    /// Returns an error if the start has another rank or is out of range. In a dim of size 0
    /// the only start is 0; a negative size has none.
    pub fn new(start: &[i64], dims: &[i64]) -> Result<Self, IndexError> {
        // The only start in a dim of size 0 is 0, which is also its end.
        check_index_by(start, dims, |index, size| {
            (0..size).contains(&index) || (index == 0 && size == 0)
        })?;
        Ok(Self { position: start.into(), dims: dims.into(), ended: dims.contains(&0) })
    }

    /// All positions of an array of these dims.
    ///
    /// # Errors
    /// Returns an error if a size is negative.
    pub fn over(dims: &[i64]) -> Result<Self, IndexError> {
        Self::new(&Dims::from_elem(0, dims.len()), dims)
    }

    /// Returns the current position; `None` past the last.
    pub fn current(&self) -> Option<&[i64]> {
        (!self.ended).then_some(&*self.position)
    }

    /// Advances to the next position; returns whether there is one.
    pub fn advance(&mut self) -> bool {
        if self.ended {
            return false;
        }
        for (digit, &size) in self.position.iter_mut().zip(&self.dims).rev() {
            *digit += 1; // Below its size until now.
            if *digit < size {
                return true;
            }
            *digit = 0;
        }
        self.ended = true;
        false
    }
}

impl Iterator for PositionIterator {
    type Item = Dims;

    fn next(&mut self) -> Option<Dims> {
        let position = self.current().map(Dims::from_slice);
        self.advance();
        position
    }
}

impl std::iter::FusedIterator for PositionIterator {}
