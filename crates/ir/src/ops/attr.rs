//! What the attributes of ops are made of.
//!
//! An attribute struct lists its fields once, with their names in HLO; from
//! that list come its parsing, its printing, its default values and the
//! computations it calls. The text crate knows only the *kinds* below, never a
//! single op, so that a new op with attributes of known kinds needs no change
//! there.

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use crate::entity::CompId;
use crate::types::shape::Dims;

/// How an attribute's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttrKind {
    /// `3`
    Int,
    /// `true`
    Bool,
    /// `0.001`
    Float,
    /// `"text"`
    Str,
    /// One word of a closed set, as `LT` or `kLoop`.
    Word,
    /// `{0,2}`
    Dims,
    /// `%name`
    Computation,
    /// `{%a, %b}`
    Computations,
    /// `{[0:4:2], [2:6]}`
    Slices,
    /// `1_0_1x1_2`
    Padding,
    /// `{size=3x3 stride=2x2 pad=1_1x1_1}`
    Window,
    /// `b01f_01io->b01f`
    ConvDims,
    /// Anything: kept and written back as it stands.
    Verbatim,
}

/// The value of an attribute, of the [`AttrKind`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttrValue {
    /// See [`AttrKind::Int`].
    Int(i64),
    /// See [`AttrKind::Bool`].
    Bool(bool),
    /// See [`AttrKind::Float`].
    Float(Real),
    /// See [`AttrKind::Str`]; without quotes or escapes.
    Str(SmolStr),
    /// See [`AttrKind::Word`].
    Word(SmolStr),
    /// See [`AttrKind::Dims`].
    Dims(Dims),
    /// See [`AttrKind::Computation`].
    Computation(CompId),
    /// See [`AttrKind::Computations`].
    Computations(SmallVec<[CompId; 2]>),
    /// See [`AttrKind::Slices`].
    Slices(SmallVec<[SliceDim; 4]>),
    /// See [`AttrKind::Padding`].
    Padding(SmallVec<[PadDim; 4]>),
    /// See [`AttrKind::Window`].
    Window(SmallVec<[WindowDim; 2]>),
    /// See [`AttrKind::ConvDims`].
    ConvDims(ConvDims),
    /// See [`AttrKind::Verbatim`].
    Verbatim(Verbatim),
}

/// A single-precision number compared and hashed by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f32);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Real {}

impl std::hash::Hash for Real {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Attribute text that is carried, not understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verbatim(pub Box<str>);

/// The name and kind of one attribute of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrSpec {
    /// The name in text.
    pub name: &'static str,
    /// How its value is written.
    pub kind: AttrKind,
}

/// Attributes read for an op, waiting to be taken by its struct.
#[derive(Debug, Default)]
pub struct AttrValues {
    values: SmallVec<[(&'static str, AttrValue); 4]>,
}

impl AttrValues {
    /// Adds a value; `false` if that name was already there.
    pub fn insert(&mut self, name: &'static str, value: AttrValue) -> bool {
        let fresh = self.values.iter().all(|(n, _)| *n != name);
        if fresh {
            self.values.push((name, value));
        }
        fresh
    }

    /// Takes the value of one field out.
    ///
    /// # Errors
    /// If it is absent and has no default, or cannot be read as `T`.
    pub fn take<T: AttrField>(
        &mut self,
        name: &'static str,
        default: Option<T>,
    ) -> Result<T, AttrError> {
        let Some(at) = self.values.iter().position(|(n, _)| *n == name) else {
            return default.or_else(T::absent).ok_or(AttrError::Missing(name));
        };
        let (_, value) = self.values.swap_remove(at);
        T::from_value(value).map_err(|expected| AttrError::Value { name, expected })
    }
}

/// Why an op could not be made of its attributes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttrError {
    /// A required attribute is absent.
    #[error("attribute `{0}` is missing")]
    Missing(&'static str),
    /// A value is not one the attribute can have.
    #[error("attribute `{name}` must be {expected}")]
    Value {
        /// The attribute.
        name: &'static str,
        /// What it can be.
        expected: String,
    },
}

/// A type that an attribute struct may have as a field.
pub trait AttrField: Sized {
    /// How it is written.
    const KIND: AttrKind;
    /// Reads it.
    ///
    /// # Errors
    /// What was expected instead.
    fn from_value(value: AttrValue) -> Result<Self, String>;
    /// The value to write; `None` writes nothing.
    fn to_value(&self) -> Option<AttrValue>;
    /// What the field is when the text does not have it; `None`: it must.
    fn absent() -> Option<Self> {
        None
    }
    /// Calls `f` on every computation named.
    fn for_each_computation(&self, _f: &mut dyn FnMut(CompId)) {}
    /// Replaces every computation named.
    fn map_computations(&mut self, _f: &mut dyn FnMut(CompId) -> CompId) {}
}

/// A struct of attributes, made by `attributes!`.
pub trait OpAttrs: Sized {
    /// The fields, in the order they are written.
    const SPECS: &'static [AttrSpec];
    /// Makes the struct of the values read.
    ///
    /// # Errors
    /// If a required field is absent or a value is not one it can have.
    fn take(values: &mut AttrValues) -> Result<Self, AttrError>;
    /// Calls `f` on every field that is written.
    fn for_each(&self, f: &mut dyn FnMut(&'static str, AttrValue));
    /// Calls `f` on every computation called.
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId));
    /// Replaces every computation called.
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId);
}

macro_rules! plain_field {
    ($type:ty, $kind:ident) => {
        impl AttrField for $type {
            const KIND: AttrKind = AttrKind::$kind;
            fn from_value(value: AttrValue) -> Result<Self, String> {
                match value {
                    AttrValue::$kind(value) => Ok(value),
                    _ => Err(format!("of kind {:?}", AttrKind::$kind)),
                }
            }
            fn to_value(&self) -> Option<AttrValue> {
                Some(AttrValue::$kind(self.clone()))
            }
        }
    };
}

plain_field!(i64, Int);
plain_field!(bool, Bool);
plain_field!(Real, Float);
plain_field!(SmolStr, Str);
plain_field!(Dims, Dims);
plain_field!(SmallVec<[SliceDim; 4]>, Slices);
plain_field!(SmallVec<[PadDim; 4]>, Padding);
plain_field!(SmallVec<[WindowDim; 2]>, Window);
plain_field!(ConvDims, ConvDims);
plain_field!(Verbatim, Verbatim);

impl AttrField for CompId {
    const KIND: AttrKind = AttrKind::Computation;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        match value {
            AttrValue::Computation(id) => Ok(id),
            _ => Err("a computation".into()),
        }
    }
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::Computation(*self))
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        f(*self);
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        *self = f(*self);
    }
}

impl AttrField for SmallVec<[CompId; 2]> {
    const KIND: AttrKind = AttrKind::Computations;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        match value {
            AttrValue::Computations(ids) => Ok(ids),
            _ => Err("a list of computations".into()),
        }
    }
    fn to_value(&self) -> Option<AttrValue> {
        (!self.is_empty()).then(|| AttrValue::Computations(self.clone()))
    }
    fn absent() -> Option<Self> {
        Some(Self::new())
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        self.iter().copied().for_each(f);
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        self.iter_mut().for_each(|id| *id = f(*id));
    }
}

impl<T: AttrField> AttrField for Option<T> {
    const KIND: AttrKind = T::KIND;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        T::from_value(value).map(Some)
    }
    fn to_value(&self) -> Option<AttrValue> {
        self.as_ref().and_then(T::to_value)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        if let Some(inner) = self {
            inner.for_each_computation(f);
        }
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        if let Some(inner) = self {
            inner.map_computations(f);
        }
    }
}

/// Declares structs of attributes: `field: Type = "name in text" [or default],`.
macro_rules! attributes {
    ($($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $text:literal $(or $default:expr)?,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $crate::ops::attr::OpAttrs for $name {
            const SPECS: &'static [$crate::ops::attr::AttrSpec] = &[
                $($crate::ops::attr::AttrSpec {
                    name: $text,
                    kind: <$type as $crate::ops::attr::AttrField>::KIND,
                },)*
            ];

            fn take(
                values: &mut $crate::ops::attr::AttrValues,
            ) -> Result<Self, $crate::ops::attr::AttrError> {
                Ok(Self {
                    $($field: values.take($text, $crate::ops::attr::default_of!($($default)?))?,)*
                })
            }

            fn for_each(&self, f: &mut dyn FnMut(&'static str, $crate::ops::attr::AttrValue)) {
                use $crate::ops::attr::AttrField as _;
                $(
                    let default: Option<$type> = $crate::ops::attr::default_of!($($default)?);
                    if default.as_ref() != Some(&self.$field)
                        && let Some(value) = self.$field.to_value()
                    {
                        f($text, value);
                    }
                )*
            }

            fn for_each_computation(&self, f: &mut dyn FnMut($crate::entity::CompId)) {
                use $crate::ops::attr::AttrField as _;
                $(self.$field.for_each_computation(f);)*
            }

            fn map_computations(
                &mut self,
                f: &mut dyn FnMut($crate::entity::CompId) -> $crate::entity::CompId,
            ) {
                use $crate::ops::attr::AttrField as _;
                $(self.$field.map_computations(f);)*
            }
        }
    )*};
}

macro_rules! default_of {
    () => {
        None
    };
    ($default:expr) => {
        Some($default)
    };
}

/// Declares closed sets of words.
macro_rules! words {
    ($($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// The word in text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl $crate::ops::attr::AttrField for $name {
            const KIND: $crate::ops::attr::AttrKind = $crate::ops::attr::AttrKind::Word;
            fn from_value(value: $crate::ops::attr::AttrValue) -> Result<Self, String> {
                const EXPECTED: &str = concat!("one of", $(" `", $text, "`"),*);
                match value {
                    $crate::ops::attr::AttrValue::Word(word) => match word.as_str() {
                        $($text => Ok(Self::$variant),)*
                        _ => Err(EXPECTED.into()),
                    },
                    _ => Err(EXPECTED.into()),
                }
            }
            fn to_value(&self) -> Option<$crate::ops::attr::AttrValue> {
                Some($crate::ops::attr::AttrValue::Word(smol_str::SmolStr::new_static(self.name())))
            }
        }
    )*};
}

pub(crate) use {attributes, default_of, words};
