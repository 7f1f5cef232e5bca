//! The folds whose accumulators are lanes of vectors.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use fearless_simd::prelude::*;
use fearless_simd::{f32x16, f64x8, i32x16, i64x8, u8x64, u32x16, u64x8};

use super::instructions::{load_first, unordered_f32, unordered_f64};
use crate::elements::Number;

/// The lanes of the vectors that compare with others, or do something else.
pub(super) type Mask<S, V> = <V as SimdBase<S>>::Mask;

/// A vector of 512 bits, with 16 or eight lanes.
pub(super) trait Vector<S: Simd>:
    SimdBase<S, ByteVector = u8x64<S>, Mask: Select<Self::Places>>
{
    /// Vectors of places, with as many lanes.
    type Places: PlaceVector<S>;
}

/// A vector of places, which have no signs.
pub(super) trait PlaceVector<S: Simd>: Vector<S> {
    /// A place in all lanes; -1 is more than any.
    fn all(simd: S, place: i32) -> Self;
    /// The number of each lane in its part of `part` lanes.
    fn counted(simd: S, part: usize) -> Self;
    /// Writes the places.
    fn store(self, to: &mut [MaybeUninit<u32>]);
}

macro_rules! vectors {
    ($($places:ident $place:ty, $lanes:literal, |$all:ident| $in_32_bits:expr => $($vector:ident)*;)*) => { $(
        impl<S: Simd> PlaceVector<S> for $places<S> {
            #[inline(always)]
            #[expect(clippy::cast_sign_loss, reason = "-1 is the greatest place")]
            fn all(simd: S, place: i32) -> Self {
                Self::splat(simd, place as $place)
            }
            #[inline(always)]
            fn counted(simd: S, part: usize) -> Self {
                Self::from_fn(simd, |lane| (lane % part) as $place)
            }
            #[inline(always)]
            fn store(self, to: &mut [MaybeUninit<u32>]) {
                let $all = self;
                let places = $in_32_bits.to_array();
                for (to, place) in to[..$lanes].iter_mut().zip(places) {
                    to.write(place);
                }
            }
        }
        $( impl<S: Simd> Vector<S> for $vector<S> {
            type Places = $places<S>;
        } )*
    )* };
}

vectors! {
    u32x16 u32, 16, |all| all => f32x16 i32x16 u32x16;
    u64x8 u64, 8, |all| all.narrow(all).split().0 => f64x8 i64x8 u64x8;
}

/// The mask of the first lanes.
#[inline(always)]
pub(super) fn first<S: Simd, V: Vector<S>>(simd: S, count: usize) -> V::Mask {
    V::Mask::from_bitmask(simd, first_bits(count))
}

/// The lanes of `a` that are in a mask, and the others of `b`.
#[inline(always)]
pub(super) fn chosen<S: Simd, V: Vector<S>>(mask: V::Mask, a: V, b: V) -> V {
    Select::<V>::select(mask, a, b)
}

/// Bits for the first of up to 16 lanes.
#[inline(always)]
pub(super) const fn first_bits(count: usize) -> u64 {
    (1 << count) - 1
}

/// A vector of elements.
///
/// # Safety
/// As many elements as there are lanes must be readable.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, V: Vector<S>>(simd: S, from: *const V::Element) -> V {
    // SAFETY: the caller promises the elements.
    V::load_array(simd, unsafe { from.cast::<V::Array>().read_unaligned() })
}

/// Writes all lanes.
#[inline(always)]
pub(super) fn store<S: Simd, V: Vector<S>>(lanes: V, to: &mut [MaybeUninit<V::Element>]) {
    let to = to[..V::LEN].as_mut_ptr().cast::<V::Array>();
    // SAFETY: the slice has room for an array of all lanes.
    unsafe { to.write_unaligned(lanes.to_array()) };
}

/// An op that merges lanes of vectors.
pub(super) trait Merge<S: Simd> {
    type Vector: Vector<S>;

    /// The lanes of a vector.
    const COUNT: usize = Self::Vector::LEN;

    /// Whether [`combine_numbers`](Self::combine_numbers) may lose NaN.
    const LOSES_NANS: bool = false;

    /// A vector of lanes that change nothing.
    fn start(simd: S) -> Self::Vector;
    fn combine(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// As [`combine`](Self::combine), but NaN may be lost.
    #[inline(always)]
    fn combine_numbers(a: Self::Vector, b: Self::Vector) -> Self::Vector {
        Self::combine(a, b)
    }
    /// The result of lanes that were not combined with [`start`](Self::start): a sum begins with 0.0, so
    /// it is not -0.0.
    #[inline(always)]
    fn finish(all: Self::Vector) -> Self::Vector {
        all
    }
    /// Adds which lanes of two vectors are NaN, if [`combine_numbers`](Self::combine_numbers) may lose it.
    #[inline(always)]
    fn nans_of(
        seen: Mask<S, Self::Vector>,
        _a: Self::Vector,
        _b: Self::Vector,
    ) -> Mask<S, Self::Vector> {
        seen
    }
}

/// A fold whose accumulators are lanes of a vector.
pub(super) trait Lanes<S: Simd>: Merge<S> {
    type Element: Copy;
    type Accumulator: Copy;

    /// The accumulators of one element each, as many as there are lanes.
    ///
    /// # Safety
    /// As many elements must be readable.
    unsafe fn load(simd: S, from: *const Self::Element) -> Self::Vector;
    /// The same of the first `count` elements, fewer than lanes.
    ///
    /// # Safety
    /// There must be so many elements.
    unsafe fn load_first(simd: S, from: &[Self::Element], count: usize) -> Self::Vector;
    /// Writes all lanes.
    fn store(lanes: Self::Vector, to: &mut [MaybeUninit<Self::Accumulator>]);

    /// Whether [`load_four`](Self::load_four) is faster than to load one vector after the other: where
    /// elements have fewer bits than lanes, and any order of combining is as good.
    const BY_FOUR: bool = false;
    /// Combines the accumulators of four vectors of elements side by side.
    ///
    /// # Safety
    /// The elements of four vectors must be readable.
    #[inline(always)]
    unsafe fn load_four(simd: S, from: *const Self::Element) -> Self::Vector {
        // SAFETY: the caller promises the elements.
        let [a, b, c, d] = unsafe { Self::four(simd, from) };
        Self::combine(Self::combine(a, b), Self::combine(c, d))
    }
    /// The accumulators of four vectors of elements side by side.
    ///
    /// # Safety
    /// As that of [`load_four`](Self::load_four).
    #[inline(always)]
    unsafe fn four(simd: S, from: *const Self::Element) -> [Self::Vector; 4] {
        // SAFETY: the caller promises the elements.
        unsafe {
            let next = Self::load(simd, from.add(Self::COUNT));
            let third = Self::load(simd, from.add(2 * Self::COUNT));
            [Self::load(simd, from), next, third, Self::load(simd, from.add(3 * Self::COUNT))]
        }
    }
    /// Adds four vectors of elements side by side to accumulators, which [`in_order`](Self::in_order)
    /// puts in order; tells of NaN as [`nans_of`](Merge::nans_of).
    ///
    /// # Safety
    /// As that of [`load_four`](Self::load_four).
    #[inline(always)]
    unsafe fn add_four(
        simd: S,
        [a, b, c, d]: [Self::Vector; 4],
        from: *const Self::Element,
        nans: &mut Mask<S, Self::Vector>,
    ) -> [Self::Vector; 4] {
        if Self::BY_FOUR {
            // SAFETY: the caller promises the elements.
            return [Self::combine(a, unsafe { Self::load_four(simd, from) }), b, c, d];
        }
        // SAFETY: the caller promises the elements.
        let [w, x, y, z] = unsafe { Self::four(simd, from) };
        *nans = Self::nans_of(Self::nans_of(*nans, w, x), y, z);
        let (a, b) = (Self::combine_numbers(a, w), Self::combine_numbers(b, x));
        [a, b, Self::combine_numbers(c, y), Self::combine_numbers(d, z)]
    }
    /// The accumulators as if each vector had been added to the one with its number, if order matters.
    #[inline(always)]
    fn in_order(all: [Self::Vector; 4]) -> [Self::Vector; 4] {
        all
    }
}

/// A fold to an extremum, whose places can be found.
pub(super) trait Extremum<S: Simd>: Lanes<S> {
    /// Elements as they are compared: as they are, or as `f32`.
    type Compared: Vector<S, Places = <Self::Vector as Vector<S>>::Places>;
    /// The fold of these.
    type Numbers: Merge<S, Vector = Self::Compared>;

    /// As many elements as there are lanes.
    ///
    /// # Safety
    /// They must be readable.
    unsafe fn elements(simd: S, from: *const Self::Element) -> Self::Compared;
    /// The first `count` elements, fewer than lanes; the other lanes change nothing.
    ///
    /// # Safety
    /// There must be so many elements.
    unsafe fn first_elements(simd: S, from: &[Self::Element], count: usize) -> Self::Compared;
    /// The elements that accumulators stand for.
    fn numbers(lanes: Self::Vector) -> Self::Compared;
    /// Writes the elements that accumulators stand for.
    fn store_elements(lanes: Self::Vector, to: &mut [MaybeUninit<Self::Element>]);
    /// Writes elements.
    fn store_numbers(numbers: Self::Compared, to: &mut [MaybeUninit<Self::Element>]);
}

/// A type whose elements are lanes as they lie in memory.
pub(super) trait Lane<S: Simd>: Number<Wide = Self> {
    type Vector: Vector<S, Element = Self>;

    /// Whether there is NaN.
    const HAS_NANS: bool = Self::ROUNDS;

    /// The greater lanes, or NaN where an operand is NaN.
    fn most(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lesser lanes, or NaN where an operand is NaN.
    fn least(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Adds which lanes are NaN.
    fn nans_of(
        seen: Mask<S, Self::Vector>,
        a: Self::Vector,
        b: Self::Vector,
    ) -> Mask<S, Self::Vector>;
}

macro_rules! floats {
    ($($type:ty, $vector:ident, $unordered:ident;)*) => { $(
        impl<S: Simd> Lane<S> for $type {
            type Vector = $vector<S>;

            #[inline(always)]
            fn most(a: $vector<S>, b: $vector<S>) -> $vector<S> {
                a.is_nan().select(a, b.is_nan().select(b, a.max(b)))
            }
            #[inline(always)]
            fn least(a: $vector<S>, b: $vector<S>) -> $vector<S> {
                a.is_nan().select(a, b.is_nan().select(b, a.min(b)))
            }
            #[inline(always)]
            fn nans_of(
                seen: Mask<S, Self::Vector>,
                a: $vector<S>,
                b: $vector<S>,
            ) -> Mask<S, Self::Vector> {
                seen | $unordered(a, b)
            }
        }
    )* };
}

floats! {
    f32, f32x16, unordered_f32;
    f64, f64x8, unordered_f64;
}

macro_rules! whole_numbers {
    ($($type:ty, $vector:ident;)*) => { $(
        impl<S: Simd> Lane<S> for $type {
            type Vector = $vector<S>;

            #[inline(always)]
            fn most(a: $vector<S>, b: $vector<S>) -> $vector<S> {
                a.max(b)
            }
            #[inline(always)]
            fn least(a: $vector<S>, b: $vector<S>) -> $vector<S> {
                a.min(b)
            }
            #[inline(always)]
            fn nans_of(
                seen: Mask<S, Self::Vector>,
                _a: $vector<S>,
                _b: $vector<S>,
            ) -> Mask<S, Self::Vector> {
                seen
            }
        }
    )* };
}

whole_numbers! {
    i32, i32x16;
    u32, u32x16;
    i64, i64x8;
    u64, u64x8;
}

/// The sum of elements.
pub(super) struct SumOf<T>(PhantomData<T>);
/// The greatest element.
pub(super) struct Most<T>(PhantomData<T>);
/// The least element.
pub(super) struct Least<T>(PhantomData<T>);

impl<S: Simd, T: Lane<S>> Merge<S> for SumOf<T> {
    type Vector = T::Vector;

    #[inline(always)]
    fn start(simd: S) -> T::Vector {
        T::Vector::splat(simd, T::ZERO)
    }
    #[inline(always)]
    fn combine(a: T::Vector, b: T::Vector) -> T::Vector {
        a + b
    }
    #[inline(always)]
    fn finish(all: T::Vector) -> T::Vector {
        all + T::ZERO
    }
}

macro_rules! extrema {
    ($($fold:ident, $start:ident, $combine:ident, $quick:ident;)*) => { $(
        impl<S: Simd, T: Lane<S>> Merge<S> for $fold<T> {
            type Vector = T::Vector;
            const LOSES_NANS: bool = T::HAS_NANS;

            #[inline(always)]
            fn start(simd: S) -> T::Vector {
                T::Vector::splat(simd, T::$start)
            }
            #[inline(always)]
            fn combine(a: T::Vector, b: T::Vector) -> T::Vector {
                T::$combine(a, b)
            }
            #[inline(always)]
            fn combine_numbers(a: T::Vector, b: T::Vector) -> T::Vector {
                b.$quick(a)
            }
            #[inline(always)]
            fn nans_of(
                seen: Mask<S, T::Vector>,
                a: T::Vector,
                b: T::Vector,
            ) -> Mask<S, T::Vector> {
                T::nans_of(seen, a, b)
            }
        }

        impl<S: Simd, T: Lane<S>> Extremum<S> for $fold<T> {
            type Compared = T::Vector;
            type Numbers = Self;

            #[inline(always)]
            unsafe fn elements(simd: S, from: *const T) -> T::Vector {
                // SAFETY: the caller promises the elements.
                unsafe { load(simd, from) }
            }
            #[inline(always)]
            unsafe fn first_elements(simd: S, from: &[T], count: usize) -> T::Vector {
                // SAFETY: the caller promises the elements.
                unsafe { Self::load_first(simd, from, count) }
            }
            #[inline(always)]
            fn numbers(lanes: T::Vector) -> T::Vector {
                lanes
            }
            #[inline(always)]
            fn store_elements(lanes: T::Vector, to: &mut [MaybeUninit<T>]) {
                store(lanes, to);
            }
            #[inline(always)]
            fn store_numbers(numbers: T::Vector, to: &mut [MaybeUninit<T>]) {
                store(numbers, to);
            }
        }
    )* };
}

extrema! {
    Most, LEAST, most, max;
    Least, GREATEST, least, min;
}

macro_rules! lanes_as_they_lie {
    ($($fold:ident)*) => { $(
        impl<S: Simd, T: Lane<S>> Lanes<S> for $fold<T> {
            type Element = T;
            type Accumulator = T;

            #[inline(always)]
            unsafe fn load(simd: S, from: *const T) -> T::Vector {
                // SAFETY: the caller promises the elements.
                unsafe { load(simd, from) }
            }
            #[inline(always)]
            unsafe fn load_first(simd: S, from: &[T], count: usize) -> T::Vector {
                // SAFETY: the caller promises the elements.
                unsafe { load_first(simd, from, count, Self::start(simd)) }
            }
            #[inline(always)]
            fn store(lanes: T::Vector, to: &mut [MaybeUninit<T>]) {
                store(lanes, to);
            }
        }
    )* };
}

lanes_as_they_lie!(SumOf Most Least);

/// The least of several places.
pub(super) struct LeastPlace<P>(PhantomData<P>);

impl<S: Simd, P: PlaceVector<S>> Merge<S> for LeastPlace<P> {
    type Vector = P;

    #[inline(always)]
    fn start(simd: S) -> P {
        P::all(simd, -1)
    }
    #[inline(always)]
    fn combine(a: P, b: P) -> P {
        a.min(b)
    }
}
