//! The work of a step on a tile: loads, elementwise ops, reductions and stores. `run.rs` calls it
//! for each step and tile.

use std::any::TypeId;

use smallvec::SmallVec;

use super::add_products::{ProductsTile, To};
use super::aligned_buffer::{AlignedBuffer, Buffers};
use super::chain;
use super::fold::FoldTile;
use super::output::{OutputPtr, store};
use super::products::{self, FusedProducts};
use super::program::with_view;
use super::real::Real;
use super::run::FusedRun;
use super::scratch::{Memory, SlabResults};
use super::shape::{StepShape, TileAccess};
use super::steps::{Action, Along, Arg, PassStep};
use super::tile::{self, Apply, Choose, Combine, Expand, Load};
use super::total::Total;
use super::walk::TileBounds;
use crate::level::on_level;
use crate::vectors::Prefetch;

/// Only tiles that have at least this many elements of an operand are prefetched.
const LEAST_PREFETCHED: usize = 512;

impl FusedRun<'_> {
    /// Runs a step on a tile. If `is_whole`, the tile's results are those of the slab. `reduced`
    /// has the results of the passes before; if it is `None`, `memory` has them.
    pub(super) fn step<R: Real>(
        &self,
        step: &PassStep,
        shape: &StepShape,
        bounds: &TileBounds,
        (memory, is_whole): (&mut Memory<R>, bool),
        reduced: Option<&SlabResults<R>>,
    ) {
        let Memory { buffers, spare, accumulators, pending, results } = memory;
        match (step.action, &shape.from, &shape.to) {
            (Action::Accumulate { reduction, first }, Some(to), _) if bounds.is_first(first) => {
                let (Some(arg), Some(fold)) = (step.args.first(), &shape.fold) else { return };
                let (a, level) = (buffers.value(arg.value, shape.len), self.level);
                let (at, loops) = (to.offset(bounds), &to.loops);
                let Some(layout) = &self.plan.layouts[reduction] else { return };
                let to = if is_whole && !layout.is_sink {
                    Total::Results(results[reduction].each_mut().map(Vec::as_mut_slice))
                } else {
                    Total::Accumulators(&mut accumulators[reduction], &mut pending[reduction])
                };
                let kind = layout.reduction;
                on_level(level, FoldTile { a, shape: fold, kind, at, loops, to, spare, level });
            }
            (Action::Store { output, first }, _, Some(to)) if bounds.is_first(first) => {
                let Some(&Arg { value, .. }) = step.args.first() else { return };
                let is_there = buffers.elsewhere[value].is_some()
                    && buffers.elsewhere[value] == self.lies_in_output(output, to, bounds);
                if !is_there {
                    self.store(output, to, buffers.value(value, shape.len), bounds);
                }
            }
            (Action::Products(products), Some(_), _) if bounds.is_first(products.first) => {
                self.add_products(products, (step, shape), bounds, (memory, is_whole));
            }
            (Action::Accumulate { .. } | Action::Products(_) | Action::Store { .. }, ..) => {}
            (Action::Input(input), Some(from), _) => {
                buffers.elsewhere[step.out] = self.lies_in_input(input, from, bounds);
                if !step.is_tile_invariant && shape.len >= LEAST_PREFETCHED {
                    let by =
                        buffers.prefetch_distance.map(|by| if by == 0 { shape.len } else { by });
                    let next =
                        by.map_or(Prefetch::NONE, |by| self.prefetch(input, from, bounds, by));
                    buffers.prefetch = [buffers.prefetch[1], next];
                }
                if buffers.elsewhere[step.out].is_none() {
                    let out = buffers.aligned[step.out].first_mut(shape.len);
                    self.load(input, from, bounds, out);
                }
            }
            _ => self.write(step, shape, buffers, bounds, reduced.unwrap_or(results)),
        }
    }

    /// Adds the products of two factors of a tile to a reduction, and perhaps a factor to another
    /// one.
    #[inline(never)]
    fn add_products<R: Real>(
        &self,
        products: FusedProducts,
        (step, shape): (&PassStep, &StepShape),
        bounds: &TileBounds,
        (memory, is_whole): (&mut Memory<R>, bool),
    ) {
        let Memory { buffers, spare, accumulators, pending, results } = memory;
        let (Some(to), Some(fold)) = (&shape.from, &shape.fold) else { return };
        let prefetch = if step.fetches { buffers.prefetch } else { [Prefetch::NONE; 2] };
        let value = |n: usize| match (step.args.get(n), shape.args.get(n)) {
            (Some(arg), Some(&len)) => buffers.value(arg.value, len),
            _ => &[],
        };
        let along = |n: usize| step.args.get(n).map_or(Along::Scalar, |arg| arg.along);
        let missing = products::missing();
        let operand = |n: usize| tile::TileOperand::new(value(n), along(n), shape.row);
        let (operands, present) = products.operands(operand, &missing);
        let is_sink = |of: usize| self.plan.layouts[of].as_ref().is_some_and(|l| l.is_sink);
        let is_result = is_whole && !is_sink(products.reduction);
        let (mut totals, own) = (SmallVec::<[_; 2]>::new(), products.reduction);
        let parts = results.iter_mut().map(Some).chain(std::iter::repeat_with(|| None));
        let parts = parts.zip(accumulators.iter_mut().zip(pending.iter_mut()));
        for (of, (results, (accumulators, pending))) in parts.enumerate() {
            if of == own || Some(of) == products.factor_sum {
                totals.push(match results.filter(|_| is_result) {
                    Some(results) => Total::Results(results.each_mut().map(Vec::as_mut_slice)),
                    None => Total::Accumulators(accumulators, pending),
                });
            }
        }
        // The totals are in the order of their reductions' numbers; that of the products must come
        // first.
        if products.factor_sum.is_some_and(|factor_sum| factor_sum < own) {
            totals.reverse();
        }
        let mut totals = totals.into_iter();
        let Some(total) = totals.next() else { return };
        let to = To { at: to.offset(bounds), loops: &to.loops, total, factor_sum: totals.next() };
        let (x, y, row) = (value(0), value(usize::from(products.second)), shape.row);
        let level = self.level;
        ProductsTile { x, y, operands, present, row, shape: fold, to, spare, level, prefetch }
            .run();
    }

    /// Computes a value into its buffer, or straight into the output that it is.
    fn write<R: Real>(
        &self,
        step: &PassStep,
        shape: &StepShape,
        buffers: &mut Buffers<R>,
        bounds: &TileBounds,
        reduced: &SlabResults<R>,
    ) {
        // No step reads the buffer that it writes.
        buffers.elsewhere[step.out] = None;
        let output: Option<*const R> = match (step.stored, &shape.to) {
            (Some(output), Some(to)) => self.lies_in_output(output, to, bounds),
            _ => None,
        };
        // A value that later steps read is stored in the caches.
        let is_chain = matches!(step.action, Action::Chain(_));
        let is_non_temporal = self.non_temporal && step.is_only_stored && is_chain;
        if let Some(at) = output.filter(|_| !self.non_temporal || is_non_temporal) {
            // SAFETY: these are the tile's `shape.len` contiguous elements of an output, which this
            // task alone uses. They may be uninitialised: steps write all elements of `out`, and
            // read none before.
            let out = unsafe { std::slice::from_raw_parts_mut(at.cast_mut(), shape.len) };
            self.compute(step, shape, (buffers, bounds, reduced), (out, is_non_temporal));
            buffers.elsewhere[step.out] = output;
            return;
        }
        let mut buffer = std::mem::replace(&mut buffers.aligned[step.out], AlignedBuffer::EMPTY);
        let out = (buffer.first_mut(shape.len), false);
        self.compute(step, shape, (buffers, bounds, reduced), out);
        buffers.aligned[step.out] = buffer;
    }

    /// Returns the address of a tile's elements of an operand, if they are contiguous and of the
    /// type that is computed in.
    fn lies_in_input<R: Real>(
        &self,
        input: usize,
        access: &TileAccess,
        bounds: &TileBounds,
    ) -> Option<*const R> {
        let operand = self.operands.get(input)?;
        with_view!(operand, view => lies_at(view.origin(), access, bounds))
    }

    /// Returns the memory that lies `by` elements after a tile's contiguous elements of an operand.
    fn prefetch(
        &self,
        input: usize,
        access: &TileAccess,
        bounds: &TileBounds,
        by: usize,
    ) -> Prefetch {
        let Some(operand) = self.operands.get(input).filter(|_| access.is_dense) else {
            return Prefetch::NONE;
        };
        let bytes = operand.kind().size();
        let next = access.offset(bounds).wrapping_add(by.cast_signed());
        let from = with_view!(operand, view => view.origin().wrapping_offset(next).cast());
        Prefetch { from, bytes }
    }

    /// Returns the address of a tile's elements of an output, if they are contiguous and of the
    /// type that is computed in.
    fn lies_in_output<R: Real>(
        &self,
        output: usize,
        access: &TileAccess,
        bounds: &TileBounds,
    ) -> Option<*const R> {
        match self.outputs[output] {
            OutputPtr::F32(start) => lies_at(start.cast_const(), access, bounds),
            OutputPtr::F64(start) => lies_at(start.cast_const(), access, bounds),
            OutputPtr::Bf16(_) | OutputPtr::F16(_) | OutputPtr::Bool(_) => None,
        }
    }

    /// Computes a value of a tile into `out`. A chain stores its value past the caches if
    /// `is_non_temporal`.
    fn compute<R: Real>(
        &self,
        step: &PassStep,
        shape: &StepShape,
        (buffers, bounds, reduced): (&Buffers<R>, &TileBounds, &SlabResults<R>),
        (out, is_non_temporal): (&mut [R], bool),
    ) {
        let (level, row) = (self.level, shape.row);
        let all = |n: usize| match (step.args.get(n), shape.args.get(n)) {
            (Some(arg), Some(&len)) => buffers.value(arg.value, len),
            _ => &[],
        };
        let operand = |n: usize| {
            let along = step.args.get(n).map_or(Along::Scalar, |arg| arg.along);
            tile::TileOperand::new(all(n), along, row)
        };
        match step.action {
            Action::Constant(value) => out.fill(R::from_f64(value)),
            Action::Reduced { reduction, deviations } => {
                let Some(from) = &shape.from else { return };
                let at = from.offset(bounds).cast_unsigned();
                let a = &reduced[reduction][usize::from(deviations)][at..];
                if let [only] = out {
                    *only = a[0];
                    return;
                }
                on_level(level, Expand { a, loops: &from.loops, out });
            }
            Action::Unary(op) => on_level(level, Apply { op, a: all(0), out, level }),
            Action::Binary(op) => {
                let (a, b) = (operand(0), operand(1));
                on_level(level, Combine { op, a, b, row, out });
            }
            Action::Chain(chain) => {
                let elements = chain::Elements { x: all(0), row, out };
                let prefetch = if step.fetches { buffers.prefetch } else { [Prefetch::NONE; 2] };
                chain::run(level, &chain, elements, operand, (is_non_temporal, prefetch));
            }
            Action::Select => {
                let (condition, on_true, on_false) = (all(0), all(1), all(2));
                on_level(level, Choose { condition, on_true, on_false, out });
            }
            Action::Expand(_) => {
                let Some(loops) = &shape.repeated else { return };
                on_level(level, Expand { a: all(0), loops, out });
            }
            Action::Input(_)
            | Action::Accumulate { .. }
            | Action::Products(_)
            | Action::Store { .. } => {}
        }
    }

    /// Loads a tile's elements of an operand.
    fn load<R: Real>(&self, input: usize, from: &TileAccess, bounds: &TileBounds, out: &mut [R]) {
        let (offset, loops) = (from.offset(bounds), &from.loops);
        // `Load` may read these elements: the tile's indices are indices of the view.
        with_view!(&self.operands[input], view => {
            let start = view.origin().wrapping_offset(offset);
            on_level(self.level, Load { start, loops, out });
        });
    }

    /// Stores a tile's elements to an output.
    fn store<R: Real>(&self, output: usize, to: &TileAccess, a: &[R], bounds: &TileBounds) {
        let (offset, loops) = (to.offset(bounds), &to.loops);
        let (level, past_caches) = (self.level, self.non_temporal);
        // SAFETY: the tile's indices are indices of the output, whose elements the caller of `run`
        // guaranteed, and no other tile has them. The task drops a `Fence` at its
        // end.
        unsafe {
            match self.outputs[output] {
                OutputPtr::F32(start) => {
                    store(level, start.wrapping_offset(offset), loops, a, past_caches);
                }
                OutputPtr::F64(start) => {
                    store(level, start.wrapping_offset(offset), loops, a, past_caches);
                }
                OutputPtr::Bf16(start) => {
                    store(level, start.wrapping_offset(offset), loops, a, past_caches);
                }
                OutputPtr::F16(start) => {
                    store(level, start.wrapping_offset(offset), loops, a, past_caches);
                }
                OutputPtr::Bool(start) => {
                    store(level, start.wrapping_offset(offset), loops, a, past_caches);
                }
            }
        }
    }
}

/// Returns the address of a tile's first element in an array, if the tile's elements are contiguous
/// there and of the type `R`.
fn lies_at<E: 'static, R: 'static>(
    start: *const E,
    access: &TileAccess,
    bounds: &TileBounds,
) -> Option<*const R> {
    let is_there = access.is_dense && TypeId::of::<E>() == TypeId::of::<R>();
    is_there.then(|| start.wrapping_offset(access.offset(bounds)).cast())
}
