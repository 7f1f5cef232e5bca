//! Integer functions use two's complement and wrap; where mathematics has no result (division
//! by zero, too long shifts), they return XLA's result.

use tilewright_ir::Native;

use super::function::{Binary, Unary};
use super::kernel::{Kernel, map1, map2};

/// An integer type with XLA's arithmetic.
pub(crate) trait Int: Native + Ord {
    const ZERO: Self;
    const ONE: Self;
    const LEAST: Self;
    const GREATEST: Self;
    const ALL_BITS: Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    /// Truncates; x/0 has all bits set, the least number by -1 is itself.
    fn divide(self, other: Self) -> Self;
    /// The remainder with the sign of the dividend; x%0 is x.
    fn remainder(self, other: Self) -> Self;
    /// The upper half of the double-width product.
    fn mulhi(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn negate(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn count_ones(self) -> Self;
    fn leading_zeros(self) -> Self;
    /// Shifts by the type's width or more (or by negative counts) leave 0.
    fn shift_left(self, count: Self) -> Self;
    /// Shifts by the type's width or more leave 0.
    fn shift_right_logical(self, count: Self) -> Self;
    /// Shifts by the type's width or more leave copies of the sign.
    fn shift_right_arithmetic(self, count: Self) -> Self;
}

macro_rules! common {
    ($unsigned:ident, $wide:ident) => {
        const ZERO: Self = 0;
        const ONE: Self = 1;
        const LEAST: Self = Self::MIN;
        const GREATEST: Self = Self::MAX;
        const ALL_BITS: Self = !0;
        fn add(self, other: Self) -> Self {
            self.wrapping_add(other)
        }
        fn subtract(self, other: Self) -> Self {
            self.wrapping_sub(other)
        }
        fn multiply(self, other: Self) -> Self {
            self.wrapping_mul(other)
        }
        fn divide(self, other: Self) -> Self {
            // All bits set: -1 or the greatest unsigned number.
            if other == 0 { !0 } else { self.wrapping_div(other) }
        }
        fn remainder(self, other: Self) -> Self {
            if other == 0 { self } else { self.wrapping_rem(other) }
        }
        fn mulhi(self, other: Self) -> Self {
            (($wide::from(self) * $wide::from(other)) >> Self::BITS) as Self
        }
        fn negate(self) -> Self {
            self.wrapping_neg()
        }
        fn not(self) -> Self {
            !self
        }
        fn and(self, other: Self) -> Self {
            self & other
        }
        fn or(self, other: Self) -> Self {
            self | other
        }
        fn xor(self, other: Self) -> Self {
            self ^ other
        }
        fn count_ones(self) -> Self {
            Self::count_ones(self) as Self
        }
        fn leading_zeros(self) -> Self {
            Self::leading_zeros(self) as Self
        }
        fn shift_left(self, count: Self) -> Self {
            shift_count(count as $unsigned, Self::BITS).map_or(0, |count| self << count)
        }
        fn shift_right_logical(self, count: Self) -> Self {
            let bits = self as $unsigned;
            shift_count(count as $unsigned, Self::BITS).map_or(0, |count| (bits >> count) as Self)
        }
    };
}

/// Returns the count, if it is less than the width; a negative one, read without sign, is more.
fn shift_count<T: TryInto<u32>>(count: T, bits: u32) -> Option<u32> {
    count.try_into().ok().filter(|&count| count < bits)
}

macro_rules! signed {
    ($($type:ident $unsigned:ident $wide:ident;)*) => {$(
        impl Int for $type {
            common!($unsigned, $wide);
            /// With a negative exponent the result is 0 for all bases but 1 and -1.
            fn power(self, exponent: Self) -> Self {
                match self {
                    1 => 1,
                    -1 => if exponent & 1 == 0 { 1 } else { -1 },
                    _ if exponent < 0 => 0,
                    _ => wrapping_power(self, exponent as u64),
                }
            }
            fn abs(self) -> Self {
                self.wrapping_abs()
            }
            fn sign(self) -> Self {
                self.signum()
            }
            fn shift_right_arithmetic(self, count: Self) -> Self {
                let count = shift_count(count as $unsigned, Self::BITS);
                self >> count.unwrap_or(Self::BITS - 1)
            }
        }
    )*};
}

macro_rules! unsigned {
    ($($type:ident $signed:ident $wide:ident;)*) => {$(
        impl Int for $type {
            common!($type, $wide);
            fn power(self, exponent: Self) -> Self {
                wrapping_power(self, u64::from(exponent))
            }
            fn abs(self) -> Self {
                self
            }
            fn sign(self) -> Self {
                Self::from(self != 0)
            }
            fn shift_right_arithmetic(self, count: Self) -> Self {
                let count = shift_count(count, Self::BITS);
                ((self as $signed) >> count.unwrap_or(Self::BITS - 1)) as Self
            }
        }
    )*};
}

signed! { i8 u8 i16; i16 u16 i32; i32 u32 i64; i64 u64 i128; }
unsigned! { u8 i8 u16; u16 i16 u32; u32 i32 u64; u64 i64 u128; }

fn wrapping_power<T: Int>(mut base: T, mut exponent: u64) -> T {
    let mut power = T::ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.multiply(base);
        }
        base = base.multiply(base);
        exponent >>= 1;
    }
    power
}

pub(super) fn unary<T: Int>(f: Unary) -> Option<Kernel> {
    Some(match f {
        Unary::Abs => map1(T::abs),
        Unary::Clz => map1(T::leading_zeros),
        Unary::Negate => map1(T::negate),
        Unary::Not => map1(T::not),
        Unary::PopulationCount => map1(T::count_ones),
        Unary::Sign => map1(T::sign),
        Unary::Acos
        | Unary::Acosh
        | Unary::Asin
        | Unary::Asinh
        | Unary::Atanh
        | Unary::Cbrt
        | Unary::Ceil
        | Unary::Cos
        | Unary::Cosh
        | Unary::Erf
        | Unary::Exp
        | Unary::Expm1
        | Unary::Floor
        | Unary::Log
        | Unary::Log1p
        | Unary::Logistic
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven
        | Unary::Rsqrt
        | Unary::Sin
        | Unary::Sinh
        | Unary::Sqrt
        | Unary::Tan
        | Unary::Tanh => return None,
    })
}

pub(super) fn binary<T: Int>(f: Binary) -> Option<Kernel> {
    Some(match f {
        Binary::Add => map2(T::add),
        Binary::And => map2(T::and),
        Binary::Divide => map2(T::divide),
        Binary::Maximum => map2(T::max),
        Binary::Minimum => map2(T::min),
        Binary::Mulhi => map2(T::mulhi),
        Binary::Multiply => map2(T::multiply),
        Binary::Or => map2(T::or),
        Binary::Power => map2(T::power),
        Binary::Remainder => map2(T::remainder),
        Binary::ShiftLeft => map2(T::shift_left),
        Binary::ShiftRightArithmetic => map2(T::shift_right_arithmetic),
        Binary::ShiftRightLogical => map2(T::shift_right_logical),
        Binary::Subtract => map2(T::subtract),
        Binary::Xor => map2(T::xor),
        Binary::Atan2 => return None,
    })
}

/// `pred`: sums and maxima are disjunctions, products and minima conjunctions.
pub(super) fn pred_binary(f: Binary) -> Option<Kernel> {
    Some(match f {
        Binary::Add | Binary::Maximum | Binary::Or => map2(|a: bool, b: bool| a | b),
        Binary::And | Binary::Minimum | Binary::Multiply => map2(|a: bool, b: bool| a & b),
        Binary::Xor => map2(|a: bool, b: bool| a ^ b),
        Binary::Atan2
        | Binary::Divide
        | Binary::Mulhi
        | Binary::Power
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Subtract => return None,
    })
}

/// `pred` has one function of one operand.
pub(super) fn pred_unary(f: Unary) -> Option<Kernel> {
    (f == Unary::Not).then(|| map1(|a: bool| !a))
}
