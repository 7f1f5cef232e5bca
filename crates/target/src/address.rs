//! Addresses as functions of the row-major index, in a form in which equal
//! functions look alike.

use tilewright_ir::layout::Tile;

use crate::physical::{Digit, Physical};

/// A digit and how far apart in memory its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DigitStride {
    low: u64,
    count: u64,
    stride: u64,
}

/// The places of elements in memory: the digits of the row-major index, by `low`, with the
/// stride of each. Neighbouring digits that continue each other are merged.
///
/// Two arrays with equally many elements and equal addresses here have every element at the
/// same address, because digits are read off the index by their `low` alone. The converse
/// holds, too: the first digit ends where the address stops growing by the same amount. This is
/// a property of the address function, and each following digit ends by the same rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(Vec<(u64, u64)>);

impl Physical {
    /// Returns the address of every element; `None` where the digits are not known or addresses
    /// exceed `u64`.
    pub(crate) fn address(&self) -> Option<Address> {
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.axes.len());
        for DigitStride { low, stride, .. } in self.steps()? {
            let continues = merged.last().is_some_and(|&(below, distance)| {
                // An array without elements may have zeros here.
                let times = low.checked_div(below).filter(|times| times * below == low);
                times.is_some_and(|times| distance.checked_mul(times) == Some(stride))
            });
            if !continues {
                merged.push((low, stride));
            }
        }
        Some(Address(merged))
    }

    /// Returns where each of the first `elements` elements lies, in row-major order; `None`
    /// where the digits are not known or addresses exceed `u64`.
    pub fn addresses(&self, elements: u64) -> Option<impl Iterator<Item = u64> + use<>> {
        let mut digits = self.address()?.0;
        digits.reverse();
        Some((0..elements).map(move |index| {
            let mut rest = index;
            digits.iter().fold(0, |address, &(low, stride)| {
                let digit = rest / low;
                rest %= low;
                address + digit * stride
            })
        }))
    }

    /// Returns how many elements of memory it takes, padding included; `None` where `u64` does
    /// not hold it.
    pub fn places(&self) -> Option<u64> {
        self.axes.iter().try_fold(1u64, |places, axis| places.checked_mul(axis.extent))
    }

    /// Returns the minor-most digit.
    pub(crate) fn minor(&self) -> Option<DigitStride> {
        self.steps()?.into_iter().min_by_key(|step| step.stride)
    }

    /// Returns the digits inside of a tile. Arrays cut by the same tiles in which these are
    /// equal have the same elements in every tile, in the same places; only whole tiles lie
    /// elsewhere. `None` where tiles combine dims or cut more dims than the first one.
    pub(crate) fn inside(&self) -> Option<Vec<DigitStride>> {
        let rank = self.tiles.first()?.dims.len();
        let plain = |tile: &Tile| tile.dims.len() == rank && !tile.dims.contains(&Tile::COMBINE);
        if !self.tiles.iter().all(plain) {
            return None;
        }
        // Each tile turns the last `rank` axes into as many outer and inner ones.
        let outside = self.axes.len().checked_sub(rank.checked_mul(self.tiles.len())?)?;
        steps(&self.axes[outside..])
    }

    fn steps(&self) -> Option<Vec<DigitStride>> {
        if self.opaque { None } else { steps(&self.axes) }
    }
}

/// Returns the digits that vary, with their strides, in the order of the index.
fn steps(axes: &[Digit]) -> Option<Vec<DigitStride>> {
    let mut steps = Vec::with_capacity(axes.len());
    let mut stride = 1u64;
    for &Digit { low, count, extent, .. } in axes.iter().rev() {
        if count > 1 {
            steps.push(DigitStride { low, count, stride });
        }
        stride = stride.checked_mul(extent)?;
    }
    steps.sort_unstable();
    Some(steps)
}
