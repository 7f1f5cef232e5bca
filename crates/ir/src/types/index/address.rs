//! Maps indices of an array's elements to addresses in its buffer.

use smallvec::SmallVec;

use super::super::layout::Layout;
use super::super::shape::{ArrayShape, Dims, checked_product};
use super::tiles::{PhysicalIndex, TileCut, ceil_div, check_tiles, unflatten};
use super::{AddressError, IndexError, check_index, check_sizes, row_major_strides};

/// The addresses of an array's elements in its buffer: the shape's layout, evaluated once by
/// XLA's rules for [tiled layouts]. Addresses count elements.
///
/// The dims are put in physical order (most major first) and extended by the explicit padding.
/// Each tile in turn splits the most minor dims into a tile number, which replaces the dims, and
/// an index in the tile, which becomes the most minor dims. If a tile does not divide a size,
/// the size is rounded up. The address is the row-major index in the resulting dims.
///
/// Bounded dynamic dims take the space of their bound. Memory space, element bits and a dynamic
/// array's metadata prefix are ignored.
///
/// [tiled layouts]: https://openxla.org/xla/tiled_layout
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressMap {
    dims: Dims,
    /// Dim numbers, the most major first.
    major_to_minor: SmallVec<[usize; 6]>,
    cuts: Vec<TileCut>,
    /// Sizes and strides after the last tile; the address is row major in them.
    physical: Dims,
    physical_strides: Dims,
    /// Strides in dim order, if no tile splits the dims.
    strides: Option<Dims>,
    buffer_elements: i64,
}

impl AddressMap {
    /// The addresses of a shape in its layout, row major if it has none.
    ///
    /// # Errors
    /// Returns an error if a dim is unbounded, the layout does not fit the shape, or the buffer
    /// has too many elements.
    pub fn new(shape: &ArrayShape) -> Result<Self, AddressError> {
        Self::with_layout(shape.dims(), &shape.layout_or_default())
    }

    /// The addresses of an array of these dims in row-major order.
    ///
    /// # Errors
    /// Returns an error if a dim is unbounded or negative, or there are too many elements.
    pub fn row_major(dims: &[i64]) -> Result<Self, AddressError> {
        Self::with_layout(dims, &Layout::descending(dims.len()))
    }

    /// The addresses of an array of these dims in this layout.
    ///
    /// # Errors
    /// The errors of [`AddressMap::new`].
    pub fn with_layout(dims: &[i64], layout: &Layout) -> Result<Self, AddressError> {
        check_sizes(dims)?;
        check_buffer(layout)?;
        check_tiles(&layout.tiles)?;
        let major_to_minor = major_to_minor(layout, dims.len())?;
        let padded = padded_dims(dims, layout)?;
        let mut physical: Dims = major_to_minor.iter().map(|&dim| padded[dim]).collect();
        let mut cuts = Vec::new();
        // A buffer without elements has no tiles to split.
        if !padded.contains(&0) {
            for tile in &layout.tiles {
                cuts.push(TileCut::new(tile, &mut physical)?);
            }
        }
        let physical_strides = row_major_strides(&physical)?;
        let elements = checked_product(&physical).ok_or(AddressError::Overflow)?;
        let strides = cuts.is_empty().then(|| in_dim_order(&physical_strides, &major_to_minor));
        Ok(Self {
            dims: dims.into(),
            major_to_minor,
            cuts,
            physical,
            physical_strides,
            strides,
            buffer_elements: round_up(elements, layout.tail_padding_alignment.max(1))
                .ok_or(AddressError::Overflow)?,
        })
    }

    /// Sizes in dim order, without padding.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the buffer's size in elements, with all padding: explicit padding, whole tiles,
    /// and the tail.
    pub fn buffer_elements(&self) -> i64 {
        self.buffer_elements
    }

    /// Returns the distance between neighbours along each dim, in dim order; `None` if tiles
    /// make it vary.
    pub fn strides(&self) -> Option<&[i64]> {
        self.strides.as_deref()
    }

    /// Returns the address of the element at an index (in dim order).
    ///
    /// If the index has another rank or is out of range.
    /// If the index has another rank or is out of range.
    pub fn linear(&self, index: &[i64]) -> Result<i64, IndexError> {
        check_index(index, &self.dims)?;
        if let Some(strides) = &self.strides {
            return Ok(dot(index, strides));
        }
        let mut place: PhysicalIndex = self.major_to_minor.iter().map(|&dim| index[dim]).collect();
        for cut in &self.cuts {
            cut.apply(&mut place);
        }
        Ok(dot(&place, &self.physical_strides))
    }

    /// Returns the index of the element at an address; `None` if the address is padding.
    ///
    /// # Errors
    /// Returns an error if the address is outside the buffer.
    pub fn position(&self, address: i64) -> Result<Option<Dims>, IndexError> {
        let elements = self.buffer_elements;
        if address < 0 || address >= elements {
            return Err(IndexError::OutsideBuffer { address, elements });
        }
        Ok(self.element_at(address))
    }

    /// Returns the index at an address inside the buffer; `None` if the address is padding.
    fn element_at(&self, address: i64) -> Option<Dims> {
        let mut place = PhysicalIndex::from_elem(0, self.physical.len());
        if unflatten(address, &self.physical, &mut place) != 0 {
            return None; // In the padding of the tail.
        }
        for cut in self.cuts.iter().rev() {
            cut.undo(&mut place)?;
        }
        let index = in_dim_order(&place, &self.major_to_minor);
        index.iter().zip(&self.dims).all(|(i, size)| i < size).then_some(index)
    }
}

/// Checks that the layout describes one buffer of dense elements.
fn check_buffer(layout: &Layout) -> Result<(), AddressError> {
    let alignment = layout.tail_padding_alignment;
    if alignment < 0 {
        return Err(AddressError::TailPadding { alignment });
    }
    match &layout.rare {
        Some(rare)
            if rare.physical_shape.is_some()
                || rare.index_type.is_some()
                || rare.pointer_type.is_some()
                || !rare.splits.is_empty() =>
        {
            Err(AddressError::NotOneBuffer)
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the dims from major to minor, each once.
fn major_to_minor(layout: &Layout, rank: usize) -> Result<SmallVec<[usize; 6]>, AddressError> {
    if layout.rank() != rank {
        return Err(AddressError::Rank { layout: layout.rank(), rank });
    }
    let mut seen = vec![false; rank];
    let mut order = SmallVec::with_capacity(rank);
    for &dim in layout.minor_to_major.iter().rev() {
        let index = usize::try_from(dim).unwrap_or(usize::MAX);
        match seen.get_mut(index) {
            Some(seen @ false) => *seen = true,
            Some(true) | None => return Err(AddressError::NotAPermutation { dim, rank }),
        }
        order.push(index);
    }
    Ok(order)
}

/// Returns the sizes with explicit padding, in dim order.
fn padded_dims(dims: &[i64], layout: &Layout) -> Result<Dims, AddressError> {
    let Some(padding) = &layout.padding else {
        return Ok(dims.into());
    };
    if padding.dims.len() != dims.len() {
        return Err(AddressError::PaddingRank { padding: padding.dims.len(), rank: dims.len() });
    }
    for (dim, (&size, &padded)) in dims.iter().zip(&padding.dims).enumerate() {
        if padded < size {
            return Err(AddressError::PaddedTooSmall { dim, size, padded });
        }
    }
    Ok(padding.dims.clone())
}

/// Reorders values from physical order to dim order.
fn in_dim_order(values: &[i64], major_to_minor: &[usize]) -> Dims {
    let mut ordered = Dims::from_elem(0, major_to_minor.len());
    for (&value, &dim) in values.iter().zip(major_to_minor) {
        ordered[dim] = value;
    }
    ordered
}

/// Returns the address of an index in range; at most the checked product of the dims.
fn dot(index: &[i64], strides: &[i64]) -> i64 {
    index.iter().zip(strides).map(|(i, stride)| i * stride).sum()
}

/// `n` rounded up to a multiple.
fn round_up(n: i64, to: i64) -> Option<i64> {
    ceil_div(n, to).checked_mul(to)
}
