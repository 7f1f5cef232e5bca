//! The computations of reductions.

use crate::elements::{Element, Float, Number};

/// The computation of a reduction of elements of a type, by accumulators that can be merged.
///
/// An accumulator has two parts, which are kept in arrays of their own; many folds leave the second
/// one empty.
pub trait Fold<T: Element>: Copy + Send + Sync + 'static {
    /// The first part of an accumulator.
    type First: Copy + Send + Sync + 'static;
    /// The second part of an accumulator.
    type Second: Copy + Send + Sync + 'static;
    /// The result for the elements that are reduced to one.
    type Output: Copy + Send + Sync + 'static;
    /// Whether steps are told the places of elements.
    const PLACES: bool = false;
    /// The most elements of which the places are known, if they are told.
    const MOST_PLACES: usize = MOST;
    /// Whether merging rounds, so that long chains of steps lose digits.
    const ROUNDS: bool = false;
    /// Whether there is a result without any element.
    const HAS_IDENTITY: bool = true;
    /// Whether this crate has loops in vectors for it, so that others need not become vectors.
    #[doc(hidden)]
    const IN_VECTORS: bool = false;
    /// The part of an accumulator that is the result: the first one if its type is that of the result, the
    /// second one if it is a place and the result an `i32`.
    #[doc(hidden)]
    const RESULT: Part = Part::None;

    /// Returns the accumulator of no elements.
    fn start(self) -> (Self::First, Self::Second);
    /// Adds an element, and its place among those that are reduced to one.
    fn step(self, first: &mut Self::First, second: &mut Self::Second, element: T, place: u32);
    /// Adds the elements of another accumulator.
    fn merge(
        self,
        first: &mut Self::First,
        second: &mut Self::Second,
        other: (Self::First, Self::Second),
    );
    /// Moves the places of an accumulator.
    fn shift(self, second: &mut Self::Second, by: u32) {
        let _ = (second, by);
    }
    /// Adds an element to the first part of an accumulator alone, if places are told.
    fn outdo(self, first: &mut Self::First, element: T) {
        let _ = (first, element);
    }
    /// Returns the first place in a row at which the accumulator's element is, if places are told.
    fn first_place(self, row: &[T], first: Self::First) -> Option<Self::Second> {
        let _ = (row, first);
        None
    }
    /// Returns the result of `count` elements.
    fn finish(self, first: Self::First, second: Self::Second, count: usize) -> Self::Output;
}

/// A part of an accumulator.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Neither of both.
    None,
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// The sum, in the type of the elements; floats of 16 bits are added as `f32`, whole numbers wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;
/// The product, in the type of the elements; as [`Sum`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Product;
/// The mean of floats: the sum divided by the number of elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean;
/// The greatest element; NaN if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;
/// The least element; NaN if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;
/// Whether all elements are true.
#[derive(Clone, Copy, Debug, Default)]
pub struct And;
/// Whether any element is true.
#[derive(Clone, Copy, Debug, Default)]
pub struct Or;
/// The place of the greatest element, the first of several; of the first NaN if there is one.
/// Places are counted row by row through the reduced axes, in the order of the array's dims.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMax;
/// The place of the least element; as [`ArgMax`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMin;
/// As [`ArgMax`], in 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMax32;
/// As [`ArgMin`], in 32 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMin32;
/// The sum and the sum of the squares, in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumAndSquares;

/// A fold whose accumulator has one part.
macro_rules! single {
    ($fold:ident, $bound:ident, $part:ty, $start:expr, |$a:ident, $x:ident| $step:expr,
     |$b:ident, $c:ident| $merge:expr, $output:ty, |$f:ident, $n:ident| $finish:expr, $result:expr $(, $name:ident = $value:expr)*) => {
        impl<T: $bound> Fold<T> for $fold {
            type First = $part;
            type Second = ();
            type Output = $output;
            const RESULT: Part = $result;
            $(const $name: bool = $value;)*
            #[inline(always)]
            fn start(self) -> ($part, ()) {
                ($start, ())
            }
            #[inline(always)]
            fn step(self, first: &mut $part, (): &mut (), $x: T, _: u32) {
                let $a = *first;
                *first = $step;
            }
            #[inline(always)]
            fn merge(self, first: &mut $part, (): &mut (), ($c, ()): ($part, ())) {
                let $b = *first;
                *first = $merge;
            }
            #[inline(always)]
            fn finish(self, $f: $part, (): (), $n: usize) -> $output {
                $finish
            }
        }
    };
}

single!(
    Sum,
    Number,
    T::Wide,
    T::ZERO,
    |a, x| T::add(a, x.widen()),
    |a, b| T::add(a, b),
    T,
    |a, _n| T::narrow(a),
    Part::First,
    ROUNDS = T::ROUNDS,
    IN_VECTORS = T::IN_VECTORS
);
single!(
    Product,
    Number,
    T::Wide,
    T::ONE,
    |a, x| T::multiply(a, x.widen()),
    |a, b| T::multiply(a, b),
    T,
    |a, _n| T::narrow(a),
    Part::First,
    ROUNDS = T::ROUNDS
);
single!(
    Mean,
    Float,
    T::Wide,
    T::ZERO,
    |a, x| T::add(a, x.widen()),
    |a, b| T::add(a, b),
    T,
    |a, n| T::divide(a, n),
    Part::None,
    ROUNDS = true
);
single!(
    Max,
    Number,
    T::Rank,
    T::LEAST.rank_for_max(),
    |a, x| T::max_rank(a, x.rank_for_max()),
    |a, b| T::max_rank(a, b),
    T,
    |a, _n| T::of_rank_for_max(a),
    Part::First,
    HAS_IDENTITY = false,
    IN_VECTORS = T::IN_VECTORS
);
single!(
    Min,
    Number,
    T::Rank,
    T::GREATEST.rank_for_min(),
    |a, x| T::min_rank(a, x.rank_for_min()),
    |a, b| T::min_rank(a, b),
    T,
    |a, _n| T::of_rank_for_min(a),
    Part::First,
    HAS_IDENTITY = false,
    IN_VECTORS = T::IN_VECTORS
);

/// A fold of truth values. A byte is kept, since loops over `bool` do not become vectors.
macro_rules! truth {
    ($fold:ident, $start:expr, |$a:ident, $b:ident| $combine:expr) => {
        impl Fold<bool> for $fold {
            type First = u8;
            type Second = ();
            type Output = bool;
            #[inline(always)]
            fn start(self) -> (u8, ()) {
                ($start, ())
            }
            #[inline(always)]
            fn step(self, first: &mut u8, (): &mut (), element: bool, _: u32) {
                let ($a, $b) = (*first, u8::from(element));
                *first = $combine;
            }
            #[inline(always)]
            fn merge(self, first: &mut u8, (): &mut (), ($b, ()): (u8, ())) {
                let $a = *first;
                *first = $combine;
            }
            #[inline(always)]
            fn finish(self, first: u8, (): (), _: usize) -> bool {
                first != 0
            }
        }
    };
}

truth!(And, 1, |a, b| a & b);
truth!(Or, 0, |a, b| a | b);

/// The place of an extremum.
macro_rules! place {
    ($fold:ident, $output:ty, $most:expr, $start:ident, $beats:ident) => {
        impl<T: Number> Fold<T> for $fold {
            type First = T;
            type Second = u32;
            type Output = $output;
            const PLACES: bool = true;
            const MOST_PLACES: usize = $most;
            const HAS_IDENTITY: bool = false;
            const IN_VECTORS: bool = T::IN_VECTORS;
            const RESULT: Part = Part::Second;
            #[inline(always)]
            fn start(self) -> (T, u32) {
                (T::$start, u32::MAX)
            }
            #[inline(always)]
            fn step(self, first: &mut T, second: &mut u32, element: T, place: u32) {
                self.merge(first, second, (element, place));
            }
            #[inline(always)]
            fn merge(self, first: &mut T, second: &mut u32, (element, place): (T, u32)) {
                let earlier = element.ties(*first) & (place < *second);
                let takes = element.$beats(*first) | earlier;
                *first = if takes { element } else { *first };
                *second = if takes { place } else { *second };
            }
            #[inline(always)]
            fn outdo(self, first: &mut T, element: T) {
                *first = if element.$beats(*first) { element } else { *first };
            }
            #[inline(always)]
            fn first_place(self, row: &[T], first: T) -> Option<u32> {
                // Whole chunks are compared at once; the place is looked for in one of them alone.
                let mut at = 0u32;
                for chunk in row.chunks(64) {
                    let mut found = false;
                    for element in chunk {
                        found |= element.ties(first);
                    }
                    if found {
                        let within = chunk.iter().position(|element| element.ties(first));
                        return within.and_then(|within| Some(at + u32::try_from(within).ok()?));
                    }
                    at = at.wrapping_add(64);
                }
                None
            }
            #[inline(always)]
            fn shift(self, second: &mut u32, by: u32) {
                // The place of no element stays the greatest.
                *second = second.saturating_add(by);
            }
            #[inline(always)]
            #[allow(clippy::cast_possible_wrap, clippy::cast_lossless, reason = "below the most")]
            fn finish(self, _: T, second: u32, _: usize) -> $output {
                second as $output
            }
        }
    };
}

/// The greatest number of 32 bits stands for no place.
const MOST: usize = u32::MAX as usize - 1;
const MOST_32: usize = i32::MAX as usize;

place!(ArgMax, i64, MOST, LEAST, exceeds);
place!(ArgMin, i64, MOST, GREATEST, falls_below);
place!(ArgMax32, i32, MOST_32, LEAST, exceeds);
place!(ArgMin32, i32, MOST_32, GREATEST, falls_below);

impl<T: Float> Fold<T> for SumAndSquares {
    type First = T::Wide;
    type Second = T::Wide;
    type Output = (T, T);
    const ROUNDS: bool = true;
    #[inline(always)]
    fn start(self) -> (T::Wide, T::Wide) {
        (T::ZERO, T::ZERO)
    }
    #[inline(always)]
    fn step(self, first: &mut T::Wide, second: &mut T::Wide, element: T, _: u32) {
        let wide = element.widen();
        *first = T::add(*first, wide);
        *second = T::add(*second, T::multiply(wide, wide));
    }
    #[inline(always)]
    fn merge(self, first: &mut T::Wide, second: &mut T::Wide, other: (T::Wide, T::Wide)) {
        *first = T::add(*first, other.0);
        *second = T::add(*second, other.1);
    }
    #[inline(always)]
    fn finish(self, first: T::Wide, second: T::Wide, _: usize) -> (T, T) {
        (T::narrow(first), T::narrow(second))
    }
}
