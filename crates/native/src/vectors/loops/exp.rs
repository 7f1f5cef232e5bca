//! The exponential.

use super::arch;
use super::arch::__m512;
use crate::fused::exponential::{LEAST, LN_2, MOST, POLYNOMIAL, ROUNDER};

wide! {
    /// The exponential of each lane, with the bits of `exp_f32` in `src/fused/real.rs`.
    pub(super) fn exp(x: __m512) -> __m512 {
        let all = |x: f32| arch::_mm512_set1_ps(x);
        // NaN stays NaN, since it is the second operand.
        let x = arch::quick_most_ps(all(LEAST), arch::quick_least_ps(all(MOST), x));
        let shifted = arch::_mm512_fmadd_ps(x, all(std::f32::consts::LOG2_E), all(ROUNDER));
        let n = arch::_mm512_sub_ps(shifted, all(ROUNDER));
        let r = arch::_mm512_fnmadd_ps(n, all(LN_2[0]), x);
        let r = arch::_mm512_fnmadd_ps(n, all(LN_2[1]), r);
        let [a, b, c, d, e] = POLYNOMIAL;
        let p = arch::_mm512_fmadd_ps(all(e), r, all(d));
        let p = arch::_mm512_fmadd_ps(p, r, all(c));
        let p = arch::_mm512_fmadd_ps(p, r, all(b));
        let p = arch::_mm512_fmadd_ps(p, r, all(a));
        let y = arch::_mm512_fmadd_ps(arch::_mm512_mul_ps(p, r), r, r);
        arch::times_power_of_two(arch::_mm512_add_ps(y, all(1.0)), n)
    }
}
