//! The axes of a reduction: neighbouring dims that are all kept or all reduced, as one.

use smallvec::SmallVec;
use tilewright_ir::ArrayShape;

use super::reduce::is_plain;

/// Adjacent dims of an array that are all kept or all reduced, as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The number of indices, more than 1.
    pub len: i64,
    /// Whether it is reduced.
    pub reduced: bool,
}

/// The axes of an array, outermost first.
pub type Axes = SmallVec<[Axis; 6]>;

/// Returns the axes of a row-major array of which `dims` are reduced. `None` if it has no elements
/// or a size overflows.
pub fn axes_of(array: &ArrayShape, dims: &[i64]) -> Option<Axes> {
    array.num_elements().filter(|&elements| elements > 0 && is_plain(array))?;
    let all = (0i64..).zip(array.dims()).filter(|&(_, &len)| len > 1);
    Some(merged(all.map(|(dim, &len)| Axis { len, reduced: dims.contains(&dim) })))
}

/// Merges neighbours that are both kept or both reduced.
pub fn merged(axes: impl Iterator<Item = Axis>) -> Axes {
    let mut merged = Axes::new();
    for axis in axes {
        match merged.last_mut() {
            Some(Axis { len, reduced }) if *reduced == axis.reduced => {
                *len = len.saturating_mul(axis.len);
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// Returns the number of elements of some axes.
pub fn elements(axes: &[Axis]) -> i64 {
    axes.iter().fold(1, |all, axis| all.saturating_mul(axis.len))
}
