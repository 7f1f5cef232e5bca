//! The computations of reductions.

use crate::elements::{Element, Number};

/// The computation of a reduction of elements of a type, by accumulators that can be merged.
///
/// An accumulator has two parts, which are kept in arrays of their own; many folds leave the second
/// one empty.
pub(crate) trait Accumulate<T: Element>: Copy + Send + Sync + 'static {
    /// The first part of an accumulator.
    type First: Copy + Send + Sync + 'static;
    /// The second part of an accumulator.
    type Second: Copy + Send + Sync + 'static;
    /// The result for the elements that are reduced to one.
    type Output: Copy + Send + Sync + 'static;
    /// Whether steps are told the places of elements.
    const PLACES: bool = false;
    /// Whether merging rounds, so that long chains of steps lose digits.
    const ROUNDS: bool = false;
    /// Whether there is a result without any element.
    const HAS_IDENTITY: bool = true;
    /// Whether this crate has loops in vectors for it, so that others need not become vectors.
    const IN_VECTORS: bool = false;
    /// Whether it is so seldom asked for that loops are compiled for [`Level::Base`](crate::level::Level)
    /// alone: each level takes time to compile, and room in programs.
    const IS_RARE: bool = false;
    /// The part of an accumulator that is the result: the first one if its type is that of the result, the
    /// second one if it is a place and the result an `i32`.
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
    /// Returns the result.
    fn finish(self, first: Self::First, second: Self::Second) -> Self::Output;
}

/// A part of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Neither of both.
    None,
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// The sum, in the type of the elements; floats of 16 bits are added as `f32`, whole numbers wrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum;
/// The product, in the type of the elements; as [`Sum`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product;
/// The greatest element; NaN if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max;
/// The least element; NaN if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Min;
/// The place of the greatest element, the first of several; of the first NaN if there is one.
/// Places are counted row by row through the reduced axes, in the order of the array's dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgMax;
/// The place of the least element; as [`ArgMax`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgMin;

/// A fold whose accumulator has one part.
macro_rules! single {
    ($fold:ident, $part:ty, $start:expr, |$a:ident, $x:ident| $step:expr,
     |$b:ident, $c:ident| $merge:expr, $output:ty, |$f:ident| $finish:expr, $result:expr $(, $name:ident = $value:expr)*) => {
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
            #[inline(always)]
            fn finish(self, $f: $part, (): ()) -> $output {
                $finish
            }
        }
    };
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
    IN_VECTORS = T::IN_VECTORS,
    IS_RARE = T::IS_RARE
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
    ROUNDS = T::ROUNDS,
    IS_RARE = true
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
    IN_VECTORS = T::IN_VECTORS,
    IS_RARE = T::IS_RARE
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
    IN_VECTORS = T::IN_VECTORS,
    IS_RARE = T::IS_RARE
);

/// The place of an extremum.
macro_rules! place {
    ($fold:ident, $start:ident, $beats:ident) => {
        impl<T: Number> Accumulate<T> for $fold {
            type First = T;
            type Second = u32;
            type Output = i32;
            const PLACES: bool = true;
            const HAS_IDENTITY: bool = false;
            const IN_VECTORS: bool = T::IN_VECTORS;
            const IS_RARE: bool = T::IS_RARE;
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
            fn finish(self, _: T, second: u32) -> i32 {
                second.cast_signed()
            }
        }
    };
}

/// The most elements of which the places are known: the greatest number of 32 bits stands for no place.
pub(crate) const MOST_PLACES: usize = u32::MAX as usize - 1;

place!(ArgMax, LEAST, exceeds);
place!(ArgMin, GREATEST, falls_below);
