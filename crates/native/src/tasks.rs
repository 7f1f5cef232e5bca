//! The loops of `kernel.rs` as tasks, each compiled for the levels at which it is faster.

use std::mem::MaybeUninit;

use crate::elements::Element;
use crate::folds::Accumulate;
use crate::kernel::{
    ROW_LANES, Rows, add_rows, first_place, fold_axis, merge_all, reduce_part, reduce_rows,
    step_rows,
};
use crate::level::{Compiled, Task};
use crate::vectors;

/// The parts of accumulators side by side.
pub(crate) type Parts<'a, T, F> =
    (&'a mut [<F as Accumulate<T>>::First], &'a mut [<F as Accumulate<T>>::Second]);

/// Room for accumulators.
pub(crate) type Rooms<'a, T, F> =
    vectors::Rooms<'a, <F as Accumulate<T>>::First, <F as Accumulate<T>>::Second>;

/// Values as room for others.
///
/// # Safety
/// Nothing but values may be written there.
pub(crate) unsafe fn as_room<V>(values: &mut [V]) -> &mut [MaybeUninit<V>] {
    // SAFETY: both lie alike, and the caller promises that values stay values.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

/// Calls [`add_rows`].
pub(crate) struct Add<'a, T: Element, F: Accumulate<T>> {
    fold: F,
    to: Parts<'a, T, F>,
    rows: Rows<T>,
}

impl<'a, T: Element, F: Accumulate<T>> Add<'a, T, F> {
    /// Whether this crate has loops in vectors for it.
    pub(crate) const IN_VECTORS: bool = F::IN_VECTORS && !F::PLACES && size_of::<F::First>() >= 4;

    /// A task that adds blocks.
    ///
    /// # Safety
    /// As [`add_rows`].
    pub(crate) unsafe fn new(fold: F, to: Parts<'a, T, F>, rows: Rows<T>) -> Self {
        Self { fold, to, rows }
    }
}

impl<T: Element, F: Accumulate<T>> Task for Add<'_, T, F> {
    // A fold that has loops in vectors adds elements that lie side by side by those, unless its
    // accumulators have two parts or 16 bits. Elements at a distance are added one by one.
    const COMPILED: Compiled =
        if Self::IN_VECTORS { Compiled::ForBase } else { unless_rare::<T, F>(Compiled::ForAll) };

    #[inline(always)]
    fn run(self) {
        let (firsts, seconds) = self.to;
        // SAFETY: the caller of `new` promised that all elements are readable.
        unsafe { add_rows(self.fold, firsts, seconds, self.rows) }
    }
}

/// Calls [`merge_all`].
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

/// Calls [`fold_axis`].
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

/// Calls [`step_rows`].
pub(crate) struct StepRows<'a, T: Element, F: Accumulate<T>> {
    pub(crate) fold: F,
    pub(crate) elements: &'a [T],
    pub(crate) len: usize,
    pub(crate) to: Rooms<'a, T, F>,
}

impl<T: Element, F: Accumulate<T>> Task for StepRows<'_, T, F> {
    const COMPILED: Compiled = unless_rare::<T, F>(Compiled::ForAll);

    #[inline(always)]
    fn run(self) {
        step_rows(self.fold, self.elements, self.len, self.to);
    }
}

/// The levels for loops over rows. A fold that has loops in vectors runs those at all other levels.
const fn of_rows<T: Element, F: Accumulate<T>>() -> Compiled {
    if F::IN_VECTORS { Compiled::ForBase } else { unless_rare::<T, F>(Compiled::UpToAvx2) }
}

/// These levels, or the first one for a fold that is rare.
const fn unless_rare<T: Element, F: Accumulate<T>>(levels: Compiled) -> Compiled {
    if F::IS_RARE { Compiled::ForBase } else { levels }
}

/// Calls [`reduce_rows`].
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

/// Calls [`reduce_part`], or [`first_place`] if the fold tells places.
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

/// Writes the results of accumulators.
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
