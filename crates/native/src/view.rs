//! Arrays in memory.

use smallvec::SmallVec;

use crate::error::Error;

/// A view of an array: elements of a slice at regular distances, which may be negative or zero.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    offset: usize,
    dims: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
}

impl<'a, T> View<'a, T> {
    /// The view whose element at index 0 is `data[offset]`; neighbours along dim `i` lie
    /// `strides[i]` elements apart.
    ///
    /// # Errors
    /// If an element would lie outside `data`, there is not one stride for each dim, or the number
    /// of elements overflows.
    pub fn new(
        data: &'a [T],
        offset: usize,
        dims: &[usize],
        strides: &[isize],
    ) -> Result<Self, Error> {
        if dims.len() != strides.len() {
            return Err(Error::StridesOfOtherRank { strides: strides.len(), dims: dims.len() });
        }
        let view = Self { data, offset, dims: dims.into(), strides: strides.into() };
        if dims.contains(&0) {
            return Ok(view);
        }
        let elements = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim));
        if elements.is_none_or(|elements| isize::try_from(elements).is_err()) {
            return Err(Error::TooLarge);
        }
        let outside = Error::OutOfBounds(data.len());
        let mut bounds = [i128::try_from(offset).map_err(|_| outside.clone())?; 2];
        for (&dim, &stride) in dims.iter().zip(strides) {
            let last = i128::try_from(dim).map_err(|_| Error::TooLarge)? - 1;
            let reach = last.checked_mul(stride as i128).ok_or(Error::TooLarge)?;
            bounds[usize::from(reach > 0)] += reach;
        }
        let [low, high] = bounds;
        let is_within = low >= 0 && usize::try_from(high).is_ok_and(|high| high < data.len());
        if is_within { Ok(view) } else { Err(outside) }
    }

    /// The view of data that lie row major, the last dim side by side.
    ///
    /// # Errors
    /// If there are fewer data than elements, or the number of elements overflows.
    pub fn row_major(data: &'a [T], dims: &[usize]) -> Result<Self, Error> {
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, dims.len());
        let mut stride = 1usize;
        for (slot, &dim) in strides.iter_mut().zip(dims).rev() {
            *slot = isize::try_from(stride).map_err(|_| Error::TooLarge)?;
            stride = stride.checked_mul(dim.max(1)).ok_or(Error::TooLarge)?;
        }
        Self::new(data, 0, dims, &strides)
    }

    /// The sizes of the dims.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// For each dim the distance of neighbours, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The view of the same data in which dim `i` of this one is dim `along[i]`, and nothing changes
    /// along the other dims.
    pub(crate) fn broadcast(&self, dims: &[usize], along: &[usize]) -> Result<Self, Error> {
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, dims.len());
        let fits = |(&of, &dim): (&usize, &usize)| dims.get(of) == Some(&dim);
        if along.len() != self.dims.len() || !along.iter().zip(&self.dims).all(fits) {
            return Err(Error::OtherDims { given: self.dims.to_vec(), wanted: dims.to_vec() });
        }
        for (&of, &stride) in along.iter().zip(&self.strides) {
            strides[of] = stride;
        }
        Self::new(self.data, self.offset, dims, &strides)
    }

    /// The view in which a dim is two: `parts`, and the indices within each.
    pub(crate) fn split(&self, dim: usize, parts: usize) -> Result<Self, Error> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        let (Some(len), Some(stride)) = (dims.get_mut(dim), self.strides.get(dim)) else {
            return Err(Error::AxisOutOfRange { axis: i64::MAX, rank: self.dims.len() });
        };
        if parts == 0 || *len % parts != 0 {
            return Err(Error::Groups { groups: parts, channels: *len });
        }
        *len /= parts;
        let whole = stride.checked_mul((*len).cast_signed()).ok_or(Error::TooLarge)?;
        dims.insert(dim, parts);
        strides.insert(dim, whole);
        Self::new(self.data, self.offset, &dims, &strides)
    }

    /// The element at index 0; dangling if there is none.
    pub(crate) fn origin(&self) -> *const T {
        self.data.as_ptr().wrapping_add(self.offset)
    }
}
