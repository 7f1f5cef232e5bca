//! Arrays in memory.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::error::Error;

/// A view of an array: elements of a slice at regular distances, which may be negative or zero.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    /// The element at index 0; no element if a dim is 0. Those at all indices can be read.
    origin: *const T,
    data: PhantomData<&'a [T]>,
    dims: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
}

// SAFETY: a view is a shared borrow of its elements, as a slice is.
unsafe impl<T: Sync> Send for View<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for View<'_, T> {}

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
        let origin = data.as_ptr().wrapping_add(offset);
        let (data_len, data) = (data.len(), PhantomData);
        let view = Self { origin, data, dims: dims.into(), strides: strides.into() };
        countable(dims)?;
        if dims.contains(&0) {
            return Ok(view);
        }
        let outside = Error::OutOfBounds(data_len);
        let mut bounds = [i128::try_from(offset).map_err(|_| outside.clone())?; 2];
        for (&dim, &stride) in dims.iter().zip(strides) {
            let last = i128::try_from(dim).map_err(|_| Error::TooLarge)? - 1;
            let reach = last.checked_mul(stride as i128).ok_or(Error::TooLarge)?;
            bounds[usize::from(reach > 0)] += reach;
        }
        let [low, high] = bounds;
        let is_within = low >= 0 && usize::try_from(high).is_ok_and(|high| high < data_len);
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

    /// The view of the same data as elements of another type.
    ///
    /// # Safety
    /// Both types must lie alike, and each element must be one of `U`.
    pub(crate) unsafe fn elements_as<U>(&self) -> View<'a, U> {
        let (dims, strides) = (self.dims.clone(), self.strides.clone());
        View { origin: self.origin.cast(), data: PhantomData, dims, strides }
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
        countable(dims)?;
        // Each index is one of this view, which its elements have along the other dims, too.
        Ok(Self { dims: dims.into(), strides, ..*self })
    }

    /// The view in which a dim is two: `parts`, and the indices within each.
    pub(crate) fn split(&self, dim: usize, parts: usize) -> Result<Self, Error> {
        let (mut dims, mut strides) = (self.dims.clone(), self.strides.clone());
        let (Some(len), Some(stride)) = (dims.get_mut(dim), self.strides.get(dim)) else {
            let axis = i64::try_from(dim).unwrap_or(i64::MAX);
            return Err(Error::AxisOutOfRange { axis, rank: self.dims.len() });
        };
        if parts == 0 || !len.is_multiple_of(parts) {
            return Err(Error::Groups { groups: parts, channels: *len });
        }
        *len /= parts;
        let whole = stride.checked_mul((*len).cast_signed()).ok_or(Error::TooLarge)?;
        dims.insert(dim, parts);
        strides.insert(dim, whole);
        // The indices are those of this view, told by two numbers.
        Ok(Self { dims, strides, ..*self })
    }

    /// The element at index 0; dangling if there is none.
    pub(crate) fn origin(&self) -> *const T {
        self.origin
    }
}

/// Checks that the number of elements is one of those that memory can hold.
fn countable(dims: &[usize]) -> Result<(), Error> {
    let elements = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim.max(1)));
    let fits = elements.is_some_and(|elements| isize::try_from(elements).is_ok());
    if fits { Ok(()) } else { Err(Error::TooLarge) }
}

/// A view of the same elements, whatever their strides are.
#[cfg(feature = "ndarray")]
impl<'a, T, D: ndarray::Dimension> From<ndarray::ArrayView<'a, T, D>> for View<'a, T> {
    fn from(view: ndarray::ArrayView<'a, T, D>) -> Self {
        // The elements at all indices can be read for as long as the view is borrowed, and there
        // are at most `isize::MAX`: `ndarray` promises both.
        Self {
            origin: view.as_ptr(),
            data: PhantomData,
            dims: view.shape().into(),
            strides: view.strides().into(),
        }
    }
}
