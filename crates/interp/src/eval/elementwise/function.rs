//! Selects the function of an elementwise op from the table of ops.

use tilewright_ir::Op;
use tilewright_ir::ops::elementwise::{CompareOrder, Direction};

/// The function of an elementwise op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    Unary(Unary),
    Binary(Binary),
    Convert,
    Real,
    Imag,
    Complex,
    IsFinite,
    Compare(Direction, Option<CompareOrder>),
    Select,
    Clamp,
    ReducePrecision { exponent: i64, mantissa: i64 },
    StochasticConvert,
}

/// Functions of one operand that keep its type (`abs` of complex: its part's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atanh,
    Cbrt,
    Ceil,
    Clz,
    Cos,
    Cosh,
    Erf,
    Exp,
    Expm1,
    Floor,
    Log,
    Log1p,
    Logistic,
    Negate,
    Not,
    PopulationCount,
    RoundNearestAfz,
    RoundNearestEven,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

/// Functions of two operands of one type that keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    And,
    Atan2,
    Divide,
    Maximum,
    Minimum,
    Mulhi,
    Multiply,
    Or,
    Power,
    Remainder,
    ShiftLeft,
    ShiftRightArithmetic,
    ShiftRightLogical,
    Subtract,
    Xor,
}

/// Builds the function of an op from its row's rule.
macro_rules! function {
    (elementwise unary $variant:ident $attrs:ident) => {
        Some(Function::Unary(Unary::$variant))
    };
    (elementwise abs $variant:ident $attrs:ident) => {
        Some(Function::Unary(Unary::$variant))
    };
    (elementwise approximate $variant:ident $attrs:ident) => {
        Some(Function::Unary(Unary::$variant))
    };
    (elementwise binary $variant:ident $attrs:ident) => {
        Some(Function::Binary(Binary::$variant))
    };
    (elementwise compare $variant:ident $attrs:ident) => {
        Some(Function::Compare($attrs.direction, $attrs.order))
    };
    (elementwise reduce_precision $variant:ident $attrs:ident) => {
        Some(Function::ReducePrecision {
            exponent: $attrs.exponent_bits,
            mantissa: $attrs.mantissa_bits,
        })
    };
    (elementwise $rule:ident $variant:ident $attrs:ident) => {
        Some(Function::$variant)
    };
    ($family:ident $rule:ident $variant:ident $attrs:ident) => {
        None
    };
}

macro_rules! bind {
    ($name:ident $payload:ident) => {
        $name
    };
}

macro_rules! functions {
    ($($variant:ident $(($payload:ident))? $text:literal $arity:ident($count:literal)
        $family:ident::$rule:ident [$($flag:ident)*];)*) => {
        impl Function {
            /// The function of an op, if it is an elementwise one.
            #[allow(unused_variables, reason = "most rows do not look at the attributes")]
            pub(crate) fn of(op: &Op) -> Option<Self> {
                match op {
                    $(Op::$variant $((bind!(attrs $payload)))? => function!($family $rule $variant attrs),)*
                }
            }
        }
    };
}

tilewright_ir::for_each_op!(functions);
