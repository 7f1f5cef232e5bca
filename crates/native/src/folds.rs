//! The folds of reductions: how an accumulator starts, takes an element, merges with another one
//! and gives the result. The kernels are generic over them.

use crate::elements::{Element, Number};

/// A fold of elements of a type, by accumulators that can be merged.
///
/// An accumulator has two parts, which lie in separate arrays; the second part of many folds is
/// `()`.
pub(crate) trait Accumulate<T: Element>: Copy + Send + Sync + 'static {
    /// The first part of an accumulator.
    type First: Copy + Send + Sync + 'static;
    /// The second part of an accumulator.
    type Second: Copy + Send + Sync + 'static;
    /// The type of a result.
    type Output: Copy + Send + Sync + 'static;
    /// Whether the fold finds places, so that steps need the places of elements.
    const PLACES: bool = false;
    /// Whether merging rounds, so that long chains of steps lose digits.
    const ROUNDS: bool = false;
    /// Whether the fold has a result over no elements.
    const HAS_IDENTITY: bool = true;
    /// Whether this crate has SIMD loops over rows for it. Other folds are rare: their loops are compiled
    /// for the base level alone, since each level costs compile time and code size.
    const IN_VECTORS: bool = false;
    /// The part of an accumulator that can be written as the result without conversion: the first
    /// part if it has the result's type, or the second part if it is a place, a `u32`, and the
    /// result an `i32`. Users check the types, since the first part of a sum of 16-bit floats has
    /// another type.
    const RESULT: Part = Part::None;

    /// Returns the accumulator of no elements.
    fn start(self) -> (Self::First, Self::Second);
    /// Adds an element, whose place among the elements that are reduced to one is `place`.
    fn step(self, first: &mut Self::First, second: &mut Self::Second, element: T, place: u32);
    /// Returns the accumulator of eight elements, whose places are `place` and `stride` apart.
    #[inline(always)]
    fn of_eight(self, elements: [T; 8], place: u32, stride: u32) -> (Self::First, Self::Second) {
        let (mut first, mut second) = self.start();
        let at = |n: u32| place.wrapping_add(stride.wrapping_mul(n));
        // A loop over the array would keep the compiler from making vectors.
        let [a, b, c, d, e, f, g, h] = elements;
        self.step(&mut first, &mut second, a, at(0));
        self.step(&mut first, &mut second, b, at(1));
        self.step(&mut first, &mut second, c, at(2));
        self.step(&mut first, &mut second, d, at(3));
        self.step(&mut first, &mut second, e, at(4));
        self.step(&mut first, &mut second, f, at(5));
        self.step(&mut first, &mut second, g, at(6));
        self.step(&mut first, &mut second, h, at(7));
        (first, second)
    }
    /// Merges another accumulator into this one.
    fn merge(
        self,
        first: &mut Self::First,
        second: &mut Self::Second,
        other: (Self::First, Self::Second),
    );
    /// Adds `by` to the place of an accumulator, if the fold finds places.
    fn shift(self, second: &mut Self::Second, by: u32) {
        let _ = (second, by);
    }
    /// Takes an element into the first part alone, if the fold finds places.
    fn take_extremum(self, first: &mut Self::First, element: T) {
        let _ = (first, element);
    }
    /// Returns the first place in a row of an element that ties with `first`, if the fold finds
    /// places.
    fn first_place(self, row: &[T], first: Self::First) -> Option<Self::Second> {
        let _ = (row, first);
        None
    }
    /// Returns the result of an accumulator.
    fn finish(self, first: Self::First, second: Self::Second) -> Self::Output;
}

/// A part of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Neither part.
    None,
    /// The first part.
    First,
    /// The second part.
    Second,
}

/// The sum. Floats of 16 bits are added as `f32`; integers wrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum;
/// The product. Floats of 16 bits are multiplied as `f32`; integers wrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product;
/// The greatest element; NaN if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max;
/// The least element; NaN if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Min;
/// The place of the greatest element, or of NaN if there is one; the first place of several. The
/// place of an element is its row-major index along the reduced axes, in the order of the array's
/// dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgMax;
/// The place of the least element, or of NaN if there is one, as [`ArgMax`] counts places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgMin;

/// Implements a fold whose accumulator has one part.
macro_rules! single {
    ($fold:ident, $part:ty, $start:expr, |$a:ident, $x:ident| $step:expr,
     |$b:ident, $c:ident| $merge:expr, $output:ty, |$f:ident| $finish:expr, $result:expr
     $(, $name:ident = $value:expr)* $(; |$all:ident| $eight:expr)?) => {
        impl<T: Number> Accumulate<T> for $fold {
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
            $(
                #[inline(always)]
                fn of_eight(self, $all: [T; 8], _: u32, _: u32) -> ($part, ()) {
                    ($eight, ())
                }
            )?
            #[inline(always)]
            fn finish(self, $f: $part, (): ()) -> $output {
                $finish
            }
        }
    };
}

/// The ranks of eight elements.
macro_rules! ranks_of {
    ($all:ident, $rank:ident) => {{
        let [a, b, c, d, e, f, g, h] = $all;
        [a.$rank(), b.$rank(), c.$rank(), d.$rank(), e.$rank(), f.$rank(), g.$rank(), h.$rank()]
    }};
}

single!(
    Sum,
    T::Wide,
    T::ZERO,
    |a, x| T::add(a, x.widen()),
    |a, b| T::add(a, b),
    T,
    |a| T::narrow(a),
    Part::First,
    ROUNDS = T::ROUNDS,
    IN_VECTORS = T::IN_VECTORS
);
single!(
    Product,
    T::Wide,
    T::ONE,
    |a, x| T::multiply(a, x.widen()),
    |a, b| T::multiply(a, b),
    T,
    |a| T::narrow(a),
    Part::First,
    ROUNDS = T::ROUNDS
);
single!(
    Max,
    T::Rank,
    T::LEAST.rank_for_max(),
    |a, x| T::max_rank(a, x.rank_for_max()),
    |a, b| T::max_rank(a, b),
    T,
    |a| T::of_rank_for_max(a),
    Part::First,
    HAS_IDENTITY = false,
    IN_VECTORS = T::IN_VECTORS;
    |all| T::max_of_eight(ranks_of!(all, rank_for_max))
);
single!(
    Min,
    T::Rank,
    T::GREATEST.rank_for_min(),
    |a, x| T::min_rank(a, x.rank_for_min()),
    |a, b| T::min_rank(a, b),
    T,
    |a| T::of_rank_for_min(a),
    Part::First,
    HAS_IDENTITY = false,
    IN_VECTORS = T::IN_VECTORS;
    |all| T::min_of_eight(ranks_of!(all, rank_for_min))
);

/// Implements a fold that finds the place of an extremum.
macro_rules! place {
    ($fold:ident, $start:ident, $beats:ident) => {
        impl<T: Number> Accumulate<T> for $fold {
            type First = T;
            type Second = u32;
            type Output = i32;
            const PLACES: bool = true;
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
            fn take_extremum(self, first: &mut T, element: T) {
                *first = if element.$beats(*first) { element } else { *first };
            }
            #[inline(always)]
            fn first_place(self, row: &[T], first: T) -> Option<u32> {
                // All elements of a chunk are compared at once, and only the chunk with a match is
                // searched.
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
                // `u32::MAX` stands for no element, and stays as it is.
                *second = second.saturating_add(by);
            }
            #[inline(always)]
            fn finish(self, _: T, second: u32) -> i32 {
                second.cast_signed()
            }
        }
    };
}

/// The most elements whose places can be counted: `u32::MAX` stands for no element.
pub(crate) const MOST_PLACES: usize = u32::MAX as usize - 1;

place!(ArgMax, LEAST, exceeds);
place!(ArgMin, GREATEST, falls_below);
