//! Shapes: element type, dims and layout, or tuples of shapes.

use smallvec::SmallVec;

use super::element::ElementType;
use super::layout::Layout;

/// A list of dim sizes or dim numbers.
pub type Dims = SmallVec<[i64; 6]>;

/// Returns the [`Dims`] of a list: `dims([0, 2])`.
pub fn dims(list: impl AsRef<[i64]>) -> Dims {
    Dims::from_slice(list.as_ref())
}

/// The size of a dim of unknown extent (`f32[?]`), as XLA stores it.
pub const UNBOUNDED: i64 = i64::MIN;

/// The shape of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A dense array.
    Array(ArrayShape),
    /// A tuple of values.
    Tuple(Vec<Shape>),
    /// A mutable buffer, `b(f32[8])`.
    Buffer(Box<Shape>),
    /// An ordering token.
    Token,
    /// A value that only its producer and consumer interpret.
    Opaque,
}

/// Element type, dims and layout of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// The type of the elements.
    pub element_type: ElementType,
    /// Sizes in dim order; the bound of a bounded dynamic dim, [`UNBOUNDED`]
    /// for an unbounded one.
    dims: Dims,
    /// For each dim whether it is dynamic; `None` if no dim is.
    dynamic: Option<Box<[bool]>>,
    /// The explicit layout; `None` means row major.
    pub layout: Option<Layout>,
}

impl ArrayShape {
    /// An array of static dims without an explicit layout.
    pub fn new(element_type: ElementType, dims: impl IntoIterator<Item = i64>) -> Self {
        Self { element_type, dims: dims.into_iter().collect(), dynamic: None, layout: None }
    }

    /// A rank-0 array.
    pub fn scalar(element_type: ElementType) -> Self {
        Self::new(element_type, [])
    }

    /// The same shape with these dims marked dynamic (all false: static).
    #[must_use]
    pub fn with_dynamic(mut self, dynamic: &[bool]) -> Self {
        self.dynamic = dynamic.contains(&true).then(|| dynamic.into());
        self
    }

    /// The same shape with another size of one dim, dynamic or not.
    #[must_use]
    pub fn with_dim(mut self, dim: usize, size: i64, dynamic: bool) -> Self {
        let flags: SmallVec<[bool; 6]> = (0..self.rank())
            .map(|d| if d == dim { dynamic } else { self.dim_is_dynamic(d) })
            .collect();
        if let Some(slot) = self.dims.get_mut(dim) {
            *slot = size;
        }
        self.with_dynamic(&flags)
    }

    /// The same shape in this layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Option<Layout>) -> Self {
        self.layout = layout;
        self
    }

    /// Sizes in dim order; see [`ArrayShape::dim_is_dynamic`].
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the number of dims.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the number of dims with a size other than 1.
    pub fn true_rank(&self) -> usize {
        self.dims.iter().filter(|&&d| d != 1).count()
    }

    /// Checks whether a dim's size is known only at run time.
    pub fn dim_is_dynamic(&self, dim: usize) -> bool {
        self.dynamic.as_ref().is_some_and(|d| d.get(dim).copied().unwrap_or(false))
    }

    /// Checks whether no dim is dynamic.
    pub fn is_static(&self) -> bool {
        self.dynamic.is_none()
    }

    /// Returns the product of the dims (of the bounds for dynamic dims); `None` if a dim is
    /// unbounded or the product exceeds `i64`.
    pub fn num_elements(&self) -> Option<i64> {
        checked_product(&self.dims)
    }

    /// Bytes of the elements without padding, each element in whole bytes.
    pub fn num_bytes(&self) -> Option<i64> {
        self.num_elements()?.checked_mul(i64::from(self.element_type.bytes()))
    }

    /// Checks whether element type, dims and dynamism agree; layouts may differ.
    pub fn compatible(&self, other: &Self) -> bool {
        self.element_type == other.element_type && self.same_dims(other)
    }

    /// Checks whether dims and dynamism agree.
    pub fn same_dims(&self, other: &Self) -> bool {
        self.dims == other.dims && self.dynamic == other.dynamic
    }

    /// Checks whether a value can have both lists of dims: sizes and bounds agree, and an
    /// unbounded dim agrees with any. Dynamic flags are ignored, as in XLA's verifier.
    pub fn dims_agree(&self, other: &Self) -> bool {
        self.rank() == other.rank()
            && self.dims.iter().zip(&other.dims).all(|(&a, &b)| sizes_agree(a, b))
    }

    /// Checks whether both have elements of one type, or floats of any precision.
    fn same_type_up_to_precision(&self, other: &Self) -> bool {
        let (a, b) = (self.element_type, other.element_type);
        a == b || a.is_float() && b.is_float()
    }

    /// The dims of a value that has both shapes: a size is used rather than an unbounded dim,
    /// and where both have a size, the dim is dynamic if one of the two is. `None` if they
    /// disagree.
    pub fn common_dims(&self, other: &Self) -> Option<Self> {
        if !self.dims_agree(other) {
            return None;
        }
        let pick = |dim: usize| match (self.dims[dim], other.dims[dim]) {
            (UNBOUNDED, size) => (size, other.dim_is_dynamic(dim)),
            (size, UNBOUNDED) => (size, self.dim_is_dynamic(dim)),
            (size, _) => (size, self.dim_is_dynamic(dim) || other.dim_is_dynamic(dim)),
        };
        let (dims, dynamic): (Dims, SmallVec<[bool; 6]>) = (0..self.rank()).map(pick).unzip();
        Some(Self::new(self.element_type, dims).with_dynamic(&dynamic))
    }

    /// Returns the layout; row major if there is no explicit one.
    pub fn layout_or_default(&self) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::descending(self.rank()))
    }

    /// Checks whether the layout is row major, explicit or not.
    pub fn has_default_layout(&self) -> bool {
        self.layout.as_ref().is_none_or(Layout::is_default)
    }

    /// The same shape without an explicit layout, which is not copied.
    #[must_use]
    pub fn without_layout(&self) -> Self {
        let (dims, dynamic) = (self.dims.clone(), self.dynamic.clone());
        Self { element_type: self.element_type, dims, dynamic, layout: None }
    }

    /// The same dims and layout with elements of another type.
    #[must_use]
    pub fn with_element_type(mut self, element_type: ElementType) -> Self {
        self.element_type = element_type;
        self
    }
}

/// Checks whether a dim can have both sizes: they are equal, or one is unbounded.
pub fn sizes_agree(a: i64, b: i64) -> bool {
    a == b || a == UNBOUNDED || b == UNBOUNDED
}

/// Returns the product of dim sizes; `None` if one is negative (unbounded) or the product
/// exceeds `i64`. A zero makes the product zero whatever the other sizes are.
pub fn checked_product(dims: &[i64]) -> Option<i64> {
    if dims.iter().any(|&d| d < 0) {
        return None;
    }
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1i64, |product, &d| product.checked_mul(d))
}

impl Shape {
    /// An array of static dims without an explicit layout.
    pub fn array(element_type: ElementType, dims: impl IntoIterator<Item = i64>) -> Self {
        Self::Array(ArrayShape::new(element_type, dims))
    }

    /// A rank-0 array.
    pub fn scalar(element_type: ElementType) -> Self {
        Self::Array(ArrayShape::scalar(element_type))
    }

    /// Returns the array shape, unless this is a tuple, buffer, token or opaque.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Self::Array(array) => Some(array),
            Self::Tuple(_) | Self::Buffer(_) | Self::Token | Self::Opaque => None,
        }
    }

    /// Returns the element shapes of a tuple.
    pub fn as_tuple(&self) -> Option<&[Shape]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            Self::Array(_) | Self::Buffer(_) | Self::Token | Self::Opaque => None,
        }
    }

    /// Checks whether both have the same structure, element types and dims; layouts may differ.
    pub fn compatible(&self, other: &Self) -> bool {
        self.matches(other, ArrayShape::compatible)
    }

    /// Like [`Shape::compatible`], but dims need only agree: see [`ArrayShape::dims_agree`].
    pub fn agrees(&self, other: &Self) -> bool {
        self.matches(other, |a, b| a.element_type == b.element_type && a.dims_agree(b))
    }

    /// Like [`Shape::compatible`], but floats may differ in precision.
    pub fn compatible_up_to_precision(&self, other: &Self) -> bool {
        self.matches(other, |a, b| a.same_type_up_to_precision(b) && a.same_dims(b))
    }

    /// Like [`Shape::agrees`], but floats may differ in precision.
    pub fn agrees_up_to_precision(&self, other: &Self) -> bool {
        self.matches(other, |a, b| a.same_type_up_to_precision(b) && a.dims_agree(b))
    }

    /// Checks whether both have the same structure, and arrays that match.
    fn matches(&self, other: &Self, arrays: fn(&ArrayShape, &ArrayShape) -> bool) -> bool {
        // Shapes of a module are interned, so equal shapes are mostly identical and large tuples
        // need not be compared.
        if std::ptr::eq(self, other) {
            return true;
        }
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => arrays(a, b),
            (Self::Tuple(a), Self::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.matches(b, arrays))
            }
            (Self::Buffer(a), Self::Buffer(b)) => a.matches(b, arrays),
            (Self::Token, Self::Token) | (Self::Opaque, Self::Opaque) => true,
            (Self::Array(_) | Self::Tuple(_) | Self::Buffer(_) | Self::Token | Self::Opaque, _) => {
                false
            }
        }
    }

    /// Returns the leaves of a tuple in order, depth first; the shape itself if it is not a
    /// tuple.
    pub fn leaves(&self) -> Vec<&Shape> {
        let mut leaves = Vec::new();
        let mut stack = vec![self];
        while let Some(shape) = stack.pop() {
            match shape {
                Self::Tuple(elements) => stack.extend(elements.iter().rev()),
                Self::Array(_) | Self::Buffer(_) | Self::Token | Self::Opaque => leaves.push(shape),
            }
        }
        leaves
    }

    /// The same shape with every array's layout removed (meaning row major).
    #[must_use]
    pub fn without_layout(&self) -> Self {
        match self {
            Self::Array(array) => Self::Array(array.without_layout()),
            Self::Tuple(elements) => {
                Self::Tuple(elements.iter().map(Self::without_layout).collect())
            }
            Self::Buffer(inner) => Self::Buffer(Box::new(inner.without_layout())),
            Self::Token => Self::Token,
            Self::Opaque => Self::Opaque,
        }
    }
}

impl From<ArrayShape> for Shape {
    fn from(array: ArrayShape) -> Self {
        Self::Array(array)
    }
}
