//! The exponential.

use fearless_simd::f32x16;
use fearless_simd::prelude::*;

use super::instructions::times_power_of_two;
use crate::fused::exponential::{LEAST, LN_2, MOST, POLYNOMIAL, ROUNDER};

/// The exponential of each lane, with the bits of `exp_f32` in `src/fused/real.rs`.
#[inline(always)]
pub(super) fn exp<S: Simd>(x: f32x16<S>) -> f32x16<S> {
    let within = x.min(MOST).max(LEAST);
    let shifted = within.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN_2[0], within);
    let r = n.mul_add(-LN_2[1], r);
    let [a, b, c, d, e] = POLYNOMIAL;
    let p = f32x16::splat(x.token(), e).mul_add(r, d).mul_add(r, c).mul_add(r, b).mul_add(r, a);
    let y = (p * r).mul_add(r, r);
    let y = times_power_of_two(y + 1.0, n);
    x.is_nan().select(x, y)
}
