//! Parts of arrays: where their elements lie, without copying any.
//!
//! A [`View`] is a start and a stride for each dim, over the elements of an
//! array. Slices, transposes, diagonals, strips, blocks and sub-tensors are all
//! views, of any rank, and reading one is a single strided copy
//! ([`View::to_array`]) or a walk ([`View::iter`]).
//!
//! ```
//! use tilewright_interp::views::View;
//! use tilewright_ir::{ArrayLiteral, Data, ElementType};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = ArrayLiteral::new(ElementType::S32, [2, 3], Data::S32(vec![0, 1, 2, 3, 4, 5]))?;
//! let x = View::of(&x);
//! let column: Vec<i32> = x.index(1, 2)?.iter()?.copied().collect();
//! assert_eq!(column, [2, 5]);
//! let diagonal = x.diagonal(1, 0, 1)?.to_array()?;
//! assert_eq!(diagonal.as_slice(), Some(&[1, 5][..]));
//! # Ok(())
//! # }
//! ```

use smallvec::SmallVec;
use tilewright_ir::{ArrayLiteral, Data, Dims, ElementType, LiteralError, Native};

use crate::strides::{Level, Nest, collect, extent, row_major};

/// The reason why the part does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// A dim that the array does not have.
    #[error("there is no dim {dim} in an array of rank {rank}")]
    NoSuchDim {
        /// The dim.
        dim: usize,
        /// The number of dims.
        rank: usize,
    },
    /// One dim was given where two are needed.
    #[error("a diagonal lies between two dims, not in dim {dim} alone")]
    SameDim {
        /// The dim.
        dim: usize,
    },
    /// Elements beyond the end of a dim.
    #[error("elements {start}..{end} of dim {dim}, which has {size}")]
    OutOfRange {
        /// The dim.
        dim: usize,
        /// The first element wanted.
        start: usize,
        /// The one after the last.
        end: usize,
        /// The number of elements.
        size: usize,
    },
    /// A step or a block of size 0.
    #[error("a step or block of size 0 in dim {dim}")]
    Zero {
        /// The dim.
        dim: usize,
    },
    /// Another number of sizes or dims than the array has dims.
    #[error("{given} dims are given for an array of rank {rank}")]
    Rank {
        /// The number given.
        given: usize,
        /// The number of dims.
        rank: usize,
    },
    /// Not each dim once.
    #[error("dim {dim} is named twice")]
    Twice {
        /// The dim.
        dim: usize,
    },
    /// The elements are of another type than they are read as.
    #[error("{0} elements are not stored like that")]
    Type(ElementType),
}

/// One dim of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    size: usize,
    /// From one element to the next, in elements of the array.
    stride: isize,
}

/// Some of an array's elements, in an order of their own.
#[derive(Clone, Debug)]
pub struct View<'a> {
    element_type: ElementType,
    data: &'a Data,
    /// The position of the first element.
    start: isize,
    dims: SmallVec<[Dim; 6]>,
}

impl<'a> View<'a> {
    /// All elements of an array.
    pub fn of(array: &'a ArrayLiteral) -> Self {
        let strides = row_major(array.dims());
        let dims = array.dims().iter().zip(strides);
        let dims = dims.map(|(&size, stride)| Dim { size: extent(size), stride }).collect();
        Self { element_type: array.element_type(), data: array.data(), start: 0, dims }
    }

    /// Returns the size of each dim.
    pub fn dims(&self) -> Dims {
        self.dims.iter().map(|dim| i64::try_from(dim.size).unwrap_or(i64::MAX)).collect()
    }

    /// Returns the number of dims.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        // Each is an element of an array that exists: the product fits, but
        // beside a 0 it need not.
        if self.is_empty() { 0 } else { self.dims.iter().map(|dim| dim.size).product() }
    }

    /// Checks whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.iter().any(|dim| dim.size == 0)
    }

    fn dim(&self, dim: usize) -> Result<Dim, ViewError> {
        let rank = self.rank();
        self.dims.get(dim).copied().ok_or(ViewError::NoSuchDim { dim, rank })
    }

    /// Every `step`th of the elements `start..end` of a dim.
    ///
    /// # Errors
    /// Returns an error if the dim does not exist, it ends before `end`, or the step is 0.
    pub fn slice(
        &self,
        dim: usize,
        start: usize,
        end: usize,
        step: usize,
    ) -> Result<Self, ViewError> {
        let Dim { size, stride } = self.dim(dim)?;
        if start > end || end > size {
            return Err(ViewError::OutOfRange { dim, start, end, size });
        }
        if step == 0 {
            return Err(ViewError::Zero { dim });
        }
        let count = (end - start).div_ceil(step);
        let mut part = self.clone();
        // A view without elements has no first one to move.
        if count > 0 && !self.is_empty() {
            part.start += stride * start.cast_signed();
        }
        let step = stride.saturating_mul(step.cast_signed());
        part.dims[dim] = Dim { size: count, stride: if count < 2 { stride } else { step } };
        Ok(part)
    }

    /// The sub-tensor at one place of a dim: all other dims.
    ///
    /// # Errors
    /// Returns an error if the dim or place does not exist.
    pub fn index(&self, dim: usize, at: usize) -> Result<Self, ViewError> {
        let mut part = self.slice(dim, at, at.saturating_add(1), 1)?;
        part.dims.remove(dim);
        Ok(part)
    }

    /// The dims in another order.
    ///
    /// # Errors
    /// Returns an error if `order` does not have each dim once.
    pub fn transposed(&self, order: &[usize]) -> Result<Self, ViewError> {
        let (given, rank) = (order.len(), self.rank());
        if given != rank {
            return Err(ViewError::Rank { given, rank });
        }
        for (at, dim) in order.iter().enumerate() {
            if order[..at].contains(dim) {
                return Err(ViewError::Twice { dim: *dim });
            }
        }
        let dims = order.iter().map(|&dim| self.dim(dim)).collect::<Result<_, _>>()?;
        Ok(Self { dims, ..self.clone() })
    }

    /// The elements `x[.., i, .., i + offset, ..]`, `i` in `dim1` and
    /// `i + offset` in `dim2`: all other dims, then the diagonal as the last.
    /// Below the main diagonal, `offset` is negative. As NumPy's `diagonal`.
    ///
    /// # Errors
    /// Returns an error if the dims do not exist, or are the same.
    pub fn diagonal(&self, offset: isize, dim1: usize, dim2: usize) -> Result<Self, ViewError> {
        let (rows, columns) = (self.dim(dim1)?, self.dim(dim2)?);
        if dim1 == dim2 {
            return Err(ViewError::SameDim { dim: dim1 });
        }
        // Rows before the diagonal begins, and columns.
        let (above, left) = match offset {
            0.. => (0, offset.unsigned_abs()),
            _ => (offset.unsigned_abs(), 0),
        };
        let size = rows.size.saturating_sub(above).min(columns.size.saturating_sub(left));
        let mut diagonal = self.clone();
        if size > 0 && !self.is_empty() {
            diagonal.start += rows.stride * above.cast_signed();
            diagonal.start += columns.stride * left.cast_signed();
        }
        diagonal.dims.remove(dim1.max(dim2));
        diagonal.dims.remove(dim1.min(dim2));
        diagonal.dims.push(Dim { size, stride: rows.stride.saturating_add(columns.stride) });
        Ok(diagonal)
    }

    /// Returns the sub-tensors along a dim, one for each place in it.
    ///
    /// # Errors
    /// Returns an error if the dim does not exist.
    pub fn sub_tensors(&self, dim: usize) -> Result<impl Iterator<Item = Self>, ViewError> {
        let size = self.dim(dim)?.size;
        let whole = self.clone();
        Ok((0..size).filter_map(move |at| whole.index(dim, at).ok()))
    }

    /// Returns the strips along a dim, in row-major order of the other dims: each a view of
    /// rank 1, as sorting along a dim wants it.
    ///
    /// # Errors
    /// Returns an error if the dim does not exist.
    pub fn strips(&self, dim: usize) -> Result<impl Iterator<Item = Self>, ViewError> {
        let along = self.dim(dim)?;
        let mut others = self.clone();
        others.dims.remove(dim);
        let whole = self.clone();
        Ok(others.places().map(move |start| Self {
            start,
            dims: SmallVec::from_slice(&[along]),
            ..whole.clone()
        }))
    }

    /// Returns the blocks of these sizes, in row-major order; those at the ends of dims are
    /// smaller if the dim ends within them.
    ///
    /// # Errors
    /// Returns an error if there is not one size for each dim, or one is 0.
    pub fn blocks(&self, sizes: &[usize]) -> Result<impl Iterator<Item = Self>, ViewError> {
        let (given, rank) = (sizes.len(), self.rank());
        if given != rank {
            return Err(ViewError::Rank { given, rank });
        }
        if let Some(dim) = sizes.iter().position(|&size| size == 0) {
            return Err(ViewError::Zero { dim });
        }
        let sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(sizes);
        let counts = self.dims.iter().zip(&sizes).map(|(dim, size)| dim.size.div_ceil(*size));
        let counts: SmallVec<[usize; 6]> = counts.collect();
        let total = if self.is_empty() { 0 } else { counts.iter().product() };
        let whole = self.clone();
        Ok((0..total).map(move |mut number| {
            let mut block = whole.clone();
            for (dim, (&size, &count)) in sizes.iter().zip(&counts).enumerate().rev() {
                let from = number % count * size;
                number /= count;
                let part = &mut block.dims[dim];
                block.start += part.stride * from.cast_signed();
                part.size = size.min(part.size - from);
            }
            block
        }))
    }

    fn nest(&self) -> Nest<1> {
        Nest::new(self.dims.iter().map(|dim| Level { size: dim.size, strides: [dim.stride] }))
    }

    /// Returns the positions of the elements, in order.
    fn places(&self) -> Places {
        let counts = SmallVec::from_elem(0, self.rank());
        Places { dims: self.dims.clone(), counts, at: self.start, left: self.len() }
    }

    /// Returns the elements, in order.
    ///
    /// # Errors
    /// Returns an error if they are not stored as `T`.
    pub fn iter<T: Native>(&self) -> Result<impl Iterator<Item = &'a T>, ViewError> {
        let values: &[T] = self.data.as_slice().ok_or(ViewError::Type(self.element_type))?;
        Ok(self.places().filter_map(move |at| values.get(at.cast_unsigned())))
    }

    /// Returns the elements as an array of their own.
    ///
    /// # Errors
    /// Never for a view of an array that exists.
    pub fn to_array(&self) -> Result<ArrayLiteral, LiteralError> {
        let data = collect(self.data, &self.nest(), self.start);
        ArrayLiteral::new(self.element_type, self.dims(), data)
    }
}

/// An odometer over dims that tracks its position in memory.
#[derive(Clone, Debug)]
struct Places {
    dims: SmallVec<[Dim; 6]>,
    counts: SmallVec<[usize; 6]>,
    at: isize,
    left: usize,
}

impl Iterator for Places {
    type Item = isize;

    fn next(&mut self) -> Option<isize> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        for (count, dim) in self.counts.iter_mut().zip(&self.dims).rev() {
            *count += 1;
            self.at += dim.stride;
            if *count < dim.size {
                break;
            }
            self.at -= dim.stride * dim.size.cast_signed();
            *count = 0;
        }
        Some(at)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
