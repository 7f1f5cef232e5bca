//! The work of a step on a tile: loads, elementwise ops, reductions and stores. `run.rs` calls it
//! for each step and tile.

use std::any::TypeId;

use smallvec::SmallVec;

use super::add_products::{ProductsTile, To};
use super::chain;
use super::fold::FoldTile;
use super::output::{Start, store};
use super::products::{self, Products};
use super::program::with_view;
use super::real::Real;
use super::room::{Buffers, Room};
use super::run::Run;
use super::scratch::{Memory, Results};
use super::shape::{Reach, Shape};
use super::steps::{Action, Along, Arg, Step};
use super::tile::{self, Apply, Choose, Combine, Expand, Load};
use super::total::Total;
use super::walk::Place;
use crate::level::on_level;
use crate::vectors::Ahead;

/// Only tiles that have at least this many elements of an operand are prefetched.
const LEAST_AHEAD: usize = 512;

impl Run<'_> {
    /// Runs a step on a tile. If `is_whole`, the tile's results are those of the slab. `reduced`
    /// has the results of the passes before; if it is `None`, `memory` has them.
    pub(super) fn step<R: Real>(
        &self,
        step: &Step,
        shape: &Shape,
        place: &Place,
        (memory, is_whole): (&mut Memory<R>, bool),
        reduced: Option<&Results<R>>,
    ) {
        let Memory { buffers, spare, accumulators, pending, results } = memory;
        match (step.action, &shape.from, &shape.to) {
            (Action::Accumulate { reduction, first }, Some(to), _) if place.is_first(first) => {
                let (Some(arg), Some(fold)) = (step.args.first(), &shape.fold) else { return };
                let (a, level) = (buffers.value(arg.value, shape.len), self.level);
                let (at, loops) = (to.offset(place), &to.loops);
                let Some(layout) = &self.plan.layouts[reduction] else { return };
                let to = if is_whole && !layout.is_sink {
                    Total::Results(results[reduction].each_mut().map(Vec::as_mut_slice))
                } else {
                    Total::Accumulators(&mut accumulators[reduction], &mut pending[reduction])
                };
                let kind = layout.reduction;
                on_level(level, FoldTile { a, shape: fold, kind, at, loops, to, spare, level });
            }
            (Action::Store { output, first }, _, Some(to)) if place.is_first(first) => {
                let Some(&Arg { value, .. }) = step.args.first() else { return };
                let is_there = buffers.elsewhere[value].is_some()
                    && buffers.elsewhere[value] == self.lies_in_output(output, to, place);
                if !is_there {
                    self.store(output, to, buffers.value(value, shape.len), place);
                }
            }
            (Action::Products(products), Some(_), _) if place.is_first(products.first) => {
                self.add_products(products, (step, shape), place, (memory, is_whole));
            }
            (Action::Accumulate { .. } | Action::Products(_) | Action::Store { .. }, ..) => {}
            (Action::Input(input), Some(from), _) => {
                buffers.elsewhere[step.out] = self.lies_in_input(input, from, place);
                if !step.is_kept && shape.len >= LEAST_AHEAD {
                    let by = buffers.ahead_by.map(|by| if by == 0 { shape.len } else { by });
                    let next = by.map_or(Ahead::NONE, |by| self.ahead(input, from, place, by));
                    buffers.ahead = [buffers.ahead[1], next];
                }
                if buffers.elsewhere[step.out].is_none() {
                    let out = buffers.rooms[step.out].first_mut(shape.len);
                    self.load(input, from, place, out);
                }
            }
            _ => self.write(step, shape, buffers, place, reduced.unwrap_or(results)),
        }
    }

    /// Adds the products of two factors of a tile to a reduction, and perhaps a factor to another
    /// one.
    #[inline(never)]
    fn add_products<R: Real>(
        &self,
        products: Products,
        (step, shape): (&Step, &Shape),
        place: &Place,
        (memory, is_whole): (&mut Memory<R>, bool),
    ) {
        let Memory { buffers, spare, accumulators, pending, results } = memory;
        let (Some(to), Some(fold)) = (&shape.from, &shape.fold) else { return };
        let ahead = if step.fetches { buffers.ahead } else { [Ahead::NONE; 2] };
        let value = |n: usize| match (step.args.get(n), shape.args.get(n)) {
            (Some(arg), Some(&len)) => buffers.value(arg.value, len),
            _ => &[],
        };
        let along = |n: usize| step.args.get(n).map_or(Along::One, |arg| arg.along);
        let missing = products::missing();
        let operand = |n: usize| tile::Operand::new(value(n), along(n), shape.row);
        let (operands, there) = products.operands(operand, &missing);
        let is_sink = |of: usize| self.plan.layouts[of].as_ref().is_some_and(|l| l.is_sink);
        let is_result = is_whole && !is_sink(products.reduction);
        let (mut totals, own) = (SmallVec::<[_; 2]>::new(), products.reduction);
        let parts = results.iter_mut().map(Some).chain(std::iter::repeat_with(|| None));
        let parts = parts.zip(accumulators.iter_mut().zip(pending.iter_mut()));
        for (of, (results, (accumulators, pending))) in parts.enumerate() {
            if of == own || Some(of) == products.beside {
                totals.push(match results.filter(|_| is_result) {
                    Some(results) => Total::Results(results.each_mut().map(Vec::as_mut_slice)),
                    None => Total::Accumulators(accumulators, pending),
                });
            }
        }
        // The totals are in the order of their reductions' numbers; that of the products must come
        // first.
        if products.beside.is_some_and(|beside| beside < own) {
            totals.reverse();
        }
        let mut totals = totals.into_iter();
        let Some(total) = totals.next() else { return };
        let to = To { at: to.offset(place), loops: &to.loops, total, beside: totals.next() };
        let (x, y, row) = (value(0), value(usize::from(products.second)), shape.row);
        let level = self.level;
        ProductsTile { x, y, operands, there, row, shape: fold, to, spare, level, ahead }.run();
    }

    /// Computes a value into its buffer, or straight into the output that it is.
    fn write<R: Real>(
        &self,
        step: &Step,
        shape: &Shape,
        buffers: &mut Buffers<R>,
        place: &Place,
        reduced: &Results<R>,
    ) {
        // No step reads the buffer that it writes.
        buffers.elsewhere[step.out] = None;
        let output: Option<*const R> = match (step.stored, &shape.to) {
            (Some(output), Some(to)) => self.lies_in_output(output, to, place),
            _ => None,
        };
        // A value that later steps read is stored in the caches.
        let is_chain = matches!(step.action, Action::Chain(_));
        let is_past = self.past.is_some() && step.is_only_stored && is_chain;
        if let Some(at) = output.filter(|_| self.past.is_none() || is_past) {
            // SAFETY: these are the tile's `shape.len` contiguous elements of an output, which this
            // task alone uses. They may be uninitialised: steps write all elements of `out`, and
            // read none before.
            let out = unsafe { std::slice::from_raw_parts_mut(at.cast_mut(), shape.len) };
            self.compute(step, shape, (buffers, place, reduced), (out, is_past));
            buffers.elsewhere[step.out] = output;
            return;
        }
        let mut room = std::mem::replace(&mut buffers.rooms[step.out], Room::EMPTY);
        let out = (room.first_mut(shape.len), false);
        self.compute(step, shape, (buffers, place, reduced), out);
        buffers.rooms[step.out] = room;
    }

    /// Returns the address of a tile's elements of an operand, if they are contiguous and of the
    /// type that is computed in.
    fn lies_in_input<R: Real>(
        &self,
        input: usize,
        reach: &Reach,
        place: &Place,
    ) -> Option<*const R> {
        let operand = self.operands.get(input)?;
        with_view!(operand, view => lies_at(view.origin(), reach, place))
    }

    /// Returns the memory that lies `by` elements after a tile's contiguous elements of an operand.
    fn ahead(&self, input: usize, reach: &Reach, place: &Place, by: usize) -> Ahead {
        let Some(operand) = self.operands.get(input).filter(|_| reach.is_dense) else {
            return Ahead::NONE;
        };
        let bytes = operand.kind().size();
        let next = reach.offset(place).wrapping_add(by.cast_signed());
        let from = with_view!(operand, view => view.origin().wrapping_offset(next).cast());
        Ahead { from, bytes }
    }

    /// Returns the address of a tile's elements of an output, if they are contiguous and of the
    /// type that is computed in.
    fn lies_in_output<R: Real>(
        &self,
        output: usize,
        reach: &Reach,
        place: &Place,
    ) -> Option<*const R> {
        match self.outputs[output] {
            Start::F32(start) => lies_at(start.cast_const(), reach, place),
            Start::F64(start) => lies_at(start.cast_const(), reach, place),
            Start::Bf16(_) | Start::F16(_) | Start::Bool(_) => None,
        }
    }

    /// Computes a value of a tile into `out`. A chain stores its value past the caches if
    /// `is_past`.
    fn compute<R: Real>(
        &self,
        step: &Step,
        shape: &Shape,
        (buffers, place, reduced): (&Buffers<R>, &Place, &Results<R>),
        (out, is_past): (&mut [R], bool),
    ) {
        let (level, row) = (self.level, shape.row);
        let all = |n: usize| match (step.args.get(n), shape.args.get(n)) {
            (Some(arg), Some(&len)) => buffers.value(arg.value, len),
            _ => &[],
        };
        let operand = |n: usize| {
            let along = step.args.get(n).map_or(Along::One, |arg| arg.along);
            tile::Operand::new(all(n), along, row)
        };
        match step.action {
            Action::Constant(value) => out.fill(R::from_f64(value)),
            Action::Reduced { reduction, deviations } => {
                let Some(from) = &shape.from else { return };
                let at = from.offset(place).cast_unsigned();
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
                let ahead = if step.fetches { buffers.ahead } else { [Ahead::NONE; 2] };
                chain::run(level, &chain, elements, operand, (is_past, ahead));
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
    fn load<R: Real>(&self, input: usize, from: &Reach, place: &Place, out: &mut [R]) {
        let (offset, loops) = (from.offset(place), &from.loops);
        // `Load` may read these elements: the tile's indices are indices of the view.
        with_view!(&self.operands[input], view => {
            let start = view.origin().wrapping_offset(offset);
            on_level(self.level, Load { start, loops, out });
        });
    }

    /// Stores a tile's elements to an output.
    fn store<R: Real>(&self, output: usize, to: &Reach, a: &[R], place: &Place) {
        let (offset, loops) = (to.offset(place), &to.loops);
        let (level, past) = (self.level, self.past);
        // SAFETY: the tile's indices are indices of the output, whose elements the caller of `run`
        // guaranteed, and no other tile has them. `past` is a function of the level that this CPU
        // has, and the task drops a `Fence` at its end.
        unsafe {
            match self.outputs[output] {
                Start::F32(start) => store(level, start.wrapping_offset(offset), loops, a, past),
                Start::F64(start) => store(level, start.wrapping_offset(offset), loops, a, past),
                Start::Bf16(start) => store(level, start.wrapping_offset(offset), loops, a, past),
                Start::F16(start) => store(level, start.wrapping_offset(offset), loops, a, past),
                Start::Bool(start) => store(level, start.wrapping_offset(offset), loops, a, past),
            }
        }
    }
}

/// Returns the address of a tile's first element in an array, if the tile's elements are contiguous
/// there and of the type `R`.
fn lies_at<E: 'static, R: 'static>(
    start: *const E,
    reach: &Reach,
    place: &Place,
) -> Option<*const R> {
    let is_there = reach.is_dense && TypeId::of::<E>() == TypeId::of::<R>();
    is_there.then(|| start.wrapping_offset(reach.offset(place)).cast())
}
