//! Constant values: typed data in logical (row-major) order.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use half::{bf16, f16};
use num_complex::Complex;

use super::element::ElementType;
use super::shape::{ArrayShape, Dims, Shape, checked_product};

/// A value: an array of elements or a tuple of values.
///
/// Elements are in logical order, the last dim fastest, whatever the layout
/// of the instruction that holds them. Equality and hashing compare bits, so
/// `-0.0 != 0.0` and equal NaN payloads are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// An array.
    Array(ArrayLiteral),
    /// A tuple of values.
    Tuple(Vec<Literal>),
    /// An ordering token.
    Token,
    /// A value of this shape that is not in the text (`constant({...})`).
    Elided(Box<Shape>),
}

/// Elements of one type with their dims.
#[derive(Clone)]
pub struct ArrayLiteral {
    element_type: ElementType,
    dims: Dims,
    /// Shared, so that copies of a literal are cheap.
    data: Arc<Data>,
    /// Whether all elements are equal, once this was computed.
    is_splat: OnceLock<bool>,
}

impl fmt::Debug for ArrayLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { element_type, dims, data, is_splat: _ } = self;
        f.debug_struct("ArrayLiteral")
            .field("element_type", element_type)
            .field("dims", dims)
            .field("data", data)
            .finish()
    }
}

impl PartialEq for ArrayLiteral {
    fn eq(&self, other: &Self) -> bool {
        (self.element_type, &self.dims, &self.data)
            == (other.element_type, &other.dims, &other.data)
    }
}

impl Eq for ArrayLiteral {}

impl Hash for ArrayLiteral {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.element_type, &self.dims, &self.data).hash(state);
    }
}

macro_rules! data {
    ($($(#[$doc:meta])* $name:ident $rust:ty, [$($element:ident)*];)*) => {
        /// The elements of an array, in the storage of their type. Types
        /// narrower than a byte, and 4- to 8-bit floats as bit patterns, take
        /// a byte each.
        #[derive(Clone, Debug)]
        pub enum Data {
            $($(#[$doc])* $name(Vec<$rust>),)*
        }

        impl Data {
            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$name(values) => values.len(),)*
                }
            }

            /// Checks whether this is the storage of that element type.
            pub fn stores(&self, element_type: ElementType) -> bool {
                match self {
                    $(Self::$name(_) => matches!(element_type, $(ElementType::$element)|*),)*
                }
            }

            /// `len` zeros of the storage of a type.
            pub fn zeros(element_type: ElementType, len: usize) -> Self {
                match element_type {
                    $($(ElementType::$element)|* => Self::$name(vec![<$rust>::default(); len]),)*
                }
            }

            /// The elements at these positions, in their order. Positions past
            /// the end are skipped.
            #[must_use]
            pub fn gather(&self, positions: impl Iterator<Item = usize>) -> Self {
                match self {
                    $(Self::$name(values) => {
                        Self::$name(positions.filter_map(|p| values.get(p).copied()).collect())
                    })*
                }
            }
        }

        impl Data {
            /// Copies the elements from `from` of another storage to the positions from `at`.
            /// Returns `false` and copies nothing if a range does not exist or the storage types
            /// differ.
            pub fn copy_from(&mut self, at: usize, other: &Self, from: Range<usize>) -> bool {
                match (self, other) {
                    $((Self::$name(to), Self::$name(values)) => copy_slice(to, at, values, from),)*
                    _ => false,
                }
            }

            /// For every pair, sets the element at the first position to the element at the
            /// second position of another storage. Skips positions past an end; returns `false`
            /// if the storage types differ.
            pub fn set_from(
                &mut self,
                other: &Self,
                pairs: impl Iterator<Item = (usize, usize)>,
            ) -> bool {
                match (self, other) {
                    $((Self::$name(to), Self::$name(values)) => set_places(to, values, pairs),)*
                    _ => return false,
                }
                true
            }
        }

        $(impl Native for $rust {
            fn view(data: &Data) -> Option<&[Self]> {
                match data {
                    Data::$name(values) => Some(values),
                    _ => None,
                }
            }
            fn view_mut(data: &mut Data) -> Option<&mut Vec<Self>> {
                match data {
                    Data::$name(values) => Some(values),
                    _ => None,
                }
            }
            fn wrap(values: Vec<Self>) -> Data {
                Data::$name(values)
            }
        })*
    };
}

data! {
    /// `pred`.
    Pred bool, [Pred];
    /// `s8` and the narrower signed types, sign-extended.
    S8 i8, [S1 S2 S4 S8];
    /// `s16`.
    S16 i16, [S16];
    /// `s32`.
    S32 i32, [S32];
    /// `s64`.
    S64 i64, [S64];
    /// `u8`, the narrower unsigned types, and the bits of small floats.
    U8 u8, [U1 U2 U4 U8 F4E2M1FN F6E2M3FN F6E3M2FN F8E3M4 F8E4M3 F8E4M3FN F8E4M3B11FNUZ F8E4M3FNUZ F8E5M2 F8E5M2FNUZ F8E8M0FNU];
    /// `u16`.
    U16 u16, [U16];
    /// `u32`.
    U32 u32, [U32];
    /// `u64`.
    U64 u64, [U64];
    /// `f16`.
    F16 f16, [F16];
    /// `bf16`.
    BF16 bf16, [BF16];
    /// `f32`.
    F32 f32, [F32];
    /// `f64`.
    F64 f64, [F64];
    /// `c64`.
    C64 Complex<f32>, [C64];
    /// `c128`.
    C128 Complex<f64>, [C128];
}

/// A Rust type that stores the elements of some element types.
pub trait Native: Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// Returns the elements, if `data` stores them as this type.
    fn view(data: &Data) -> Option<&[Self]>;
    /// Returns the elements, if `data` stores them as this type.
    fn view_mut(data: &mut Data) -> Option<&mut Vec<Self>>;
    /// Wraps elements.
    fn wrap(values: Vec<Self>) -> Data;
}

fn copy_slice<T: Copy>(to: &mut [T], at: usize, values: &[T], from: Range<usize>) -> bool {
    let Some(values) = values.get(from) else { return false };
    let places = at.checked_add(values.len()).and_then(|end| to.get_mut(at..end));
    places.map(|places| places.copy_from_slice(values)).is_some()
}

fn set_places<T: Copy>(to: &mut [T], values: &[T], pairs: impl Iterator<Item = (usize, usize)>) {
    for (place, from) in pairs {
        if let (Some(slot), Some(&value)) = (to.get_mut(place), values.get(from)) {
            *slot = value;
        }
    }
}

impl Data {
    /// Checks whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements, if they are stored as `T`.
    pub fn as_slice<T: Native>(&self) -> Option<&[T]> {
        T::view(self)
    }

    /// Checks whether `f` is true of the bits of every element: two words for `c128`, one for
    /// other types. Stops at the first word for which it is false.
    fn all_words(&self, mut f: impl FnMut(u64) -> bool) -> bool {
        match self {
            Self::Pred(v) => v.iter().all(|&x| f(u64::from(x))),
            Self::S8(v) => v.iter().all(|&x| f(u64::from(x.cast_unsigned()))),
            Self::S16(v) => v.iter().all(|&x| f(u64::from(x.cast_unsigned()))),
            Self::S32(v) => v.iter().all(|&x| f(u64::from(x.cast_unsigned()))),
            Self::S64(v) => v.iter().all(|&x| f(x.cast_unsigned())),
            Self::U8(v) => v.iter().all(|&x| f(u64::from(x))),
            Self::U16(v) => v.iter().all(|&x| f(u64::from(x))),
            Self::U32(v) => v.iter().all(|&x| f(u64::from(x))),
            Self::U64(v) => v.iter().all(|&x| f(x)),
            Self::F16(v) => v.iter().all(|&x| f(u64::from(x.to_bits()))),
            Self::BF16(v) => v.iter().all(|&x| f(u64::from(x.to_bits()))),
            Self::F32(v) => v.iter().all(|&x| f(u64::from(x.to_bits()))),
            Self::F64(v) => v.iter().all(|&x| f(x.to_bits())),
            Self::C64(v) => {
                v.iter().all(|&x| f(u64::from(x.re.to_bits()) << 32 | u64::from(x.im.to_bits())))
            }
            Self::C128(v) => v.iter().all(|&x| f(x.re.to_bits()) && f(x.im.to_bits())),
        }
    }

    /// Calls `f` with the words of [`Self::all_words`].
    fn for_each_word(&self, mut f: impl FnMut(u64)) {
        self.all_words(|word| {
            f(word);
            true
        });
    }

    fn words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.len());
        self.for_each_word(|word| words.push(word));
        words
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.len() == other.len()
            && self.words() == other.words()
    }
}

impl Eq for Data {}

impl Hash for Data {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        self.for_each_word(|word| state.write_u64(word));
    }
}

/// Why a literal could not be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// Element count and dims disagree.
    #[error("{elements} elements do not fill the dims {dims:?}")]
    Count {
        /// Number of elements given.
        elements: usize,
        /// The requested dims.
        dims: Dims,
    },
    /// The storage does not match the element type.
    #[error("the data given is not stored as {0} is")]
    Storage(ElementType),
    /// The shape contains more than static arrays.
    #[error("a literal needs static dims; give each dim a size")]
    NotStatic,
}

impl ArrayLiteral {
    /// An array of these elements, which can be shared with others.
    ///
    /// # Errors
    /// Returns an error if the element count is not the product of the dims, or `data` is not
    /// the storage of `element_type`.
    pub fn new(
        element_type: ElementType,
        dims: impl IntoIterator<Item = i64>,
        data: impl Into<Arc<Data>>,
    ) -> Result<Self, LiteralError> {
        let (dims, data): (Dims, Arc<Data>) = (dims.into_iter().collect(), data.into());
        if !data.stores(element_type) {
            return Err(LiteralError::Storage(element_type));
        }
        let count = checked_product(&dims).ok_or(LiteralError::NotStatic)?;
        if usize::try_from(count) != Ok(data.len()) {
            return Err(LiteralError::Count { elements: data.len(), dims });
        }
        Ok(Self { element_type, dims, data, is_splat: OnceLock::new() })
    }

    /// Returns the type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Sizes in dim order.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the elements.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the elements; copies them if they are shared.
    pub fn into_data(self) -> Data {
        Arc::unwrap_or_clone(self.data)
    }

    /// Returns the shared elements.
    pub fn shared_data(&self) -> Arc<Data> {
        Arc::clone(&self.data)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Checks whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the shape, without an explicit layout.
    pub fn shape(&self) -> ArrayShape {
        ArrayShape::new(self.element_type, self.dims.iter().copied())
    }

    /// The same elements with other dims of the same product.
    ///
    /// # Errors
    /// Returns an error if the product of `dims` differs.
    pub fn reshape(self, dims: impl IntoIterator<Item = i64>) -> Result<Self, LiteralError> {
        Self::new(self.element_type, dims, self.data)
    }

    /// Returns the elements, if they are stored as `T`.
    pub fn as_slice<T: Native>(&self) -> Option<&[T]> {
        self.data.as_slice()
    }

    /// The scalar that every element equals, bit for bit; `None` if elements differ or there are
    /// none. The elements are compared at the first call alone.
    pub fn splat(&self) -> Option<Self> {
        if !*self.is_splat.get_or_init(|| self.has_equal_elements()) {
            return None;
        }
        let data = self.data.gather(std::iter::once(0)).into();
        let is_splat = OnceLock::from(true);
        Some(Self { element_type: self.element_type, dims: Dims::new(), data, is_splat })
    }

    /// Checks whether there are elements, all of the same bits.
    fn has_equal_elements(&self) -> bool {
        let Some(last) = self.len().checked_sub(1) else { return false };
        let first = self.data.gather(std::iter::once(0)).words();
        // In most arrays the first and the last element already differ.
        if first != self.data.gather(std::iter::once(last)).words() {
            return false;
        }
        let mut expected = first.iter().cycle();
        self.data.all_words(|word| expected.next() == Some(&word))
    }

    /// Returns the only element as `f64`, if this is one real number or truth value; small
    /// floats are not decoded.
    pub fn scalar_as_f64(&self) -> Option<f64> {
        if self.len() != 1 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "the caller asks for the nearest f64")]
        match self.data() {
            Data::Pred(v) => Some(f64::from(u8::from(v[0]))),
            Data::S8(v) => Some(f64::from(v[0])),
            Data::S16(v) => Some(f64::from(v[0])),
            Data::S32(v) => Some(f64::from(v[0])),
            Data::S64(v) => Some(v[0] as f64),
            Data::U8(v) if !self.element_type.is_float() => Some(f64::from(v[0])),
            Data::U8(_) | Data::C64(_) | Data::C128(_) => None,
            Data::U16(v) => Some(f64::from(v[0])),
            Data::U32(v) => Some(f64::from(v[0])),
            Data::U64(v) => Some(v[0] as f64),
            Data::F16(v) => Some(f64::from(v[0])),
            Data::BF16(v) => Some(f64::from(v[0])),
            Data::F32(v) => Some(f64::from(v[0])),
            Data::F64(v) => Some(v[0]),
        }
    }
}

impl Literal {
    /// Checks whether a part of its value is not in the text. Such a value is unknown and
    /// cannot be assumed to equal another one.
    pub fn is_elided(&self) -> bool {
        match self {
            Self::Elided(_) => true,
            Self::Tuple(elements) => elements.iter().any(Self::is_elided),
            Self::Array(_) | Self::Token => false,
        }
    }

    /// A scalar of a type stored as `T`.
    ///
    /// # Errors
    /// Returns an error if `T` is not the storage of `element_type`.
    pub fn scalar<T: Native>(element_type: ElementType, value: T) -> Result<Self, LiteralError> {
        ArrayLiteral::new(element_type, [], T::wrap(vec![value])).map(Self::Array)
    }

    /// Returns the array, unless this is a tuple or token.
    pub fn as_array(&self) -> Option<&ArrayLiteral> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Token | Self::Elided(_) => None,
        }
    }

    /// Returns the shape, without explicit layouts.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Array(array) => Shape::Array(array.shape()),
            Self::Tuple(elements) => Shape::Tuple(elements.iter().map(Self::shape).collect()),
            Self::Token => Shape::Token,
            Self::Elided(shape) => shape.without_layout(),
        }
    }

    /// Returns the leaves of a tuple in order, depth first; the value itself if it is not a
    /// tuple.
    pub fn leaves(&self) -> Vec<&Literal> {
        let mut leaves = Vec::new();
        let mut stack = vec![self];
        while let Some(value) = stack.pop() {
            match value {
                Self::Tuple(elements) => stack.extend(elements.iter().rev()),
                Self::Array(_) | Self::Token | Self::Elided(_) => leaves.push(value),
            }
        }
        leaves
    }
}

impl From<ArrayLiteral> for Literal {
    fn from(array: ArrayLiteral) -> Self {
        Self::Array(array)
    }
}
