//! The ops of HLO: the table of ops ([`table`]), attributes and shape rules.

pub mod attr;
pub mod collective;
pub mod contract;
pub mod control;
pub mod dims;
pub mod elementwise;
pub mod family;
pub mod indexing;
pub mod linalg;
pub mod random;
pub mod reduce;
pub mod shaping;
pub mod table;
pub mod window;

use std::fmt;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::entity::CompId;
use crate::infer::{ShapeError, ShapeQuery};
use crate::types::element::NumberClass;
use crate::types::literal::Literal;
use crate::types::shape::Shape;
use attr::{AttrError, AttrSpec, AttrValue, AttrValues, OpAttrs};
use collective::{
    AllGatherAttrs, AllReduceAttrs, AllToAllAttrs, CollectiveBroadcastAttrs, CollectiveReduceAttrs,
    GroupAttrs, PermuteAttrs, ReduceScatterAttrs,
};
use contract::{ConvolutionAttrs, DotAttrs, RaggedDotAttrs};
use control::{
    AsyncAttrs, CallAttrs, ConditionalAttrs, CopyStartAttrs, CustomCallAttrs, DomainAttrs,
    FusionAttrs, GetTupleElementAttrs, InfeedAttrs, MapAttrs, OutfeedAttrs, TransferAttrs,
    WhileAttrs,
};
use elementwise::{AccuracyAttrs, CompareAttrs, ReducePrecisionAttrs};
use family::Family;
use indexing::{DynamicSliceAttrs, GatherAttrs, ScatterAttrs};
use linalg::{BatchNormAttrs, CholeskyAttrs, FftAttrs, TriangularSolveAttrs};
use random::{RngAttrs, RngBitGeneratorAttrs, RngStateAttrs};
use reduce::{ReduceAttrs, ScanAttrs, SortAttrs, TopKAttrs};
use shaping::{
    BroadcastAttrs, ConcatenateAttrs, GetDimensionSizeAttrs, IotaAttrs, PadAttrs, ParameterAttrs,
    ReshapeAttrs, ReverseAttrs, SetDimensionSizeAttrs, SliceAttrs, TransposeAttrs,
};
use window::{ReduceWindowAttrs, SelectAndScatterAttrs};

/// The number of operands of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The least number.
    pub min: usize,
    /// The greatest number; `None` for any number.
    pub max: Option<usize>,
}

impl Arity {
    /// Checks whether this number of operands is valid.
    pub fn admits(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(1) if self.min == 1 => f.write_str("1 operand"),
            Some(max) if max == self.min => write!(f, "{max} operands"),
            Some(max) => write!(f, "{} to {max} operands", self.min),
            None => {
                write!(f, "at least {} operand{}", self.min, if self.min == 1 { "" } else { "s" })
            }
        }
    }
}

const fn exactly(count: usize) -> Arity {
    Arity { min: count, max: Some(count) }
}

const fn at_least(count: usize) -> Arity {
    Arity { min: count, max: None }
}

/// Each result element depends on the operands' elements at the same index.
const ELEMENTWISE: u16 = 1;
/// `f(a, b) = f(b, a)`.
const COMMUTATIVE: u16 = 2;
/// `f(f(a, b), c) = f(a, f(b, c))`, up to rounding.
const ASSOCIATIVE: u16 = 4;
/// It must not be removed, duplicated or merged with another.
const SIDE_EFFECT: u16 = 8;
/// It accepts `pred` elements. A row without this and any of the following kinds accepts
/// elements of any kind.
const BOOL: u16 = 16;
/// It accepts signed integers.
const SIGNED: u16 = 32;
/// It accepts unsigned integers.
const UNSIGNED: u16 = 64;
/// It accepts integers.
const INTEGER: u16 = SIGNED | UNSIGNED;
/// It accepts floats.
const FLOAT: u16 = 128;
/// It accepts complex numbers.
const COMPLEX: u16 = 256;
/// It takes many steps per element on a vector machine.
const TRANSCENDENTAL: u16 = 512;
/// It communicates with other devices or reads the device's number.
const DEVICES: u16 = 1024;
/// If its shape is not in the text, it has the layout of an operand.
const LAYOUT: u16 = 2048;
/// Its result is an operand, a part of one, or a tuple of all operands.
const HANDS_ON: u16 = 4096;

macro_rules! bind {
    ($name:ident $payload:ident) => {
        $name
    };
}

macro_rules! define_ops {
    ($($variant:ident $(($payload:ident))? $text:literal $arity:ident($count:literal)
        $family:ident::$rule:ident [$($flag:ident)*];)*) => {
        /// An op without its attributes: HLO's opcode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Opcode {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl Opcode {
            /// Every opcode, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name in HLO text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Returns the number of operands.
            pub const fn arity(self) -> Arity {
                match self {
                    $(Self::$variant => $arity($count),)*
                }
            }

            /// Returns the family it belongs to.
            pub const fn family(self) -> Family {
                match self {
                    $(Self::$variant => family::family!($family),)*
                }
            }

            /// Checks whether the op has attributes.
            pub const fn has_attributes(self) -> bool {
                match self {
                    $(Self::$variant => {
                        let payload: &[&str] = &[$(stringify!($payload))?];
                        !payload.is_empty()
                    })*
                }
            }

            const fn flags(self) -> u16 {
                match self {
                    $(Self::$variant => 0 $(| $flag)*,)*
                }
            }
        }

        /// An op with its attributes.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = concat!("`", $text, "`")] $variant $((Box<$payload>))?,)*
        }

        impl Op {
            /// Returns the op without its attributes.
            pub const fn opcode(&self) -> Opcode {
                match self {
                    $(Self::$variant $((bind!(_a $payload)))? => Opcode::$variant,)*
                }
            }

            /// Calls `f` on the name and value of every attribute that is written.
            pub fn for_each_attr(&self, f: &mut dyn FnMut(&'static str, AttrValue)) {
                match self {
                    $(Self::$variant $((bind!(attrs $payload)))? => {
                        $(OpAttrs::for_each(&**bind!(attrs $payload), f);)?
                        let _ = &f;
                    })*
                }
            }

            /// Calls `f` on every computation the op calls, in order.
            pub fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
                match self {
                    $(Self::$variant $((bind!(attrs $payload)))? => {
                        $(OpAttrs::for_each_computation(&**bind!(attrs $payload), f);)?
                        let _ = &f;
                    })*
                }
            }

            /// Replaces every computation the op calls.
            pub fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
                match self {
                    $(Self::$variant $((bind!(attrs $payload)))? => {
                        $(OpAttrs::map_computations(&mut **bind!(attrs $payload), f);)?
                        let _ = &f;
                    })*
                }
            }

            /// Creates the op of an opcode from its parsed attributes. Parameters and constants,
            /// whose number or value is between the parentheses, are created directly.
            ///
            /// # Errors
            /// Returns an error if an attribute is missing or has an invalid value.
            pub fn from_attrs(opcode: Opcode, values: &mut AttrValues) -> Result<Self, AttrError> {
                let _ = &values;
                Ok(match opcode {
                    $(Opcode::$variant => {
                        Self::$variant $((Box::new(<$payload as OpAttrs>::take(values)?)))?
                    })*
                })
            }

            /// Returns the result shape by the rule in the op's row.
            pub(crate) fn shape_rule(&self, query: &ShapeQuery<'_>) -> Result<Shape, ShapeError> {
                match self {
                    $(Self::$variant $((bind!(attrs $payload)))? => {
                        $family::$rule(query $(, bind!(attrs $payload))?)
                    })*
                }
            }
        }

        impl Opcode {
            /// Returns the attributes of the op in text, without those common to all ops.
            pub const fn attrs(self) -> &'static [AttrSpec] {
                match self {
                    $(Self::$variant => {
                        const SPECS: &[&[AttrSpec]] = &[$(<$payload as OpAttrs>::SPECS)?];
                        if SPECS.is_empty() { &[] } else { SPECS[0] }
                    })*
                }
            }
        }
    };
}

crate::for_each_op!(define_ops);

impl Opcode {
    /// The opcode with this name in HLO text.
    pub fn from_name(name: &str) -> Option<Self> {
        static BY_NAME: OnceLock<FxHashMap<&'static str, Opcode>> = OnceLock::new();
        BY_NAME
            .get_or_init(|| Self::ALL.iter().map(|&opcode| (opcode.name(), opcode)).collect())
            .get(name)
            .copied()
    }

    /// Checks whether each result element depends only on the operands' elements at the same
    /// index.
    pub const fn is_elementwise(self) -> bool {
        self.flags() & ELEMENTWISE != 0
    }

    /// Checks whether it takes and returns whole values: calls, loops, branches, tuples,
    /// tokens, and transfers in and out of a module. `map` is the only op of this family that
    /// applies a computation to elements.
    pub const fn takes_values_whole(self) -> bool {
        matches!(self.family(), Family::Control) && !matches!(self, Self::Map)
    }

    /// Checks whether its result is an operand, a part of one, or a tuple of all operands, so
    /// that it names existing values only.
    pub const fn hands_on_its_operands(self) -> bool {
        self.flags() & HANDS_ON != 0
    }

    /// Checks whether it communicates with other devices or reads the device's number.
    pub const fn tells_devices_apart(self) -> bool {
        self.flags() & DEVICES != 0
    }

    /// Checks whether a result without a shape in the text has the layout of an operand, see
    /// [`crate::infer_layout`].
    pub const fn keeps_layout(self) -> bool {
        self.flags() & (LAYOUT | ELEMENTWISE) != 0
    }

    /// Checks whether it takes many steps per element on a vector machine.
    pub const fn is_transcendental(self) -> bool {
        self.flags() & TRANSCENDENTAL != 0
    }

    /// Checks whether its two operands can be swapped.
    pub const fn is_commutative(self) -> bool {
        self.flags() & COMMUTATIVE != 0
    }

    /// Checks whether it can be regrouped: exactly for integers and selections, up to rounding
    /// for sums and products of floats.
    pub const fn is_associative(self) -> bool {
        self.flags() & ASSOCIATIVE != 0
    }

    /// Checks whether it accepts elements of this kind.
    pub const fn takes(self, class: NumberClass) -> bool {
        let kinds = self.flags() & (BOOL | INTEGER | FLOAT | COMPLEX);
        let kind = match class {
            NumberClass::Bool => BOOL,
            NumberClass::Signed => SIGNED,
            NumberClass::Unsigned => UNSIGNED,
            NumberClass::Float => FLOAT,
            NumberClass::Complex => COMPLEX,
        };
        kinds == 0 || kinds & kind != 0
    }

    /// Checks whether the op itself has side effects. An op that calls computations can have
    /// side effects through them, see [`crate::Module::has_side_effect`].
    pub const fn has_side_effect(self) -> bool {
        self.flags() & SIDE_EFFECT != 0
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The only attribute of a constant is its value, which is not written as an attribute.
impl OpAttrs for Literal {
    const SPECS: &'static [AttrSpec] = &[];
    fn take(_values: &mut AttrValues) -> Result<Self, AttrError> {
        Err(AttrError::Missing("value"))
    }
    fn for_each(&self, _f: &mut dyn FnMut(&'static str, AttrValue)) {}
    fn for_each_computation(&self, _f: &mut dyn FnMut(CompId)) {}
    fn map_computations(&mut self, _f: &mut dyn FnMut(CompId) -> CompId) {}
}
