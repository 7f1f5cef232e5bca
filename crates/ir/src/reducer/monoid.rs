//! The monoids of reduces, and their identities.

use half::{bf16, f16};
use num_complex::Complex;

use super::Reducer;
use crate::entity::CompId;
use crate::module::Module;
use crate::ops::attr::AttrValues;
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::literal::{ArrayLiteral, Data, Literal};

/// An associative and commutative op with an identity, on scalars of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Monoid {
    /// The op: add, multiply, maximum, minimum, and, or, xor.
    pub opcode: Opcode,
    /// The type of its operands.
    pub element_type: ElementType,
}

impl Monoid {
    /// The monoid of a computation on scalars, if it is one: see [`Reducer::of`].
    pub fn of(module: &Module, computation: CompId) -> Option<Self> {
        Reducer::of(module, computation)?.monoid()
    }

    /// Returns the op, applied elementwise.
    pub fn op(self) -> Option<Op> {
        Op::from_attrs(self.opcode, &mut AttrValues::default()).ok()
    }

    /// Checks whether regrouping its operands never changes the result, which holds for
    /// integers and truth values. The maximum of floats is `0.0` among zeros of both signs, but
    /// vectorised code of XLA:CPU returns the one that comes first.
    pub fn regroups_exactly(self) -> bool {
        !(self.element_type.is_float() || self.element_type.is_complex())
    }

    /// Checks whether it rounds: true for floats, except for maximum and minimum.
    pub fn rounds(self) -> bool {
        !self.regroups_exactly() && !matches!(self.opcode, Opcode::Maximum | Opcode::Minimum)
    }

    /// Checks whether combining a value with itself returns the value.
    pub fn is_idempotent(self) -> bool {
        matches!(self.opcode, Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or)
    }

    /// Checks whether combining with `value` changes nothing. `0.0` counts for sums although it
    /// turns `-0.0` into `0.0`: the init of a reduce does that once, and a second time changes
    /// nothing more.
    pub fn is_neutral(self, value: &Literal) -> bool {
        let Some(array) = value.as_array() else { return false };
        if array.len() != 1 {
            return false;
        }
        let is_zero = match (self.opcode, array.data()) {
            (Opcode::Add, Data::C64(v)) => v[0] == Complex::new(0.0, 0.0),
            (Opcode::Add, Data::C128(v)) => v[0] == Complex::new(0.0, 0.0),
            (Opcode::Add, _) => array.scalar_as_f64() == Some(0.0),
            _ => false,
        };
        is_zero || self.identity().as_ref() == Some(value)
    }

    /// Returns the identity as a scalar. For float sums that is `-0.0`. `None` for types
    /// without arithmetic here.
    pub fn identity(self) -> Option<Literal> {
        let data = match self.opcode {
            Opcode::Add | Opcode::Or | Opcode::Xor => self.negative_zero(),
            Opcode::Multiply => one(self.element_type),
            Opcode::And => ones(self.element_type),
            Opcode::Maximum => lowest(self.element_type),
            Opcode::Minimum => highest(self.element_type),
            _ => None,
        }?;
        ArrayLiteral::new(self.element_type, [], data).ok().map(Literal::Array)
    }

    fn negative_zero(self) -> Option<Data> {
        Some(match self.element_type {
            ElementType::F16 => Data::F16(vec![f16::NEG_ZERO]),
            ElementType::BF16 => Data::BF16(vec![bf16::NEG_ZERO]),
            ElementType::F32 => Data::F32(vec![-0.0]),
            ElementType::F64 => Data::F64(vec![-0.0]),
            ElementType::C64 => Data::C64(vec![Complex::new(-0.0, -0.0)]),
            ElementType::C128 => Data::C128(vec![Complex::new(-0.0, -0.0)]),
            other if other.is_float() => return None,
            other => Data::zeros(other, 1),
        })
    }
}

macro_rules! per_type {
    ($(#[$doc:meta])* $name:ident, $pred:expr, $int:ident, $float:ident) => {
        $(#[$doc])*
        fn $name(element_type: ElementType) -> Option<Data> {
            Some(match element_type {
                ElementType::Pred => Data::Pred(vec![$pred]),
                ElementType::S8 => Data::S8(vec![$int!(i8)]),
                ElementType::S16 => Data::S16(vec![$int!(i16)]),
                ElementType::S32 => Data::S32(vec![$int!(i32)]),
                ElementType::S64 => Data::S64(vec![$int!(i64)]),
                ElementType::U8 => Data::U8(vec![$int!(u8)]),
                ElementType::U16 => Data::U16(vec![$int!(u16)]),
                ElementType::U32 => Data::U32(vec![$int!(u32)]),
                ElementType::U64 => Data::U64(vec![$int!(u64)]),
                ElementType::F16 => Data::F16(vec![f16::from_f32($float!())]),
                ElementType::BF16 => Data::BF16(vec![bf16::from_f32($float!())]),
                ElementType::F32 => Data::F32(vec![$float!()]),
                ElementType::F64 => Data::F64(vec![$float!().into()]),
                _ => return None,
            })
        }
    };
}

macro_rules! int_min {
    ($type:ty) => {
        <$type>::MIN
    };
}
macro_rules! int_max {
    ($type:ty) => {
        <$type>::MAX
    };
}
macro_rules! int_one {
    ($type:ty) => {
        1 as $type
    };
}
macro_rules! minus_infinity {
    () => {
        f32::NEG_INFINITY
    };
}
macro_rules! infinity {
    () => {
        f32::INFINITY
    };
}
macro_rules! float_one {
    () => {
        1.0f32
    };
}

per_type!(
    /// The least value.
    lowest, false, int_min, minus_infinity
);
per_type!(
    /// The greatest value.
    highest, true, int_max, infinity
);
per_type!(
    /// The value 1 of real types.
    real_one, true, int_one, float_one
);

fn one(element_type: ElementType) -> Option<Data> {
    match element_type {
        ElementType::C64 => Some(Data::C64(vec![Complex::new(1.0, 0.0)])),
        ElementType::C128 => Some(Data::C128(vec![Complex::new(1.0, 0.0)])),
        other => real_one(other),
    }
}

/// Returns all bits set.
fn ones(element_type: ElementType) -> Option<Data> {
    Some(match element_type {
        ElementType::S8 => Data::S8(vec![-1]),
        ElementType::S16 => Data::S16(vec![-1]),
        ElementType::S32 => Data::S32(vec![-1]),
        ElementType::S64 => Data::S64(vec![-1]),
        other if other.is_float() => return None,
        other => return highest(other),
    })
}
