//! The loops, in vectors of AVX-512.

/// Compiles functions with AVX-512.
macro_rules! wide {
    ($($item:item)*) => { $(
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c")]
        $item
    )* };
}

#[path = "loops/mod.rs"]
mod loops;

pub(super) use loops::{blocks_of, deviations_of, rows_of};

/// The instructions of AVX-512, and what the loops need that are not single ones of AVX2.
mod arch {
    pub(super) use std::arch::x86_64::*;

    /// The vectors that registers hold.
    pub(super) const REGISTERS: usize = 32;
    /// Whether a part of a vector is loaded as fast as the whole.
    pub(super) const HAS_MASKS: bool = true;

    wide! {
        /// The numbers of `other`, but the NaN of `x`.
        pub(super) fn nan_or_ps(x: __m512, other: __m512) -> __m512 {
            _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x)
        }
        /// The numbers of `other`, but the NaN of `x`.
        pub(super) fn nan_or_pd(x: __m512d, other: __m512d) -> __m512d {
            _mm512_mask_mov_pd(other, _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x)
        }
        /// Moves `ROWS` rows of `len` lanes at the beginning of a vector each to an equal part of it;
        /// the lanes behind are those of `others`.
        pub(super) fn spread_epi32<const ROWS: usize>(
            others: __m512i,
            packed: __m512i,
            len: usize,
        ) -> __m512i {
            let part = 16 / ROWS;
            let mask = (0..ROWS).fold(0, |mask, row| mask | ((1u16 << len) - 1) << (row * part));
            _mm512_mask_expand_epi32(others, mask, packed)
        }
        /// As [`spread_epi32`].
        pub(super) fn spread_epi64<const ROWS: usize>(
            others: __m512i,
            packed: __m512i,
            len: usize,
        ) -> __m512i {
            let part = 8 / ROWS;
            let mask = (0..ROWS).fold(0, |mask, row| mask | ((1u8 << len) - 1) << (row * part));
            _mm512_mask_expand_epi64(others, mask, packed)
        }
    }
}
