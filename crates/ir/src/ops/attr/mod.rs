//! The structure of op attributes.
//!
//! An attribute struct lists its fields once, with their names in HLO. Parsing, printing,
//! default values and called computations are derived from that list. The text crate only knows
//! the *kinds* below and no single op, so a new op with attributes of known kinds needs no
//! change there.

mod fields;

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::contract::SparsityConfig;
use super::control::{DomainMetadata, OutputAlias};
use super::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use super::elementwise::ResultAccuracy;
use crate::entity::CompId;
use crate::types::devices::ReplicaGroups;
use crate::types::literal::Literal;
use crate::types::shape::{Dims, Shape};

/// The syntax of an attribute's value.
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
    /// One word of a fixed set, such as `LT` or `kLoop`.
    Word,
    /// `{high,default}`
    Words,
    /// `{0,2}`
    Dims,
    /// `{{0,1},{2}}`
    DimsLists,
    /// `{{0,1},{1,0}}`
    Pairs,
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
    /// `{lhs={sparsity=2x4 dimension=1 stride=1}}`
    Sparsity,
    /// `{mode=highest}`
    Accuracy,
    /// `f32[2]{0}`
    Shape,
    /// `{f32[2]{0}, s32[]}`
    Shapes,
    /// `f32[2]{0} {1,2}`
    Literal,
    /// `{{0}: (1, {})}`
    Aliasing,
    /// `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['x'=2] {'x'}`
    ReplicaGroups,
    /// `{kind="sharding", entry={replicated}, exit={maximal device=0}}`
    Domain,
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
    /// See [`AttrKind::Words`].
    Words(Vec<SmolStr>),
    /// See [`AttrKind::Dims`].
    Dims(Dims),
    /// See [`AttrKind::DimsLists`].
    DimsLists(Vec<Dims>),
    /// See [`AttrKind::Pairs`].
    Pairs(Vec<(i64, i64)>),
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
    /// See [`AttrKind::Sparsity`].
    Sparsity(SparsityConfig),
    /// See [`AttrKind::Accuracy`].
    Accuracy(ResultAccuracy),
    /// See [`AttrKind::Shape`].
    Shape(Shape),
    /// See [`AttrKind::Shapes`].
    Shapes(Vec<Shape>),
    /// See [`AttrKind::Literal`].
    Literal(Box<Literal>),
    /// See [`AttrKind::Aliasing`].
    Aliasing(Vec<OutputAlias>),
    /// See [`AttrKind::ReplicaGroups`].
    ReplicaGroups(Box<ReplicaGroups>),
    /// See [`AttrKind::Domain`].
    Domain(Box<DomainMetadata>),
}

/// A single-precision number that is compared and hashed by its bits.
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

/// A double-precision number that is compared and hashed by its bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real64(pub f64);

impl PartialEq for Real64 {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Real64 {}

impl std::hash::Hash for Real64 {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The text of an attribute that is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verbatim(pub Box<str>);

/// The name and kind of one attribute of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrSpec {
    /// The name in text.
    pub name: &'static str,
    /// The syntax of its value.
    pub kind: AttrKind,
}

/// The parsed attributes of an op, from which its struct takes its fields.
#[derive(Debug, Default)]
pub struct AttrValues {
    values: SmallVec<[(&'static str, AttrValue); 4]>,
}

impl AttrValues {
    /// Adds a value; returns `false` if the name already exists.
    pub fn insert(&mut self, name: &'static str, value: AttrValue) -> bool {
        let fresh = self.values.iter().all(|(n, _)| *n != name);
        if fresh {
            self.values.push((name, value));
        }
        fresh
    }

    /// Removes and returns the value of one field.
    ///
    /// # Errors
    /// Returns an error if it is absent and has no default, or is not a valid `T`.
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

/// Why an op could not be created from its attributes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttrError {
    /// A required attribute is absent.
    #[error("attribute `{0}` is missing")]
    Missing(&'static str),
    /// A value is not valid for the attribute.
    #[error("attribute `{name}` must be {expected}")]
    Value {
        /// The attribute.
        name: &'static str,
        /// The valid values.
        expected: String,
    },
}

/// A type of fields in attribute structs.
pub trait AttrField: Sized {
    /// The syntax of the value.
    const KIND: AttrKind;
    /// Converts an attribute value to this type.
    ///
    /// # Errors
    /// A description of the expected value.
    fn from_value(value: AttrValue) -> Result<Self, String>;
    /// Returns the value to write; `None` if nothing is written.
    fn to_value(&self) -> Option<AttrValue>;
    /// The value of a field that is not in the text; `None` if it is required.
    fn absent() -> Option<Self> {
        None
    }
    /// Calls `f` on every computation in the value.
    fn for_each_computation(&self, _f: &mut dyn FnMut(CompId)) {}
    /// Replaces every computation in the value.
    fn map_computations(&mut self, _f: &mut dyn FnMut(CompId) -> CompId) {}
}

/// A fixed set of words, declared by `words!`.
pub trait Word: Copy {
    /// The description of the set in error messages.
    const EXPECTED: &'static str;
    /// The value of a word.
    fn from_name(word: &str) -> Option<Self>;
    /// Returns the word.
    fn name(self) -> &'static str;
}

/// A struct of attributes, declared by `attributes!`.
pub trait OpAttrs: Sized {
    /// The fields, in the order in which they are written.
    const SPECS: &'static [AttrSpec];
    /// Creates the struct from parsed values.
    ///
    /// # Errors
    /// Returns an error if a required field is absent or has an invalid value.
    fn take(values: &mut AttrValues) -> Result<Self, AttrError>;
    /// Calls `f` on every field that is written.
    fn for_each(&self, f: &mut dyn FnMut(&'static str, AttrValue));
    /// Calls `f` on every called computation.
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId));
    /// Replaces every called computation.
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId);
}

/// Declares structs of attributes: `field: Type = "name in text" or default,`. The default is
/// optional; it is not written in text unless the field is marked `or_absent`. A struct marked
/// `Name: Default` implements `Default`: fields without a default have that of their type.
/// fields: those without a default have that of their type.
macro_rules! attributes {
    ($($(#[$doc:meta])* pub struct $name:ident $(: $has_default:ident)? {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $text:literal $($or:ident $default:expr)?,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        $crate::ops::attr::default_impl! {
            $($has_default)? $name { $($field = ($($default)?),)* }
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
                    $($field: values.take($text, $crate::ops::attr::default_of!($($or $default)?))?,)*
                })
            }

            fn for_each(&self, f: &mut dyn FnMut(&'static str, $crate::ops::attr::AttrValue)) {
                use $crate::ops::attr::AttrField as _;
                $(
                    let unwritten: Option<$type> =
                        $crate::ops::attr::unwritten!($($or $default)?);
                    if unwritten.as_ref() != Some(&self.$field)
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

/// `Default` for a struct of attributes marked with it.
macro_rules! default_impl {
    (Default $name:ident { $($field:ident = ($($default:expr)?),)* }) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::ops::attr::value_or_default!($($default)?),)* }
            }
        }
    };
    ($name:ident { $($field:ident = ($($default:expr)?),)* }) => {};
}

macro_rules! value_or_default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! default_of {
    () => {
        None
    };
    ($or:ident $default:expr) => {
        Some($default)
    };
}

macro_rules! unwritten {
    () => {
        None
    };
    (or $default:expr) => {
        Some($default)
    };
    (or_absent $default:expr) => {
        None
    };
}

/// Declares fixed sets of words.
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
            /// Returns the word in text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl $crate::ops::attr::Word for $name {
            const EXPECTED: &'static str = concat!("one of", $(" `", $text, "`"),*);
            fn from_name(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
            fn name(self) -> &'static str {
                self.name()
            }
        }

        impl $crate::ops::attr::AttrField for $name {
            const KIND: $crate::ops::attr::AttrKind = $crate::ops::attr::AttrKind::Word;
            fn from_value(value: $crate::ops::attr::AttrValue) -> Result<Self, String> {
                let word = match value {
                    $crate::ops::attr::AttrValue::Word(word) => word,
                    _ => smol_str::SmolStr::default(),
                };
                let expected = <Self as $crate::ops::attr::Word>::EXPECTED;
                $crate::ops::attr::Word::from_name(&word).ok_or_else(|| expected.into())
            }
            fn to_value(&self) -> Option<$crate::ops::attr::AttrValue> {
                Some($crate::ops::attr::AttrValue::Word(smol_str::SmolStr::new_static(self.name())))
            }
        }
    )*};
}

pub(crate) use {attributes, default_impl, default_of, unwritten, value_or_default, words};
