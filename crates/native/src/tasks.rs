//! The loops of `kernel.rs` as tasks, each compiled for the instruction-set levels at which it is
//! faster. `run/` and `accumulators.rs` run them.

use std::mem::MaybeUninit;

use crate::elements::Element;
use crate::folds::Accumulate;
use crate::kernel::{
    ROW_LANES, StridedBlocks, add_rows, first_place, fold_axis, merge_all, reduce_part,
    reduce_rows, step_rows,
};
use crate::level::{Compiled, Task};
use crate::vectors;

/// The first and the second parts of accumulators, in two slices of equal length.
pub(crate) type Parts<'a, T, F> =
    (&'a mut [<F as Accumulate<T>>::First], &'a mut [<F as Accumulate<T>>::Second]);

/// Uninitialised slices for the two parts of accumulators.
pub(crate) type UninitAccumulators<'a, T, F> =
    vectors::UninitParts<'a, <F as Accumulate<T>>::First, <F as Accumulate<T>>::Second>;

/// Returns a slice of values as a slice of `MaybeUninit`.
///
/// # Safety
/// The caller must write only initialised values of `V` to the returned slice.
pub(crate) unsafe fn as_uninit<V>(values: &mut [V]) -> &mut [MaybeUninit<V>] {
    // SAFETY: `MaybeUninit<V>` has the layout of `V`, pointer and length are those of one slice
    // that stays borrowed, and the caller guarantees that every element stays initialised.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

/// Adds blocks to accumulators: see [`add_rows`].
pub(crate) struct Add<'a, T: Element, F: Accumulate<T>> {
    fold: F,
    to: Parts<'a, T, F>,
    rows: StridedBlocks<T>,
}

impl<'a, T: Element, F: Accumulate<T>> Add<'a, T, F> {
    /// Makes a task that adds the blocks `rows` to the accumulators `to`.
    ///
    /// # Safety
    /// Until the task has run, `rows.start + n * rows.block_stride + i * rows.element_stride`,
    /// counted in elements, must be the address of a readable element that nobody writes, for each
    /// `n < rows.count` and each index `i` of an accumulator in `to`.
    pub(crate) unsafe fn new(fold: F, to: Parts<'a, T, F>, rows: StridedBlocks<T>) -> Self {
        Self { fold, to, rows }
    }
}

impl<T: Element, F: Accumulate<T>> Task for Add<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::ForAll);

    #[inline(always)]
    fn run(self) {
        let (firsts, seconds) = self.to;
        // SAFETY: the caller of `new` guaranteed a readable element for each accumulator in each
        // block.
        unsafe { add_rows(self.fold, firsts, seconds, self.rows) }
    }
}

/// Merges accumulators with others: see [`merge_all`].
pub(crate) struct Merge<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) to: Parts<'a, T, F>,
    pub(crate) other: (&'a [F::First], &'a [F::Second]),
}

impl<T: Element, F: Accumulate<T>> Task for Merge<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::UpToAvx2);

    #[inline(always)]
    fn run(self) {
        merge_all::<T, F>(self.fold, self.to, self.other);
    }
}

/// Sets accumulators to the start of a fold.
pub(crate) struct Empty<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) to: Parts<'a, T, F>,
}

impl<T: Element, F: Accumulate<T>> Task for Empty<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::UpToAvx2);

    #[inline(always)]
    fn run(self) {
        let (first, second) = self.fold.start();
        self.to.0.fill(first);
        self.to.1.fill(second);
    }
}

/// Reduces one axis of accumulators: see [`fold_axis`].
pub(crate) struct FoldAxis<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) all: Parts<'a, T, F>,
    pub(crate) spare: Parts<'a, T, F>,
    pub(crate) axes: [usize; 3],
}

impl<T: Element, F: Accumulate<T>> Task for FoldAxis<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::UpToAvx2);

    #[inline(always)]
    fn run(self) {
        fold_axis::<T, F>(self.fold, self.all, self.spare, self.axes);
    }
}

/// Reduces very short rows: see [`step_rows`].
pub(crate) struct StepRows<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) elements: &'a [T],
    pub(crate) len: usize,
    pub(crate) to: UninitAccumulators<'a, T, F>,
}

impl<T: Element, F: Accumulate<T>> Task for StepRows<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::ForAll);

    #[inline(always)]
    fn run(self) {
        step_rows(self.fold, self.elements, self.len, self.to);
    }
}

/// The levels for loops over rows. A fold with SIMD loops uses those at every level above the base.
const fn of_rows<T: Element, F: Accumulate<T>>() -> Compiled {
    if F::IN_VECTORS { Compiled::ForBase } else { unless_rare::<T, F>(Compiled::UpToAvx2) }
}

/// Returns `levels`, but only the base level for a rare fold.
const fn unless_rare<T: Element, F: Accumulate<T>>(levels: Compiled) -> Compiled {
    if F::IS_RARE { Compiled::ForBase } else { levels }
}

/// Reduces rows of equal lengths: see [`reduce_rows`].
pub(crate) struct ReduceRows<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) elements: &'a [T],
    pub(crate) len: usize,
    pub(crate) to: Parts<'a, T, F>,
    pub(crate) spare: Parts<'a, T, F>,
}

impl<T: Element, F: Accumulate<T>> Task for ReduceRows<'_, T, F> {
    const COMPILED: Compiled = of_rows::<T, F>();

    #[inline(always)]
    fn run(self) {
        reduce_rows(self.fold, self.elements, self.len, self.to, self.spare);
    }
}

/// Reduces a part of a row to one accumulator: see [`reduce_part`], or [`first_place`] for a fold
/// that finds places.
pub(crate) struct ReducePart<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) part: &'a [T],
    pub(crate) to: (&'a mut F::First, &'a mut F::Second),
}

impl<T: Element, F: Accumulate<T>> Task for ReducePart<'_, T, F> {
    const COMPILED: Compiled = of_rows::<T, F>();

    #[inline(always)]
    fn run(self) {
        (*self.to.0, *self.to.1) = if F::PLACES {
            first_place::<T, F, ROW_LANES>(self.fold, self.part)
        } else {
            reduce_part(self.fold, self.part)
        };
    }
}

/// Writes the result of each accumulator.
pub(crate) struct Finish<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) from: (&'a [F::First], &'a [F::Second]),
    pub(crate) to: &'a mut [MaybeUninit<F::Output>],
}

impl<T: Element, F: Accumulate<T>> Task for Finish<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::ForAll);

    #[inline(always)]
    fn run(self) {
        let Self { fold, from: (firsts, seconds), to } = self;
        for (to, (&first, &second)) in to.iter_mut().zip(firsts.iter().zip(seconds)) {
            *to = MaybeUninit::new(fold.finish(first, second));
        }
    }
}
