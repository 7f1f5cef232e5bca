//! The layout of an array in memory.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use super::element::ElementType;
use super::shape::{Dims, Shape};

/// The memory layout of an array (XLA's `LayoutProto`).
///
/// `minor_to_major` orders the dims from the fastest-varying to the slowest:
/// for `f32[2,3]` holding `a b c / d e f`, `{1,0}` stores `a b c d e f` and
/// `{0,1}` stores `a d b e c f`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    /// Dim numbers, the fastest-varying first; a permutation of `0..rank`.
    pub minor_to_major: SmallVec<[u32; 6]>,
    /// Nested tiles, outermost first. `T(8,128)(2,1)` is two entries.
    pub tiles: SmallVec<[Tile; 1]>,
    /// The padded size of every dim, with the value of the padding.
    pub padding: Option<Box<Padding>>,
    /// Memory space; 0 is the device's default memory.
    pub memory_space: i64,
    /// Bits of a packed element (`E(4)`); 0 means unpacked.
    pub element_size_in_bits: i64,
    /// The buffer's element count is a multiple of this number (`L(1024)`); 1 means no
    /// constraint.
    pub tail_padding_alignment: i64,
    /// Parts that few layouts have.
    pub rare: Option<Box<RareLayout>>,
}

impl Hash for Layout {
    /// Hashes the parts that most layouts leave out only if they exist: shapes are looked up
    /// very often.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let order = self.minor_to_major.iter().fold(1, |hash: u64, &dim| {
            hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(dim.into())
        });
        (order, self.memory_space, self.element_size_in_bits).hash(state);
        if !self.tiles.is_empty() {
            self.tiles.hash(state);
        }
        if self.padding.is_some() || self.rare.is_some() || self.tail_padding_alignment != 1 {
            (&self.padding, &self.rare, self.tail_padding_alignment).hash(state);
        }
    }
}

/// The sizes of one tile, major to minor. It cuts the last `dims.len()` dims of the layout's
/// physical order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Elements along each dim; [`Tile::COMBINE`] merges a dim with the next
    /// more minor one (`T(*,128)`).
    pub dims: SmallVec<[i64; 2]>,
}

impl Tile {
    /// The value that represents `*`.
    pub const COMBINE: i64 = i64::MIN;
}

/// Explicit padding (`P(3,5)V(-inf)`), which newer versions of XLA's text do not have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Padding {
    /// The padded size of every dim, in dim order.
    pub dims: Dims,
    /// The value of the padding.
    pub value: PaddingValue,
}

/// The value of padding elements (the values of XLA's former `PaddingValue`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PaddingValue {
    /// Unknown.
    Unknown,
    /// Zero.
    #[default]
    Zero,
    /// One.
    One,
    /// The least value of the type.
    Lowest,
    /// The greatest value of the type.
    Highest,
    /// Minus infinity.
    MinusInfinity,
    /// Plus infinity.
    Infinity,
}

/// Parts of a layout that few modules have.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct RareLayout {
    /// The integer type of indices into a sparse array (`#(u32)`).
    pub index_type: Option<ElementType>,
    /// The integer type of pointers of a sparse array (`*(u64)`).
    pub pointer_type: Option<ElementType>,
    /// The split of a dim between memories (`SC(1:64,128)`): dim, indices.
    pub splits: Vec<(i64, Vec<i64>)>,
    /// The physical shape of a sparse array (`P(...)`).
    pub physical_shape: Option<Shape>,
    /// Bytes of metadata in front of a dynamic array (`M(16)`).
    pub dynamic_shape_metadata_prefix_bytes: i64,
}

impl Layout {
    /// A layout with these dims from minor to major and no other parts.
    pub fn new(minor_to_major: impl IntoIterator<Item = u32>) -> Self {
        Self {
            minor_to_major: minor_to_major.into_iter().collect(),
            tail_padding_alignment: 1,
            ..Self::default()
        }
    }

    /// Row major, XLA's default: `{rank-1, ..., 0}`.
    pub fn descending(rank: usize) -> Self {
        Self::new((0..u32::try_from(rank).unwrap_or(u32::MAX)).rev())
    }

    /// Checks whether this is row major without tiles, padding or other extras.
    pub fn is_default(&self) -> bool {
        *self == Self::descending(self.minor_to_major.len())
    }

    /// Returns the rank of the arrays it fits.
    pub fn rank(&self) -> usize {
        self.minor_to_major.len()
    }
}
