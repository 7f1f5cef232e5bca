//! The loops of `kernel.rs` as tasks, each compiled for the instruction-set levels at which it is
//! faster. `run/` and `accumulators.rs` run them.

use std::mem::MaybeUninit;

use crate::elements::Element;
use crate::folds::Accumulate;
use crate::kernel::{StridedBlocks, add_rows, fold_axis, merge_all};
use crate::level::Task;
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
    const IN_VECTORS: bool = F::IN_VECTORS;

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
    const IN_VECTORS: bool = F::IN_VECTORS;

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
    const IN_VECTORS: bool = F::IN_VECTORS;

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
    const IN_VECTORS: bool = F::IN_VECTORS;

    #[inline(always)]
    fn run(self) {
        fold_axis::<T, F>(self.fold, self.all, self.spare, self.axes);
    }
}

/// Writes the result of each accumulator.
pub(crate) struct Finish<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) from: (&'a [F::First], &'a [F::Second]),
    pub(crate) to: &'a mut [MaybeUninit<F::Output>],
}

impl<T: Element, F: Accumulate<T>> Task for Finish<'_, T, F> {
    const IN_VECTORS: bool = F::IN_VECTORS;

    #[inline(always)]
    fn run(self) {
        let Self { fold, from: (firsts, seconds), to } = self;
        for (to, (&first, &second)) in to.iter_mut().zip(firsts.iter().zip(seconds)) {
            *to = MaybeUninit::new(fold.finish(first, second));
        }
    }
}
