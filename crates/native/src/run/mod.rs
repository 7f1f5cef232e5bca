//! Carries out the plan of a reduction: adds the blocks of each unit, merges pieces and writes the
//! results. `reduce.rs` calls [`write_all`] for each type and fold.

mod rows;

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use crate::accumulators::Accumulators;
use crate::axes::{Axes, Axis, Reduced, Role};
use crate::elements::Element;
use crate::error::Error;
use crate::folds::{Accumulate, MOST_PLACES};
use crate::kernel::{BLOCKS_PER_STEP, StridedBlocks};
use crate::level::{Level, detect, on_level};
use crate::pages::prefer_huge;
use crate::pieces::Pieces;
use crate::plan::Plan;
use crate::pool::{Pool, run_once};
use crate::tasks::{Add, Finish, FoldAxis, Merge};
use crate::vectors;
use crate::view::View;

/// Reduces `view` along the axes of `reduced` and writes every result to `out`, whose length must
/// be the number of results. Unless it returns an error, all of `out` is initialised.
pub(crate) fn write_all<T: Element, F: Accumulate<T>>(
    view: &View<'_, T>,
    reduced: &Reduced,
    fold: F,
    out: &mut [MaybeUninit<F::Output>],
    pool: &dyn Pool,
) -> Result<(), Error> {
    if reduced.count == 0 && !F::HAS_IDENTITY {
        return Err(Error::Empty);
    }
    if out.is_empty() {
        return Ok(());
    }
    if reduced.count == 0 {
        let (first, second) = fold.start();
        out.fill(MaybeUninit::new(fold.finish(first, second)));
        return Ok(());
    }
    if F::PLACES && reduced.count > MOST_PLACES {
        return Err(Error::TooManyPlaces { count: reduced.count, most: MOST_PLACES });
    }
    prefer_huge(out.as_mut_ptr().cast(), size_of_val(out));
    let plan = Plan::of::<T, F>(&reduced.axes);
    let level = detect();
    let run = Run {
        plan: &plan,
        fold,
        origin: view.origin(),
        results: Results { start: out.as_mut_ptr().cast(), len: out.len() },
        level,
        rows: level.zip(vectors::rows_of::<T, F>()),
    };
    debug_assert!(run.knows_its_vectors(), "the fold says which loops it has");
    // Each result belongs to one unit of the plan, and without an error all units were run.
    run.all(pool)
}

/// The slice that results are written to, shared by several threads.
#[derive(Clone, Copy)]
struct Results<O> {
    start: *mut O,
    len: usize,
}

/// The state of a reduction, shared by its tasks.
#[derive(Clone, Copy)]
struct Run<'a, T, F: Accumulate<T>>
where
    T: Element,
{
    plan: &'a Plan,
    fold: F,
    origin: *const T,
    results: Results<F::Output>,
    level: Level,
    /// The SIMD loop over contiguous rows, where there is one.
    rows: Option<vectors::RowsIn<T, F::First, F::Second>>,
}

// SAFETY: threads only read the elements at `origin`, which the view borrows for longer than the
// run, and each result is written by one unit alone, which `run_once` runs once.
unsafe impl<T: Element, F: Accumulate<T>> Sync for Run<'_, T, F> {}

impl<T: Element, F: Accumulate<T>> Run<'_, T, F> {
    /// Checks that the level has SIMD loops exactly where the fold says so: elsewhere the generic
    /// loops must be vectorised.
    fn knows_its_vectors(&self) -> bool {
        self.level.is_none() || self.rows.is_some() == F::IN_VECTORS
    }

    fn all(&self, pool: &dyn Pool) -> Result<(), Error> {
        let plan = self.plan;
        if plan.pieces == 1 {
            return run_once(pool, plan.tasks, &|task| {
                let [from, to] = [task, task + 1].map(|n| share(plan.units, plan.tasks, n));
                self.units(from..to);
            });
        }
        let steps = plan.steps(plan.positions().div_ceil(plan.pieces));
        let pieces = Pieces::new(plan.units, plan.pieces);
        run_once(pool, plan.units * plan.pieces, &|task| {
            self.piece(&pieces, steps, task);
        })
    }

    /// Reduces units, each along all its positions.
    fn units(&self, units: Range<usize>) {
        let plan = self.plan;
        let steps = plan.steps(plan.positions());
        if plan.is_short_rows() {
            let mut accumulators = Accumulators::of_rows(self.fold, self.level, plan.rows());
            for unit in units {
                self.short_rows(&mut accumulators, unit);
            }
            return;
        }
        if let Some(len) = plan.row() {
            return self.whole_rows(units, len);
        }
        let mut accumulators = Accumulators::new(self.fold, self.level, plan, steps);
        for unit in units {
            accumulators.clear();
            self.add(&mut accumulators, unit, 0..plan.positions());
            self.finish(&mut accumulators, unit);
        }
    }

    /// Reduces one piece of a unit, with accumulators for `steps` steps. Writes the results of the
    /// unit if this is its last piece to end.
    fn piece(&self, pieces: &Pieces<Accumulators<T, F>>, steps: usize, task: usize) {
        let plan = self.plan;
        let (unit, piece) = (task / plan.pieces, task % plan.pieces);
        let mut accumulators = match pieces.unused() {
            Some(mut unused) => {
                unused.clear();
                unused
            }
            None => Accumulators::new(self.fold, self.level, plan, steps),
        };
        self.reduce_piece(unit, piece, &mut accumulators);
        let merge = |one: &mut Accumulators<T, F>, other: &_| one.merge(other);
        if let Some(mut all) = pieces.done(unit, piece, accumulators, merge) {
            self.finish(&mut all, unit);
            pieces.give_back(all);
        }
    }

    /// Reduces a piece of a unit into accumulators, which are empty.
    fn reduce_piece(&self, unit: usize, piece: usize, into: &mut Accumulators<T, F>) {
        let plan = self.plan;
        let [from, to] = [piece, piece + 1].map(|n| share(plan.positions(), plan.pieces, n));
        let Some(len) = plan.row() else {
            self.add(into, unit, from..to);
            return into.gather();
        };
        let to = if to == plan.positions() { len } else { to * plan.width() };
        let from = from * plan.width();
        let (start, _) = self.block_of(unit);
        // SAFETY: the unit is one contiguous row of `len` elements of the view, and
        // `from <= to <= len`.
        let part = unsafe { std::slice::from_raw_parts(start.add(from), to - from) };
        let (first, mut second) = self.reduced(part);
        self.fold.shift(&mut second, small(from));
        if let (Some(to), Some(to_2)) = (into.firsts.first_mut(), into.seconds.first_mut()) {
            (*to, *to_2) = (first, second);
        }
    }

    /// Reduces the rows of a unit at some positions along the other reduced axes, and adds their
    /// results.
    fn add_by_rows(
        &self,
        accumulators: &mut Accumulators<T, F>,
        unit: usize,
        positions: Range<usize>,
    ) {
        let (base, len) = self.block_of(unit);
        let count = self.last_len(unit);
        for at in positions {
            let (start, place) = moved(base, at, &self.plan.reduced);
            // SAFETY: rows are contiguous (`Plan::take_rows`), and all `len` elements are at
            // indices of the view.
            let elements = unsafe { std::slice::from_raw_parts(start, len) };
            let Accumulators { firsts, seconds, spare, spare_2, .. } = &mut *accumulators;
            let (results, results_2) = (&mut spare[..count], &mut spare_2[..count]);
            self.reduce_rows(elements, len / count, (&mut *results, &mut *results_2));
            for second in &mut *results_2 {
                self.fold.shift(second, small(place));
            }
            let to = (&mut firsts[..count], &mut seconds[..count]);
            let other = (&*results, &*results_2);
            on_level(self.level, Merge { fold: self.fold, to, other });
            accumulators.stepped(BLOCKS_PER_STEP);
        }
    }

    /// Adds the blocks of a unit at some positions along the reduced axes outside of the block.
    fn add(&self, accumulators: &mut Accumulators<T, F>, unit: usize, positions: Range<usize>) {
        let plan = self.plan;
        if plan.is_by_rows {
            return self.add_by_rows(accumulators, unit, positions);
        }
        let (base, len) = self.block_of(unit);
        let members = self.members_of(unit);
        let inner = plan.reduced.first().copied();
        let inner = inner.unwrap_or(Axis { len: 1, stride: 0, role: Role::Reduced(0) });
        let outer = plan.reduced.get(1..).unwrap_or_default();
        let mut at = positions.start;
        while at < positions.end {
            let (around, from) = (at / inner.len, at % inner.len);
            let steps = (inner.len - from).min(positions.end - at).min(accumulators.room());
            let (start, place) = moved(base, around, outer);
            let rows = StridedBlocks {
                start: start.wrapping_offset(distance(from, &inner)),
                count: steps,
                block_stride: inner.stride,
                element_stride: plan.step(),
                place: small(place + from * place_stride(&inner)),
                place_stride: small(place_stride(&inner)),
            };
            self.add_members(accumulators, rows, members, len);
            accumulators.stepped(steps);
            at += steps;
            if from + steps == inner.len {
                self.add_rest(accumulators, members, start, place);
            }
        }
    }

    /// Adds the indices of a cut reduced axis that are left after its whole parts.
    fn add_rest(
        &self,
        accumulators: &mut Accumulators<T, F>,
        members: usize,
        start: *const T,
        place: usize,
    ) {
        let Some(cut) = self.plan.cut.filter(|cut| !cut.axis.is_kept() && cut.rest() > 0) else {
            return;
        };
        let whole = cut.axis.len - cut.rest();
        let width = self.plan.width() / cut.part * cut.rest();
        let rows = StridedBlocks {
            start: start.wrapping_offset(distance(whole, &cut.axis)),
            count: 1,
            block_stride: 0,
            element_stride: self.plan.step(),
            place: small(place + whole * place_stride(&cut.axis)),
            place_stride: 0,
        };
        self.add_members(accumulators, rows, members, width);
        accumulators.stepped(1);
    }

    /// Adds the blocks `rows`, and the same blocks of the other members of the group: `len`
    /// elements each.
    fn add_members(
        &self,
        accumulators: &mut Accumulators<T, F>,
        mut rows: StridedBlocks<T>,
        members: usize,
        len: usize,
    ) {
        let width = self.plan.width();
        let stride = self.plan.group.map_or(0, |group| group.axis.stride);
        for member in 0..members {
            let at = member * width;
            let firsts = &mut accumulators.firsts[at..at + len];
            let seconds = &mut accumulators.seconds[at..at + len];
            // SAFETY: all these elements are at indices of the view, so they are readable, and
            // there are `len` in each block as in `firsts` and `seconds`.
            on_level(self.level, unsafe { Add::new(self.fold, (firsts, seconds), rows) });
            rows.start = rows.start.wrapping_offset(stride);
        }
    }

    /// Returns the address of the first element of a unit's first block, and the length of its
    /// blocks.
    fn block_of(&self, unit: usize) -> (*const T, usize) {
        let plan = self.plan;
        let mut left = unit;
        let mut start = self.origin;
        for axis in &plan.kept {
            start = start.wrapping_offset(distance(left % axis.len, axis));
            left /= axis.len;
        }
        (start, plan.width() / plan.block.last().map_or(1, |axis| axis.len) * self.last_len(unit))
    }

    /// The number of indices of the block's last axis in a unit: the last part of a kept axis may
    /// have fewer.
    fn last_len(&self, unit: usize) -> usize {
        let len = self.plan.block.last().map_or(1, |axis| axis.len);
        if self.plan.group.is_some() { len } else { self.part_of(unit).unwrap_or(len) }
    }

    /// The number of blocks that are added in turn in a unit.
    fn members_of(&self, unit: usize) -> usize {
        if self.plan.group.is_some() { self.part_of(unit).unwrap_or(1) } else { 1 }
    }

    /// The number of indices of the cut kept axis in a unit; `None` if no kept axis is cut.
    fn part_of(&self, unit: usize) -> Option<usize> {
        let cut = self.plan.kept_cut()?;
        let part = unit % self.plan.kept.first().map_or(1, |axis| axis.len);
        Some(cut.part.min(cut.axis.len - part * cut.part))
    }

    /// Folds the reduced axes within the block, and writes the results of a unit.
    fn finish(&self, accumulators: &mut Accumulators<T, F>, unit: usize) {
        accumulators.gather();
        let mut axes = Axes::from_slice(self.plan.left());
        if let Some(last) = axes.last_mut() {
            last.len = self.last_len(unit);
        }
        if let Some(group) = self.plan.group {
            axes.push(Axis { len: self.members_of(unit), ..group.axis });
        }
        let width: usize = axes.iter().map(|axis| axis.len).product();
        let Accumulators { firsts, seconds, spare, spare_2, .. } = accumulators;
        if F::PLACES {
            self.add_block_places(&axes, &mut seconds[..width]);
        }
        let (mut outer, mut inner) = (1, width);
        for axis in axes.iter().rev() {
            inner /= axis.len;
            if axis.is_kept() {
                outer *= axis.len;
            } else {
                let all = (firsts.as_mut_slice(), seconds.as_mut_slice());
                let spare = (spare.as_mut_slice(), spare_2.as_mut_slice());
                let axes = [outer, axis.len, inner];
                on_level(self.level, FoldAxis { fold: self.fold, all, spare, axes });
            }
        }
        self.write(&axes, (firsts, seconds), unit);
    }

    /// Adds to the place of each accumulator the place of its element within the block.
    fn add_block_places(&self, axes: &[Axis], seconds: &mut [F::Second]) {
        for (index, second) in seconds.iter_mut().enumerate() {
            let (mut left, mut place) = (index, 0);
            for axis in axes {
                place += left % axis.len * place_stride(axis);
                left /= axis.len;
            }
            self.fold.shift(second, small(place));
        }
    }

    /// Writes the results of a unit, whose accumulators vary along the kept ones of `axes`.
    fn write(&self, axes: &[Axis], (firsts, seconds): (&[F::First], &[F::Second]), unit: usize) {
        let base = self.result_of(unit);
        let places: SmallVec<[(usize, usize); 6]> = Plan::places(axes);
        let (&(len, stride), around) = places.split_last().unwrap_or((&(1, 1), &[]));
        let runs: usize = around.iter().map(|(len, _)| len).product();
        for run in 0..runs {
            let (mut left, mut start) = (run, base);
            for &(len, stride) in around.iter().rev() {
                start += left % len * stride;
                left /= len;
            }
            if stride == 1 {
                debug_assert!(start + len <= self.results.len, "results within the array");
                let range = run * len..(run + 1) * len;
                let from = (&firsts[range.clone()], &seconds[range]);
                // SAFETY: the results of a unit are within the array and no other unit writes them,
                // so these `len` results are this task's alone. A `MaybeUninit` may be
                // uninitialised.
                let to = unsafe {
                    let to = self.results.start.add(start).cast::<MaybeUninit<F::Output>>();
                    std::slice::from_raw_parts_mut(to, len)
                };
                on_level(self.level, Finish { fold: self.fold, from, to });
                continue;
            }
            for i in 0..len {
                let from = run * len + i;
                self.write_one(start + i * stride, firsts[from], seconds[from]);
            }
        }
    }

    /// The index of the first result of a unit.
    fn result_of(&self, unit: usize) -> usize {
        let (mut left, mut base) = (unit, 0);
        for axis in &self.plan.kept {
            base += left % axis.len * result_stride(axis);
            left /= axis.len;
        }
        base
    }

    /// Writes the result of an accumulator at the index `to`.
    fn write_one(&self, to: usize, first: F::First, second: F::Second) {
        debug_assert!(to < self.results.len, "a result within the array");
        let value = self.fold.finish(first, second);
        // SAFETY: `to` is the sum of kept indices times their strides in the result, which is below
        // the number of results, and no two units write the same one.
        unsafe { self.results.start.add(to).write(value) };
    }
}

/// Returns where part `n` begins if `all` items are divided into `parts` almost equal parts.
pub(crate) fn share(all: usize, parts: usize, n: usize) -> usize {
    let (whole, more) = (all / parts, all % parts);
    whole * n + more.min(n)
}

/// Returns the address, and the place, at position `at` along axes, innermost first, counted from
/// `start` and from place 0.
fn moved<T>(mut start: *const T, at: usize, axes: &[Axis]) -> (*const T, usize) {
    let (mut left, mut place) = (at, 0);
    for axis in axes {
        let index = left % axis.len;
        left /= axis.len;
        start = start.wrapping_offset(distance(index, axis));
        place += index * place_stride(axis);
    }
    (start, place)
}

fn distance(index: usize, axis: &Axis) -> isize {
    isize::try_from(index).unwrap_or(0).wrapping_mul(axis.stride)
}

fn place_stride(axis: &Axis) -> usize {
    match axis.role {
        Role::Kept(_) => 0,
        Role::Reduced(stride) => stride,
    }
}

fn result_stride(axis: &Axis) -> usize {
    match axis.role {
        Role::Kept(stride) => stride,
        Role::Reduced(_) => 0,
    }
}

/// Returns a place as a `u32`. It is below `u32::MAX` wherever the fold finds places.
fn small(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
