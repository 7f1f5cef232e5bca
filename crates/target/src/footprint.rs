//! The memory that a shape occupies.

use std::ops::{Add, AddAssign};

use tilewright_ir::shape::{ArrayShape, Shape};

use crate::physical::{Physical, size};
use crate::target::{Alignment, Target};

/// The memory that a value occupies. Sums and products saturate: a shape too large for `u64`
/// costs `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Footprint {
    /// Vectors that hold the elements, padding included.
    pub vectors: u64,
    /// Bytes of memory, padding included.
    pub padded_bytes: u64,
    /// Bytes of the elements alone.
    pub bytes: u64,
}

impl Footprint {
    /// Returns the memory as a multiple of the elements' own bytes: 12.8 if 10 of 128 lanes are
    /// used; 1 if there are no elements.
    #[expect(clippy::cast_precision_loss, reason = "a ratio to show")]
    pub fn padding(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.padded_bytes as f64 / self.bytes as f64 }
    }
}

impl Add for Footprint {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            vectors: self.vectors.saturating_add(other.vectors),
            padded_bytes: self.padded_bytes.saturating_add(other.padded_bytes),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl AddAssign for Footprint {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Footprint {
    fn sum<I: Iterator<Item = Self>>(footprints: I) -> Self {
        footprints.fold(Self::default(), Add::add)
    }
}

impl Target {
    /// Returns the memory that an array occupies in its layout; row major if it has none.
    ///
    /// Where arrays are aligned to tiles:
    /// - The layout's tiles are honoured, nested ones too; without any, the
    ///   minor-most dim pads to [`Target::tile`]'s lanes and the second-minor
    ///   to its rows. The layout's explicit padding comes before that.
    /// - Rank 1 is stored in chunks of a whole tile (XLA's `T(1024)`), rank 0
    ///   takes one tile.
    /// - Elements wider than a lane take several vectors per tile.
    ///
    /// On a linear memory, tiles and padding are ignored: the elements lie
    /// side by side.
    ///
    /// A bounded dynamic dim counts as its bound. An unbounded one counts as 1, because nothing
    /// better is known: the result is then a lower bound. An array without elements takes no
    /// vectors.
    pub fn footprint(&self, shape: &ArrayShape) -> Footprint {
        if has_no_elements(shape) {
            return Footprint::default();
        }
        let bits = element_bits(shape);
        let elements = product(shape.dims().iter().map(|&dim| size(dim)));
        let bytes = bytes_of(elements, bits);
        let padded = match self.alignment {
            Alignment::None => bytes,
            Alignment::Tiles => {
                let physical = Physical::of(self, shape);
                let places = product(physical.axes.iter().map(|axis| axis.extent));
                bytes_of(tail(shape, places), self.stored_bits(bits))
            }
        };
        let vectors = padded.div_ceil(self.vector_bytes().into());
        Footprint { vectors: clamp(vectors), padded_bytes: clamp(padded), bytes: clamp(bytes) }
    }

    /// Returns the memory that a value occupies: the sum over the arrays in a tuple. Buffers
    /// count as their arrays; tokens and opaque values as nothing.
    pub fn shape_footprint(&self, shape: &Shape) -> Footprint {
        let mut sum = Footprint::default();
        let mut stack = vec![shape];
        while let Some(shape) = stack.pop() {
            match shape {
                Shape::Array(array) => sum += self.footprint(array),
                Shape::Tuple(elements) => stack.extend(elements),
                Shape::Buffer(inner) => stack.push(inner),
                Shape::Token | Shape::Opaque => {}
            }
        }
        sum
    }
}

pub(crate) fn has_no_elements(shape: &ArrayShape) -> bool {
    shape.dims().contains(&0)
}

/// Bits of an element in memory: whole bytes, unless the layout packs it
/// (`E(4)`).
pub(crate) fn element_bits(shape: &ArrayShape) -> u32 {
    let unpacked = shape.element_type.bytes().saturating_mul(8);
    let packed = shape.layout.as_ref().map_or(0, |layout| layout.element_size_in_bits);
    match u32::try_from(packed) {
        Ok(packed @ 1..) if packed < unpacked => packed,
        _ => unpacked,
    }
}

/// Returns the number of places of an array whose element count the layout rounds up
/// (`L(1024)`).
fn tail(shape: &ArrayShape, places: u128) -> u128 {
    let multiple = shape.layout.as_ref().map_or(1, |layout| layout.tail_padding_alignment);
    let multiple = u128::try_from(multiple).unwrap_or(1).max(1);
    places.div_ceil(multiple).saturating_mul(multiple)
}

fn product(sizes: impl Iterator<Item = u64>) -> u128 {
    sizes.fold(1, |product: u128, size| product.saturating_mul(size.into()))
}

fn bytes_of(places: u128, bits: u32) -> u128 {
    places.saturating_mul(bits.into()).div_ceil(8)
}

fn clamp(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
