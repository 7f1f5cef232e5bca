//! XLA's [tiled layouts], one tile at a time.
//!
//! [tiled layouts]: https://openxla.org/xla/tiled_layout

use smallvec::SmallVec;

use super::super::layout::Tile;
use super::super::shape::{Dims, checked_product};
use super::AddressError;

/// An index in physical dims, the most major first.
pub(super) type Place = SmallVec<[i64; 12]>;

/// One tile at work on the dims that it finds. Keeps only what it cuts, so that
/// many tiles take space in proportion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TileCut {
    /// How many dims of size 1 go in front, where the tile has more dims than
    /// there are (`f32[]{:T(128)}`).
    front: usize,
    /// The first dim that is cut, those in front counted; all after it are too.
    first: usize,
    /// The sizes of the dims that are cut.
    sizes: Dims,
    /// The same dims as the tile pairs them with its own sizes.
    runs: SmallVec<[Run; 2]>,
}

/// Neighbouring dims (one, or several merged by `*`) and the tile size that
/// cuts them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// How many dims.
    dims: usize,
    /// The product of their sizes.
    size: i64,
    tile: i64,
}

impl TileCut {
    /// What a (checked) tile does to dims, which become those that result.
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

    /// From the place in the dims found to the place in the dims that result.
    pub(super) fn apply(&self, place: &mut Place) {
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

    /// The inverse of [`TileCut::apply`]; `None` where only padding is.
    pub(super) fn undo(&self, place: &mut Place) -> Option<()> {
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

/// Pairs dims with a tile's sizes, merging at every `*`.
fn runs(dims: &[i64], tile: &[i64]) -> Result<SmallVec<[Run; 2]>, AddressError> {
    let mut runs = SmallVec::new();
    let mut start = 0;
    for (i, &size) in tile.iter().enumerate() {
        if size == Tile::COMBINE {
            continue;
        }
        let merged = checked_product(&dims[start..=i]).ok_or(AddressError::Overflow)?;
        runs.push(Run { dims: i + 1 - start, size: merged, tile: size });
        start = i + 1;
    }
    Ok(runs)
}

/// Whether every size of every tile makes sense.
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

// The arithmetic below is on indices within dims whose product was checked.

/// The row-major index of a place.
fn flatten(place: &[i64], dims: &[i64]) -> i64 {
    place.iter().zip(dims).fold(0, |index, (i, size)| index * size + i)
}

/// The place at a row-major index; returns what of the index lies beyond the
/// dims, in units of their product.
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
