//! Runs programs.

use std::any::TypeId;
use std::ops::Range;
use std::sync::Mutex;

use super::chain::{self, RunChain};
use super::fold::{FoldTile, Spare};
use super::output::{Start, store};
use super::plan::{Layout, Plan};
use super::program::{Id, Kind, Node, Operand, Program, Reduction, with_view};
use super::real::Real;
use super::room::{Buffers, Room};
use super::shape::{Reach, Shape, Shapes};
use super::simplify::simplified;
use super::space::Space;
use super::steps::{Action, Along, Arg, Pass, Step};
use super::tile::{self, Apply, Choose, Combine, Expand, Load};
use super::total::{Accumulators, Pending, Total};
use super::walk::{Place, Tiles};
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

/// Runs a program, whose operands were checked; all elements of its outputs are written then, unless
/// there is an error.
///
/// # Safety
/// From each start on there is room for all elements of its output, which nobody else uses meanwhile.
pub(super) unsafe fn run(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[Start],
    pool: &dyn Pool,
) -> Result<(), Error> {
    if program.dims.contains(&0) {
        // SAFETY: as the caller promises.
        return unsafe { run_empty(program, outputs, pool) };
    }
    let is_wide = program.is_wide
        || operands.iter().any(Operand::is_f64)
        || program.outputs.iter().any(|output| output.kind == Kind::F64);
    // SAFETY: as the caller promises.
    unsafe {
        if is_wide {
            run_in::<f64>(program, operands, outputs, pool)
        } else {
            run_in::<f32>(program, operands, outputs, pool)
        }
    }
}

/// Runs a program of no indices: outputs without the empty dims are made of results of reductions
/// of nothing, and of constants.
///
/// # Safety
/// As for [`run`].
unsafe fn run_empty(program: &Program, outputs: &[Start], pool: &dyn Pool) -> Result<(), Error> {
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
    let starts = program.outputs.iter().zip(outputs);
    let starts = starts.filter(|(output, _)| has_elements(output.dropped));
    let starts: Vec<Start> = starts.map(|(_, &start)| start).collect();
    left.outputs.retain(|output| has_elements(output.dropped));
    let space = Space::of(&left, &[])?;
    let reads =
        left.nodes.iter().zip(&space.needed).any(|(n, &is)| is && matches!(n, Node::Input(_)));
    if reads {
        return Err(Error::Empty);
    }
    // SAFETY: outputs that have elements have as many with dims of 1.
    unsafe { run_in::<f64>(&left, &[], &starts, pool) }
}

/// Runs a program in `R`.
///
/// # Safety
/// As for [`run`].
unsafe fn run_in<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[Start],
    pool: &dyn Pool,
) -> Result<(), Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let better = simplified(program);
    let program = better.as_ref().unwrap_or(program);
    let plan = Plan::of(program, Space::of(program, operands)?);
    let run = Run { plan: &plan, operands, outputs, level: Level::detect() };
    let sinks = run.all::<R>(pool)?;
    if plan.later.is_empty() {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe { later(program, operands, outputs, (&plan, &sinks), pool) }
}

/// Computes the outputs that need reductions over all slabs, which are operands now.
///
/// # Safety
/// As for [`run`].
unsafe fn later<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[Start],
    (plan, sinks): (&Plan, &[Accumulators]),
    pool: &dyn Pool,
) -> Result<(), Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let mut rest = program.clone();
    rest.outputs = plan.later.iter().map(|&output| program.outputs[output]).collect();
    let outputs: Vec<Start> = plan.later.iter().map(|&output| outputs[output]).collect();
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
    // SAFETY: as the caller promises; these outputs are some of the program's.
    unsafe { run(&rest, &all, &outputs, pool) }
}

/// A program under way.
struct Run<'a> {
    plan: &'a Plan,
    operands: &'a [Operand<'a>],
    outputs: &'a [Start],
    level: Level,
}

// SAFETY: operands are only read, and outlive the run; tiles write distinct elements of outputs,
// since a tile writes only if it is the first one along axes that an output does not have.
unsafe impl Sync for Run<'_> {}

/// The results of the reductions within a slab, by number, with squared deviations beside.
type Results<R> = Vec<[Vec<R>; 2]>;

/// The state of a task.
struct Scratch<R> {
    /// By pass.
    walks: Vec<Walk>,
    memory: Memory<R>,
}

/// The memory of a task.
struct Memory<R> {
    buffers: Buffers<R>,
    spare: Spare<R>,
    /// By number of the reduction.
    accumulators: Vec<Accumulators>,
    /// By number of the reduction, too.
    pending: Vec<Pending<R>>,
    results: Results<R>,
}

impl<R: Real> Memory<R> {
    /// Adds what is left to the accumulators.
    fn flush(&mut self) {
        for (pending, to) in self.pending.iter_mut().zip(&mut self.accumulators) {
            pending.flush(to);
        }
    }
}

/// How a pass goes over its tiles.
struct Walk {
    tiles: Tiles,
    /// The place of the tile before, at first that of the first one.
    place: Place,
    /// The shapes of the steps in the tile before.
    shapes: Option<Shapes>,
}

impl Walk {
    fn of(plan: &Plan, pass: &Pass) -> Self {
        let mut place = Place::default();
        let tiles = Tiles::of(plan, pass, &mut place);
        Self { tiles, place, shapes: None }
    }
}

impl<R: Real> Scratch<R> {
    /// For tasks that keep the results of reductions themselves, or do not.
    fn new(plan: &Plan, keeps_results: bool) -> Self {
        let folds = plan.layouts.iter().any(Option::is_some);
        Self {
            walks: plan.passes.iter().map(|pass| Walk::of(plan, pass)).collect(),
            memory: Memory {
                buffers: Buffers::new(plan),
                spare: Spare::new(if folds { plan.capacity } else { 0 }),
                accumulators: accumulators(plan),
                pending: plan.layouts.iter().map(|_| Pending::new()).collect(),
                results: if keeps_results { results(plan) } else { Vec::new() },
            },
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
            let mut scratch: Scratch<R> = Scratch::new(plan, true);
            for unit in share(units, tasks, task)..share(units, tasks, task + 1) {
                for (number, pass) in plan.passes.iter().enumerate() {
                    self.slab(number, pass, unit, &mut scratch);
                }
            }
            scratch.memory.flush();
            if let Ok(mut part) = parts[task].lock() {
                *part = Some(scratch.memory.accumulators);
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
            for (number, pass) in plan.passes.iter().enumerate() {
                let tiles = Walk::of(plan, pass).tiles.count;
                let wanted = tiles.saturating_mul(plan.capacity) / TASK;
                let pieces = wanted.clamp(1, MOST_PIECES).min(tiles);
                let parts: Vec<Mutex<Option<Vec<Accumulators>>>> =
                    (0..pieces).map(|_| Mutex::new(None)).collect();
                run_once(pool, pieces, &|piece| {
                    let mut scratch = Scratch::new(plan, false);
                    let range = share(tiles, pieces, piece)..share(tiles, pieces, piece + 1);
                    self.tiles(number, (unit, range), &mut scratch, Some(&reduced));
                    scratch.memory.flush();
                    if let Ok(mut part) = parts[piece].lock() {
                        *part = Some(scratch.memory.accumulators);
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

    /// Runs a pass over a slab, whose results the task keeps.
    fn slab<R: Real>(&self, number: usize, pass: &Pass, unit: usize, scratch: &mut Scratch<R>) {
        let tiles = scratch.walks[number].tiles.count;
        if tiles == 1 {
            // Its reductions are complete.
            self.tiles(number, (unit, 0..1), scratch, None);
            return;
        }
        for &end in &pass.ends {
            scratch.memory.accumulators[end].clear();
        }
        self.tiles(number, (unit, 0..tiles), scratch, None);
        let Memory { accumulators, pending, results, .. } = &mut scratch.memory;
        for &end in &pass.ends {
            pending[end].flush(&mut accumulators[end]);
        }
        finish(pass, accumulators, results);
    }

    /// Runs a pass over some tiles of a slab. The results of passes before are those of the task, if
    /// no others are given.
    fn tiles<R: Real>(
        &self,
        pass: usize,
        (unit, range): (usize, Range<usize>),
        scratch: &mut Scratch<R>,
        reduced: Option<&Results<R>>,
    ) {
        let plan = self.plan;
        let Scratch { walks, memory } = scratch;
        let (Some(pass), Some(walk)) = (plan.passes.get(pass), walks.get_mut(pass)) else { return };
        let Walk { tiles, place, shapes } = walk;
        // The results of a slab that is one tile are those of the tile.
        let is_whole = tiles.count == 1 && reduced.is_none();
        let first = range.start;
        for tile in range {
            tiles.go(unit, tile, place);
            let is_alike = shapes.as_ref().is_some_and(|shapes| shapes.are_for(place));
            if !is_alike {
                *shapes = Some(Shapes::of(plan, pass, place));
            }
            let Some(shapes) = shapes else { continue };
            let has_kept = is_alike && tile > first;
            for (step, shape) in pass.steps.iter().zip(&shapes.steps) {
                if !(has_kept && step.is_kept) {
                    self.step(step, shape, place, (memory, is_whole), reduced);
                }
            }
        }
    }

    fn step<R: Real>(
        &self,
        step: &Step,
        shape: &Shape,
        place: &Place,
        (memory, is_whole): (&mut Memory<R>, bool),
        reduced: Option<&Results<R>>,
    ) {
        let Memory { buffers, spare, accumulators, pending, results } = memory;
        match (step.action, &shape.from, &shape.to) {
            (Action::Fold { reduction, first }, Some(to), _) if place.is_first(first) => {
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
            (Action::Fold { .. } | Action::Store { .. }, ..) => {}
            (Action::Input(input), Some(from), _) => {
                buffers.elsewhere[step.out] = self.lies_in_input(input, from, place);
                if buffers.elsewhere[step.out].is_none() {
                    let out = buffers.rooms[step.out].first_mut(shape.len);
                    self.load(input, from, place, out);
                }
            }
            _ => self.write(step, shape, buffers, place, reduced.unwrap_or(results)),
        }
    }

    /// Computes a value into its buffer, or into the output that it is.
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
        if let Some(at) = output {
            // SAFETY: these are the tile's elements of an output, which this task alone writes.
            let out = unsafe { std::slice::from_raw_parts_mut(at.cast_mut(), shape.len) };
            self.compute(step, shape, (buffers, place, reduced), out);
            buffers.elsewhere[step.out] = output;
            return;
        }
        let mut room = std::mem::replace(&mut buffers.rooms[step.out], Room::EMPTY);
        self.compute(step, shape, (buffers, place, reduced), room.first_mut(shape.len));
        buffers.rooms[step.out] = room;
    }

    /// Returns where a tile's elements of an operand lie, if they lie side by side in the type that
    /// is computed in.
    fn lies_in_input<R: Real>(
        &self,
        input: usize,
        reach: &Reach,
        place: &Place,
    ) -> Option<*const R> {
        let operand = self.operands.get(input)?;
        with_view!(operand, view => lies_at(view.origin(), reach, place))
    }

    /// The same for an output.
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

    /// Computes a value of a tile.
    fn compute<R: Real>(
        &self,
        step: &Step,
        shape: &Shape,
        (buffers, place, reduced): (&Buffers<R>, &Place, &Results<R>),
        out: &mut [R],
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
            Action::Unary(op) => on_level(level, Apply { op, a: all(0), out }),
            Action::Binary(op) => {
                let (a, b) = (operand(0), operand(1));
                on_level(level, Combine { op, a, b, row, out });
            }
            Action::Chain(chain) => {
                let missing = chain::missing();
                let operands = chain.operands(operand, &missing);
                on_level(level, RunChain { x: all(0), operands, row, out });
            }
            Action::Select => {
                let (condition, on_true, on_false) = (all(0), all(1), all(2));
                on_level(level, Choose { condition, on_true, on_false, out });
            }
            Action::Expand(_) => {
                let Some(loops) = &shape.repeated else { return };
                on_level(level, Expand { a: all(0), loops, out });
            }
            Action::Input(_) | Action::Fold { .. } | Action::Store { .. } => {}
        }
    }

    fn load<R: Real>(&self, input: usize, from: &Reach, place: &Place, out: &mut [R]) {
        let (offset, loops) = (from.offset(place), &from.loops);
        // The indices of a tile are indices of the view, whose elements all lie within its data.
        with_view!(&self.operands[input], view => {
            let start = view.origin().wrapping_offset(offset);
            on_level(self.level, Load { start, loops, out });
        });
    }

    fn store<R: Real>(&self, output: usize, to: &Reach, a: &[R], place: &Place) {
        let (offset, loops, level) = (to.offset(place), &to.loops, self.level);
        // SAFETY: the indices of a tile are indices of the output, which no other tile has.
        unsafe {
            match self.outputs[output] {
                Start::F32(start) => store(level, start.wrapping_offset(offset), loops, a),
                Start::F64(start) => store(level, start.wrapping_offset(offset), loops, a),
                Start::Bf16(start) => store(level, start.wrapping_offset(offset), loops, a),
                Start::F16(start) => store(level, start.wrapping_offset(offset), loops, a),
                Start::Bool(start) => store(level, start.wrapping_offset(offset), loops, a),
            }
        }
    }
}

/// Returns the place of a tile's first element in an array, if its elements lie side by side there
/// and are of the type `R`.
fn lies_at<E: 'static, R: 'static>(
    start: *const E,
    reach: &Reach,
    place: &Place,
) -> Option<*const R> {
    let is_there = reach.is_dense && TypeId::of::<E>() == TypeId::of::<R>();
    is_there.then(|| start.wrapping_offset(reach.offset(place)).cast())
}

fn finish<R: Real>(pass: &Pass, accumulators: &[Accumulators], reduced: &mut Results<R>) {
    for &end in &pass.ends {
        let [first, second] = &mut reduced[end];
        accumulators[end].finish(first, second);
    }
}
