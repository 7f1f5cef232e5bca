//! Functions of real floats.
//!
//! `f16` and `bf16` compute in `f32` and round; for sums, products, quotients and square roots
//! this equals a single rounding. Elementary functions are computed in `f64` and rounded once,
//! to any type; see [`super::float_math`].

use half::{bf16, f16};

use super::convert::{Convert, round_to};
use super::function::{Binary, Unary};
use super::kernel::{Kernel, map1, map2};

/// A float type that is stored.
pub(crate) trait Float: Convert {
    /// The type it computes in.
    type Wide: Real;
    fn wide(self) -> Self::Wide;
    /// Rounds to nearest, ties to even.
    fn narrow(wide: Self::Wide) -> Self;
    /// Changes the sign bit, of NaN too.
    fn negate(self) -> Self;
    /// Clears the sign bit, of NaN too.
    fn abs(self) -> Self;
    fn is_finite(self) -> bool;
}

/// A float type that computes.
pub(crate) trait Real: Float<Wide = Self> + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
    const MINUS_INFINITY: Self;
    /// Converts exactly.
    fn to_f64(self) -> f64;
    /// Rounds to nearest.
    fn from_f64(value: f64) -> Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    /// C's `fmod`: exact, of the sign of the dividend.
    fn remainder(self, other: Self) -> Self;
    fn is_nan(self) -> bool;
    fn is_negative(self) -> bool;
    fn with_sign(self, of: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    /// Ties away from zero.
    fn round(self) -> Self;
    fn round_ties_even(self) -> Self;
    /// Returns -1, 1, or the number itself if it is a zero or NaN.
    fn sign(self) -> Self {
        if self == Self::ZERO || self.is_nan() { self } else { Self::ONE.with_sign(self) }
    }
    /// NaN if either is; +0 is more than -0.
    fn maximum(self, other: Self) -> Self {
        let first = self > other || (self == other && other.is_negative()) || self.is_nan();
        if first { self } else { other }
    }
    /// NaN if either is; -0 is less than +0.
    fn minimum(self, other: Self) -> Self {
        let first = self < other || (self == other && self.is_negative()) || self.is_nan();
        if first { self } else { other }
    }
}

macro_rules! real {
    ($($type:ident),*) => {$(
        impl Float for $type {
            type Wide = Self;
            fn wide(self) -> Self {
                self
            }
            fn narrow(wide: Self) -> Self {
                wide
            }
            fn negate(self) -> Self {
                -self
            }
            fn abs(self) -> Self {
                Self::abs(self)
            }
            fn is_finite(self) -> bool {
                Self::is_finite(self)
            }
        }

        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = Self::INFINITY;
            const MINUS_INFINITY: Self = Self::NEG_INFINITY;
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
            fn add(self, other: Self) -> Self {
                self + other
            }
            fn subtract(self, other: Self) -> Self {
                self - other
            }
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            fn divide(self, other: Self) -> Self {
                self / other
            }
            fn remainder(self, other: Self) -> Self {
                self % other
            }
            fn is_nan(self) -> bool {
                Self::is_nan(self)
            }
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
            fn with_sign(self, of: Self) -> Self {
                self.copysign(of)
            }
            fn sqrt(self) -> Self {
                Self::sqrt(self)
            }
            fn floor(self) -> Self {
                Self::floor(self)
            }
            fn ceil(self) -> Self {
                Self::ceil(self)
            }
            fn round(self) -> Self {
                Self::round(self)
            }
            fn round_ties_even(self) -> Self {
                Self::round_ties_even(self)
            }
        }
    )*};
}

real!(f32, f64);

macro_rules! half {
    ($($type:ident $wide:path, $narrow:path;)*) => {$(
        impl Float for $type {
            type Wide = f32;
            fn wide(self) -> f32 {
                $wide(self)
            }
            fn narrow(wide: f32) -> Self {
                $narrow(wide)
            }
            fn negate(self) -> Self {
                -self
            }
            fn abs(self) -> Self {
                Self::from_bits(self.to_bits() & 0x7fff)
            }
            fn is_finite(self) -> bool {
                Self::is_finite(self)
            }
        }
    )*};
}

half! {
    f16 f16::to_f32, f16::from_f32;
    bf16 widened, shortened;
}

/// Exactly; NaN becomes a quiet one. Without a branch, so that the machine can
/// do several at a time.
#[inline(always)]
pub(super) fn widened(value: bf16) -> f32 {
    let bits = u32::from(value.to_bits()) << 16;
    let quiet = if bits & 0x7fff_ffff > 0x7f80_0000 { 0x0040_0000 } else { 0 };
    f32::from_bits(bits | quiet)
}

/// To nearest, ties to even; of NaN the upper half, made quiet.
#[inline(always)]
pub(super) fn shortened(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x0040;
    bf16::from_bits(if value.is_nan() { nan as u16 } else { rounded as u16 })
}

/// Returns a kernel that computes in the wide type.
fn wide1<T: Float>(f: impl Fn(T::Wide) -> T::Wide + Send + Sync + 'static) -> Kernel {
    map1(move |a: T| T::narrow(f(a.wide())))
}

fn wide2<T: Float>(f: impl Fn(T::Wide, T::Wide) -> T::Wide + Send + Sync + 'static) -> Kernel {
    map2(move |a: T, b: T| T::narrow(f(a.wide(), b.wide())))
}

/// Returns a kernel of an elementary function, rounded once. By way of `f32`, a result next to
/// the middle of two halves could round to the wrong side.
fn elementary<T: Float>(f: fn(f64) -> f64) -> Kernel {
    map1(move |a: T| round_to::<T>(f(a.wide().to_f64())))
}

fn elementary2<T: Float>(f: fn(f64, f64) -> f64) -> Kernel {
    map2(move |a: T, b: T| round_to::<T>(f(a.wide().to_f64(), b.wide().to_f64())))
}

pub(super) fn unary<T: Float>(f: Unary) -> Option<Kernel> {
    use super::float_math as math;
    Some(match f {
        Unary::Abs => map1(T::abs),
        Unary::Acos => elementary::<T>(libm::acos),
        Unary::Acosh => elementary::<T>(math::acosh),
        Unary::Asin => elementary::<T>(libm::asin),
        Unary::Asinh => elementary::<T>(libm::asinh),
        Unary::Atanh => elementary::<T>(libm::atanh),
        Unary::Cbrt => elementary::<T>(libm::cbrt),
        Unary::Ceil => wide1::<T>(Real::ceil),
        Unary::Cos => elementary::<T>(libm::cos),
        Unary::Cosh => elementary::<T>(libm::cosh),
        Unary::Erf => elementary::<T>(libm::erf),
        Unary::Exp => elementary::<T>(libm::exp),
        Unary::Expm1 => elementary::<T>(libm::expm1),
        Unary::Floor => wide1::<T>(Real::floor),
        Unary::Log => elementary::<T>(libm::log),
        Unary::Log1p => elementary::<T>(libm::log1p),
        Unary::Logistic => elementary::<T>(math::logistic),
        Unary::Negate => map1(T::negate),
        Unary::RoundNearestAfz => wide1::<T>(Real::round),
        Unary::RoundNearestEven => wide1::<T>(Real::round_ties_even),
        Unary::Rsqrt => elementary::<T>(math::rsqrt),
        Unary::Sign => wide1::<T>(Real::sign),
        Unary::Sin => elementary::<T>(libm::sin),
        Unary::Sinh => elementary::<T>(libm::sinh),
        Unary::Sqrt => wide1::<T>(Real::sqrt),
        Unary::Tan => elementary::<T>(libm::tan),
        Unary::Tanh => elementary::<T>(libm::tanh),
        Unary::Clz | Unary::Not | Unary::PopulationCount => return None,
    })
}

pub(super) fn binary<T: Float>(f: Binary) -> Option<Kernel> {
    Some(match f {
        Binary::Add => wide2::<T>(Real::add),
        Binary::Atan2 => elementary2::<T>(libm::atan2),
        Binary::Divide => wide2::<T>(Real::divide),
        Binary::Maximum => wide2::<T>(Real::maximum),
        Binary::Minimum => wide2::<T>(Real::minimum),
        Binary::Multiply => wide2::<T>(Real::multiply),
        Binary::Power => elementary2::<T>(libm::pow),
        Binary::Remainder => wide2::<T>(Real::remainder),
        Binary::Subtract => wide2::<T>(Real::subtract),
        Binary::And
        | Binary::Mulhi
        | Binary::Or
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => return None,
    })
}

/// Whether numbers are neither infinite nor NaN.
pub(super) fn is_finite<T: Float>() -> Kernel {
    map1(T::is_finite)
}
