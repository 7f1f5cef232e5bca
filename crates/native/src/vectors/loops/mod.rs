//! Reductions of rows and of blocks in vectors of 512 bits, which may be made of shorter ones. This is
//! compiled for each set of instructions: `arch` has them, and `wide!` makes functions of their level.
//! Sums have the same bits as those of `kernel.rs`.
//!
//! An instruction that finds the greater of two floats may lose NaN. Extrema are found by it alone, and
//! once more with care if an element was NaN, which one comparison tells of two vectors.

#![expect(clippy::needless_range_loop, reason = "vectors are known by their numbers")]

mod blocks;
mod chain;
mod exp;
mod lanes;
mod narrow;
mod places;
mod products;
mod rows;
#[cfg(target_arch = "x86_64")]
mod stream;
mod terms;

use std::any::{Any, TypeId};

use half::{bf16, f16};

use chain::chain;
use lanes::{
    Highest, Lowest, MaxF32, MaxF64, MaxI32, MaxI64, MaxU32, MaxU64, MinF32, MinF64, MinI32,
    MinI64, MinU32, MinU64, SumF32, SumF64, SumI32, SumI64, SumOfShort, SumU32, SumU64,
};
use places::places;
use products::{products_of_blocks, products_of_rows};
use rows::values;
use terms::deviations;

use super::arch;
use crate::elements::Element;
use crate::folds::{Accumulate, ArgMax, ArgMin, Max, Min, Sum};
use crate::vectors::{ChainFn, DeviationsFn, ProductFns, RowsFn};

/// Calls a macro with each type and its folds.
macro_rules! for_all_types {
    ($use:ident) => {
        $use!(f32, SumF32, MaxF32, MinF32);
        $use!(f64, SumF64, MaxF64, MinF64);
        $use!(bf16, SumOfShort<bf16>, Highest<bf16>, Lowest<bf16>);
        $use!(f16, SumOfShort<f16>, Highest<f16>, Lowest<f16>);
        $use!(i32, SumI32, MaxI32, MinI32);
        $use!(u32, SumU32, MaxU32, MinU32);
        $use!(i64, SumI64, MaxI64, MinI64);
        $use!(u64, SumU64, MaxU64, MinU64);
    };
}

/// Returns a function from the function that uses the macro, if it is for the fold `$wanted`.
macro_rules! found {
    ($wanted:ident, $fold:ty, $function:expr, $as:ty) => {
        if $wanted == TypeId::of::<$fold>() {
            const FUNCTION: $as = $function;
            return Some(&FUNCTION);
        }
    };
}

/// Returns the function that adds up squared deviations of rows, if there is one.
pub(in crate::vectors) fn deviations_of<T: Element>() -> Option<DeviationsFn<T>> {
    let (wide, narrow): (DeviationsFn<f64>, DeviationsFn<f32>) =
        (deviations::<SumF64>, deviations::<SumF32>);
    let (wide, narrow): (&dyn Any, &dyn Any) = (&wide, &narrow);
    wide.downcast_ref().or_else(|| narrow.downcast_ref()).copied()
}

/// Returns the functions that add up products, if there are any.
pub(in crate::vectors) fn products_of<T: Element>() -> Option<ProductFns<T>> {
    let wide = ProductFns::<f64> {
        rows: products_of_rows::<SumF64>,
        blocks: products_of_blocks::<SumF64>,
    };
    let narrow = ProductFns::<f32> {
        rows: products_of_rows::<SumF32>,
        blocks: products_of_blocks::<SumF32>,
    };
    let (wide, narrow): (&dyn Any, &dyn Any) = (&wide, &narrow);
    wide.downcast_ref().or_else(|| narrow.downcast_ref()).copied()
}

/// Returns the function that writes lines past the caches.
#[cfg(target_arch = "x86_64")]
pub(in crate::vectors) const fn stream() -> crate::vectors::Stream {
    stream::stream
}

/// Returns the function that computes chains of a type, if there is one.
pub(in crate::vectors) fn chains_of<T: Element>() -> Option<ChainFn<T>> {
    let (wide, narrow): (ChainFn<f64>, ChainFn<f32>) = (chain::<f64>, chain::<f32>);
    let (wide, narrow): (&dyn Any, &dyn Any) = (&wide, &narrow);
    wide.downcast_ref().or_else(|| narrow.downcast_ref()).copied()
}

/// Returns the function that reduces rows by a fold, if there is one.
pub(in crate::vectors) fn rows_of<T: Element, F: Accumulate<T>>()
-> Option<RowsFn<T, F::First, F::Second>> {
    rows_for(TypeId::of::<T>(), TypeId::of::<F>())?.downcast_ref().copied()
}

// The functions below have no type parameters: crates that reduce do not compile the loops again.

/// Returns a [`RowsFn`] for a type of elements and a fold.
fn rows_for(element: TypeId, fold: TypeId) -> Option<&'static dyn Any> {
    macro_rules! rows {
        ($type:ty, $sum:ty, $max:ty, $min:ty) => {
            if element == TypeId::of::<$type>() {
                found!(fold, Sum, values::<$sum>, RowsFn<$type, <Sum as Accumulate<$type>>::First, ()>);
                found!(fold, Max, values::<$max>, RowsFn<$type, <Max as Accumulate<$type>>::First, ()>);
                found!(fold, Min, values::<$min>, RowsFn<$type, <Min as Accumulate<$type>>::First, ()>);
                found!(fold, ArgMax, places::<$max>, RowsFn<$type, $type, u32>);
                found!(fold, ArgMin, places::<$min>, RowsFn<$type, $type, u32>);
                return None;
            }
        };
    }
    for_all_types!(rows);
    None
}

/// Bits for the first of 16 lanes.
#[inline(always)]
const fn first(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}
