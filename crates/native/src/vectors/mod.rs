//! Reductions that are written in vectors.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod narrow;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::any::TypeId;
use std::mem::MaybeUninit;

use crate::elements::Element;
use crate::folds::Accumulate;
use crate::level::Level;

/// A function that reduces rows of `len` elements side by side, and writes an accumulator for each. The
/// last operand tells whether they probably come from main memory.
///
/// # Safety
/// The CPU must have the instructions of the level, `len` is not 0, and there are as many
/// rows as accumulators.
pub(crate) type RowsFn<T, A, B> =
    unsafe fn(elements: &[T], len: usize, to: UninitParts<'_, A, B>, in_main_memory: bool);

/// Uninitialised slices for the parts of accumulators.
pub(crate) type UninitParts<'a, A, B> = (&'a mut [MaybeUninit<A>], &'a mut [MaybeUninit<B>]);

/// A function that adds up the squared deviations of rows of `len` elements from their means.
///
/// # Safety
/// As that of [`RowsFn`], with as many means.
pub(crate) type DeviationsFn<T> = unsafe fn(elements: &[T], len: usize, means: &[T], to: &mut [T]);

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
/// The CPU must have the instructions of the level. The elements must be readable. `factor_sum` is as long
/// as `to`.
pub(crate) type AddProductsFn<T> =
    unsafe fn(factors: &Factors<T>, to: &mut [T], factor_sum: Option<&mut [T]>);

/// Functions that add up products of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductFns<T> {
    /// Writes the sums of rows, one for each of `to`.
    pub(crate) rows: AddProductsFn<T>,
    /// Adds blocks, which have an element for each of `to`, as [`add_rows`](crate::kernel::add_rows) does.
    pub(crate) blocks: AddProductsFn<T>,
}

/// A function that copies `lines` lines of a cache, 64 bytes each, past the caches.
///
/// # Safety
/// The CPU must have the instructions of the level. The lines at `from` must be readable, those at
/// `to` writable, at a boundary of 64 bytes, and lie apart from them. A [`Fence`] is dropped before
/// other threads learn that the lines were written.
pub(crate) type Stream = unsafe fn(from: *const u8, to: *mut u8, lines: usize);

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
/// The CPU must have the instructions of the level; the elements must be readable, and those at `out`
/// writable and apart from them.
pub(crate) type ChainFn<T> = unsafe fn(chain: &Chain<T>);

/// Returns the function that copies lines past the caches, if the CPU can.
pub(crate) fn stream(level: Level) -> Option<Stream> {
    match level {
        // Miri does not know these stores.
        _ if cfg!(miri) => None,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Some(avx512::stream()),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Some(avx2::stream()),
        // The standard library has no such store.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => None,
        Level::Base => None,
    }
}

/// Returns the function that computes chains of a form, if there is one and the CPU can run it.
pub(crate) fn chains_of<T: Element>(level: Level, form: Form) -> Option<ChainFn<T>> {
    match level {
        _ if form == Form::Exponential && TypeId::of::<T>() != TypeId::of::<f32>() => None,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::chains_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::chains_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::chains_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the function that adds up deviations, if there is one and the CPU can run it.
pub(crate) fn deviations_of<T: Element>(level: Level) -> Option<DeviationsFn<T>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::deviations_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::deviations_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::deviations_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the functions that add up products, if there are any and the CPU can run them.
pub(crate) fn products_of<T: Element>(level: Level) -> Option<ProductFns<T>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::products_of::<T>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::products_of::<T>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::products_of::<T>(),
        Level::Base => None,
    }
}

/// Returns the function that reduces rows by a fold, if there is one and the CPU can run it.
pub(crate) fn rows_of<T: Element, F: Accumulate<T>>(
    level: Level,
) -> Option<RowsFn<T, F::First, F::Second>> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::rows_of::<T, F>(),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::rows_of::<T, F>(),
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::rows_of::<T, F>(),
        Level::Base => None,
    }
}
