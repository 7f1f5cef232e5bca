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

pub(super) use loops::{chains_of, deviations_of, products_of, rows_of, stream};

/// The instructions of AVX-512, and functions that AVX2 computes in another way.
mod arch {
    pub(super) use std::arch::x86_64::*;

    use crate::vectors::narrow::Columns;

    /// The greater or lesser lanes, those of the second operand where an operand is NaN.
    pub(super) use std::arch::x86_64::{
        _mm512_max_pd as quick_most_pd, _mm512_max_ps as quick_most_ps,
        _mm512_min_pd as quick_least_pd, _mm512_min_ps as quick_least_ps,
    };

    /// The vectors that registers hold.
    pub(super) const REGISTERS: usize = 32;
    /// Whether a part of a vector is loaded as fast as the whole.
    pub(super) const HAS_MASKS: bool = true;
    /// The longest rows that are transposed to be searched.
    pub(super) const MOST_NARROW: usize = 6;

    /// Whether lanes that were looked at are NaN.
    pub(super) type Nans = __mmask16;

    wide! {
        pub(super) fn no_nans() -> Nans {
            0
        }
        /// Adds whether lanes of two vectors are NaN.
        pub(super) fn nans_ps(seen: Nans, a: __m512, b: __m512) -> Nans {
            seen | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b)
        }
        /// As [`nans_ps`].
        pub(super) fn nans_pd(seen: Nans, a: __m512d, b: __m512d) -> Nans {
            seen | Nans::from(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, b))
        }
        /// Whether a lane was NaN.
        pub(super) fn any_nans(seen: Nans) -> bool {
            seen != 0
        }
        /// The same as `_mm512_loadu_si512`. What comes from beyond the first cache comes faster in
        /// halves.
        pub(super) unsafe fn loadu_in_order(from: *const __m512i) -> __m512i {
            let from = from.cast::<__m256i>();
            // SAFETY: the caller promises 64 bytes.
            unsafe {
                let first = _mm512_castsi256_si512(_mm256_loadu_si256(from));
                _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(from.add(1)))
            }
        }
        /// The greater lanes, or NaN where an operand is NaN.
        pub(super) fn most_ps(a: __m512, b: __m512) -> __m512 {
            // The instruction returns its second operand if an operand is NaN.
            nan_or_ps(b, _mm512_max_ps(b, a))
        }
        /// As [`most_ps`].
        pub(super) fn most_pd(a: __m512d, b: __m512d) -> __m512d {
            nan_or_pd(b, _mm512_max_pd(b, a))
        }
        /// The lesser lanes, or NaN where an operand is NaN.
        pub(super) fn least_ps(a: __m512, b: __m512) -> __m512 {
            nan_or_ps(b, _mm512_min_ps(b, a))
        }
        /// As [`least_ps`].
        pub(super) fn least_pd(a: __m512d, b: __m512d) -> __m512d {
            nan_or_pd(b, _mm512_min_pd(b, a))
        }
        /// Returns `x` where it is NaN, else `other`.
        fn nan_or_ps(x: __m512, other: __m512) -> __m512 {
            _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x)
        }
        /// As [`nan_or_ps`].
        fn nan_or_pd(x: __m512d, other: __m512d) -> __m512d {
            _mm512_mask_mov_pd(other, _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x)
        }
        /// Returns `a` times 2 to the power of the whole number `n`, rounded once.
        pub(super) fn times_power_of_two(a: __m512, n: __m512) -> __m512 {
            _mm512_scalef_ps(a, n)
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

        /// The columns of rows that lie side by side in vectors, see [`Columns`].
        pub(super) fn columns<const LEN: usize, const WIDE: usize>(
            rows: [__m512i; LEN],
        ) -> [__m512i; LEN] {
            let column = |places: &[[i32; 16]; LEN]| {
                let mut all = _mm512_permutexvar_epi32(words(&places[0]), rows[0]);
                for n in 1..LEN {
                    let places = words(&places[n]);
                    let others = _mm512_movepi32_mask(places);
                    all = _mm512_mask_permutexvar_epi32(all, !others, places, rows[n]);
                }
                all
            };
            // An iterator would not always be compiled for the level.
            let mut columns = rows;
            #[expect(clippy::needless_range_loop, reason = "as said")]
            for n in 0..LEN {
                columns[n] = column(&Columns::<LEN, 16, WIDE>::PLACES[n]);
            }
            columns
        }

        fn words(words: &[i32; 16]) -> __m512i {
            // SAFETY: a vector has 16 words.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        }
    }
}
