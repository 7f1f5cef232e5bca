//! Products that are added, and powers of two.

use super::{__m512, __m512i, arch};

wide! {
    pub(in crate::vectors::neon) fn _mm512_fmadd_ps(a: __m512, b: __m512, c: __m512) -> __m512 {
        let quarter = |n: usize| ps!(vfmaq_f32(c.0[n], a.0[n], b.0[n]));
        __m512i([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    pub(in crate::vectors::neon) fn _mm512_fnmadd_ps(a: __m512, b: __m512, c: __m512) -> __m512 {
        let quarter = |n: usize| ps!(vfmsq_f32(c.0[n], a.0[n], b.0[n]));
        __m512i([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    /// Returns `a` times 2 to the power of the whole number `n`, -252 to 254, in two factors: the
    /// second product alone is rounded.
    pub(in crate::vectors::neon) fn times_power_of_two(a: __m512, n: __m512) -> __m512 {
        let power = |n| {
            let biased = arch::vaddq_s32(n, arch::vdupq_n_s32(127));
            arch::vreinterpretq_u32_s32(arch::vshlq_n_s32::<23>(biased))
        };
        let quarter = |a, n| {
            let n = arch::vcvtq_s32_f32(arch::vreinterpretq_f32_u32(n));
            let first = arch::vshrq_n_s32::<1>(n);
            let second = arch::vsubq_s32(n, first);
            ps!(vmulq_f32(ps!(vmulq_f32(a, power(first))), power(second)))
        };
        let ([a, b, c, d], [e, f, g, h]) = (a.0, n.0);
        __m512i([quarter(a, e), quarter(b, f), quarter(c, g), quarter(d, h)])
    }
}
