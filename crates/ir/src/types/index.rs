//! Indices: strides, addresses of elements in a buffer, walks over positions.

mod address;
mod error;
mod positions;
mod tiles;

pub use address::AddressMap;
pub use error::{AddressError, IndexError};
pub use positions::PositionIterator;

use super::shape::{Dims, UNBOUNDED, checked_product};

/// Returns the dim of a dim number; negative numbers count from the end, so that -1 is the
/// last.
///
/// # Errors
/// Returns an error if the number is not in `-rank..rank`.
pub fn canonical_dim(dim: i64, rank: usize) -> Result<usize, IndexError> {
    let canonical = match usize::try_from(dim.unsigned_abs()) {
        Ok(from_end) if dim < 0 => rank.checked_sub(from_end),
        Ok(from_start) => Some(from_start).filter(|&d| d < rank),
        Err(_) => None,
    };
    canonical.ok_or(IndexError::NoSuchDim { dim, rank })
}

/// Returns the distance between neighbours along each dim, in row-major order: `[2,3,4,5]` has
/// `[60,20,5,1]`. An array without elements has no neighbours and all its strides are 0.
///
/// # Errors
/// Returns an error if a dim is unbounded or negative, or there are too many elements.
pub fn row_major_strides(dims: &[i64]) -> Result<Dims, AddressError> {
    check_sizes(dims)?;
    checked_product(dims).ok_or(AddressError::Overflow)?;
    if dims.contains(&0) {
        return Ok(Dims::from_elem(0, dims.len()));
    }
    let mut stride = 1;
    let mut strides = Dims::from_elem(1, dims.len());
    for (slot, &size) in strides.iter_mut().zip(dims).rev() {
        *slot = stride;
        stride *= size; // At most the product of all dims.
    }
    Ok(strides)
}

fn check_index(index: &[i64], dims: &[i64]) -> Result<(), IndexError> {
    check_index_by(index, dims, |index, size| (0..size).contains(&index))
}

/// Checks the rank, and every index against its size.
fn check_index_by(
    index: &[i64],
    dims: &[i64],
    in_range: impl Fn(i64, i64) -> bool,
) -> Result<(), IndexError> {
    let (given, rank) = (index.len(), dims.len());
    if given != rank {
        return Err(IndexError::Rank { given, rank });
    }
    let mut pairs = index.iter().zip(dims).enumerate();
    match pairs.find(|&(_, (&index, &size))| !in_range(index, size)) {
        None => Ok(()),
        Some((dim, (&index, &size))) => Err(IndexError::OutOfRange { dim, index, size }),
    }
}

fn check_sizes(dims: &[i64]) -> Result<(), AddressError> {
    match dims.iter().enumerate().find(|&(_, &size)| size < 0) {
        None => Ok(()),
        Some((dim, &UNBOUNDED)) => Err(AddressError::Unbounded { dim }),
        Some((dim, &size)) => Err(AddressError::Negative { dim, size }),
    }
}
