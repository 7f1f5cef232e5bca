//! Reductions of contiguous rows: short rows many at a time, long rows in parts. `run/mod.rs` calls
//! them.

use std::any::TypeId;
use std::ops::Range;

use super::{Run, result_stride};
use crate::accumulators::Accumulators;
use crate::axes::Axis;
use crate::elements::Element;
use crate::folds::{Accumulate, Part};
use crate::kernel::{HalvingMerge, LONG_ROW, ROW_PART, ROW_PARTS, reduce_part, reduce_rows};
use crate::tasks::{Parts, UninitAccumulators, as_uninit};

/// A rest of fewer elements than this is reduced together with the part before it.
const SHORT_REST: usize = ROW_PART / 2;

impl<T: Element, F: Accumulate<T>> Run<'_, T, F> {
    /// Reduces a unit of short contiguous rows.
    pub(super) fn short_rows(&self, accumulators: &mut Accumulators<T, F>, unit: usize) {
        let &[row, rows] = self.plan.block.as_slice() else { return };
        let (start, len) = self.block_of(unit);
        let count = self.last_len(unit);
        // SAFETY: rows are contiguous (`Plan::is_short_rows`), and all `len` elements are at
        // indices of the view.
        let elements = unsafe { std::slice::from_raw_parts(start, len) };
        let Accumulators { firsts, seconds, .. } = accumulators;
        let (firsts, seconds) = (&mut firsts[..count], &mut seconds[..count]);
        if result_stride(&rows) == 1 && self.write_rows(elements, row.len, unit, (firsts, seconds))
        {
            return;
        }
        self.reduce_rows(elements, row.len, (firsts, seconds));
        let rows = Axis { len: count, ..rows };
        self.write(&[rows], (firsts, seconds), unit);
    }

    /// Reduces rows of `len` elements straight to the result array, if one part of an accumulator
    /// is the result. The results of the unit must be contiguous. Returns whether it did so.
    fn write_rows(
        &self,
        elements: &[T],
        len: usize,
        unit: usize,
        (firsts, seconds): Parts<'_, T, F>,
    ) -> bool {
        let (at, count) = (self.result_of(unit), firsts.len());
        debug_assert!(at + count <= self.results.len, "results within the array");
        let to = self.results.start.wrapping_add(at);
        let is_first = TypeId::of::<F::First>() == TypeId::of::<F::Output>();
        // The types are compared as well, so that a wrong `RESULT` cannot write another type.
        let is_second = TypeId::of::<F::Second>() == TypeId::of::<u32>()
            && TypeId::of::<F::Output>() == TypeId::of::<i32>();
        // SAFETY: `to` begins the `count` results of this unit, which no other task writes. The
        // types are the same, or `i32` for `u32`, so the layouts are. `reduce_rows_to` writes
        // nothing but initialised values to these slices.
        unsafe {
            let to = match F::RESULT {
                Part::First if is_first => {
                    (std::slice::from_raw_parts_mut(to.cast(), count), as_uninit(seconds))
                }
                Part::Second if is_second => {
                    (as_uninit(firsts), std::slice::from_raw_parts_mut(to.cast(), count))
                }
                _ => return false,
            };
            self.reduce_rows_to(elements, len, to)
        }
    }

    /// Reduces rows of `len` elements, one for each accumulator.
    pub(super) fn reduce_rows(&self, elements: &[T], len: usize, (to, to_2): Parts<'_, T, F>) {
        // SAFETY: `reduce_rows_to` writes nothing but initialised accumulators.
        if unsafe { self.reduce_rows_to(elements, len, (as_uninit(to), as_uninit(to_2))) } {
            return;
        }
        if len <= LONG_ROW {
            return reduce_rows(self.fold, elements, len, (to, to_2));
        }
        for (n, row) in elements.chunks_exact(len).enumerate() {
            (to[n], to_2[n]) = reduce_part(self.fold, row);
        }
    }

    /// Reduces rows of `len` elements, one for each accumulator, if there is a loop that writes all
    /// accumulators and reads none. Returns whether there is one.
    fn reduce_rows_to(&self, elements: &[T], len: usize, to: UninitAccumulators<'_, T, F>) -> bool {
        let Some((vectors, reduce)) = self.rows else { return false };
        reduce(vectors, elements, len, to);
        true
    }

    /// Reduces units that are contiguous rows of `len` elements.
    pub(super) fn whole_rows(&self, units: Range<usize>, len: usize) {
        for unit in units {
            let (start, _) = self.block_of(unit);
            // SAFETY: the unit is a contiguous row of `len` elements (`Plan::row`), all at indices
            // of the view.
            let row = unsafe { std::slice::from_raw_parts(start, len) };
            let (first, second) = self.reduced(row);
            self.write_one(self.result_of(unit), first, second);
        }
    }

    /// Reduces contiguous elements to one accumulator.
    pub(super) fn reduced(&self, row: &[T]) -> (F::First, F::Second) {
        // A short rest joins the part before it: a part of its own takes as long as many elements.
        let last = match row.len() % ROW_PART {
            rest @ 1..SHORT_REST => ROW_PART + rest,
            rest => rest,
        };
        if F::PLACES || row.len() <= last.max(ROW_PART) {
            return self.reduced_part(row);
        }
        let mut merge = HalvingMerge::new(self.fold);
        let (first, second) = self.fold.start();
        let (mut firsts, mut seconds) = ([first; ROW_PARTS], [second; ROW_PARTS]);
        let (whole, rest) = row.split_at(row.len() - last);
        for parts in whole.chunks(ROW_PART * ROW_PARTS) {
            let count = parts.len() / ROW_PART;
            let to = (&mut firsts[..count], &mut seconds[..count]);
            self.reduce_rows(parts, ROW_PART, to);
            for n in 0..count {
                merge.push((firsts[n], seconds[n]));
            }
        }
        if !rest.is_empty() {
            merge.push(self.reduced_part(rest));
        }
        merge.finish()
    }

    fn reduced_part(&self, part: &[T]) -> (F::First, F::Second) {
        let (mut first, mut second) = self.fold.start();
        let to = (std::slice::from_mut(&mut first), std::slice::from_mut(&mut second));
        self.reduce_rows(part, part.len(), to);
        (first, second)
    }
}
