//! The folds of floats of 16 bits, whose accumulators are lanes of 32 bits.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use fearless_simd::prelude::*;
use fearless_simd::{f32x16, i16x16, i16x32, i32x16, u16x16, u32x16};
use half::{bf16, f16};

use super::inlined;
use super::instructions::first_sixteen;
use super::lanes::{Extremum, Lanes, Least, Merge, Most, load, store};
use crate::elements::Short;

/// Floats of 16 bits in vectors.
pub(super) trait ShortLanes: Short {
    /// The values of elements as `f32`.
    fn widened<S: Simd>(elements: u16x16<S>) -> f32x16<S>;
    /// The elements of values.
    fn narrowed<S: Simd>(values: f32x16<S>) -> u16x16<S>;
    /// The values of the first and of the second float of each 32 bits, if these are found faster than
    /// those of neighbours.
    #[inline(always)]
    fn pairs<S: Simd>(_elements: u32x16<S>) -> Option<[f32x16<S>; 2]> {
        None
    }
}

impl ShortLanes for bf16 {
    #[inline(always)]
    fn widened<S: Simd>(elements: u16x16<S>) -> f32x16<S> {
        (wide(elements) << 16).bitcast()
    }
    #[inline(always)]
    fn narrowed<S: Simd>(values: f32x16<S>) -> u16x16<S> {
        narrow(values.bitcast::<u32x16<S>>() >> 16)
    }
    #[inline(always)]
    fn pairs<S: Simd>(elements: u32x16<S>) -> Option<[f32x16<S>; 2]> {
        Some([(elements << 16).bitcast(), (elements & 0xffff_0000).bitcast()])
    }
}

impl ShortLanes for f16 {
    /// As `widened_f16` in `elements.rs`.
    #[inline(always)]
    fn widened<S: Simd>(elements: u16x16<S>) -> f32x16<S> {
        let bits = wide(elements);
        let sign = (bits & 0x8000) << 16;
        let magnitude = (bits & 0x7fff) << 13;
        let scale = f32::from_bits((127 + 112) << 23);
        let scaled: f32x16<S> = magnitude.bitcast::<f32x16<S>>() * scale;
        let is_special = (bits & 0x7c00).simd_eq(0x7c00);
        let special = magnitude | 0x7f80_0000;
        let number: u32x16<S> = is_special.select(special, scaled.bitcast());
        (number | sign).bitcast()
    }
    #[inline(always)]
    fn narrowed<S: Simd>(values: f32x16<S>) -> u16x16<S> {
        let bits = values.bitcast::<u32x16<S>>();
        let magnitude = bits & 0x7fff_ffff;
        let scaled = magnitude.bitcast::<f32x16<S>>() * f32::from_bits((127 - 112) << 23);
        let is_special = magnitude.simd_ge(0x7f80_0000);
        let number: u32x16<S> = is_special.select(magnitude, scaled.bitcast());
        narrow((number >> 13) & 0x7fff | (bits >> 16) & 0x8000)
    }
}

/// Numbers of 16 bits as lanes of 32 bits.
#[inline(always)]
fn wide<S: Simd>(elements: u16x16<S>) -> u32x16<S> {
    // The first half of a whole vector is one instruction.
    elements.combine(elements).widen().0
}

/// The lower 16 bits of lanes.
#[inline(always)]
fn narrow<S: Simd>(lanes: u32x16<S>) -> u16x16<S> {
    lanes.narrow(lanes).split().0
}

/// The bits of 16 elements.
///
/// # Safety
/// They must be readable.
#[inline(always)]
unsafe fn sixteen<S: Simd, T: ShortLanes>(simd: S, from: *const T) -> u16x16<S> {
    // SAFETY: the caller promises the elements, which have the layout of their bits.
    u16x16::load_array(simd, unsafe { from.cast::<[u16; 16]>().read_unaligned() })
}

/// The bits of the first `count` elements, fewer than 16; the others are `other`.
///
/// # Safety
/// There must be so many elements.
#[inline(always)]
unsafe fn first_of<S: Simd, T: ShortLanes>(
    simd: S,
    from: &[T],
    count: usize,
    other: i16,
) -> u16x16<S> {
    // SAFETY: elements have the layout of their bits, and the caller promises so many.
    unsafe {
        let bits = std::slice::from_raw_parts(from.as_ptr().cast(), from.len());
        first_sixteen(simd, bits, count, other.cast_unsigned())
    }
}

/// The sum of floats of 16 bits, in lanes of `f32`.
pub(super) struct SumOfShort<T>(PhantomData<T>);

impl<S: Simd, T: ShortLanes> Merge<S> for SumOfShort<T> {
    type Vector = f32x16<S>;

    #[inline(always)]
    fn start(simd: S) -> f32x16<S> {
        f32x16::splat(simd, 0.0)
    }
    #[inline(always)]
    fn combine(a: f32x16<S>, b: f32x16<S>) -> f32x16<S> {
        a + b
    }
    #[inline(always)]
    fn finish(all: f32x16<S>) -> f32x16<S> {
        all + 0.0
    }
}

impl<S: Simd, T: ShortLanes> Lanes<S> for SumOfShort<T> {
    type Element = T;
    type Accumulator = f32;

    #[inline(always)]
    unsafe fn load(simd: S, from: *const T) -> f32x16<S> {
        // SAFETY: the caller promises the elements.
        T::widened(unsafe { sixteen(simd, from) })
    }
    #[inline(always)]
    unsafe fn load_first(simd: S, from: &[T], count: usize) -> f32x16<S> {
        // SAFETY: the caller promises the elements.
        T::widened(unsafe { first_of(simd, from, count, 0) })
    }
    #[inline(always)]
    fn store(lanes: f32x16<S>, to: &mut [MaybeUninit<f32>]) {
        store(lanes, to);
    }
    #[inline(always)]
    unsafe fn four(simd: S, from: *const T) -> [f32x16<S>; 4] {
        // SAFETY: the caller promises the elements.
        let two = inlined(
            #[inline(always)]
            |at: usize| unsafe {
                let pairs: u32x16<S> = load(simd, from.add(at).cast());
                match T::pairs(pairs) {
                    Some(pairs) => pairs,
                    None => [Self::load(simd, from.add(at)), Self::load(simd, from.add(at + 16))],
                }
            },
        );
        let ([a, b], [c, d]) = (two(0), two(32));
        [a, b, c, d]
    }
    #[inline(always)]
    fn in_order([a, b, c, d]: [f32x16<S>; 4]) -> [f32x16<S>; 4] {
        if T::pairs(a.bitcast()).is_none() {
            return [a, b, c, d];
        }
        [a.zip_low(b), a.zip_high(b), c.zip_low(d), c.zip_high(d)]
    }
}

/// The greatest float of 16 bits, by ranks as lanes of 32 bits: see [`Number::Rank`].
pub(super) struct Highest<T>(PhantomData<T>);
/// The least float of 16 bits, by ranks as lanes of 32 bits.
pub(super) struct Lowest<T>(PhantomData<T>);

/// Reverses the order of negative numbers whose sign is a bit of its own.
#[inline(always)]
fn ordered<S: Simd, V: SimdInt<S, Element = i16>>(bits: V) -> V {
    bits ^ ((bits >> 15) & i16::MAX)
}

/// The extremum of floats of 16 bits, by their ranks, which are lanes of 32 bits.
macro_rules! extremum_of_short_floats {
    ($name:ident, $numbers:ident, $start:expr, $outermost:ident, $shift:tt, $back:tt, $combine:ident) => {
        impl<T: ShortLanes> $name<T> {
            /// The ranks of elements.
            #[inline(always)]
            fn ranks<S: Simd>(elements: u16x16<S>) -> i16x16<S> {
                ordered(elements.bitcast::<i16x16<S>>()) $shift T::NANS
            }
            /// The elements of ranks.
            #[inline(always)]
            fn of_ranks<S: Simd>(lanes: i32x16<S>) -> u16x16<S> {
                ordered(lanes.narrow(lanes).split().0 $back T::NANS).bitcast()
            }
        }

        impl<S: Simd, T: ShortLanes> Merge<S> for $name<T> {
            type Vector = i32x16<S>;

            #[inline(always)]
            fn start(simd: S) -> i32x16<S> {
                i32x16::splat(simd, i32::from($start))
            }
            #[inline(always)]
            fn combine(a: i32x16<S>, b: i32x16<S>) -> i32x16<S> {
                a.$combine(b)
            }
        }

        impl<S: Simd, T: ShortLanes> Lanes<S> for $name<T> {
            type Element = T;
            type Accumulator = i16;
            const BY_FOUR: bool = true;

            #[inline(always)]
            unsafe fn load_four(simd: S, from: *const T) -> i32x16<S> {
                // SAFETY: the caller promises the elements, which have the layout of their bits.
                let [a, b] = unsafe {
                    let two = from.cast::<[[i16; 32]; 2]>().read_unaligned();
                    [i16x32::load_array(simd, two[0]), i16x32::load_array(simd, two[1])]
                };
                let ranks = (ordered(a) $shift T::NANS).$combine(ordered(b) $shift T::NANS);
                let (low, high) = ranks.widen();
                low.$combine(high)
            }
            #[inline(always)]
            unsafe fn load(simd: S, from: *const T) -> i32x16<S> {
                // SAFETY: the caller promises the elements.
                wide_ranks(Self::ranks(unsafe { sixteen(simd, from) }))
            }
            #[inline(always)]
            unsafe fn load_first(simd: S, from: &[T], count: usize) -> i32x16<S> {
                // SAFETY: the caller promises the elements.
                let first = unsafe { first_of(simd, from, count, T::$outermost.bits()) };
                wide_ranks(Self::ranks(first))
            }
            #[inline(always)]
            fn store(lanes: i32x16<S>, to: &mut [MaybeUninit<i16>]) {
                let ranks = lanes.narrow(lanes).split().0;
                for (to, rank) in to[..16].iter_mut().zip(ranks.to_array()) {
                    to.write(rank);
                }
            }
        }

        impl<S: Simd, T: ShortLanes> Extremum<S> for $name<T> {
            type Compared = f32x16<S>;
            type Numbers = $numbers<f32>;

            #[inline(always)]
            unsafe fn elements(simd: S, from: *const T) -> f32x16<S> {
                // SAFETY: the caller promises the elements.
                T::widened(unsafe { sixteen(simd, from) })
            }
            #[inline(always)]
            unsafe fn first_elements(simd: S, from: &[T], count: usize) -> f32x16<S> {
                // SAFETY: the caller promises the elements.
                T::widened(unsafe { first_of(simd, from, count, T::$outermost.bits()) })
            }
            #[inline(always)]
            fn numbers(lanes: i32x16<S>) -> f32x16<S> {
                T::widened(Self::of_ranks(lanes))
            }
            #[inline(always)]
            fn store_elements(lanes: i32x16<S>, to: &mut [MaybeUninit<T>]) {
                store_bits(Self::of_ranks(lanes), to);
            }
            #[inline(always)]
            fn store_numbers(numbers: f32x16<S>, to: &mut [MaybeUninit<T>]) {
                store_bits(T::narrowed(numbers), to);
            }
        }
    };
}

/// Writes the elements of these bits.
#[inline(always)]
fn store_bits<S: Simd, T: Short>(bits: u16x16<S>, to: &mut [MaybeUninit<T>]) {
    for (to, bits) in to[..16].iter_mut().zip(bits.to_array()) {
        to.write(T::of_bits(bits));
    }
}

/// Ranks as lanes of 32 bits.
#[inline(always)]
fn wide_ranks<S: Simd>(ranks: i16x16<S>) -> i32x16<S> {
    ranks.combine(ranks).widen().0
}

extremum_of_short_floats!(Highest, Most, i16::MIN, LEAST, -, +, max);
extremum_of_short_floats!(Lowest, Least, i16::MAX, GREATEST, +, -, min);
