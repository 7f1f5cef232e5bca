//! The instructions of AVX-512 that the loops use, made of those of AVX2. They have the names of
//! Intel's intrinsics and do the same.

#![expect(non_camel_case_types, reason = "types have Intel's names, too")]

use std::arch::x86_64::{self as arch, __m128i};

use crate::vectors::narrow::Columns;

pub(super) use std::arch::x86_64::{
    __m256i, _CMP_EQ_OQ, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _MM_HINT_T0, _MM_HINT_T1,
    _mm_prefetch, _mm256_add_epi16, _mm256_and_si256, _mm256_loadu_si256, _mm256_max_epi16,
    _mm256_min_epi16, _mm256_set1_epi16, _mm256_srai_epi16, _mm256_storeu_si256, _mm256_sub_epi16,
    _mm256_xor_si256,
};

/// Lanes with bits if lanes that were looked at are NaN.
pub(super) type Nans = __m256i;

/// The vectors that registers hold.
pub(super) const REGISTERS: usize = 8;
/// Whether a part of a vector is loaded as fast as the whole.
pub(super) const HAS_MASKS: bool = false;
/// The longest rows that are transposed to be searched.
pub(super) const MOST_NARROW: usize = 7;

/// A vector of 512 bits, of whatever lanes: its first half and its second one.
#[derive(Clone, Copy)]
pub(super) struct __m512i(__m256i, __m256i);
pub(super) type __m512 = __m512i;
pub(super) type __m512d = __m512i;

/// Instructions that do the same to both halves of two vectors.
macro_rules! halves {
    (|$a:ident, $b:ident| $($name:ident = $half:expr;)*) => {
        wide! { $(
            pub(super) fn $name(one: __m512i, other: __m512i) -> __m512i {
                let half = |$a: __m256i, $b: __m256i| $half;
                __m512i(half(one.0, other.0), half(one.1, other.1))
            }
        )* }
    };
}

/// Vectors as other ones.
macro_rules! casts {
    ($($name:ident)*) => {
        wide! { $(
            pub(super) fn $name(a: __m512i) -> __m512i {
                a
            }
        )* }
    };
}

/// An instruction on vectors of `f32`.
macro_rules! ps {
    ($op:ident $(::<$by:tt>)? ($($a:expr),*)) => {
        arch::_mm256_castps_si256(arch::$op $(::<$by>)? ($(arch::_mm256_castsi256_ps($a)),*))
    };
}

/// An instruction on vectors of `f64`.
macro_rules! pd {
    ($op:ident $(::<$by:tt>)? ($($a:expr),*)) => {
        arch::_mm256_castpd_si256(arch::$op $(::<$by>)? ($(arch::_mm256_castsi256_pd($a)),*))
    };
}

wide! {
    /// The bytes of `a` where those of `mask` are set, else those of `b`.
    fn chosen(a: __m256i, b: __m256i, mask: __m256i) -> __m256i {
        arch::_mm256_blendv_epi8(b, a, mask)
    }

    /// The first operand where it is NaN, else the second one.
    fn nan_or_ps(x: __m256i, other: __m256i) -> __m256i {
        chosen(x, other, ps!(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x)))
    }

    /// As [`nan_or_ps`].
    fn nan_or_pd(x: __m256i, other: __m256i) -> __m256i {
        chosen(x, other, pd!(_mm256_cmp_pd::<_CMP_UNORD_Q>(x, x)))
    }

    /// Whether numbers of 64 bits without a sign are greater.
    fn above_epu64(a: __m256i, b: __m256i) -> __m256i {
        let turn = arch::_mm256_set1_epi64x(i64::MIN);
        arch::_mm256_cmpgt_epi64(arch::_mm256_xor_si256(a, turn), arch::_mm256_xor_si256(b, turn))
    }
}

casts!(_mm512_castps_si512 _mm512_castsi512_ps _mm512_castpd_si512 _mm512_castsi512_pd);

halves! { |a, b|
    _mm512_add_epi32 = arch::_mm256_add_epi32(a, b);
    _mm512_add_epi64 = arch::_mm256_add_epi64(a, b);
    _mm512_and_si512 = arch::_mm256_and_si256(a, b);
    _mm512_xor_si512 = arch::_mm256_xor_si256(a, b);
    _mm512_max_epi32 = arch::_mm256_max_epi32(a, b);
    _mm512_min_epi32 = arch::_mm256_min_epi32(a, b);
    _mm512_max_epu32 = arch::_mm256_max_epu32(a, b);
    _mm512_min_epu32 = arch::_mm256_min_epu32(a, b);
    _mm512_max_epi64 = chosen(a, b, arch::_mm256_cmpgt_epi64(a, b));
    _mm512_min_epi64 = chosen(b, a, arch::_mm256_cmpgt_epi64(a, b));
    _mm512_max_epu64 = chosen(a, b, above_epu64(a, b));
    _mm512_min_epu64 = chosen(b, a, above_epu64(a, b));
    _mm512_unpacklo_epi64 = arch::_mm256_unpacklo_epi64(a, b);
    _mm512_unpackhi_epi64 = arch::_mm256_unpackhi_epi64(a, b);
    _mm512_add_ps = ps!(_mm256_add_ps(a, b));
    _mm512_sub_ps = ps!(_mm256_sub_ps(a, b));
    _mm512_add_pd = pd!(_mm256_add_pd(a, b));
    _mm512_sub_pd = pd!(_mm256_sub_pd(a, b));
    _mm512_mul_ps = ps!(_mm256_mul_ps(a, b));
    _mm512_mul_pd = pd!(_mm256_mul_pd(a, b));
    _mm512_div_ps = ps!(_mm256_div_ps(a, b));
    _mm512_div_pd = pd!(_mm256_div_pd(a, b));
    // The greater or lesser lanes, those of the second operand where an operand is NaN.
    quick_most_ps = ps!(_mm256_max_ps(a, b));
    quick_least_ps = ps!(_mm256_min_ps(a, b));
    quick_most_pd = pd!(_mm256_max_pd(a, b));
    quick_least_pd = pd!(_mm256_min_pd(a, b));
    // As these, or NaN where an operand is NaN.
    most_ps = nan_or_ps(b, ps!(_mm256_max_ps(b, a)));
    least_ps = nan_or_ps(b, ps!(_mm256_min_ps(b, a)));
    most_pd = nan_or_pd(b, pd!(_mm256_max_pd(b, a)));
    least_pd = nan_or_pd(b, pd!(_mm256_min_pd(b, a)));
}

/// Vectors of equal lanes.
macro_rules! repeated {
    ($($name:ident, $type:ty, $half:expr;)*) => {
        wide! { $(
            pub(super) fn $name(x: $type) -> __m512i {
                let half = $half(x);
                __m512i(half, half)
            }
        )* }
    };
}

repeated! {
    _mm512_set1_epi32, i32, arch::_mm256_set1_epi32;
    _mm512_set1_epi64, i64, arch::_mm256_set1_epi64x;
    _mm512_set1_ps, f32, |x| arch::_mm256_castps_si256(arch::_mm256_set1_ps(x));
    _mm512_set1_pd, f64, |x| arch::_mm256_castpd_si256(arch::_mm256_set1_pd(x));
}

wide! {
    pub(super) fn _mm512_fmadd_ps(a: __m512, b: __m512, c: __m512) -> __m512 {
        let half = |a, b, c| ps!(_mm256_fmadd_ps(a, b, c));
        __m512i(half(a.0, b.0, c.0), half(a.1, b.1, c.1))
    }

    pub(super) fn _mm512_fnmadd_ps(a: __m512, b: __m512, c: __m512) -> __m512 {
        let half = |a, b, c| ps!(_mm256_fnmadd_ps(a, b, c));
        __m512i(half(a.0, b.0, c.0), half(a.1, b.1, c.1))
    }

    /// Returns `a` times 2 to the power of the whole number `n`, -252 to 254, in two factors: the
    /// second product alone is rounded.
    pub(super) fn times_power_of_two(a: __m512, n: __m512) -> __m512 {
        let power = |n| {
            let biased = arch::_mm256_add_epi32(n, arch::_mm256_set1_epi32(127));
            arch::_mm256_slli_epi32::<23>(biased)
        };
        let half = |a, n| {
            let n = arch::_mm256_cvtps_epi32(arch::_mm256_castsi256_ps(n));
            let first = arch::_mm256_srai_epi32::<1>(n);
            let second = arch::_mm256_sub_epi32(n, first);
            ps!(_mm256_mul_ps(ps!(_mm256_mul_ps(a, power(first))), power(second)))
        };
        __m512i(half(a.0, n.0), half(a.1, n.1))
    }

    pub(super) fn no_nans() -> Nans {
        arch::_mm256_setzero_si256()
    }

    /// Adds whether lanes of two vectors are NaN.
    pub(super) fn nans_ps(seen: Nans, a: __m512, b: __m512) -> Nans {
        let half = |a, b| ps!(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        arch::_mm256_or_si256(seen, arch::_mm256_or_si256(half(a.0, b.0), half(a.1, b.1)))
    }

    /// As [`nans_ps`].
    pub(super) fn nans_pd(seen: Nans, a: __m512d, b: __m512d) -> Nans {
        let half = |a, b| pd!(_mm256_cmp_pd::<_CMP_UNORD_Q>(a, b));
        arch::_mm256_or_si256(seen, arch::_mm256_or_si256(half(a.0, b.0), half(a.1, b.1)))
    }

    /// Whether a lane was NaN.
    pub(super) fn any_nans(seen: Nans) -> bool {
        arch::_mm256_testz_si256(seen, seen) == 0
    }

    /// The same as [`_mm512_loadu_si512`], which loads halves anyway.
    pub(super) unsafe fn loadu_in_order(from: *const __m512i) -> __m512i {
        // SAFETY: the caller promises 64 bytes.
        unsafe { _mm512_loadu_si512(from) }
    }

    pub(super) fn _mm512_setzero_si512() -> __m512i {
        __m512i(arch::_mm256_setzero_si256(), arch::_mm256_setzero_si256())
    }

    #[expect(clippy::too_many_arguments, reason = "as many as lanes")]
    pub(super) fn _mm512_setr_epi32(
        a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32,
        i: i32, j: i32, k: i32, l: i32, m: i32, n: i32, o: i32, p: i32,
    ) -> __m512i {
        let first = arch::_mm256_setr_epi32(a, b, c, d, e, f, g, h);
        __m512i(first, arch::_mm256_setr_epi32(i, j, k, l, m, n, o, p))
    }

    #[expect(clippy::too_many_arguments, reason = "as many as lanes")]
    pub(super) fn _mm512_setr_epi64(
        a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64,
    ) -> __m512i {
        __m512i(arch::_mm256_setr_epi64x(a, b, c, d), arch::_mm256_setr_epi64x(e, f, g, h))
    }

    pub(super) fn _mm512_slli_epi32<const BY: i32>(a: __m512i) -> __m512i {
        __m512i(arch::_mm256_slli_epi32::<BY>(a.0), arch::_mm256_slli_epi32::<BY>(a.1))
    }

    pub(super) fn _mm512_srli_epi64<const BY: u32>(a: __m512i) -> __m512i {
        let by = arch::_mm_set_epi64x(0, i64::from(BY));
        __m512i(arch::_mm256_srl_epi64(a.0, by), arch::_mm256_srl_epi64(a.1, by))
    }

    pub(super) fn _mm512_srai_epi32<const BY: u32>(a: __m512i) -> __m512i {
        let by = arch::_mm_set_epi64x(0, i64::from(BY));
        __m512i(arch::_mm256_sra_epi32(a.0, by), arch::_mm256_sra_epi32(a.1, by))
    }

    pub(super) fn _mm512_shuffle_ps<const BY: i32>(a: __m512, b: __m512) -> __m512 {
        __m512i(ps!(_mm256_shuffle_ps::<BY>(a.0, b.0)), ps!(_mm256_shuffle_ps::<BY>(a.1, b.1)))
    }

    /// Quarters of both vectors, by two bits each; for those that the loops need.
    pub(super) fn _mm512_shuffle_i32x4<const BY: i32>(a: __m512i, b: __m512i) -> __m512i {
        match BY {
            0x44 => __m512i(a.0, b.0),
            0xee => __m512i(a.1, b.1),
            0x88 => __m512i(
                arch::_mm256_permute2x128_si256::<0x20>(a.0, a.1),
                arch::_mm256_permute2x128_si256::<0x20>(b.0, b.1),
            ),
            0xdd => __m512i(
                arch::_mm256_permute2x128_si256::<0x31>(a.0, a.1),
                arch::_mm256_permute2x128_si256::<0x31>(b.0, b.1),
            ),
            // 2, 3 of `a`, and the first one of `b` twice.
            0x0e => __m512i(a.1, arch::_mm256_permute2x128_si256::<0x00>(b.0, b.1)),
            // 0x01: 1, 0 of `a`, and the first one of `b` twice.
            _ => __m512i(
                arch::_mm256_permute2x128_si256::<0x01>(a.0, a.0),
                arch::_mm256_permute2x128_si256::<0x00>(b.0, b.1),
            ),
        }
    }

    /// Lanes by their numbers.
    pub(super) fn _mm512_permutexvar_epi32(numbers: __m512i, a: __m512i) -> __m512i {
        let half = |numbers: __m256i| {
            let first = arch::_mm256_permutevar8x32_epi32(a.0, numbers);
            let second = arch::_mm256_permutevar8x32_epi32(a.1, numbers);
            let is_second = arch::_mm256_cmpgt_epi32(numbers, arch::_mm256_set1_epi32(7));
            chosen(second, first, is_second)
        };
        __m512i(half(numbers.0), half(numbers.1))
    }

    pub(super) fn _mm512_permutexvar_epi64(numbers: __m512i, a: __m512i) -> __m512i {
        // Lane n of 64 bits is lanes 2n and 2n + 1 of 32 bits.
        let half = |numbers: __m256i| {
            let twice = arch::_mm256_slli_epi64::<1>(numbers);
            let both = arch::_mm256_or_si256(twice, arch::_mm256_slli_epi64::<32>(twice));
            arch::_mm256_or_si256(both, arch::_mm256_set1_epi64x(1 << 32))
        };
        _mm512_permutexvar_epi32(__m512i(half(numbers.0), half(numbers.1)), a)
    }

    /// Moves `ROWS` rows of `len` lanes at the beginning of a vector each to an equal part of it; the
    /// lanes behind are those of `others`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "few lanes")]
    pub(super) fn spread_epi32<const ROWS: usize>(
        others: __m512i,
        packed: __m512i,
        len: usize,
    ) -> __m512i {
        spread::<ROWS, 1>(others, packed, arch::_mm256_set1_epi32(len as i32))
    }

    /// As [`spread_epi32`].
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "few lanes")]
    pub(super) fn spread_epi64<const ROWS: usize>(
        others: __m512i,
        packed: __m512i,
        len: usize,
    ) -> __m512i {
        spread::<ROWS, 2>(others, packed, arch::_mm256_set1_epi32(2 * len as i32))
    }

    /// Moves rows of `len` lanes of 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "few lanes")]
    fn spread<const ROWS: usize, const WORDS: usize>(
        others: __m512i,
        packed: __m512i,
        len: __m256i,
    ) -> __m512i {
        let part = 16 / ROWS as i32;
        let (last, bits) = (arch::_mm256_set1_epi32(part - 1), part.trailing_zeros());
        let bits = arch::_mm_set_epi64x(0, i64::from(bits));
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let places = |lanes: __m256i| {
            let row = arch::_mm256_srl_epi32(lanes, bits);
            let within = arch::_mm256_and_si256(lanes, last);
            let from = arch::_mm256_add_epi32(arch::_mm256_mullo_epi32(row, len), within);
            (from, arch::_mm256_cmpgt_epi32(len, within))
        };
        let ((from_0, is_row_0), (from_1, is_row_1)) = (places(lanes.0), places(lanes.1));
        let moved = _mm512_permutexvar_epi32(__m512i(from_0, from_1), packed);
        __m512i(chosen(moved.0, others.0, is_row_0), chosen(moved.1, others.1, is_row_1))
    }

    /// The columns of rows that lie side by side in vectors, see [`Columns`].
    pub(super) fn columns<const LEN: usize, const WIDE: usize>(
        rows: [__m512i; LEN],
    ) -> [__m512i; LEN] {
        // The first half of each column has the rows of the first half of all vectors.
        let part = |n: usize| if n.is_multiple_of(2) { rows[n / 2].0 } else { rows[n / 2].1 };
        let half = |first: usize, column: usize| {
            let places = &Columns::<LEN, 8, WIDE>::PLACES[column];
            let mut all = arch::_mm256_permutevar8x32_epi32(part(first), words(&places[0]));
            for n in 1..LEN {
                let places = words(&places[n]);
                let moved = arch::_mm256_permutevar8x32_epi32(part(first + n), places);
                // Places that are elsewhere are negative.
                all = ps!(_mm256_blendv_ps(moved, all, places));
            }
            all
        };
        // An iterator would not always be compiled for the level.
        let mut columns = rows;
        #[expect(clippy::needless_range_loop, reason = "as said")]
        for column in 0..LEN {
            columns[column] = __m512i(half(0, column), half(LEN, column));
        }
        columns
    }

    fn words(words: &[i32; 8]) -> __m256i {
        // SAFETY: a vector has eight words.
        unsafe { arch::_mm256_loadu_si256(words.as_ptr().cast()) }
    }

    /// A lane of 32 bits for each bit.
    fn lanes_of_bits(mask: u16) -> __m512i {
        let bit = arch::_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let half = |mask: u16| {
            let all = arch::_mm256_set1_epi32(i32::from(mask));
            arch::_mm256_cmpeq_epi32(arch::_mm256_and_si256(all, bit), bit)
        };
        __m512i(half(mask), half(mask >> 8))
    }

    /// A lane of 64 bits for each bit.
    fn long_lanes_of_bits(mask: u8) -> __m512i {
        let bit = arch::_mm256_setr_epi64x(1, 2, 4, 8);
        let half = |mask: u8| {
            let all = arch::_mm256_set1_epi64x(i64::from(mask));
            arch::_mm256_cmpeq_epi64(arch::_mm256_and_si256(all, bit), bit)
        };
        __m512i(half(mask), half(mask >> 4))
    }

    /// A bit for each lane of 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "eight bits each")]
    fn bits_of(lanes: __m512i) -> u16 {
        let bits = |half| arch::_mm256_movemask_ps(arch::_mm256_castsi256_ps(half)) as u16;
        bits(lanes.0) | bits(lanes.1) << 8
    }

    /// A bit for each lane of 64 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "four bits each")]
    fn bits_of_long(lanes: __m512i) -> u8 {
        let bits = |half| arch::_mm256_movemask_pd(arch::_mm256_castsi256_pd(half)) as u8;
        bits(lanes.0) | bits(lanes.1) << 4
    }

    pub(super) fn _mm512_cmpeq_epi32_mask(a: __m512i, b: __m512i) -> u16 {
        bits_of(__m512i(arch::_mm256_cmpeq_epi32(a.0, b.0), arch::_mm256_cmpeq_epi32(a.1, b.1)))
    }

    pub(super) fn _mm512_cmpeq_epi64_mask(a: __m512i, b: __m512i) -> u8 {
        let equal = |a, b| arch::_mm256_cmpeq_epi64(a, b);
        bits_of_long(__m512i(equal(a.0, b.0), equal(a.1, b.1)))
    }

    pub(super) fn _mm512_cmp_ps_mask<const BY: i32>(a: __m512, b: __m512) -> u16 {
        let half = |a, b| ps!(_mm256_cmp_ps::<BY>(a, b));
        bits_of(__m512i(half(a.0, b.0), half(a.1, b.1)))
    }

    pub(super) fn _mm512_cmp_pd_mask<const BY: i32>(a: __m512d, b: __m512d) -> u8 {
        let half = |a, b| pd!(_mm256_cmp_pd::<BY>(a, b));
        bits_of_long(__m512i(half(a.0, b.0), half(a.1, b.1)))
    }

    pub(super) fn _mm512_mask_min_epu32(
        others: __m512i,
        mask: u16,
        a: __m512i,
        b: __m512i,
    ) -> __m512i {
        let (mask, least) = (lanes_of_bits(mask), _mm512_min_epu32(a, b));
        __m512i(chosen(least.0, others.0, mask.0), chosen(least.1, others.1, mask.1))
    }

    pub(super) fn _mm512_mask_min_epu64(
        others: __m512i,
        mask: u8,
        a: __m512i,
        b: __m512i,
    ) -> __m512i {
        let (mask, least) = (long_lanes_of_bits(mask), _mm512_min_epu64(a, b));
        __m512i(chosen(least.0, others.0, mask.0), chosen(least.1, others.1, mask.1))
    }

    pub(super) fn _mm512_mask_mov_epi32(others: __m512i, mask: u16, a: __m512i) -> __m512i {
        let mask = lanes_of_bits(mask);
        __m512i(chosen(a.0, others.0, mask.0), chosen(a.1, others.1, mask.1))
    }

    pub(super) fn _mm512_mask_mov_epi64(others: __m512i, mask: u8, a: __m512i) -> __m512i {
        let mask = long_lanes_of_bits(mask);
        __m512i(chosen(a.0, others.0, mask.0), chosen(a.1, others.1, mask.1))
    }

    pub(super) fn _mm512_maskz_mul_ps(mask: u16, a: __m512, b: __m512) -> __m512 {
        let mask = lanes_of_bits(mask);
        _mm512_and_si512(
            __m512i(ps!(_mm256_mul_ps(a.0, b.0)), ps!(_mm256_mul_ps(a.1, b.1))),
            mask,
        )
    }

    pub(super) fn _mm512_maskz_mul_pd(mask: u8, a: __m512d, b: __m512d) -> __m512d {
        let mask = long_lanes_of_bits(mask);
        _mm512_and_si512(
            __m512i(pd!(_mm256_mul_pd(a.0, b.0)), pd!(_mm256_mul_pd(a.1, b.1))),
            mask,
        )
    }

    pub(super) fn _mm512_cvtepi16_epi32(a: __m256i) -> __m512i {
        __m512i(
            arch::_mm256_cvtepi16_epi32(arch::_mm256_castsi256_si128(a)),
            arch::_mm256_cvtepi16_epi32(arch::_mm256_extracti128_si256::<1>(a)),
        )
    }

    pub(super) fn _mm512_cvtepu16_epi32(a: __m256i) -> __m512i {
        __m512i(
            arch::_mm256_cvtepu16_epi32(arch::_mm256_castsi256_si128(a)),
            arch::_mm256_cvtepu16_epi32(arch::_mm256_extracti128_si256::<1>(a)),
        )
    }

    pub(super) fn _mm512_cvtph_ps(a: __m256i) -> __m512 {
        let wide = |half: __m128i| arch::_mm256_castps_si256(arch::_mm256_cvtph_ps(half));
        __m512i(
            wide(arch::_mm256_castsi256_si128(a)),
            wide(arch::_mm256_extracti128_si256::<1>(a)),
        )
    }

    pub(super) fn _mm512_cvtps_ph<const ROUNDING: i32>(a: __m512) -> __m256i {
        let narrow =
            |half| arch::_mm256_cvtps_ph::<ROUNDING>(arch::_mm256_castsi256_ps(half));
        arch::_mm256_set_m128i(narrow(a.1), narrow(a.0))
    }

    /// Numbers that 16 bits hold.
    pub(super) fn _mm512_cvtepi32_epi16(a: __m512i) -> __m256i {
        arch::_mm256_permute4x64_epi64::<0b11_01_10_00>(arch::_mm256_packs_epi32(a.0, a.1))
    }

    pub(super) fn _mm512_cvtepi64_epi32(a: __m512i) -> __m256i {
        let first = ps!(_mm256_shuffle_ps::<0b10_00_10_00>(a.0, a.1));
        arch::_mm256_permute4x64_epi64::<0b11_01_10_00>(first)
    }
}

wide! {
    pub(super) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
        let from = from.cast::<__m256i>();
        // SAFETY: the caller promises 64 bytes.
        unsafe { __m512i(arch::_mm256_loadu_si256(from), arch::_mm256_loadu_si256(from.add(1))) }
    }

    pub(super) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
        let to = to.cast::<__m256i>();
        // SAFETY: the caller promises 64 bytes.
        unsafe {
            arch::_mm256_storeu_si256(to, a.0);
            arch::_mm256_storeu_si256(to.add(1), a.1);
        }
    }

    pub(super) unsafe fn _mm512_stream_si512(to: *mut __m512i, a: __m512i) {
        let to = to.cast::<__m256i>();
        // SAFETY: the caller promises 64 bytes at a boundary of as many.
        unsafe {
            arch::_mm256_stream_si256(to, a.0);
            arch::_mm256_stream_si256(to.add(1), a.1);
        }
    }

    pub(super) unsafe fn _mm512_mask_loadu_epi32(
        others: __m512i,
        mask: u16,
        from: *const i32,
    ) -> __m512i {
        let mask = lanes_of_bits(mask);
        // SAFETY: the caller promises the elements of the mask's bits.
        let (first, second) = unsafe {
            let second = arch::_mm256_maskload_epi32(from.wrapping_add(8), mask.1);
            (arch::_mm256_maskload_epi32(from, mask.0), second)
        };
        __m512i(chosen(first, others.0, mask.0), chosen(second, others.1, mask.1))
    }

    pub(super) unsafe fn _mm512_mask_loadu_epi64(
        others: __m512i,
        mask: u8,
        from: *const i64,
    ) -> __m512i {
        let mask = long_lanes_of_bits(mask);
        // SAFETY: the caller promises the elements of the mask's bits.
        let (first, second) = unsafe {
            let second = arch::_mm256_maskload_epi64(from.wrapping_add(4), mask.1);
            (arch::_mm256_maskload_epi64(from, mask.0), second)
        };
        __m512i(chosen(first, others.0, mask.0), chosen(second, others.1, mask.1))
    }

    pub(super) unsafe fn _mm256_maskz_loadu_epi16(mask: u16, from: *const i16) -> __m256i {
        // SAFETY: the caller promises the elements of the mask's bits.
        unsafe { _mm256_mask_loadu_epi16(arch::_mm256_setzero_si256(), mask, from) }
    }

    /// The bits of the mask are the first ones.
    pub(super) unsafe fn _mm256_mask_loadu_epi16(
        others: __m256i,
        mask: u16,
        from: *const i16,
    ) -> __m256i {
        if mask == u16::MAX {
            // SAFETY: the caller promises 16 elements.
            return unsafe { arch::_mm256_loadu_si256(from.cast()) };
        }
        let count = mask.count_ones() as usize;
        let mut room = [0i16; 16];
        // SAFETY: the caller promises so many elements, fewer than the room has; parts of a known
        // length are copied by single instructions.
        unsafe {
            let (mut at, to) = (0, room.as_mut_ptr());
            for part in [8, 4, 2, 1] {
                if count & part != 0 {
                    to.add(at).copy_from_nonoverlapping(from.add(at), part);
                    at += part;
                }
            }
        }
        // SAFETY: the room has 16 elements.
        let loaded = unsafe { arch::_mm256_loadu_si256(room.as_ptr().cast()) };
        let lanes = lanes_of_bits(mask);
        let lanes = arch::_mm256_packs_epi32(lanes.0, lanes.1);
        chosen(loaded, others, arch::_mm256_permute4x64_epi64::<0b11_01_10_00>(lanes))
    }
}
