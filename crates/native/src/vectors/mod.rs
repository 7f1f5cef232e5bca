//! Loops that are written in vectors of 512 bits, which may be made of shorter ones. They are compiled
//! for each kind of [`Vectors`], and give the bits of the loops of `kernel.rs`.
//!
//! An instruction that finds the greater of two floats may lose NaN. Extrema are found by it alone, and
//! once more with care if an element was NaN.

#![expect(clippy::needless_range_loop, reason = "vectors are known by their numbers")]

mod bytes;
mod chain;
mod exp;
mod instructions;
mod lanes;
mod places;
mod products;
mod rows;
mod short;
mod tree;

use std::any::{Any, TypeId};
use std::mem::MaybeUninit;

use fearless_simd::Simd;
use half::{bf16, f16};

use crate::elements::Element;
use crate::folds::{Accumulate, ArgMax, ArgMin, Max, Min, Sum};
use crate::level::{Vectors, in_vectors};
use bytes::OfBytes;
pub(crate) use instructions::{HAS_STORES_PAST_CACHES, copy_past_caches};
use lanes::{Least, Most, SumOf};
use short::{Highest, Lowest, SumOfShort};

/// A function that reduces rows of `len` elements, not 0, side by side, and writes an accumulator for
/// each: it initialises all of `to`.
pub(crate) type RowsFn<T, A, B> =
    fn(Vectors, elements: &[T], len: usize, to: UninitParts<'_, A, B>);

/// A [`RowsFn`] with the vectors that it runs in.
pub(crate) type RowsIn<T, A, B> = (Vectors, RowsFn<T, A, B>);

/// Uninitialised slices for the parts of accumulators.
pub(crate) type UninitParts<'a, A, B> = (&'a mut [MaybeUninit<A>], &'a mut [MaybeUninit<B>]);

/// A function that adds up the squared deviations of rows of `len` elements, not 0, from their means.
pub(crate) type DeviationsFn<T> =
    fn(Vectors, elements: &[T], len: usize, means: &[T], to: &mut [T]);

/// The operands of two factors: see [`Factors`].
pub(crate) const FACTORED: usize = 7;

/// Rows of two factors, `((x - 0) * 1) * 2` and `((y - 3) * 4) * 5`, whose products are added up, and
/// perhaps beside the first factor times the operand 6. Each op is rounded.
#[derive(Debug)]
pub(crate) struct Factors<T> {
    pub(crate) x: *const T,
    pub(crate) y: *const T,
    /// The first element of each operand, and how far apart what two rows have is. Those that are missing
    /// change nothing.
    pub(crate) operands: [(*const T, usize); FACTORED],
    /// Bits for the operands that there are, and for those that have an element for each of a row; others
    /// have one for all.
    pub(crate) present: u8,
    pub(crate) per_element: u8,
    /// The number of rows, and the elements of each.
    pub(crate) rows: usize,
    pub(crate) len: usize,
    pub(crate) prefetch: [Prefetch; 2],
}

/// A function that adds up products of factors, and the first factors beside.
///
/// # Safety
/// The elements must be readable. `factor_sum` is as long as `to`.
pub(crate) type AddProductsFn<T> =
    unsafe fn(Vectors, factors: &Factors<T>, to: &mut [T], factor_sum: Option<&mut [T]>);

/// Functions that add up products of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductFns<T> {
    /// Writes the sums of rows, one for each of `to`.
    pub(crate) rows: AddProductsFn<T>,
    /// Adds blocks, which have an element for each of `to`, as [`add_rows`](crate::kernel::add_rows) does.
    pub(crate) blocks: AddProductsFn<T>,
}

/// A fence that is set when this is dropped, at the end of a task that writes past the caches. Without
/// it, other threads might see what the task writes next before they see those stores. The fence waits
/// until the stores are in memory: one after each tile took a fifth of the time of a layer norm.
#[derive(Debug)]
pub(crate) struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: SSE has the instruction, and all x86-64 have SSE.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// Memory that is read later: what a step fetches meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefetch {
    pub(crate) from: *const i8,
    /// The bytes of an element.
    pub(crate) bytes: usize,
}

impl Prefetch {
    /// No memory.
    pub(crate) const NONE: Self = Self { from: std::ptr::null(), bytes: 0 };
}

/// The most operands of a chain besides the first.
pub(crate) const CHAINED: usize = 10;

/// The ops of a chain, whose operands are known by their numbers; each op is rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// `((((x - 0) - 1) * 2) * 3) + 4`.
    #[default]
    Product,
    /// `((((x - 0) - 1) / 2) * 3) + 4`.
    Quotient,
    /// `e^(x - 0)`, of `f32` alone.
    Exponential,
    /// `(((((x - 0) * 1) * 2 + 7) + ((3 - 4) * 5) * 6) + 8) * 9`, where the second product and the operands
    /// 7 and 8 may be negated: the gradient of the input of a norm.
    Terms,
}

/// Which parts of [`Form::Terms`] are negated: the operand 7, the second product, the operand 8.
pub(crate) type Negated = [bool; 3];

/// The ops of a chain on rows.
#[derive(Debug)]
pub(crate) struct Chain<T> {
    pub(crate) form: Form,
    pub(crate) negated: Negated,
    pub(crate) x: *const T,
    /// The first element of each operand, and how far apart what two rows have is.
    pub(crate) operands: [(*const T, usize); CHAINED],
    /// Bits for the operands that have an element for each of a row; others have one for all.
    pub(crate) per_element: u16,
    pub(crate) out: *mut T,
    /// The number of rows, and the elements of each, which fill a vector at least.
    pub(crate) rows: usize,
    pub(crate) len: usize,
    /// Whether the results go past the caches, with a [`Fence`] behind.
    pub(crate) non_temporal: bool,
    pub(crate) prefetch: [Prefetch; 2],
}

/// A function that computes a chain.
///
/// # Safety
/// The elements must be readable, and those at `out` writable and apart from them.
pub(crate) type ChainFn<T> = unsafe fn(Vectors, chain: &Chain<T>);

/// Returns a closure. Closures that compute with vectors must be inlined always, and the attribute that
/// says so may stand before an argument, but not before other expressions.
#[inline(always)]
const fn inlined<F>(closure: F) -> F {
    closure
}

/// Calls a function that computes with vectors, and keeps it apart from its caller: what is inlined into
/// one function shares its registers.
#[inline(never)]
fn apart<S: Simd, R>(simd: S, function: impl FnOnce() -> R) -> R {
    simd.vectorize(function)
}

// The functions below return loops of fixed types: crates that reduce do not compile them again.

/// Returns what a type or fold has, if it is the one that is wanted.
macro_rules! found {
    ($wanted:expr, $of:ty, $as:ty, $function:expr) => {
        if $wanted == TypeId::of::<$of>() {
            const FUNCTION: $as = $function;
            return (&FUNCTION as &dyn Any).downcast_ref().copied();
        }
    };
}

/// Returns the function that computes chains of a form, if there is one.
pub(crate) fn chains_of<T: Element>(form: Form) -> Option<ChainFn<T>> {
    macro_rules! chains {
        ($type:ty) => {
            found!(TypeId::of::<T>(), $type, ChainFn<$type>, |vectors, chain| {
                // SAFETY: the caller promises the same.
                in_vectors!(vectors, simd => unsafe { chain::chain(simd, chain) })
            });
        };
    }
    chains!(f32);
    if form != Form::Exponential {
        chains!(f64);
    }
    None
}

/// Returns the function that adds up deviations, if there is one.
pub(crate) fn deviations_of<T: Element>() -> Option<DeviationsFn<T>> {
    macro_rules! deviations {
        ($type:ty) => {
            found!(TypeId::of::<T>(), $type, DeviationsFn<$type>, |vectors, elements, len, means, to| {
                in_vectors!(vectors, simd => rows::deviations(simd, elements, len, means, to))
            });
        };
    }
    deviations!(f32);
    deviations!(f64);
    None
}

/// Returns the functions that add up products, if there are any.
pub(crate) fn products_of<T: Element>() -> Option<ProductFns<T>> {
    macro_rules! products {
        ($type:ty) => {
            found!(TypeId::of::<T>(), $type, ProductFns<$type>, ProductFns {
                // SAFETY: the caller promises the same.
                rows: |vectors, factors, to, factor_sum| unsafe {
                    in_vectors!(vectors, simd => products::products_of_rows(simd, factors, to, factor_sum))
                },
                // SAFETY: the caller promises the same.
                blocks: |vectors, factors, to, factor_sum| unsafe {
                    in_vectors!(vectors, simd => products::products_of_blocks(simd, factors, to, factor_sum))
                },
            });
        };
    }
    products!(f32);
    products!(f64);
    None
}

/// Returns the function that reduces rows by a fold, if there is one.
pub(crate) fn rows_of<T: Element, F: Accumulate<T>>() -> Option<RowsFn<T, F::First, F::Second>> {
    macro_rules! rows {
        ($type:ty, $fold:ty, $module:ident::$function:ident::<$lanes:ty>) => {
            found!(
                TypeId::of::<F>(),
                $fold,
                RowsFn<$type, <$fold as Accumulate<$type>>::First, <$fold as Accumulate<$type>>::Second>,
                |vectors, elements, len, to| {
                    in_vectors!(vectors, simd => $module::$function::<_, $lanes>(simd, elements, len, to))
                }
            );
        };
    }
    macro_rules! folds {
        ($type:ty, $sum:ty, $max:ty, $min:ty) => {
            if TypeId::of::<T>() == TypeId::of::<$type>() {
                rows!($type, Sum, rows::values::<$sum>);
                rows!($type, Max, rows::values::<$max>);
                rows!($type, Min, rows::values::<$min>);
                rows!($type, ArgMax, places::places::<$max>);
                rows!($type, ArgMin, places::places::<$min>);
            }
        };
    }
    macro_rules! lanes {
        ($($type:ty)*) => { $( folds!($type, SumOf<$type>, Most<$type>, Least<$type>); )* };
    }
    lanes!(f32 f64 i32 u32 i64 u64);
    folds!(u8, OfBytes<SumOf<u32>>, OfBytes<Most<u32>>, OfBytes<Least<u32>>);
    folds!(bf16, SumOfShort<bf16>, Highest<bf16>, Lowest<bf16>);
    folds!(f16, SumOfShort<f16>, Highest<f16>, Lowest<f16>);
    None
}
