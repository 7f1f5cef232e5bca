//! The folds whose accumulators are lanes of vectors.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::arch;
use super::arch::{__m256i, __m512i};
use crate::elements::Short;

/// An op that merges lanes of vectors.
pub(super) trait Merge {
    /// The bits of a lane: 32 or 64.
    const BITS: usize;
    /// The lanes of a vector.
    const COUNT: usize = 512 / Self::BITS;

    /// A vector of lanes that change nothing.
    unsafe fn start() -> __m512i;
    unsafe fn combine(a: __m512i, b: __m512i) -> __m512i;
    /// As [`combine`](Self::combine), but NaN may be lost.
    unsafe fn combine_numbers(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller promises the level.
        unsafe { Self::combine(a, b) }
    }
}

/// A fold whose accumulators are lanes of a vector.
pub(super) trait Lanes: Merge {
    type Element: Copy;
    type Accumulator: Copy;

    /// The bytes of as many elements as there are lanes.
    const BYTES: usize = Self::COUNT * size_of::<Self::Element>();

    /// The accumulators of one element each, as many as there are lanes.
    unsafe fn load(from: *const Self::Element) -> __m512i;
    /// The same, of elements that are read in the order of memory.
    unsafe fn load_in_order(from: *const Self::Element) -> __m512i {
        // SAFETY: the caller promises the same.
        unsafe { Self::load(from) }
    }
    /// The same of the first elements alone, for each bit of `mask`; nothing else is read.
    unsafe fn load_first(from: *const Self::Element, mask: u16) -> __m512i;
    /// Accumulators that were stored, as many as there are lanes.
    unsafe fn load_accumulators(from: *const Self::Accumulator) -> __m512i;
    /// Writes all lanes.
    unsafe fn store(lanes: __m512i, to: *mut Self::Accumulator);

    /// Adds whether lanes of two vectors are NaN, if [`Merge::combine_numbers`] may lose it.
    unsafe fn nans_of(seen: arch::Nans, _a: __m512i, _b: __m512i) -> arch::Nans {
        seen
    }

    /// Whether [`load_four`](Self::load_four) is faster than to load one vector after the other: where
    /// elements have fewer bits than lanes, and any order of combining is as good.
    const BY_FOUR: bool = false;
    /// Combines the accumulators of four vectors of elements side by side.
    unsafe fn load_four(from: *const Self::Element) -> __m512i {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let two = |from| Self::combine(Self::load(from), Self::load(from.add(Self::COUNT)));
            Self::combine(two(from), two(from.add(2 * Self::COUNT)))
        }
    }
    wide! {
        /// Adds four vectors of elements side by side to accumulators, which [`in_order`](Self::in_order)
        /// puts in order; tells of NaN as [`nans_of`](Self::nans_of).
        unsafe fn add_four(
            [a, b, c, d]: [__m512i; 4],
            from: *const Self::Element,
            nans: &mut arch::Nans,
        ) -> [__m512i; 4] {
            // SAFETY: the caller promises the level and the elements.
            unsafe {
                if Self::BY_FOUR {
                    return [Self::combine(a, Self::load_four(from)), b, c, d];
                }
                let (w, x) = (Self::load_in_order(from), Self::load_in_order(from.add(Self::COUNT)));
                *nans = Self::nans_of(*nans, w, x);
                let (a, b) = (Self::combine_numbers(a, w), Self::combine_numbers(b, x));
                let from = from.add(2 * Self::COUNT);
                let (y, z) = (Self::load_in_order(from), Self::load_in_order(from.add(Self::COUNT)));
                *nans = Self::nans_of(*nans, y, z);
                [a, b, Self::combine_numbers(c, y), Self::combine_numbers(d, z)]
            }
        }
    }
    /// The accumulators as if each vector had been added to the one with its number, if order matters.
    unsafe fn in_order(all: [__m512i; 4]) -> [__m512i; 4] {
        all
    }
}

/// A fold to an extremum, whose places can be found.
pub(super) trait Extremum: Lanes {
    /// How the least of several places is found.
    type Places: Merge;
    /// How the extremum of several of [`elements`](Self::elements) is found.
    type Compared: Merge;

    /// Writes the elements that accumulators stand for.
    unsafe fn store_elements(lanes: __m512i, to: *mut Self::Element);
    /// Writes elements that are given as [`elements`](Self::elements) are.
    unsafe fn store_numbers(numbers: __m512i, to: *mut Self::Element);
    /// The elements that accumulators stand for, as [`elements`](Self::elements) are.
    unsafe fn numbers(lanes: __m512i) -> __m512i;
    /// As many elements as there are lanes, of those whose bits are in `mask`: as they are, or as
    /// `f32`.
    unsafe fn elements(from: *const Self::Element, mask: u16) -> __m512i;
    /// Bits for elements that are equal.
    unsafe fn equal(a: __m512i, b: __m512i) -> u16;
    /// Bits for elements that are NaN.
    unsafe fn nans(elements: __m512i) -> u16;
}

/// The least of several places.
macro_rules! least_place {
    ($name:ident, $bits:literal, $set:ident, $min:ident) => {
        pub(super) struct $name;

        impl Merge for $name {
            const BITS: usize = $bits;

            wide! {
                unsafe fn start() -> __m512i {
                    arch::$set(-1)
                }
                unsafe fn combine(a: __m512i, b: __m512i) -> __m512i {
                    arch::$min(a, b)
                }
            }
        }
    };
}

least_place!(Place32, 32, _mm512_set1_epi32, _mm512_min_epu32);
least_place!(Place64, 64, _mm512_set1_epi64, _mm512_min_epu64);

/// A fold of elements that are lanes as they lie in memory.
macro_rules! lanes {
    ($name:ident, $type:ty, $bits:literal, $load:ident, $start:expr,
     |$a:ident, $b:ident| $combine:expr $(, $numbers:item, $nans:item)?) => {
        pub(super) struct $name;

        impl Merge for $name {
            const BITS: usize = $bits;

            wide! {
                unsafe fn start() -> __m512i {
                    $start
                }
                unsafe fn combine($a: __m512i, $b: __m512i) -> __m512i {
                    $combine
                }
                $($numbers)?
            }
        }

        impl Lanes for $name {
            type Element = $type;
            type Accumulator = $type;

            wide! {
                unsafe fn load(from: *const $type) -> __m512i {
                    // SAFETY: the caller promises the elements.
                    unsafe { arch::_mm512_loadu_si512(from.cast()) }
                }
                #[allow(clippy::cast_possible_truncation, reason = "there may be eight lanes")]
                unsafe fn load_first(from: *const $type, mask: u16) -> __m512i {
                    // SAFETY: the caller promises the elements of the mask's bits.
                    unsafe { arch::$load(Self::start(), mask as _, from.cast()) }
                }
                unsafe fn load_accumulators(from: *const $type) -> __m512i {
                    // SAFETY: the caller promises the level and the accumulators.
                    unsafe { Self::load(from) }
                }
                unsafe fn store(lanes: __m512i, to: *mut $type) {
                    // SAFETY: the caller promises room.
                    unsafe { arch::_mm512_storeu_si512(to.cast(), lanes) }
                }
                unsafe fn load_in_order(from: *const $type) -> __m512i {
                    // SAFETY: the caller promises the elements.
                    unsafe { arch::loadu_in_order(from.cast()) }
                }
                $($nans)?
            }
        }
    };
}

/// Finds elements that are lanes as they lie in memory.
macro_rules! extremum {
    ($type:ty, $load:ident, $places:ty, |$a:ident, $b:ident| $equal:expr,
     |$c:ident| $nans:expr, $($name:ident)*) => { $(
        impl Extremum for $name {
            type Places = $places;
            type Compared = Self;

            wide! {
                unsafe fn store_elements(lanes: __m512i, to: *mut $type) {
                    // SAFETY: the caller promises room.
                    unsafe { arch::_mm512_storeu_si512(to.cast(), lanes) }
                }
                unsafe fn store_numbers(numbers: __m512i, to: *mut $type) {
                    // SAFETY: the caller promises the same.
                    unsafe { Self::store_elements(numbers, to) }
                }
                unsafe fn numbers(lanes: __m512i) -> __m512i {
                    lanes
                }
                #[allow(clippy::cast_possible_truncation, reason = "there may be eight lanes")]
                unsafe fn elements(from: *const $type, mask: u16) -> __m512i {
                    let none = arch::_mm512_setzero_si512();
                    // SAFETY: the caller promises the elements of the mask's bits.
                    unsafe { arch::$load(none, mask as _, from.cast()) }
                }
                unsafe fn equal($a: __m512i, $b: __m512i) -> u16 {
                    u16::from($equal)
                }
                unsafe fn nans($c: __m512i) -> u16 {
                    u16::from($nans)
                }
            }
        }
    )* };
}

macro_rules! lanes_of_floats {
    ($type:ty, $bits:literal, $places:ty, $load:ident, $set:ident, $from:ident, $to:ident, $add:ident,
     $compare:ident, $nans:ident, $sum:ident, $max:ident $more:ident $quick_more:ident,
     $min:ident $less:ident $quick_less:ident) => {
        lanes!($sum, $type, $bits, $load, arch::$to(arch::$set(0.0)), |a, b| {
            arch::$to(arch::$add(arch::$from(a), arch::$from(b)))
        });
        lanes!($max, $type, $bits, $load, arch::$to(arch::$set(<$type>::NEG_INFINITY)), |a, b| {
            arch::$to(arch::$more(arch::$from(a), arch::$from(b)))
        }, unsafe fn combine_numbers(all: __m512i, next: __m512i) -> __m512i {
            arch::$to(arch::$quick_more(arch::$from(next), arch::$from(all)))
        }, unsafe fn nans_of(seen: arch::Nans, a: __m512i, b: __m512i) -> arch::Nans {
            arch::$nans(seen, arch::$from(a), arch::$from(b))
        });
        lanes!($min, $type, $bits, $load, arch::$to(arch::$set(<$type>::INFINITY)), |a, b| {
            arch::$to(arch::$less(arch::$from(a), arch::$from(b)))
        }, unsafe fn combine_numbers(all: __m512i, next: __m512i) -> __m512i {
            arch::$to(arch::$quick_less(arch::$from(next), arch::$from(all)))
        }, unsafe fn nans_of(seen: arch::Nans, a: __m512i, b: __m512i) -> arch::Nans {
            arch::$nans(seen, arch::$from(a), arch::$from(b))
        });
        extremum!($type, $load, $places, |a, b| {
            arch::$compare::<{ arch::_CMP_EQ_OQ }>(arch::$from(a), arch::$from(b))
        }, |a| {
            arch::$compare::<{ arch::_CMP_UNORD_Q }>(arch::$from(a), arch::$from(a))
        }, $max $min);
    };
}

lanes_of_floats!(
    f32, 32, Place32, _mm512_mask_loadu_epi32, _mm512_set1_ps, _mm512_castsi512_ps, _mm512_castps_si512,
    _mm512_add_ps, _mm512_cmp_ps_mask, nans_ps,
    SumF32, MaxF32 most_ps quick_most_ps, MinF32 least_ps quick_least_ps
);
lanes_of_floats!(
    f64, 64, Place64, _mm512_mask_loadu_epi64, _mm512_set1_pd, _mm512_castsi512_pd, _mm512_castpd_si512,
    _mm512_add_pd, _mm512_cmp_pd_mask, nans_pd,
    SumF64, MaxF64 most_pd quick_most_pd, MinF64 least_pd quick_least_pd
);

macro_rules! lanes_of_whole_numbers {
    ($($type:ty, $bits:literal, $places:ty, $load:ident, $set:ident, $add:ident, $equal:ident,
       $sum:ident, $max:ident $more:ident, $min:ident $less:ident;)*) => { $(
        lanes!($sum, $type, $bits, $load, arch::$set(0), |a, b| arch::$add(a, b));
        lanes!($max, $type, $bits, $load, arch::$set(<$type>::MIN as _), |a, b| arch::$more(a, b));
        lanes!($min, $type, $bits, $load, arch::$set(<$type>::MAX as _), |a, b| arch::$less(a, b));
        extremum!($type, $load, $places, |a, b| arch::$equal(a, b), |_a| 0u8, $max $min);
    )* };
}

lanes_of_whole_numbers! {
    i32, 32, Place32, _mm512_mask_loadu_epi32, _mm512_set1_epi32, _mm512_add_epi32, _mm512_cmpeq_epi32_mask,
        SumI32, MaxI32 _mm512_max_epi32, MinI32 _mm512_min_epi32;
    u32, 32, Place32, _mm512_mask_loadu_epi32, _mm512_set1_epi32, _mm512_add_epi32, _mm512_cmpeq_epi32_mask,
        SumU32, MaxU32 _mm512_max_epu32, MinU32 _mm512_min_epu32;
    i64, 64, Place64, _mm512_mask_loadu_epi64, _mm512_set1_epi64, _mm512_add_epi64, _mm512_cmpeq_epi64_mask,
        SumI64, MaxI64 _mm512_max_epi64, MinI64 _mm512_min_epi64;
    u64, 64, Place64, _mm512_mask_loadu_epi64, _mm512_set1_epi64, _mm512_add_epi64, _mm512_cmpeq_epi64_mask,
        SumU64, MaxU64 _mm512_max_epu64, MinU64 _mm512_min_epu64;
}

/// The lanes as numbers, which some instructions call for.
macro_rules! floats {
    ($lanes:expr) => {
        arch::_mm512_castsi512_ps($lanes)
    };
}

/// Floats of 16 bits in vectors.
pub(super) trait ShortLanes: Short {
    /// Their values as `f32`.
    unsafe fn widened(elements: __m256i) -> __m512i;
    /// The floats of 16 bits that have these values.
    unsafe fn narrowed(numbers: __m512i) -> __m256i;
    /// The values of the first and of the second float of each 32 bits, if these are found faster than
    /// those of neighbours.
    unsafe fn pairs(_elements: __m512i) -> Option<[__m512i; 2]> {
        None
    }
}

impl ShortLanes for bf16 {
    wide! {
        unsafe fn pairs(elements: __m512i) -> Option<[__m512i; 2]> {
            let second = arch::_mm512_and_si512(elements, arch::_mm512_set1_epi32(-0x1_0000));
            Some([arch::_mm512_slli_epi32::<16>(elements), second])
        }
        unsafe fn widened(elements: __m256i) -> __m512i {
            arch::_mm512_slli_epi32::<16>(arch::_mm512_cvtepu16_epi32(elements))
        }
        unsafe fn narrowed(numbers: __m512i) -> __m256i {
            arch::_mm512_cvtepi32_epi16(arch::_mm512_srai_epi32::<16>(numbers))
        }
    }
}

impl ShortLanes for f16 {
    wide! {
        unsafe fn widened(elements: __m256i) -> __m512i {
            arch::_mm512_castps_si512(arch::_mm512_cvtph_ps(elements))
        }
        unsafe fn narrowed(numbers: __m512i) -> __m256i {
            arch::_mm512_cvtps_ph::<{ arch::_MM_FROUND_TO_NEAREST_INT }>(floats!(numbers))
        }
    }
}

/// The sum of floats of 16 bits, in lanes of `f32`.
pub(super) struct SumOfShort<T>(PhantomData<T>);

impl<T: ShortLanes> Merge for SumOfShort<T> {
    const BITS: usize = 32;

    wide! {
        unsafe fn start() -> __m512i {
            arch::_mm512_setzero_si512()
        }
        unsafe fn combine(a: __m512i, b: __m512i) -> __m512i {
            arch::_mm512_castps_si512(arch::_mm512_add_ps(floats!(a), floats!(b)))
        }
    }
}

impl<T: ShortLanes> Lanes for SumOfShort<T> {
    type Element = T;
    type Accumulator = f32;

    wide! {
        unsafe fn add_four(
            [a, b, c, d]: [__m512i; 4],
            from: *const T,
            _nans: &mut arch::Nans,
        ) -> [__m512i; 4] {
            // SAFETY: the caller promises the level and the elements.
            unsafe {
                let (first, second) = (from, from.add(2 * Self::COUNT));
                let two = |from: *const T| match T::pairs(arch::_mm512_loadu_si512(from.cast())) {
                    Some(pairs) => pairs,
                    None => [Self::load(from), Self::load(from.add(Self::COUNT))],
                };
                let ([w, x], [y, z]) = (two(first), two(second));
                let (a, b) = (Self::combine(a, w), Self::combine(b, x));
                [a, b, Self::combine(c, y), Self::combine(d, z)]
            }
        }
        unsafe fn in_order([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
            // SAFETY: the caller promises the level.
            if unsafe { T::pairs(a) }.is_none() {
                return [a, b, c, d];
            }
            let ([a, b], [c, d]) = (alternated(a, b), alternated(c, d));
            [a, b, c, d]
        }
        unsafe fn load(from: *const T) -> __m512i {
            // SAFETY: the caller promises the level and the elements.
            unsafe { T::widened(arch::_mm256_loadu_si256(from.cast())) }
        }
        unsafe fn load_first(from: *const T, mask: u16) -> __m512i {
            // SAFETY: the caller promises the level and the elements of the mask's bits.
            unsafe { T::widened(arch::_mm256_maskz_loadu_epi16(mask, from.cast())) }
        }
        unsafe fn load_accumulators(from: *const f32) -> __m512i {
            // SAFETY: the caller promises the accumulators.
            unsafe { arch::_mm512_loadu_si512(from.cast()) }
        }
        unsafe fn store(lanes: __m512i, to: *mut f32) {
            // SAFETY: the caller promises room.
            unsafe { arch::_mm512_storeu_si512(to.cast(), lanes) }
        }
    }
}

wide! {
    /// The lanes of two vectors in turn: those of the first halves, then those of the second ones.
    fn alternated(even: __m512i, odd: __m512i) -> [__m512i; 2] {
        let low = arch::_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        let high = arch::_mm512_add_epi32(low, arch::_mm512_set1_epi32(8));
        let mixed = |numbers| {
            let even = arch::_mm512_permutexvar_epi32(numbers, even);
            let odd = arch::_mm512_permutexvar_epi32(numbers, odd);
            arch::_mm512_mask_mov_epi32(even, 0xaaaa, odd)
        };
        [mixed(low), mixed(high)]
    }

    /// Reverses the order of negative numbers whose sign is a bit of its own.
    fn ordered(bits: __m256i) -> __m256i {
        let negative = arch::_mm256_srai_epi16::<15>(bits);
        let turned = arch::_mm256_and_si256(negative, arch::_mm256_set1_epi16(i16::MAX));
        arch::_mm256_xor_si256(bits, turned)
    }
}

/// The extremum of floats of 16 bits, by their ranks, which are lanes of 32 bits.
macro_rules! extremum_of_short_floats {
    ($name:ident, $compared:ident, $start:expr, $outermost:expr, $shift:ident, $back:ident,
     $combine:ident, $combine_short:ident) => {
        pub(super) struct $name<T>(PhantomData<T>);

        impl<T: ShortLanes> $name<T> {
            wide! {
                /// The ranks of elements: see [`Number::Rank`](crate::Number::Rank).
                unsafe fn ranks(elements: __m256i) -> __m512i {
                    // SAFETY: the caller promises the level.
                    arch::_mm512_cvtepi16_epi32(unsafe { Self::short_ranks(elements) })
                }
                /// The ranks of a vector's elements in memory.
                unsafe fn short(from: *const T) -> __m256i {
                    // SAFETY: the caller promises the level and the elements.
                    unsafe { Self::short_ranks(arch::_mm256_loadu_si256(from.cast())) }
                }
                unsafe fn short_ranks(elements: __m256i) -> __m256i {
                    arch::$shift(ordered(elements), arch::_mm256_set1_epi16(T::NANS))
                }
                /// The elements of ranks.
                unsafe fn of_ranks(lanes: __m512i) -> __m256i {
                    let nans = arch::_mm256_set1_epi16(T::NANS);
                    ordered(arch::$back(arch::_mm512_cvtepi32_epi16(lanes), nans))
                }
            }
        }

        impl<T: ShortLanes> Merge for $name<T> {
            const BITS: usize = 32;

            wide! {
                unsafe fn start() -> __m512i {
                    arch::_mm512_set1_epi32(i32::from($start))
                }
                unsafe fn combine(a: __m512i, b: __m512i) -> __m512i {
                    arch::$combine(a, b)
                }
            }
        }

        impl<T: ShortLanes> Lanes for $name<T> {
            type Element = T;
            type Accumulator = i16;
            const BY_FOUR: bool = true;

            wide! {
                unsafe fn load_four(from: *const T) -> __m512i {
                    // SAFETY: the caller promises the level and the elements.
                    unsafe {
                        let (a, b) = (Self::short(from), Self::short(from.add(Self::COUNT)));
                        let from = from.add(2 * Self::COUNT);
                        let (c, d) = (Self::short(from), Self::short(from.add(Self::COUNT)));
                        let (a, b) = (arch::$combine_short(a, b), arch::$combine_short(c, d));
                        arch::_mm512_cvtepi16_epi32(arch::$combine_short(a, b))
                    }
                }
                unsafe fn load(from: *const T) -> __m512i {
                    // SAFETY: the caller promises the level and the elements.
                    unsafe { Self::ranks(arch::_mm256_loadu_si256(from.cast())) }
                }
                unsafe fn load_first(from: *const T, mask: u16) -> __m512i {
                    let others = arch::_mm256_set1_epi16($outermost.bits());
                    // SAFETY: the caller promises the level and the elements of the mask's bits.
                    unsafe {
                        Self::ranks(arch::_mm256_mask_loadu_epi16(others, mask, from.cast()))
                    }
                }
                unsafe fn load_accumulators(from: *const i16) -> __m512i {
                    // SAFETY: the caller promises the accumulators.
                    arch::_mm512_cvtepi16_epi32(unsafe { arch::_mm256_loadu_si256(from.cast()) })
                }
                unsafe fn store(lanes: __m512i, to: *mut i16) {
                    let ranks = arch::_mm512_cvtepi32_epi16(lanes);
                    // SAFETY: the caller promises room.
                    unsafe { arch::_mm256_storeu_si256(to.cast(), ranks) }
                }
            }
        }

        impl<T: ShortLanes> Extremum for $name<T> {
            type Places = Place32;
            type Compared = $compared;

            wide! {
                unsafe fn store_elements(lanes: __m512i, to: *mut T) {
                    // SAFETY: the caller promises the level and room.
                    unsafe { arch::_mm256_storeu_si256(to.cast(), Self::of_ranks(lanes)) }
                }
                unsafe fn store_numbers(numbers: __m512i, to: *mut T) {
                    // SAFETY: the caller promises the level and room.
                    unsafe { arch::_mm256_storeu_si256(to.cast(), T::narrowed(numbers)) }
                }
                unsafe fn numbers(lanes: __m512i) -> __m512i {
                    // SAFETY: the caller promises the level.
                    unsafe { T::widened(Self::of_ranks(lanes)) }
                }
                unsafe fn elements(from: *const T, mask: u16) -> __m512i {
                    // SAFETY: the caller promises the level and the elements of the mask's bits.
                    unsafe { T::widened(arch::_mm256_maskz_loadu_epi16(mask, from.cast())) }
                }
                unsafe fn equal(a: __m512i, b: __m512i) -> u16 {
                    arch::_mm512_cmp_ps_mask::<{ arch::_CMP_EQ_OQ }>(floats!(a), floats!(b))
                }
                unsafe fn nans(a: __m512i) -> u16 {
                    arch::_mm512_cmp_ps_mask::<{ arch::_CMP_UNORD_Q }>(floats!(a), floats!(a))
                }
            }
        }
    };
}

extremum_of_short_floats!(
    Highest,
    MaxF32,
    i16::MIN,
    T::LEAST,
    _mm256_sub_epi16,
    _mm256_add_epi16,
    _mm512_max_epi32,
    _mm256_max_epi16
);
extremum_of_short_floats!(
    Lowest,
    MinF32,
    i16::MAX,
    T::GREATEST,
    _mm256_add_epi16,
    _mm256_sub_epi16,
    _mm512_min_epi32,
    _mm256_min_epi16
);
