//! Runs programs.

use std::any::TypeId;
use std::ops::Range;
use std::sync::Mutex;

use smallvec::SmallVec;

use super::chain::{self, RunChain};
use super::fold::{Accumulators, FoldTile, Spare, compact};
use super::output::{Start, Storing, complete, room};
use super::plan::{Action, Layout, Pass, Plan, Step};
use super::program::{Id, Kind, Node, Operand, Output, Program, Reduction, with_view};
use super::real::Real;
use super::room::{Buffers, Room};
use super::space::Space;
use super::tile::{Apply, Choose, Combine, Expand, Load};
use super::walk::Place;
use crate::error::Error;
use crate::level::{Level, on_level};
use crate::pool::{Pool, run_once};
use crate::run::share;
use crate::view::View;

/// The elements that are one task, and the most tasks.
const TASK: usize = 1 << 16;
const MOST_TASKS: usize = 256;
/// The most tasks that have accumulators of their own.
const MOST_PIECES: usize = 64;
/// Fewer slabs than this are divided into pieces if they have at least `TASK` elements each.
const FEW: usize = 16;

pub(super) fn run(
    program: &Program,
    operands: &[Operand<'_>],
    pool: &dyn Pool,
) -> Result<Vec<Output>, Error> {
    if program.dims.contains(&0) {
        return run_empty(program, pool);
    }
    let is_wide = program.is_wide
        || operands.iter().any(Operand::is_f64)
        || program.outputs.iter().any(|output| output.kind == Kind::F64);
    if is_wide {
        run_in::<f64>(program, operands, pool)
    } else {
        run_in::<f32>(program, operands, pool)
    }
}

/// Runs a program of no indices: outputs without the empty dims are made of results of reductions
/// of nothing, and of constants.
fn run_empty(program: &Program, pool: &dyn Pool) -> Result<Vec<Output>, Error> {
    let is_empty = |dim: usize| program.dims[dim] == 0;
    let empty =
        (0..program.dims.len()).filter(|&dim| is_empty(dim)).fold(0u64, |set, i| set | 1 << i);
    let mut left = program.clone();
    left.dims.iter_mut().for_each(|dim| *dim = (*dim).max(1));
    for node in &mut left.nodes {
        match *node {
            Node::Reduce(reduction, _, axes) if axes & empty != 0 => {
                *node = Node::Constant(if reduction == Reduction::Sum { 0.0 } else { 1.0 });
            }
            _ => {}
        }
    }
    let has_elements = |dropped: u64| empty & !dropped == 0;
    left.outputs.retain(|output| has_elements(output.dropped));
    let space = Space::of(&left, &[])?;
    let reads =
        left.nodes.iter().zip(&space.needed).any(|(n, &is)| is && matches!(n, Node::Input(_)));
    if reads {
        return Err(Error::Empty);
    }
    let mut found = run_in::<f64>(&left, &[], pool)?.into_iter();
    let outputs = program.outputs.iter().map(|output| {
        let one = if has_elements(output.dropped) { found.next() } else { None };
        one.unwrap_or_else(|| Output {
            dims: dims(program, output.dropped),
            values: room(output.kind, 0),
        })
    });
    Ok(outputs.collect())
}

fn dims(program: &Program, dropped: u64) -> Vec<usize> {
    let dims = program.dims.iter().enumerate().filter(|(i, _)| dropped >> i & 1 == 0);
    dims.map(|(_, &dim)| dim).collect()
}

fn run_in<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    pool: &dyn Pool,
) -> Result<Vec<Output>, Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let plan = Plan::of(program, Space::of(program, operands)?);
    let empty = |output: &super::program::Wanted| {
        let dims = dims(program, output.dropped);
        let len = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim));
        Ok(Output { values: room(output.kind, len.ok_or(Error::TooLarge)?), dims })
    };
    let mut outputs: Vec<Output> =
        program.outputs.iter().map(empty).collect::<Result<_, Error>>()?;
    let starts = outputs.iter_mut().map(|output| Start::of(&mut output.values)).collect();
    let run = Run { plan: &plan, operands, outputs: starts, level: Level::detect() };
    let sinks = run.all::<R>(pool)?;
    for (number, output) in outputs.iter_mut().enumerate() {
        if !plan.later.contains(&number) {
            // SAFETY: all slabs were walked, and their tiles together have all indices of an output.
            unsafe { complete(output) };
        }
    }
    if !plan.later.is_empty() {
        let results = later(program, operands, &plan, &sinks, pool)?;
        for (&number, result) in plan.later.iter().zip(results) {
            outputs[number] = result;
        }
    }
    Ok(outputs)
}

/// Computes the outputs that need reductions over all slabs, which are operands now.
fn later<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    plan: &Plan,
    sinks: &[Accumulators],
    pool: &dyn Pool,
) -> Result<Vec<Output>, Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let mut rest = program.clone();
    rest.outputs = plan.later.iter().map(|&output| program.outputs[output]).collect();
    let mut results: Vec<(Vec<R>, Vec<isize>)> = Vec::new();
    for (number, layout) in plan.layouts.iter().enumerate() {
        let Some(layout) = layout.as_ref().filter(|layout| layout.is_sink) else { continue };
        let node = plan.space.reductions[number];
        let (mut first, mut second) = (vec![R::ZERO; layout.len], vec![R::ZERO; layout.len]);
        sinks[number].finish(&mut first, &mut second);
        let strides = plan.space.dims.iter().map(|place| match place {
            Some((axis, times)) => (layout.strides[*axis] * times).cast_signed(),
            None => 0,
        });
        let strides: Vec<isize> = strides.collect();
        let input = |results: &Vec<_>| Node::Input(operands.len() + results.len());
        rest.nodes[node] = input(&results);
        results.push((first, strides.clone()));
        let is_its = |other: &&mut Node| matches!(other, Node::Deviations(Id(of)) if *of == node);
        rest.nodes.iter_mut().filter(is_its).for_each(|other| *other = input(&results));
        results.push((second, strides));
    }
    rest.inputs = operands.len() + results.len();
    let mut all = operands.to_vec();
    for (data, strides) in &results {
        all.push(View::new(data, 0, &program.dims, strides)?.into());
    }
    run(&rest, &all, pool)
}

/// A program under way.
struct Run<'a> {
    plan: &'a Plan,
    operands: &'a [Operand<'a>],
    outputs: Vec<Start>,
    level: Level,
}

// SAFETY: operands are only read, and outlive the run; tiles write distinct elements of outputs,
// since a tile writes only if it is the first one along axes that an output does not have.
unsafe impl Sync for Run<'_> {}

/// The results of the reductions within a slab, by number, with squared deviations beside.
type Results<R> = Vec<[Vec<R>; 2]>;

/// The memory of a task.
struct Scratch<R> {
    buffers: Buffers<R>,
    spare: Spare<R>,
    /// By number of the reduction.
    accumulators: Vec<Accumulators>,
    place: Place,
}

impl<R: Real> Scratch<R> {
    fn new(plan: &Plan) -> Self {
        let folds = plan.layouts.iter().any(Option::is_some);
        Self {
            buffers: Buffers::new(plan),
            spare: Spare::new(if folds { plan.capacity } else { 0 }),
            accumulators: accumulators(plan),
            place: Place::default(),
        }
    }
}

fn accumulators(plan: &Plan) -> Vec<Accumulators> {
    let of = |layout: &Option<Layout>| match layout {
        Some(layout) => Accumulators::new(layout.reduction, layout.len),
        None => Accumulators::new(Reduction::Max, 0),
    };
    plan.layouts.iter().map(of).collect()
}

fn results<R: Real>(plan: &Plan) -> Results<R> {
    let len = |layout: &Option<Layout>| layout.as_ref().map_or(0, |layout| layout.len);
    plan.layouts
        .iter()
        .map(|layout| [vec![R::ZERO; len(layout)], vec![R::ZERO; len(layout)]])
        .collect()
}

impl Run<'_> {
    /// Runs all passes; returns the accumulators of the reductions over all slabs.
    fn all<R: Real>(&self, pool: &dyn Pool) -> Result<Vec<Accumulators>, Error> {
        let units = self.units();
        if units < FEW && self.plan.slab() >= TASK {
            return self.in_pieces::<R>(units, pool);
        }
        let plan = self.plan;
        let elements = plan.space.size(plan.space.all());
        let kept: usize = self.sinks().map(|(_, layout)| layout.len).sum();
        let few = (elements / 4).checked_div(kept).map(|few| few.min(MOST_PIECES));
        let most = few.unwrap_or(MOST_TASKS);
        let tasks = (elements / TASK).min(most).min(units).max(1);
        let parts: Vec<Mutex<Option<Vec<Accumulators>>>> =
            (0..tasks).map(|_| Mutex::new(None)).collect();
        run_once(pool, tasks, &|task| {
            let mut scratch: Scratch<R> = Scratch::new(plan);
            let mut reduced = results(plan);
            for unit in share(units, tasks, task)..share(units, tasks, task + 1) {
                for pass in &plan.passes {
                    for &end in &pass.ends {
                        scratch.accumulators[end].clear();
                    }
                    self.tiles(pass, unit, 0..self.tiles_of(pass), &mut scratch, &reduced);
                    finish(pass, &scratch.accumulators, &mut reduced);
                }
            }
            if let Ok(mut part) = parts[task].lock() {
                *part = Some(scratch.accumulators);
            }
        })?;
        let mut sums = accumulators(plan);
        for part in parts.into_iter().filter_map(|part| part.into_inner().ok().flatten()) {
            for (number, _) in self.sinks() {
                sums[number].merge(&part[number]);
            }
        }
        Ok(sums)
    }

    /// Runs each pass over a large slab in pieces.
    fn in_pieces<R: Real>(
        &self,
        units: usize,
        pool: &dyn Pool,
    ) -> Result<Vec<Accumulators>, Error> {
        let plan = self.plan;
        let mut sums = accumulators(plan);
        let mut reduced: Results<R> = results(plan);
        for unit in 0..units {
            for pass in &plan.passes {
                let tiles = self.tiles_of(pass);
                let wanted = tiles.saturating_mul(plan.capacity) / TASK;
                let pieces = wanted.clamp(1, MOST_PIECES).min(tiles);
                let parts: Vec<Mutex<Option<Vec<Accumulators>>>> =
                    (0..pieces).map(|_| Mutex::new(None)).collect();
                run_once(pool, pieces, &|piece| {
                    let mut scratch = Scratch::new(plan);
                    let range = share(tiles, pieces, piece)..share(tiles, pieces, piece + 1);
                    self.tiles(pass, unit, range, &mut scratch, &reduced);
                    if let Ok(mut part) = parts[piece].lock() {
                        *part = Some(scratch.accumulators);
                    }
                })?;
                for &end in &pass.ends {
                    sums[end].clear();
                }
                for part in parts.into_iter().filter_map(|part| part.into_inner().ok().flatten()) {
                    for (sum, part) in sums.iter_mut().zip(&part) {
                        sum.merge(part);
                    }
                }
                finish(pass, &sums, &mut reduced);
            }
        }
        Ok(sums)
    }

    fn sinks(&self) -> impl Iterator<Item = (usize, &Layout)> {
        let layouts = self.plan.layouts.iter().enumerate();
        layouts
            .filter_map(|(number, layout)| Some((number, layout.as_ref()?)))
            .filter(|(_, l)| l.is_sink)
    }

    fn units(&self) -> usize {
        let axes = self.plan.space.axes.iter().enumerate();
        let outer = axes.filter(|(i, _)| self.plan.outer >> i & 1 == 1);
        outer.map(|(i, axis)| axis.len.div_ceil(self.plan.part(i))).product()
    }

    /// The indices along an axis that the tiles of a pass have together, and those of one tile.
    fn steps(&self, pass: &Pass, axis: usize) -> (usize, usize) {
        let plan = self.plan;
        let len = plan.space.axes[axis].len;
        if plan.outer >> axis & 1 == 1 || pass.axes >> axis & 1 == 0 {
            return (1, 1);
        }
        match plan.cut {
            Some((cut, part)) if cut == axis => (len, part),
            _ if plan.tile >> axis & 1 == 1 => (len, len),
            _ => (len, 1),
        }
    }

    fn tiles_of(&self, pass: &Pass) -> usize {
        let counts = (0..self.plan.space.axes.len()).map(|axis| {
            let (len, part) = self.steps(pass, axis);
            len.div_ceil(part)
        });
        counts.product()
    }

    /// Runs a pass over some tiles of a slab.
    fn tiles<R: Real>(
        &self,
        pass: &Pass,
        unit: usize,
        tiles: Range<usize>,
        scratch: &mut Scratch<R>,
        reduced: &Results<R>,
    ) {
        let axes = self.plan.space.axes.len();
        scratch.place.from.resize(axes, 0);
        scratch.place.extent.resize(axes, 1);
        // The extents of the tile before.
        let mut before = SmallVec::<[usize; 8]>::new();
        for tile in tiles {
            let (mut left, mut left_unit) = (tile, unit);
            for axis in (0..axes).rev() {
                let is_outer = self.plan.outer >> axis & 1 == 1;
                let (len, part, left) = if is_outer {
                    (self.plan.space.axes[axis].len, self.plan.part(axis), &mut left_unit)
                } else {
                    let (len, part) = self.steps(pass, axis);
                    (len, part, &mut left)
                };
                let mut from = 0;
                if part < len {
                    let count = len.div_ceil(part);
                    from = *left % count * part;
                    *left /= count;
                }
                scratch.place.from[axis] = from;
                scratch.place.extent[axis] = part.min(len - from);
            }
            let is_alike = before == scratch.place.extent;
            for step in &pass.steps {
                if !(is_alike && step.is_kept) {
                    self.step(step, scratch, reduced);
                }
            }
            if !is_alike {
                before.clone_from(&scratch.place.extent);
            }
        }
    }

    fn step<R: Real>(&self, step: &Step, scratch: &mut Scratch<R>, reduced: &Results<R>) {
        let Scratch { buffers, spare, accumulators, place } = scratch;
        let len = place.size(step.set);
        match step.action {
            Action::Fold { reduction, first } if place.is_first(first) => {
                let Some(&arg) = step.args.first() else { return };
                let a = buffers.value(arg, len);
                self.fold(step.set, reduction, (a, place), &mut accumulators[reduction], spare);
            }
            Action::Store { output, first } if place.is_first(first) => {
                let Some(&arg) = step.args.first() else { return };
                let is_there = buffers.elsewhere[arg].is_some()
                    && buffers.elsewhere[arg] == self.lies_in_output(step.set, output, place);
                if !is_there {
                    self.store(step.set, output, buffers.value(arg, len), place);
                }
            }
            Action::Fold { .. } | Action::Store { .. } => {}
            Action::Input(input) => {
                buffers.elsewhere[step.out] = self.lies_in_input(step.set, input, place);
                if buffers.elsewhere[step.out].is_none() {
                    self.load(step.set, input, place, buffers.rooms[step.out].first_mut(len));
                }
            }
            _ => self.write(step, buffers, place, reduced),
        }
    }

    /// Computes a value into its buffer, or into the output that it is.
    fn write<R: Real>(
        &self,
        step: &Step,
        buffers: &mut Buffers<R>,
        place: &Place,
        reduced: &Results<R>,
    ) {
        let len = place.size(step.set);
        // No step reads the buffer that it writes.
        buffers.elsewhere[step.out] = None;
        let output: Option<*const R> =
            step.stored.and_then(|output| self.lies_in_output(step.set, output, place));
        if let Some(at) = output {
            // SAFETY: these are the tile's elements of an output, which this task alone writes.
            let out = unsafe { std::slice::from_raw_parts_mut(at.cast_mut(), len) };
            self.compute(step, buffers, place, reduced, out);
            buffers.elsewhere[step.out] = output;
            return;
        }
        let mut room = std::mem::replace(&mut buffers.rooms[step.out], Room::EMPTY);
        self.compute(step, buffers, place, reduced, room.first_mut(len));
        buffers.rooms[step.out] = room;
    }

    /// Returns where a tile's elements of an operand lie, if they lie side by side in the type that
    /// is computed in.
    fn lies_in_input<R: Real>(&self, set: u64, input: usize, place: &Place) -> Option<*const R> {
        let stride = |axis: usize| self.plan.space.axes[axis].inputs[input];
        with_view!(&self.operands[input], view => lies_in(view.origin(), set, stride, place))
    }

    /// The same for an output.
    fn lies_in_output<R: Real>(&self, set: u64, output: usize, place: &Place) -> Option<*const R> {
        let stride = |axis: usize| self.plan.space.axes[axis].outputs[output].unwrap_or(0);
        match self.outputs[output] {
            Start::F32(start) => lies_in(start.cast_const(), set, stride, place),
            Start::F64(start) => lies_in(start.cast_const(), set, stride, place),
            Start::Bf16(_) | Start::F16(_) | Start::Bool(_) => None,
        }
    }

    /// Computes a value of a tile.
    fn compute<R: Real>(
        &self,
        step: &Step,
        buffers: &Buffers<R>,
        place: &Place,
        reduced: &Results<R>,
        out: &mut [R],
    ) {
        let level = self.level;
        let len = out.len();
        let arg =
            |n: usize, len: usize| step.args.get(n).map_or(&[][..], |&arg| buffers.value(arg, len));
        let one = |n: usize| arg(n, if step.ones >> n & 1 == 1 { 1 } else { len });
        match step.action {
            Action::Constant(value) => out.fill(R::from_f64(value)),
            Action::Reduced { reduction, deviations } => {
                let Some(layout) = &self.plan.layouts[reduction] else { return };
                let from = &reduced[reduction][usize::from(deviations)];
                let at = self.offset(place, layout);
                if let [only] = out {
                    *only = from[at];
                    return;
                }
                let stride = |axis: usize| layout.strides[axis].cast_signed();
                let loops = place.loops(step.set, stride);
                on_level(level, Expand { a: &from[at..], loops, out });
            }
            Action::Unary(op) => on_level(level, Apply { op, a: arg(0, len), out }),
            Action::Binary(op) => on_level(level, Combine { op, a: one(0), b: one(1), out }),
            Action::Chain(chain) => {
                let missing = chain::missing();
                let operands = chain.operands(one, &missing);
                on_level(level, RunChain { x: arg(0, len), operands, out });
            }
            Action::Select => {
                let (condition, on_true, on_false) = (arg(0, len), arg(1, len), arg(2, len));
                on_level(level, Choose { condition, on_true, on_false, out });
            }
            Action::Expand(from) => {
                let strides = compact(place, from);
                let loops = place.loops(step.set, |axis| strides[axis]);
                on_level(level, Expand { a: arg(0, place.size(from)), loops, out });
            }
            Action::Input(_) | Action::Fold { .. } | Action::Store { .. } => {}
        }
    }

    /// The place of a tile's first result among those of a reduction.
    fn offset(&self, place: &Place, layout: &Layout) -> usize {
        let counts = |axis: usize| layout.is_sink || self.plan.outer >> axis & 1 == 0;
        let axes = place.from.iter().zip(&layout.strides).enumerate();
        axes.filter(|(axis, _)| counts(*axis)).map(|(_, (from, stride))| from * stride).sum()
    }

    fn load<R: Real>(&self, set: u64, input: usize, place: &Place, out: &mut [R]) {
        let stride = |axis: usize| self.plan.space.axes[axis].inputs[input];
        let offset = (0..place.from.len()).fold(0isize, |sum, axis| {
            sum.wrapping_add(place.from[axis].cast_signed().wrapping_mul(stride(axis)))
        });
        let loops = place.loops(set, stride);
        // The indices of a tile are indices of the view, whose elements all lie within its data.
        with_view!(&self.operands[input], view => {
            let start = view.origin().wrapping_offset(offset);
            on_level(self.level, Load { start, loops, out });
        });
    }

    fn store<R: Real>(&self, set: u64, output: usize, a: &[R], place: &Place) {
        let stride = |axis: usize| self.plan.space.axes[axis].outputs[output].unwrap_or(0);
        let offset = (0..place.from.len()).fold(0isize, |sum, axis| {
            sum.wrapping_add(place.from[axis].cast_signed().wrapping_mul(stride(axis)))
        });
        // The indices of a tile are indices of the output, which no other tile has.
        let at = Storing { level: self.level, set, place, a };
        match self.outputs[output] {
            Start::F32(start) => at.store(start.wrapping_offset(offset), stride),
            Start::F64(start) => at.store(start.wrapping_offset(offset), stride),
            Start::Bf16(start) => at.store(start.wrapping_offset(offset), stride),
            Start::F16(start) => at.store(start.wrapping_offset(offset), stride),
            Start::Bool(start) => at.store(start.wrapping_offset(offset), stride),
        }
    }

    fn fold<R: Real>(
        &self,
        axes: u64,
        reduction: usize,
        (a, place): (&[R], &Place),
        to: &mut Accumulators,
        spare: &mut Spare<R>,
    ) {
        let Some(layout) = &self.plan.layouts[reduction] else { return };
        let reduced = self.plan.space.reduced(reduction);
        let loops = place.loops(axes & !reduced, |axis| layout.strides[axis].cast_signed());
        let at = self.offset(place, layout).cast_signed();
        let level = self.level;
        on_level(level, FoldTile { a, place, axes, reduced, at, loops, to, spare, level });
    }
}

/// Returns the place of a tile's first element in an array, if its elements lie side by side there
/// and are of the type `R`.
fn lies_in<E: 'static, R: 'static>(
    start: *const E,
    set: u64,
    stride: impl Fn(usize) -> isize + Copy,
    place: &Place,
) -> Option<*const R> {
    let mut beside = 1isize;
    let mut offset = 0isize;
    for axis in (0..place.from.len()).rev() {
        offset = offset.wrapping_add(place.from[axis].cast_signed().wrapping_mul(stride(axis)));
        let extent = place.extent[axis];
        if set >> axis & 1 == 1 && extent > 1 {
            if stride(axis) != beside {
                return None;
            }
            beside = beside.wrapping_mul(extent.cast_signed());
        }
    }
    (TypeId::of::<E>() == TypeId::of::<R>()).then(|| start.wrapping_offset(offset).cast())
}

fn finish<R: Real>(pass: &Pass, accumulators: &[Accumulators], reduced: &mut Results<R>) {
    for &end in &pass.ends {
        let [first, second] = &mut reduced[end];
        accumulators[end].finish(first, second);
    }
}
