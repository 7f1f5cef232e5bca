//! The floats that programs compute in, and their functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};

use crate::elements::Float;

/// A float that programs compute in: `f32`, or `f64` where an array of `f64` takes part.
pub(crate) trait Real:
    Float<Wide = Self, Rank = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + PartialOrd
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
}

macro_rules! real {
    ($type:ty, $exp:expr) => {
        impl Real for $type {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                <$type>::from(value)
            }
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$type>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$type>::ln(self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                <$type>::tanh(self)
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                <$type>::powf(self, exponent)
            }
        }
    };
}

real!(f32, exp_f32);
real!(f64, f64::exp);

/// The exponential, within 2 units in the last place, without branches, so that loops become
/// vectors: `x = n ln 2 + r` with a whole `n` and `|r| <= ln 2 / 2`, and a polynomial in `r`. The
/// coefficients are those of `expf` in the Cephes library.
#[inline(always)]
#[expect(clippy::excessive_precision, reason = "as published")]
pub(crate) fn exp_f32(x: f32) -> f32 {
    /// 1.5 * 2^23: whoever adds it rounds to a whole number, which the low bits then hold.
    const ROUNDER: f32 = 12_582_912.0;
    // Beyond these the result is infinite or zero. NaN stays NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    // ln 2 in two parts; the first has so few digits that its product with `n` is exact.
    let r = (x - n * 0.693_359_375) - n * -2.121_944_4e-4;
    let mut p = 1.987_569_15e-4;
    p = p * r + 1.398_199_950_7e-3;
    p = p * r + 8.333_451_907_3e-3;
    p = p * r + 4.166_579_589_4e-2;
    p = p * r + 1.666_666_545_9e-1;
    p = p * r + 5.000_000_120_1e-1;
    let y = p * (r * r) + r + 1.0;
    // 2^n in two factors, so that results that are subnormal or near the greatest come out.
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    y * power(half) * power(n.wrapping_sub(half))
}

/// The nearest number of 8 significant bits, ties to even, without branches.
#[inline(always)]
pub(crate) fn narrowed_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    #[expect(clippy::cast_possible_truncation, reason = "16 bits are left")]
    bf16::from_bits(if value.is_nan() { nan } else { rounded } as u16)
}

/// An element that programs read and write.
pub(crate) trait Stored: Copy + 'static {
    fn read<R: Real>(self) -> R;
    fn written<R: Real>(value: R) -> Self;
}

impl Stored for f32 {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        R::from_f32(self)
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        value.to_f32()
    }
}

impl Stored for f64 {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        R::from_f64(self)
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        value.to_f64()
    }
}

impl Stored for bf16 {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        R::from_f32(crate::elements::Number::widen(self))
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        narrowed_bf16(value.to_f32())
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        R::from_f32(crate::elements::Number::widen(self))
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        f16::from_f32(value.to_f32())
    }
}

/// True is 1, false is 0; every number but 0 is written as true.
impl Stored for bool {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        if self { R::ONE } else { R::ZERO }
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        value != R::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every exponent, with some significands of each, beside the exponential of `f64`.
    #[test]
    fn exp_is_within_two_units() {
        let step = if cfg!(miri) { 1 << 22 } else { 4099 };
        for bits in (0..=u32::MAX).step_by(step) {
            let x = f32::from_bits(bits);
            let (ours, exact) = (exp_f32(x), f64::from(x).exp());
            if x.is_nan() {
                assert!(ours.is_nan());
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
            let nearest = exact as f32;
            let apart = i64::from(ours.to_bits()) - i64::from(nearest.to_bits());
            assert!(apart.abs() <= 2, "exp({x}) is {ours}, not {nearest}");
        }
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(0.0), 1.0);
    }

    /// Numbers of all exponents, ties and NaN round as the library `half` rounds them.
    #[test]
    fn bf16_rounds_to_the_nearest() {
        let step = if cfg!(miri) { 1 << 22 } else { 1 << 11 };
        for bits in (0..=u32::MAX).step_by(step) {
            for bits in [bits, bits | 0x8000, bits | 0x7fff, bits | 0x8001] {
                let x = f32::from_bits(bits);
                let (ours, theirs) = (narrowed_bf16(x), bf16::from_f32(x));
                let same = ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
                assert!(same, "{x}: {ours} is not {theirs}");
            }
        }
    }
}
