//! The instructions of AVX-512 that the loops use, made of those of NEON. They have the names of
//! Intel's intrinsics and do the same.

#![expect(non_camel_case_types, reason = "types have Intel's names, too")]

use std::arch::aarch64::{self as arch, uint8x16_t, uint8x16x4_t, uint16x8_t, uint32x4_t};

use crate::vectors::narrow::word_of_column;

mod memory;

/// None of these loses NaN.
pub(super) use self::{
    least_pd as quick_least_pd, least_ps as quick_least_ps, most_pd as quick_most_pd,
    most_ps as quick_most_ps,
};
pub(super) use memory::{
    _mm256_loadu_si256, _mm256_mask_loadu_epi16, _mm256_maskz_loadu_epi16, _mm256_storeu_si256,
    _mm512_loadu_si512, _mm512_loadu_si512 as loadu_in_order, _mm512_mask_loadu_epi32,
    _mm512_mask_loadu_epi64, _mm512_storeu_si512, _mm512_storeu_si512 as _mm512_stream_si512,
};

/// NaN is not looked for, since no function loses it.
#[derive(Clone, Copy)]
pub(super) struct Nans;

/// The vectors that registers hold.
pub(super) const REGISTERS: usize = 8;
/// Whether a part of a vector is loaded as fast as the whole.
pub(super) const HAS_MASKS: bool = false;
/// The longest rows that are transposed to be searched.
pub(super) const MOST_NARROW: usize = 7;

/// A vector of 512 bits, of whatever lanes, by its quarters.
#[derive(Clone, Copy)]
pub(super) struct __m512i([uint32x4_t; 4]);
pub(super) type __m512 = __m512i;
pub(super) type __m512d = __m512i;

/// A vector of 16 lanes of 16 bits, by its halves.
#[derive(Clone, Copy)]
pub(super) struct __m256i(uint16x8_t, uint16x8_t);

/// Comparisons, by Intel's numbers.
pub(super) const _CMP_EQ_OQ: i32 = 0;
pub(super) const _CMP_UNORD_Q: i32 = 3;
pub(super) const _MM_FROUND_TO_NEAREST_INT: i32 = 0;
pub(super) const _MM_HINT_T0: i32 = 3;
pub(super) const _MM_HINT_T1: i32 = 2;

/// Instructions that do the same to all quarters of two vectors.
macro_rules! quarters {
    (|$a:ident, $b:ident| $($name:ident = $quarter:expr;)*) => {
        wide! { $(
            pub(super) fn $name(one: __m512i, other: __m512i) -> __m512i {
                let quarter = |$a: uint32x4_t, $b: uint32x4_t| $quarter;
                let ([a, b, c, d], [e, f, g, h]) = (one.0, other.0);
                __m512i([quarter(a, e), quarter(b, f), quarter(c, g), quarter(d, h)])
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
    ($op:ident ($($a:expr),*)) => {
        arch::vreinterpretq_u32_f32(arch::$op($(arch::vreinterpretq_f32_u32($a)),*))
    };
}

/// An instruction on vectors of `f64`.
macro_rules! pd {
    ($op:ident ($($a:expr),*)) => {
        arch::vreinterpretq_u32_f64(arch::$op($(arch::vreinterpretq_f64_u32($a)),*))
    };
}

/// An instruction on vectors of `i32`.
macro_rules! epi32 {
    ($op:ident ($($a:expr),*)) => {
        arch::vreinterpretq_u32_s32(arch::$op($(arch::vreinterpretq_s32_u32($a)),*))
    };
}

/// An instruction on vectors of `u64`.
macro_rules! epu64 {
    ($op:ident ($($a:expr),*)) => {
        arch::vreinterpretq_u32_u64(arch::$op($(arch::vreinterpretq_u64_u32($a)),*))
    };
}

/// A comparison of vectors of lanes of 64 bits.
macro_rules! compared {
    ($op:ident, $as:ident ($a:expr, $b:expr)) => {
        arch::vreinterpretq_u32_u64(arch::$op(arch::$as($a), arch::$as($b)))
    };
}

wide! {
    /// The bits of `a` where those of `mask` are set, else those of `b`.
    fn chosen(a: uint32x4_t, b: uint32x4_t, mask: uint32x4_t) -> uint32x4_t {
        arch::vbslq_u32(mask, a, b)
    }

    fn above_epi64(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        compared!(vcgtq_s64, vreinterpretq_s64_u32(a, b))
    }

    fn above_epu64(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        compared!(vcgtq_u64, vreinterpretq_u64_u32(a, b))
    }
}

mod powers;

pub(super) use powers::{_mm512_fmadd_ps, _mm512_fnmadd_ps, times_power_of_two};

casts!(_mm512_castps_si512 _mm512_castsi512_ps _mm512_castpd_si512 _mm512_castsi512_pd);

quarters! { |a, b|
    _mm512_add_epi32 = arch::vaddq_u32(a, b);
    _mm512_add_epi64 = epu64!(vaddq_u64(a, b));
    _mm512_and_si512 = arch::vandq_u32(a, b);
    _mm512_xor_si512 = arch::veorq_u32(a, b);
    _mm512_max_epi32 = epi32!(vmaxq_s32(a, b));
    _mm512_min_epi32 = epi32!(vminq_s32(a, b));
    _mm512_max_epu32 = arch::vmaxq_u32(a, b);
    _mm512_min_epu32 = arch::vminq_u32(a, b);
    _mm512_max_epi64 = chosen(a, b, above_epi64(a, b));
    _mm512_min_epi64 = chosen(b, a, above_epi64(a, b));
    _mm512_max_epu64 = chosen(a, b, above_epu64(a, b));
    _mm512_min_epu64 = chosen(b, a, above_epu64(a, b));
    _mm512_unpacklo_epi64 = epu64!(vzip1q_u64(a, b));
    _mm512_unpackhi_epi64 = epu64!(vzip2q_u64(a, b));
    _mm512_add_ps = ps!(vaddq_f32(a, b));
    _mm512_sub_ps = ps!(vsubq_f32(a, b));
    _mm512_add_pd = pd!(vaddq_f64(a, b));
    _mm512_sub_pd = pd!(vsubq_f64(a, b));
    _mm512_mul_ps = ps!(vmulq_f32(a, b));
    _mm512_mul_pd = pd!(vmulq_f64(a, b));
    _mm512_div_ps = ps!(vdivq_f32(a, b));
    _mm512_div_pd = pd!(vdivq_f64(a, b));
    // These return NaN if an operand is NaN.
    most_ps = ps!(vmaxq_f32(a, b));
    least_ps = ps!(vminq_f32(a, b));
    most_pd = pd!(vmaxq_f64(a, b));
    least_pd = pd!(vminq_f64(a, b));
}

/// Vectors of equal lanes.
macro_rules! repeated {
    ($($name:ident, $type:ty, |$x:ident| $quarter:expr;)*) => {
        wide! { $(
            pub(super) fn $name($x: $type) -> __m512i {
                __m512i([$quarter; 4])
            }
        )* }
    };
}

repeated! {
    _mm512_set1_epi32, i32, |x| arch::vreinterpretq_u32_s32(arch::vdupq_n_s32(x));
    _mm512_set1_epi64, i64, |x| arch::vreinterpretq_u32_s64(arch::vdupq_n_s64(x));
    _mm512_set1_ps, f32, |x| arch::vreinterpretq_u32_f32(arch::vdupq_n_f32(x));
    _mm512_set1_pd, f64, |x| arch::vreinterpretq_u32_f64(arch::vdupq_n_f64(x));
}

wide! {
    fn words(words: [u32; 4]) -> uint32x4_t {
        // SAFETY: a vector has four words.
        unsafe { arch::vld1q_u32(words.as_ptr()) }
    }

    fn bytes(bytes: &[u8; 16]) -> uint8x16_t {
        // SAFETY: a vector has 16 bytes.
        unsafe { arch::vld1q_u8(bytes.as_ptr()) }
    }

    /// A function of each quarter.
    fn quarters(a: __m512i, quarter: impl Fn(uint32x4_t) -> uint32x4_t) -> __m512i {
        __m512i(a.0.map(quarter))
    }

    pub(super) fn _mm512_setzero_si512() -> __m512i {
        __m512i([arch::vdupq_n_u32(0); 4])
    }

    #[expect(clippy::too_many_arguments, reason = "as many as lanes")]
    pub(super) fn _mm512_setr_epi32(
        a: i32, b: i32, c: i32, d: i32, e: i32, f: i32, g: i32, h: i32,
        i: i32, j: i32, k: i32, l: i32, m: i32, n: i32, o: i32, p: i32,
    ) -> __m512i {
        let all = [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]];
        __m512i(all.map(|quarter| words(quarter.map(i32::cast_unsigned))))
    }

    #[expect(clippy::too_many_arguments, reason = "as many as lanes")]
    pub(super) fn _mm512_setr_epi64(
        a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64,
    ) -> __m512i {
        let quarter = |[a, b]: [i64; 2]| {
            let (a, b) = (arch::vdup_n_s64(a), arch::vdup_n_s64(b));
            arch::vreinterpretq_u32_s64(arch::vcombine_s64(a, b))
        };
        __m512i([[a, b], [c, d], [e, f], [g, h]].map(quarter))
    }

    pub(super) fn _mm512_slli_epi32<const BY: i32>(a: __m512i) -> __m512i {
        quarters(a, |a| arch::vshlq_n_u32::<BY>(a))
    }

    pub(super) fn _mm512_srli_epi64<const BY: i32>(a: __m512i) -> __m512i {
        quarters(a, |a| {
            let moved = arch::vshrq_n_u64::<BY>(arch::vreinterpretq_u64_u32(a));
            arch::vreinterpretq_u32_u64(moved)
        })
    }

    pub(super) fn _mm512_srai_epi32<const BY: i32>(a: __m512i) -> __m512i {
        quarters(a, |a| {
            let moved = arch::vshrq_n_s32::<BY>(arch::vreinterpretq_s32_u32(a));
            arch::vreinterpretq_u32_s32(moved)
        })
    }

    /// Lanes within quarters; for those that the loops need: the even ones of both, or the odd ones.
    pub(super) fn _mm512_shuffle_ps<const BY: i32>(one: __m512, other: __m512) -> __m512 {
        let quarter = |n: usize| match BY {
            0x88 => arch::vuzp1q_u32(one.0[n], other.0[n]),
            _ => arch::vuzp2q_u32(one.0[n], other.0[n]),
        };
        __m512i([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    /// Quarters of both vectors, by two bits each.
    pub(super) fn _mm512_shuffle_i32x4<const BY: usize>(a: __m512i, b: __m512i) -> __m512i {
        __m512i([a.0[BY & 3], a.0[BY >> 2 & 3], b.0[BY >> 4 & 3], b.0[BY >> 6 & 3]])
    }

    fn table(words: [uint32x4_t; 4]) -> uint8x16x4_t {
        let [a, b, c, d] = words.map(|words| arch::vreinterpretq_u8_u32(words));
        uint8x16x4_t(a, b, c, d)
    }

    /// Lanes by their numbers.
    pub(super) fn _mm512_permutexvar_epi32(numbers: __m512i, a: __m512i) -> __m512i {
        let table = table(a.0);
        quarters(numbers, |numbers| {
            let bytes = arch::vmlaq_n_u32(arch::vdupq_n_u32(0x0302_0100), numbers, 0x0404_0404);
            let found = arch::vqtbl4q_u8(table, arch::vreinterpretq_u8_u32(bytes));
            arch::vreinterpretq_u32_u8(found)
        })
    }

    pub(super) fn _mm512_permutexvar_epi64(numbers: __m512i, a: __m512i) -> __m512i {
        // Lane n of 64 bits is lanes 2n and 2n + 1 of 32 bits.
        let of_words = quarters(numbers, |numbers| {
            let twice = arch::vshlq_n_u32::<1>(arch::vtrn1q_u32(numbers, numbers));
            arch::vaddq_u32(twice, words([0, 1, 0, 1]))
        });
        _mm512_permutexvar_epi32(of_words, a)
    }

    /// Moves `ROWS` rows of `len` lanes at the beginning of a vector each to an equal part of it; the
    /// lanes behind are those of `others`.
    #[expect(clippy::cast_possible_truncation, reason = "few lanes")]
    pub(super) fn spread_epi32<const ROWS: usize>(
        others: __m512i,
        packed: __m512i,
        len: usize,
    ) -> __m512i {
        spread::<ROWS>(others, packed, len as u32)
    }

    /// As [`spread_epi32`].
    #[expect(clippy::cast_possible_truncation, reason = "few lanes")]
    pub(super) fn spread_epi64<const ROWS: usize>(
        others: __m512i,
        packed: __m512i,
        len: usize,
    ) -> __m512i {
        spread::<ROWS>(others, packed, 2 * len as u32)
    }

    /// Moves rows of `len` lanes of 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "few lanes")]
    fn spread<const ROWS: usize>(others: __m512i, packed: __m512i, len: u32) -> __m512i {
        let part = 16 / ROWS as u32;
        let lanes = [0, 4, 8, 12].map(|first: u32| [first, first + 1, first + 2, first + 3]);
        let within = lanes.map(|lanes| words(lanes.map(|lane| lane % part)));
        let rows = lanes.map(|lanes| words(lanes.map(|lane| lane / part)));
        let from = |n: usize| arch::vmlaq_n_u32(within[n], rows[n], len);
        let from = __m512i([from(0), from(1), from(2), from(3)]);
        let moved = _mm512_permutexvar_epi32(from, packed);
        let len = arch::vdupq_n_u32(len);
        let lane = |n: usize| chosen(moved.0[n], others.0[n], arch::vcltq_u32(within[n], len));
        __m512i([lane(0), lane(1), lane(2), lane(3)])
    }

    /// The columns of rows that lie side by side in vectors, see [`Columns`].
    pub(super) fn columns<const LEN: usize, const WIDE: usize>(
        rows: [__m512i; LEN],
    ) -> [__m512i; LEN] {
        // Each quarter of a column comes from `LEN` quarters of vectors, eight at most.
        let part = |n: usize| rows[n / 4].0[n % 4];
        let quarter = |quarter: usize, column: usize| {
            let part = |n: usize| part(quarter * LEN + n.min(LEN - 1));
            let places = bytes(&Columns::<LEN, WIDE>::PLACES[column]);
            let first = table([part(0), part(1), part(2), part(3)]);
            let second = table([part(4), part(5), part(6), part(7)]);
            let found = arch::vqtbl4q_u8(first, places);
            let later = arch::vsubq_u8(places, arch::vdupq_n_u8(64));
            // A place that is outside of the table leaves what was found.
            arch::vreinterpretq_u32_u8(arch::vqtbx4q_u8(found, second, later))
        };
        let mut columns = rows;
        for (n, column) in columns.iter_mut().enumerate() {
            *column = __m512i([quarter(0, n), quarter(1, n), quarter(2, n), quarter(3, n)]);
        }
        columns
    }

    /// A lane of 32 bits for each bit.
    fn lanes_of_bits(mask: u16) -> __m512i {
        let mask = arch::vdupq_n_u32(u32::from(mask));
        let quarter = |n: u32| arch::vtstq_u32(mask, words([1 << n, 2 << n, 4 << n, 8 << n]));
        __m512i([quarter(0), quarter(4), quarter(8), quarter(12)])
    }

    /// A lane of 64 bits for each bit.
    fn long_lanes_of_bits(mask: u8) -> __m512i {
        let mask = arch::vdupq_n_u32(u32::from(mask));
        let quarter = |n: u32| arch::vtstq_u32(mask, words([1 << n, 1 << n, 2 << n, 2 << n]));
        __m512i([quarter(0), quarter(2), quarter(4), quarter(6)])
    }

    /// The lower halves of lanes of 32 bits.
    fn halved(a: __m512i) -> __m256i {
        let [a, b, c, d] = a.0.map(|quarter| arch::vreinterpretq_u16_u32(quarter));
        __m256i(arch::vuzp1q_u16(a, b), arch::vuzp1q_u16(c, d))
    }

    /// A bit for each lane of 32 bits.
    fn bits_of(lanes: __m512i) -> u16 {
        let __m256i(first, second) = halved(lanes);
        let (first, second) = (arch::vreinterpretq_u8_u16(first), arch::vreinterpretq_u8_u16(second));
        let each = bytes(&[1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128]);
        let bits = arch::vandq_u8(arch::vuzp1q_u8(first, second), each);
        let first = arch::vaddv_u8(arch::vget_low_u8(bits));
        u16::from(first) | u16::from(arch::vaddv_u8(arch::vget_high_u8(bits))) << 8
    }

    /// A bit for each lane of 64 bits.
    fn bits_of_long(lanes: __m512i) -> u8 {
        let [a, b, c, d] = lanes.0;
        let first = arch::vreinterpretq_u16_u32(arch::vuzp1q_u32(a, b));
        let second = arch::vreinterpretq_u16_u32(arch::vuzp1q_u32(c, d));
        let bytes = arch::vmovn_u16(arch::vuzp1q_u16(first, second));
        let each = arch::vreinterpret_u8_u64(arch::vdup_n_u64(0x8040_2010_0804_0201));
        arch::vaddv_u8(arch::vand_u8(bytes, each))
    }

    pub(super) fn _mm512_cmpeq_epi32_mask(a: __m512i, b: __m512i) -> u16 {
        bits_of(equal_epi32(a, b))
    }

    pub(super) fn _mm512_cmpeq_epi64_mask(a: __m512i, b: __m512i) -> u8 {
        bits_of_long(equal_epi64(a, b))
    }

    pub(super) fn _mm512_cmp_ps_mask<const BY: i32>(a: __m512, b: __m512) -> u16 {
        // `a` and `b` are ordered where each is equal to itself.
        if BY == _CMP_UNORD_Q {
            return !bits_of(_mm512_and_si512(equal_ps(a, a), equal_ps(b, b)));
        }
        bits_of(equal_ps(a, b))
    }

    pub(super) fn _mm512_cmp_pd_mask<const BY: i32>(a: __m512d, b: __m512d) -> u8 {
        if BY == _CMP_UNORD_Q {
            return !bits_of_long(_mm512_and_si512(equal_pd(a, a), equal_pd(b, b)));
        }
        bits_of_long(equal_pd(a, b))
    }

    fn chosen_lanes(a: __m512i, b: __m512i, mask: __m512i) -> __m512i {
        let quarter = |n: usize| chosen(a.0[n], b.0[n], mask.0[n]);
        __m512i([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    pub(super) fn _mm512_mask_min_epu32(
        others: __m512i,
        mask: u16,
        a: __m512i,
        b: __m512i,
    ) -> __m512i {
        chosen_lanes(_mm512_min_epu32(a, b), others, lanes_of_bits(mask))
    }

    pub(super) fn _mm512_mask_min_epu64(
        others: __m512i,
        mask: u8,
        a: __m512i,
        b: __m512i,
    ) -> __m512i {
        chosen_lanes(_mm512_min_epu64(a, b), others, long_lanes_of_bits(mask))
    }

    pub(super) fn _mm512_mask_mov_epi32(others: __m512i, mask: u16, a: __m512i) -> __m512i {
        chosen_lanes(a, others, lanes_of_bits(mask))
    }

    pub(super) fn _mm512_mask_mov_epi64(others: __m512i, mask: u8, a: __m512i) -> __m512i {
        chosen_lanes(a, others, long_lanes_of_bits(mask))
    }

    pub(super) fn _mm512_maskz_mul_ps(mask: u16, a: __m512, b: __m512) -> __m512 {
        _mm512_and_si512(product_ps(a, b), lanes_of_bits(mask))
    }

    pub(super) fn _mm512_maskz_mul_pd(mask: u8, a: __m512d, b: __m512d) -> __m512d {
        _mm512_and_si512(product_pd(a, b), long_lanes_of_bits(mask))
    }

    pub(super) fn _mm512_cvtepi16_epi32(a: __m256i) -> __m512i {
        let wide = |half| {
            let half = arch::vreinterpretq_s16_u16(half);
            let first = arch::vmovl_s16(arch::vget_low_s16(half));
            [first, arch::vmovl_high_s16(half)].map(|wide| arch::vreinterpretq_u32_s32(wide))
        };
        let ([a, b], [c, d]) = (wide(a.0), wide(a.1));
        __m512i([a, b, c, d])
    }

    pub(super) fn _mm512_cvtepu16_epi32(a: __m256i) -> __m512i {
        let wide = |half| (arch::vmovl_u16(arch::vget_low_u16(half)), arch::vmovl_high_u16(half));
        let ((a, b), (c, d)) = (wide(a.0), wide(a.1));
        __m512i([a, b, c, d])
    }

    pub(super) fn _mm512_cvtph_ps(a: __m256i) -> __m512 {
        let wide = |half| {
            let wide = arch::vcvt_f32_f16(arch::vreinterpret_f16_u16(half));
            arch::vreinterpretq_u32_f32(wide)
        };
        let (first, second) = (a.0, a.1);
        __m512i([
            wide(arch::vget_low_u16(first)),
            wide(arch::vget_high_u16(first)),
            wide(arch::vget_low_u16(second)),
            wide(arch::vget_high_u16(second)),
        ])
    }

    /// Numbers that 16 bits hold.
    pub(super) fn _mm512_cvtps_ph<const ROUNDING: i32>(a: __m512) -> __m256i {
        let [a, b, c, d] = a.0.map(|quarter| {
            let narrow = arch::vcvt_f16_f32(arch::vreinterpretq_f32_u32(quarter));
            arch::vreinterpret_u16_f16(narrow)
        });
        __m256i(arch::vcombine_u16(a, b), arch::vcombine_u16(c, d))
    }

    /// Numbers that 16 bits hold.
    pub(super) fn _mm512_cvtepi32_epi16(a: __m512i) -> __m256i {
        halved(a)
    }

    pub(super) fn _mm512_cvtepi64_epi32(a: __m512i) -> __m256i {
        let [a, b, c, d] = a.0;
        let halves = [arch::vuzp1q_u32(a, b), arch::vuzp1q_u32(c, d)];
        let [first, second] = halves.map(|half| arch::vreinterpretq_u16_u32(half));
        __m256i(first, second)
    }

    pub(super) fn _mm256_set1_epi16(x: i16) -> __m256i {
        let half = arch::vdupq_n_u16(x.cast_unsigned());
        __m256i(half, half)
    }

    pub(super) fn _mm256_add_epi16(a: __m256i, b: __m256i) -> __m256i {
        __m256i(arch::vaddq_u16(a.0, b.0), arch::vaddq_u16(a.1, b.1))
    }

    pub(super) fn _mm256_sub_epi16(a: __m256i, b: __m256i) -> __m256i {
        __m256i(arch::vsubq_u16(a.0, b.0), arch::vsubq_u16(a.1, b.1))
    }

    pub(super) fn _mm256_max_epi16(a: __m256i, b: __m256i) -> __m256i {
        let half = |a, b| {
            let (a, b) = (arch::vreinterpretq_s16_u16(a), arch::vreinterpretq_s16_u16(b));
            arch::vreinterpretq_u16_s16(arch::vmaxq_s16(a, b))
        };
        __m256i(half(a.0, b.0), half(a.1, b.1))
    }

    pub(super) fn _mm256_min_epi16(a: __m256i, b: __m256i) -> __m256i {
        let half = |a, b| {
            let (a, b) = (arch::vreinterpretq_s16_u16(a), arch::vreinterpretq_s16_u16(b));
            arch::vreinterpretq_u16_s16(arch::vminq_s16(a, b))
        };
        __m256i(half(a.0, b.0), half(a.1, b.1))
    }

    pub(super) fn _mm256_and_si256(a: __m256i, b: __m256i) -> __m256i {
        __m256i(arch::vandq_u16(a.0, b.0), arch::vandq_u16(a.1, b.1))
    }

    pub(super) fn _mm256_xor_si256(a: __m256i, b: __m256i) -> __m256i {
        __m256i(arch::veorq_u16(a.0, b.0), arch::veorq_u16(a.1, b.1))
    }

    pub(super) fn _mm256_srai_epi16<const BY: i32>(a: __m256i) -> __m256i {
        let half = |half| {
            let moved = arch::vshrq_n_s16::<BY>(arch::vreinterpretq_s16_u16(half));
            arch::vreinterpretq_u16_s16(moved)
        };
        __m256i(half(a.0), half(a.1))
    }

    pub(super) fn no_nans() -> Nans {
        Nans
    }

    pub(super) fn nans_ps(_seen: Nans, _a: __m512, _b: __m512) -> Nans {
        Nans
    }

    pub(super) fn nans_pd(_seen: Nans, _a: __m512d, _b: __m512d) -> Nans {
        Nans
    }

    pub(super) fn any_nans(_seen: Nans) -> bool {
        false
    }

    /// Does nothing: whether fetching ahead helps was not measured on such CPUs.
    pub(super) fn _mm_prefetch<const HINT: i32>(_from: *const i8) {}
}

quarters! { |a, b|
    equal_epi32 = arch::vceqq_u32(a, b);
    equal_epi64 = compared!(vceqq_u64, vreinterpretq_u64_u32(a, b));
    equal_ps = arch::vceqq_f32(arch::vreinterpretq_f32_u32(a), arch::vreinterpretq_f32_u32(b));
    equal_pd = compared!(vceqq_f64, vreinterpretq_f64_u32(a, b));
    product_ps = ps!(vmulq_f32(a, b));
    product_pd = pd!(vmulq_f64(a, b));
}

/// Where the bytes of columns lie, see [`columns`].
struct Columns<const LEN: usize, const WIDE: usize>;

impl<const LEN: usize, const WIDE: usize> Columns<LEN, WIDE> {
    const PLACES: [[u8; 16]; LEN] = Self::places();

    #[expect(clippy::cast_possible_truncation, reason = "at most 112 bytes")]
    const fn places() -> [[u8; 16]; LEN] {
        let mut all = [[0; 16]; LEN];
        let mut column = 0;
        while column < LEN {
            let mut byte = 0;
            while byte < 16 {
                let word = word_of_column::<LEN, WIDE>(column, byte / 4);
                all[column][byte] = (word * 4 + byte % 4) as u8;
                byte += 1;
            }
            column += 1;
        }
        all
    }
}
