//! The element types of arrays: how they are widened, added, compared and narrowed. Folds, kernels
//! and programs are generic over them.

use half::{bf16, f16};

use crate::reduce::{Folds, Places};

/// A type of elements: a float of 16 to 64 bits, an integer of 8 to 64 bits, or `bool`.
pub trait Element: Copy + Send + Sync + PartialEq + Folds + 'static {}

/// An element that can be added, multiplied and compared.
pub trait Number: Element + Places {
    /// The type in which elements are added and multiplied: `f32` for 16-bit floats, else the type
    /// itself.
    type Wide: Copy + Send + Sync + 'static;
    /// Zero.
    const ZERO: Self::Wide;
    /// One.
    const ONE: Self::Wide;
    /// The type in which maxima and minima compare elements: `i16` for 16-bit floats, else the type
    /// itself.
    type Rank: Copy + Send + Sync + 'static;
    /// Whether additions round.
    const ROUNDS: bool;
    /// Whether this crate has SIMD loops for its sums and extrema.
    #[doc(hidden)]
    const IN_VECTORS: bool;
    /// The least value.
    const LEAST: Self;
    /// The greatest value.
    const GREATEST: Self;
    /// Returns the element as `Wide`.
    fn widen(self) -> Self::Wide;
    /// Returns the element nearest to `wide`.
    fn narrow(wide: Self::Wide) -> Self;
    /// Returns the sum; integers wrap.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Returns the product; integers wrap.
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Returns the rank by which maxima compare the element; NaN is greater than all numbers.
    fn rank_for_max(self) -> Self::Rank;
    /// Returns the rank by which minima compare the element; NaN is less than all numbers.
    fn rank_for_min(self) -> Self::Rank;
    /// Returns the element whose [`rank_for_max`](Self::rank_for_max) is `rank`.
    fn of_rank_for_max(rank: Self::Rank) -> Self;
    /// Returns the element whose [`rank_for_min`](Self::rank_for_min) is `rank`.
    fn of_rank_for_min(rank: Self::Rank) -> Self;
    /// Returns the greater rank.
    fn max_rank(a: Self::Rank, b: Self::Rank) -> Self::Rank;
    /// Returns the lesser rank.
    fn min_rank(a: Self::Rank, b: Self::Rank) -> Self::Rank;
    /// Returns the greatest of eight ranks.
    #[inline(always)]
    fn max_of_eight([a, b, c, d, e, f, g, h]: [Self::Rank; 8]) -> Self::Rank {
        let most = Self::max_rank;
        most(most(most(most(most(most(most(a, b), c), d), e), f), g), h)
    }
    /// Returns the least of eight ranks.
    #[inline(always)]
    fn min_of_eight([a, b, c, d, e, f, g, h]: [Self::Rank; 8]) -> Self::Rank {
        let least = Self::min_rank;
        least(least(least(least(least(least(least(a, b), c), d), e), f), g), h)
    }
    /// Checks whether `self` is greater than `other`; NaN is greater than all numbers.
    fn exceeds(self, other: Self) -> bool;
    /// Checks whether `self` is less than `other`; NaN is less than all numbers.
    fn falls_below(self, other: Self) -> bool;
    /// Checks whether both are equal, or both NaN.
    fn ties(self, other: Self) -> bool;
}

/// The ranks of a type that is its own rank.
macro_rules! own_ranks {
    ($type:ty) => {
        type Rank = $type;
        #[inline(always)]
        fn rank_for_max(self) -> $type {
            self
        }
        #[inline(always)]
        fn rank_for_min(self) -> $type {
            self
        }
        #[inline(always)]
        fn of_rank_for_max(rank: $type) -> $type {
            rank
        }
        #[inline(always)]
        fn of_rank_for_min(rank: $type) -> $type {
            rank
        }
        #[inline(always)]
        fn max_rank(a: $type, b: $type) -> $type {
            if b.exceeds(a) { b } else { a }
        }
        #[inline(always)]
        fn min_rank(a: $type, b: $type) -> $type {
            if b.falls_below(a) { b } else { a }
        }
    };
}

/// The ranks of a float that is its own rank. NaN is looked for apart from the extremum of many: one
/// instruction finds the extremum of numbers.
macro_rules! own_ranks_of_floats {
    ($type:ty) => {
        own_ranks!($type);
        #[inline(always)]
        fn max_of_eight(all: [$type; 8]) -> $type {
            extremum_or_nan!($type, all, |a, b| if a > b { a } else { b })
        }
        #[inline(always)]
        fn min_of_eight(all: [$type; 8]) -> $type {
            extremum_or_nan!($type, all, |a, b| if a < b { a } else { b })
        }
    };
}

/// The outermost of eight floats, or NaN if there is one.
macro_rules! extremum_or_nan {
    ($type:ty, $all:ident, |$x:ident, $y:ident| $outer:expr) => {{
        let [a, b, c, d, e, f, g, h] = $all;
        let outer = |$x: $type, $y: $type| $outer;
        let extremum = outer(outer(outer(a, b), outer(c, d)), outer(outer(e, f), outer(g, h)));
        let nan = |x: $type, y: $type| x.is_nan() | y.is_nan();
        let is_nan = nan(a, b) | nan(c, d) | nan(e, f) | nan(g, h);
        if is_nan { <$type>::NAN } else { extremum }
    }};
}

/// A float of 16 bits.
pub(crate) trait Short: Number<Rank = i16> {
    /// The number of bit patterns of one sign that are NaN.
    const NANS: i16;
    /// The bits as an integer.
    fn bits(self) -> i16;
    /// The float of these bits.
    fn of_bits(bits: u16) -> Self;
}

/// The ranks of 16-bit floats: integers in the order of the numbers, which vectors compare many at
/// a time. [`ordered`] leaves NaN at both ends of the integers; adding or subtracting `NANS` with
/// wrapping moves all NaN to one end.
macro_rules! short_ranks {
    ($type:ty) => {
        type Rank = i16;
        #[inline(always)]
        fn rank_for_max(self) -> i16 {
            ordered(self.bits()).wrapping_sub(Self::NANS)
        }
        #[inline(always)]
        fn rank_for_min(self) -> i16 {
            ordered(self.bits()).wrapping_add(Self::NANS)
        }
        #[inline(always)]
        fn of_rank_for_max(rank: i16) -> $type {
            <$type>::from_bits(ordered(rank.wrapping_add(Self::NANS)).cast_unsigned())
        }
        #[inline(always)]
        fn of_rank_for_min(rank: i16) -> $type {
            <$type>::from_bits(ordered(rank.wrapping_sub(Self::NANS)).cast_unsigned())
        }
        #[inline(always)]
        fn max_rank(a: i16, b: i16) -> i16 {
            a.max(b)
        }
        #[inline(always)]
        fn min_rank(a: i16, b: i16) -> i16 {
            a.min(b)
        }
    };
}

/// Maps the bits of a float to an integer of the same order, and back: the lower bits of a negative
/// float are flipped.
#[inline(always)]
fn ordered(bits: i16) -> i16 {
    bits ^ (bits >> 15 & i16::MAX)
}

macro_rules! short {
    ($type:ty, $nans:literal) => {
        impl Short for $type {
            const NANS: i16 = $nans;
            #[inline(always)]
            fn bits(self) -> i16 {
                self.to_bits().cast_signed()
            }
            #[inline(always)]
            fn of_bits(bits: u16) -> Self {
                Self::from_bits(bits)
            }
        }
    };
}

short!(bf16, 0x7f);
short!(f16, 0x3ff);

macro_rules! whole {
    ($($type:ty)*) => { $(
        impl Element for $type {}
        impl Number for $type {
            type Wide = $type;
            own_ranks!($type);
            const ZERO: $type = 0;
            const ONE: $type = 1;
            const ROUNDS: bool = false;
            // Arrays of `bool` are reduced as `u8`.
            const IN_VECTORS: bool = size_of::<$type>() >= 4 || <$type>::BITS == 8 && <$type>::MIN == 0;
            const LEAST: $type = <$type>::MIN;
            const GREATEST: $type = <$type>::MAX;
            #[inline(always)]
            fn widen(self) -> $type { self }
            #[inline(always)]
            fn narrow(wide: $type) -> $type { wide }
            #[inline(always)]
            fn add(a: $type, b: $type) -> $type { a.wrapping_add(b) }
            #[inline(always)]
            fn multiply(a: $type, b: $type) -> $type { a.wrapping_mul(b) }
            #[inline(always)]
            fn exceeds(self, other: $type) -> bool { self > other }
            #[inline(always)]
            fn falls_below(self, other: $type) -> bool { self < other }
            #[inline(always)]
            fn ties(self, other: $type) -> bool { self == other }
        }
    )* };
}

whole!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Element for bool {}

macro_rules! float {
    ($type:ty, $wide:ty, $ranks:ident, $widen:expr, $narrow:expr, $least:expr, $greatest:expr) => {
        impl Element for $type {}
        impl Number for $type {
            type Wide = $wide;
            $ranks!($type);
            const ZERO: $wide = 0.0;
            const ONE: $wide = 1.0;
            const ROUNDS: bool = true;
            const IN_VECTORS: bool = true;
            const LEAST: $type = $least;
            const GREATEST: $type = $greatest;
            #[inline(always)]
            fn widen(self) -> $wide {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(wide: $wide) -> $type {
                $narrow(wide)
            }
            #[inline(always)]
            fn add(a: $wide, b: $wide) -> $wide {
                a + b
            }
            #[inline(always)]
            fn multiply(a: $wide, b: $wide) -> $wide {
                a * b
            }
            #[inline(always)]
            #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is greater than all others")]
            fn exceeds(self, other: $type) -> bool {
                let (a, b) = (self.widen(), other.widen());
                !(a <= b) & (b == b)
            }
            #[inline(always)]
            #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN comes before all others")]
            fn falls_below(self, other: $type) -> bool {
                let (a, b) = (self.widen(), other.widen());
                !(a >= b) & (b == b)
            }
            #[inline(always)]
            fn ties(self, other: $type) -> bool {
                let (a, b) = (self.widen(), other.widen());
                (a == b) | ((a != a) & (b != b))
            }
        }
    };
}

float!(f32, f32, own_ranks_of_floats, |x: f32| x, |x: f32| x, f32::NEG_INFINITY, f32::INFINITY);
float!(f64, f64, own_ranks_of_floats, |x: f64| x, |x: f64| x, f64::NEG_INFINITY, f64::INFINITY);
float!(bf16, f32, short_ranks, widened_bf16, bf16::from_f32, bf16::NEG_INFINITY, bf16::INFINITY);
float!(f16, f32, short_ranks, widened_f16, f16::from_f32, f16::NEG_INFINITY, f16::INFINITY);

/// The value as `f32`. Unlike [`bf16::to_f32`], it has no branches, so that loops are vectorised.
#[inline(always)]
fn widened_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// The value as `f32`, without branches. The exponent's bias is 112 greater in `f32`, so a product
/// with 2^112 is right for normal and subnormal numbers; infinities and NaN get the greatest
/// exponent.
#[inline(always)]
fn widened_f16(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    let sign = (bits & 0x8000) << 16;
    let magnitude = (bits & 0x7fff) << 13;
    let scale = f32::from_bits((127 + 112) << 23);
    let number = (f32::from_bits(magnitude) * scale).to_bits();
    let special = magnitude | 0x7f80_0000;
    let is_special = bits & 0x7c00 == 0x7c00;
    f32::from_bits(sign | if is_special { special } else { number })
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::Number;

    /// One NaN among eight floats is found wherever it is, and numbers are compared as they are.
    #[test]
    fn extrema_of_eight_keep_nan() {
        let numbers = [3.0, -1.0, 7.5, 0.0, f32::NEG_INFINITY, 2.0, f32::INFINITY, -4.0];
        assert_eq!(f32::max_of_eight(numbers), f32::INFINITY);
        assert_eq!(f32::min_of_eight(numbers), f32::NEG_INFINITY);
        for place in 0..8 {
            let mut with_nan = numbers;
            with_nan[place] = f32::NAN;
            assert!(f32::max_of_eight(with_nan).is_nan() && f32::min_of_eight(with_nan).is_nan());
        }
    }

    /// Every value of 16 bits widens as the crate `half` widens it.
    #[test]
    fn all_values_of_16_bits_widen() {
        for bits in 0..=u16::MAX {
            let pairs = [
                (super::widened_f16(f16::from_bits(bits)), f16::from_bits(bits).to_f32()),
                (super::widened_bf16(bf16::from_bits(bits)), bf16::from_bits(bits).to_f32()),
            ];
            for (ours, theirs) in pairs {
                let same = ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
                assert!(same, "{bits:#06x}: {ours} is not {theirs}");
            }
        }
    }

    /// Checks that ranks are in the order of the numbers, with NaN at one end, and lead back to the
    /// element.
    fn ranks_are_in_order<T: super::Short<Wide = f32>>(of: fn(u16) -> T) {
        let all = || (0..=u16::MAX).map(of);
        for (rank, back, nan) in [
            (T::rank_for_max as fn(T) -> i16, T::of_rank_for_max as fn(i16) -> T, f32::INFINITY),
            (T::rank_for_min, T::of_rank_for_min, f32::NEG_INFINITY),
        ] {
            let mut sorted: Vec<T> = all().collect();
            sorted.sort_by_key(|&x| rank(x));
            // NaN counts as a number beyond all others.
            let beyond = |x: T| if x.widen().is_nan() { (nan, true) } else { (x.widen(), false) };
            for pair in sorted.windows(2) {
                let [(a, a_nan), (b, b_nan)] = [beyond(pair[0]), beyond(pair[1])];
                let nan_last = nan > 0.0;
                assert!(a <= b && (a_nan == b_nan || b_nan == nan_last), "{a} before {b}");
            }
            assert!(all().all(|x| back(rank(x)).bits() == x.bits()));
        }
    }

    #[test]
    fn ranks_of_16_bits_are_in_order() {
        ranks_are_in_order(bf16::from_bits);
        ranks_are_in_order(f16::from_bits);
    }
}
