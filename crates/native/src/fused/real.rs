//! The floats that programs compute in, their functions, and how the element types are converted to
//! them and back.

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};

use crate::elements::Number;
use crate::vectors::CHAINED;
#[cfg(doc)]
use crate::vectors::Form;

/// A float that programs compute in: `f32` or `f64`.
pub(crate) trait Real:
    Number<Wide = Self, Rank = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + PartialOrd
{
    /// The operands of a chain that leave each number as it is, for [`Form::Terms`].
    const NO_TERMS: &'static [Self; CHAINED];
    /// The operands of a chain that leave each number as it is, for the other forms.
    const NO_OPS: &'static [Self; CHAINED];
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
    /// Returns an `f32` that rounds to narrower types as the number itself does: the number if it
    /// is an `f32`, else whichever of the two `f32` beside it has an odd last bit.
    fn to_odd_f32(self) -> f32;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    /// The exponential; `fused(a, b, c)` is `a * b + c`, rounded once.
    fn exp(self, fused: impl Fn(f32, f32, f32) -> f32) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
}

macro_rules! real {
    ($type:ty, $exp:expr) => {
        impl Real for $type {
            const NO_TERMS: &'static [Self; CHAINED] =
                &[0.0, 1.0, 1.0, -0.0, 0.0, 1.0, 1.0, -0.0, -0.0, 1.0];
            const NO_OPS: &'static [Self; CHAINED] =
                &[0.0, 0.0, 1.0, 1.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
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
            fn to_odd_f32(self) -> f32 {
                let nearest = self.to_f32();
                let back = <$type>::from(nearest);
                let bits = nearest.to_bits();
                let is_past = back.abs() > self.abs();
                let other = if is_past { bits.wrapping_sub(1) } else { bits.wrapping_add(1) };
                let is_other = (back != self) & !self.is_nan() & (bits & 1 == 0);
                f32::from_bits(if is_other { other } else { bits })
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
            fn exp(self, fused: impl Fn(f32, f32, f32) -> f32) -> Self {
                $exp(self, fused)
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
real!(f64, |x: f64, _| x.exp());

/// Returns `e^x`, within 1 unit in the last place. It has no branches, so that loops are
/// vectorised: `e^x = 2^n e^r` with an integer `n` and `|r| <= ln 2 / 2`, and
/// `e^r = 1 + r + r^2 p(r)` with a polynomial `p`. `fused(a, b, c)` is `a * b + c`, rounded once:
/// [`f32::mul_add`] where the CPU has the instruction, else [`fused_in_f64`]. The SIMD loop of
/// `src/vectors/exp.rs` gives the same bits.
#[inline(always)]
pub(crate) fn exp_f32(x: f32, fused: impl Fn(f32, f32, f32) -> f32) -> f32 {
    use exponential::{LEAST, LN_2, MOST, POLYNOMIAL, ROUNDER};
    // NaN stays NaN: it is neither greater nor less.
    let x = if x > MOST { MOST } else { x };
    let x = if x < LEAST { LEAST } else { x };
    let shifted = fused(x, std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = fused(-n, LN_2[0], x);
    let r = fused(-n, LN_2[1], r);
    let [a, b, c, d, e] = POLYNOMIAL;
    let p = fused(fused(fused(fused(e, r, d), r, c), r, b), r, a);
    let y = fused(p * r, r, r) + 1.0;
    // `2^n` is two factors, so that results that are subnormal or near the greatest float are
    // right.
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    y * power(half) * power(n.wrapping_sub(half))
}

/// The constants of the exponential.
pub(crate) mod exponential {
    /// Above `MOST` the exponential is infinite, and below `LEAST` it is zero.
    pub(crate) const MOST: f32 = 89.0;
    pub(crate) const LEAST: f32 = -104.0;
    /// 1.5 * 2^23. A sum with it is rounded to an integer, which the low bits of the sum hold.
    pub(crate) const ROUNDER: f32 = 12_582_912.0;
    /// The natural logarithm of 2 as the sum of two parts.
    pub(crate) const LN_2: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_2e-9];
    /// The coefficients of `p` for which the greatest relative error of `1 + r + r^2 p(r)`, where
    /// `|r| <= ln 2 / 2`, is least: 3.1e-9, by the Remez algorithm.
    pub(crate) const POLYNOMIAL: [f32; 5] =
        [0.499_999_94, 0.166_665_21, 0.041_668_39, 8.368_717e-3, 1.381_459_9e-3];
}

/// Returns `a * b + c`, rounded once, without the instruction for it. The product is exact in
/// `f64`. The sum is rounded to odd: its last bit is 1 if it is inexact, so that rounding it to
/// `f32` is right.
#[inline(always)]
pub(crate) fn fused_in_f64(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // The rounding error of the sum (Knuth); it is NaN if the sum is not finite.
    let from_c = sum - product;
    let rest = (product - (sum - from_c)) + (c - from_c);
    let bits = sum.to_bits();
    let is_even = bits & 1 == 0;
    let inexact = (rest > 0.0) | (rest < 0.0);
    let toward =
        if (rest > 0.0) == (sum > 0.0) { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let odd = f64::from_bits(if is_even & inexact { toward } else { bits });
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
    let rounded = odd as f32;
    rounded
}

/// Returns the nearest `bf16`, ties to even, without branches.
#[inline(always)]
pub(crate) fn narrowed_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    #[expect(clippy::cast_possible_truncation, reason = "16 bits are left")]
    bf16::from_bits(if value.is_nan() { nan } else { rounded } as u16)
}

/// An element type that programs read and write.
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
        narrowed_bf16(value.to_odd_f32())
    }
}

impl Stored for f16 {
    #[inline(always)]
    fn read<R: Real>(self) -> R {
        R::from_f32(crate::elements::Number::widen(self))
    }
    #[inline(always)]
    fn written<R: Real>(value: R) -> Self {
        f16::from_f32(value.to_odd_f32())
    }
}

/// `true` is 1 and `false` is 0; every number but 0 is written as `true`.
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

    /// Compares every exponent, with some significands of each, with the exponential in `f64`.
    #[test]
    fn exp_is_within_one_unit() {
        let step = if cfg!(miri) { 1 << 22 } else { 4099 };
        for bits in (0..=u32::MAX).step_by(step) {
            let x = f32::from_bits(bits);
            let (ours, exact) = (exp_f32(x, f32::mul_add), f64::from(x).exp());
            if x.is_nan() {
                assert!(ours.is_nan() && exp_f32(x, fused_in_f64).is_nan());
                continue;
            }
            assert_eq!(ours.to_bits(), exp_f32(x, fused_in_f64).to_bits(), "{x}");
            #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
            let nearest = exact as f32;
            let apart = i64::from(ours.to_bits()) - i64::from(nearest.to_bits());
            assert!(apart.abs() <= 1, "exp({x}) is {ours}, not {nearest}");
        }
        let exp = |x| exp_f32(x, f32::mul_add);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    /// Tries numbers of all sizes, among them some whose products nearly cancel or are subnormal,
    /// and products halfway between two floats with a third number too small for `f64` to hold in
    /// the sum.
    #[test]
    fn fused_rounds_once() {
        let special = [0.0, -0.0, 1.0, f32::INFINITY, f32::NAN, f32::MAX, 1e-45, -1.175e-38, 3.0];
        let count = if cfg!(miri) { 200 } else { 200_000u32 };
        let drawn = |n: u32| f32::from_bits(n.wrapping_mul(2_654_435_761) ^ n << 7);
        let mut cases: Vec<[f32; 3]> = (0..count)
            .map(|n| {
                let (a, b) = (drawn(3 * n), drawn(3 * n + 1));
                let near = f32::from_bits((a * b).to_bits().wrapping_add(n % 5).wrapping_sub(2));
                [[a, b, drawn(3 * n + 2)], [a, b, -near]][n as usize % 2]
            })
            .collect();
        let near_1 = 1.0 + 2f32.powi(-12);
        for (sign, bits) in
            [-1.0f32, 1.0].into_iter().flat_map(|sign| (50..70).map(move |n| (sign, n)))
        {
            cases.push([near_1, near_1, sign * 2f32.powi(-bits)]);
            cases.push([near_1, -near_1, sign * 2f32.powi(-bits)]);
        }
        for a in special {
            cases.extend(special.iter().flat_map(|&b| special.map(|c| [a, b, c])));
        }
        for [a, b, c] in cases {
            let (ours, exact) = (fused_in_f64(a, b, c), a.mul_add(b, c));
            let same = ours.to_bits() == exact.to_bits() || ours.is_nan() && exact.is_nan();
            assert!(same, "{a} * {b} + {c} is {exact}, not {ours}");
        }
    }

    /// Numbers of all exponents, ties and NaN round as the crate `half` rounds them.
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
