//! Views of arrays in memory: the address of the first element, dims and strides. Reductions and
//! programs read their operands through views.

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::error::Error;

/// A view of an array: elements of a slice at constant strides, which may be negative or zero.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    /// The address of the element at index 0; it may dangle if a dim is 0. The elements at all
    /// indices are readable.
    origin: *const T,
    data: PhantomData<&'a [T]>,
    dims: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
}

// SAFETY: a view gives shared access to elements, as `&[T]` does, and `&[T]` is `Send` if
// `T: Sync`.
unsafe impl<T: Sync> Send for View<'_, T> {}
// SAFETY: a view gives shared access to elements, as `&[T]` does, and `&[T]` is `Sync` if
// `T: Sync`.
unsafe impl<T: Sync> Sync for View<'_, T> {}

impl<'a, T> View<'a, T> {
    /// Returns the view whose element at index `i` is `data[offset + sum_k i[k] strides[k]]`.
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

    /// Returns the view of row-major data: the last dim has stride 1.
    ///
    /// # Errors
    /// If `data` has fewer elements than the dims, or the number of elements overflows.
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

    /// The stride of each dim, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Returns the same view with elements of the type `U`.
    ///
    /// # Safety
    /// `T` and `U` must have the same size and alignment, and each element of the view must be a
    /// valid `U`.
    pub(crate) unsafe fn elements_as<U>(&self) -> View<'a, U> {
        let (dims, strides) = (self.dims.clone(), self.strides.clone());
        View { origin: self.origin.cast(), data: PhantomData, dims, strides }
    }

    /// Returns the view with dims `dims` in which dim `i` of this view is dim `along[i]`. All other
    /// dims have stride 0.
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
        // The dims in `along` have the sizes of this view's dims, and a stride of 0 adds nothing,
        // so each element is one of this view's.
        Ok(Self { dims: dims.into(), strides, ..*self })
    }

    /// Returns the view in which dim `dim` is split in two: the part, and the index within the
    /// part.
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
        // Part `p` and index `i` stand for index `p * len + i` of this view, so the elements are
        // the same.
        Ok(Self { dims, strides, ..*self })
    }

    /// The address of the element at index 0; it may dangle if there is no element.
    pub(crate) fn origin(&self) -> *const T {
        self.origin
    }
}

/// Checks that the number of elements fits in an `isize`, where dims of size 0 count as 1.
fn countable(dims: &[usize]) -> Result<(), Error> {
    let elements = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim.max(1)));
    let fits = elements.is_some_and(|elements| isize::try_from(elements).is_ok());
    if fits { Ok(()) } else { Err(Error::TooLarge) }
}

/// Converts an `ndarray` view, whatever its strides are; dims and strides stay the same.
#[cfg(feature = "ndarray")]
impl<'a, T, D: ndarray::Dimension> From<ndarray::ArrayView<'a, T, D>> for View<'a, T> {
    fn from(view: ndarray::ArrayView<'a, T, D>) -> Self {
        // `ndarray` guarantees that the elements at all indices are readable for as long as the
        // view is borrowed, and that there are at most `isize::MAX` of them.
        Self {
            origin: view.as_ptr(),
            data: PhantomData,
            dims: view.shape().into(),
            strides: view.strides().into(),
        }
    }
}
