//! XLA's [tiled layouts], one tile at a time.
//!
//! [tiled layouts]: https://openxla.org/xla/tiled_layout

use smallvec::SmallVec;

use super::super::layout::Tile;
use super::super::shape::{Dims, checked_product};
use super::AddressError;

/// An index in physical dims, the most major first.
pub(super) type PhysicalIndex = SmallVec<[i64; 12]>;

/// One tile, applied to the dims before it. It stores only the dims that it splits, so that the
/// space for many tiles is proportional to their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TileCut {
    /// The number of dims of size 1 that are prepended if the tile has a higher rank than the
    /// dims (`f32[]{:T(128)}`).
    front: usize,
    /// The first split dim, counting the prepended ones; all later dims are split too.
    first: usize,
    /// The sizes of the split dims.
    sizes: Dims,
    /// The split dims, paired with the sizes of the tile.
    runs: SmallVec<[MergedDims; 2]>,
}

/// Neighbouring dims (one, or several merged by `*`) and the tile size that splits them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MergedDims {
    /// Number of dims.
    dims: usize,
    /// The product of their sizes.
    size: i64,
    tile: i64,
}

impl TileCut {
    /// Replaces the dims by those that result from a (checked) tile.
    pub(super) fn new(tile: &Tile, dims: &mut Dims) -> Result<Self, AddressError> {
        let front = tile.dims.len().saturating_sub(dims.len());
        if front > 0 {
            dims.insert_many(0, std::iter::repeat_n(1, front));
        }
        let first = dims.len().saturating_sub(tile.dims.len());
        let sizes = Dims::from_slice(&dims[first..]);
        let runs = runs(&sizes, &tile.dims)?;
        dims.truncate(first);
        dims.extend(runs.iter().map(|run| ceil_div(run.size, run.tile)));
        dims.extend(runs.iter().map(|run| run.tile));
        Ok(Self { front, first, sizes, runs })
    }

    /// Maps an index in the original dims to one in the resulting dims.
    pub(super) fn apply(&self, place: &mut PhysicalIndex) {
        if self.front > 0 {
            place.insert_many(0, std::iter::repeat_n(0, self.front));
        }
        let mut inside: SmallVec<[i64; 6]> = SmallVec::with_capacity(self.runs.len());
        let mut outside: SmallVec<[i64; 6]> = SmallVec::with_capacity(self.runs.len());
        let (mut cut, mut sizes) = (&place[self.first..], &self.sizes[..]);
        for run in &self.runs {
            let (run_place, run_sizes);
            (run_place, cut) = cut.split_at(run.dims);
            (run_sizes, sizes) = sizes.split_at(run.dims);
            let merged = flatten(run_place, run_sizes);
            outside.push(merged / run.tile);
            inside.push(merged % run.tile);
        }
        place.truncate(self.first);
        place.extend(outside);
        place.extend(inside);
    }

    /// Returns the inverse of [`TileCut::apply`]; `None` for padding.
    pub(super) fn undo(&self, place: &mut PhysicalIndex) -> Option<()> {
        let split = self.first + self.runs.len();
        let cut: SmallVec<[i64; 6]> = place[self.first..split]
            .iter()
            .zip(&place[split..])
            .zip(&self.runs)
            .map(|((outside, inside), run)| outside * run.tile + inside)
            .collect();
        place.resize(self.first + self.sizes.len(), 0);
        let (mut rest, mut sizes) = (&mut place[self.first..], &self.sizes[..]);
        for (merged, run) in cut.into_iter().zip(&self.runs) {
            let (run_place, run_sizes);
            (run_place, rest) = rest.split_at_mut(run.dims);
            (run_sizes, sizes) = sizes.split_at(run.dims);
            if unflatten(merged, run_sizes, run_place) != 0 {
                return None;
            }
        }
        drop(place.drain(..self.front));
        Some(())
    }
}

/// Pairs dims with the sizes of a tile, and merges dims at every `*`.
fn runs(dims: &[i64], tile: &[i64]) -> Result<SmallVec<[MergedDims; 2]>, AddressError> {
    let mut runs = SmallVec::new();
    let mut start = 0;
    for (i, &size) in tile.iter().enumerate() {
        if size == Tile::COMBINE {
            continue;
        }
        let merged = checked_product(&dims[start..=i]).ok_or(AddressError::Overflow)?;
        runs.push(MergedDims { dims: i + 1 - start, size: merged, tile: size });
        start = i + 1;
    }
    Ok(runs)
}

/// Checks that every size of every tile is valid.
pub(super) fn check_tiles(tiles: &[Tile]) -> Result<(), AddressError> {
    for (tile, Tile { dims }) in tiles.iter().enumerate() {
        if let Some(&size) = dims.iter().find(|&&size| size < 1 && size != Tile::COMBINE) {
            return Err(AddressError::TileSize { tile, size });
        }
        if dims.last() == Some(&Tile::COMBINE) {
            return Err(AddressError::CombineLast { tile });
        }
    }
    Ok(())
}

// The arithmetic below cannot overflow: indices are within dims whose product was checked.

/// Returns the row-major index of a position.
fn flatten(place: &[i64], dims: &[i64]) -> i64 {
    place.iter().zip(dims).fold(0, |index, (i, size)| index * size + i)
}

/// Returns the position at a row-major index; returns the part of the index beyond the dims, in
/// units of their product.
pub(super) fn unflatten(index: i64, dims: &[i64], place: &mut [i64]) -> i64 {
    place.iter_mut().zip(dims).rev().fold(index, |index, (slot, size)| {
        *slot = index % size;
        index / size
    })
}

/// `n / by`, rounded up; `n` is not negative and `by` is positive.
pub(super) fn ceil_div(n: i64, by: i64) -> i64 {
    n / by + i64::from(n % by != 0)
}
