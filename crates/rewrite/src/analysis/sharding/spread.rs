//! Which axes of a mesh divide which dims of a value.

use std::ops::Index;

use smallvec::SmallVec;

use super::mesh::DeviceMesh;
use crate::analysis::index_range::{IndexRange, index_ranges};

/// The axes that divide a dim, the major one first. None divides it if it is whole on each device.
pub type Axes = SmallVec<[u8; 2]>;

/// The axes that divide each dim of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spread(SmallVec<[Axes; 4]>);

impl Spread {
    /// Returns the spread with these axes for each dim.
    pub fn new(dims: impl IntoIterator<Item = Axes>) -> Self {
        Self(dims.into_iter().collect())
    }

    /// Returns the spread of an array that is whole on each device.
    pub fn whole(rank: usize) -> Self {
        Self((0..rank).map(|_| Axes::new()).collect())
    }

    /// Checks whether no dim is divided.
    pub fn is_whole(&self) -> bool {
        self.iter().all(SmallVec::is_empty)
    }

    /// Returns the axes of each dim.
    pub fn iter(&self) -> std::slice::Iter<'_, Axes> {
        self.0.iter()
    }

    /// Returns the spread of an array with these of the dims, in this order; `None` if there is no
    /// such dim.
    pub fn pick(&self, dims: impl IntoIterator<Item = usize>) -> Option<Self> {
        dims.into_iter().map(|dim| self.0.get(dim).cloned()).collect::<Option<_>>().map(Self)
    }

    /// Returns the spread of the result of an op that combines the elements of two arrays one by
    /// one: each dim is divided as either array has it. `None` if both divide a dim, in different
    /// ways, or one axis would divide two dims.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let join = |(a, b): (&Axes, &Axes)| {
            let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
            long.starts_with(short).then(|| long.clone())
        };
        let same_rank = self.0.len() == other.0.len();
        let dims = self.iter().zip(other.iter()).map(join).collect::<Option<_>>();
        dims.map(Self).filter(|joined| same_rank && joined.uses_each_axis_once())
    }

    /// Returns the spread of a reshape of an array; `None` if a dim is not divided evenly, or the
    /// parts of a dim are not parts of one dim of the result.
    pub fn reshaped(&self, from: &[i64], to: &[i64], mesh: &DeviceMesh) -> Option<Self> {
        if self.is_whole() {
            return Some(Self::whole(to.len()));
        }
        let mut pieces = self.pieces(from, mesh)?;
        let place = |range: IndexRange| {
            let mut axes = Axes::new();
            let mut high = range.high;
            while let Some(at) =
                pieces.iter().position(|(_, piece)| piece.high == high && piece.low >= range.low)
            {
                let (axis, piece) = pieces.swap_remove(at);
                axes.push(axis);
                high = piece.low;
            }
            axes
        };
        let dims = index_ranges(to)?.into_iter().map(place).collect();
        pieces.is_empty().then_some(Self(dims))
    }

    /// Returns the axes with the ranges of the row-major index that they divide; `None` if they do
    /// not divide a dim evenly.
    fn pieces(&self, dims: &[i64], mesh: &DeviceMesh) -> Option<Vec<(u8, IndexRange)>> {
        let mut pieces = Vec::new();
        for (range, axes) in index_ranges(dims)?.into_iter().zip(self.iter()) {
            let mut high = range.high;
            for &axis in axes {
                let low = high / mesh.size(axis);
                if low.checked_mul(mesh.size(axis)) != Some(high) || low % range.low != 0 {
                    return None;
                }
                pieces.push((axis, IndexRange { low, high }));
                high = low;
            }
        }
        Some(pieces)
    }

    /// Returns the bits of the axes that divide these dims.
    pub fn bits(&self, dims: impl IntoIterator<Item = usize>) -> u16 {
        let axes = dims.into_iter().filter_map(|dim| self.0.get(dim)).flatten();
        axes.fold(0, |bits, &axis| bits | 1u16.checked_shl(axis.into()).unwrap_or(0))
    }

    /// Checks whether no axis divides two dims.
    pub fn uses_each_axis_once(&self) -> bool {
        let mut seen = 0u64;
        self.iter().flatten().all(|&axis| {
            let bit = 1u64.checked_shl(axis.into()).unwrap_or(0);
            let is_new = seen & bit == 0;
            seen |= bit;
            is_new
        })
    }
}

impl Index<usize> for Spread {
    type Output = [u8];

    /// Returns the axes of a dim; none for a dim that does not exist.
    fn index(&self, dim: usize) -> &[u8] {
        self.0.get(dim).map(SmallVec::as_slice).unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a Spread {
    type Item = &'a Axes;
    type IntoIter = std::slice::Iter<'a, Axes>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
