//! Runs a program: divides slabs, or the tiles of large slabs, into tasks, and then computes the
//! outputs that need sinks. `Program::run` calls it.

use std::ops::Range;
use std::sync::Mutex;

use super::output::OutputPtr;
use super::plan::{ResultLayout, TilePlan};
use super::program::{Id, Kind, Operand, Program, ProgramNode, Reduction};
use super::real::Real;
use super::scratch::{Idle, Memory, PassCursor, Scratch, SlabResults, accumulators, results};
use super::shape::Shapes;
use super::simplify::simplified;
use super::space::Space;
use super::steps::Pass;
use super::total::TotalAccumulators;
use crate::caches::last_cache;
use crate::error::Error;
use crate::level::{Level, detect};
use crate::pages::{prefer_huge, was_written};
use crate::pool::{Pool, run_once};
use crate::run::share;
use crate::vectors::{Fence, HAS_STORES_PAST_CACHES};
use crate::view::View;

/// A task has about this many elements or more.
const TASK: usize = 1 << 16;
/// The most tasks of a program without sinks.
const MOST_TASKS: usize = 256;
/// The most tasks that have accumulators of their own.
const MOST_PIECES: usize = 64;
/// Fewer slabs than this are divided into pieces if they have at least [`TASK`] elements each.
const FEW: usize = 16;
/// Two slabs of this many elements fit in the second cache.
const MOST_HELD: usize = 1 << 16;

/// Runs a program whose operands were checked. Unless it returns an error, it wrote all elements of
/// the outputs.
///
/// # Safety
/// Each input that an output needs must have an operand with the program's dims, and each output an
/// address in `outputs`. From there on, as many elements of the output's type as it has must be
/// aligned, writable, and used by nobody else during the call; they may be uninitialised.
pub(super) unsafe fn run(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[OutputPtr],
    pool: &dyn Pool,
) -> Result<(), Error> {
    if program.dims.contains(&0) {
        // SAFETY: the caller guarantees the elements of all outputs.
        return unsafe { run_empty(program, outputs, pool) };
    }
    for (number, start) in outputs.iter().enumerate() {
        prefer_huge(start.place(), bytes_of(program, number));
    }
    let is_wide = program.is_wide
        || operands.iter().any(Operand::is_f64)
        || program.outputs.iter().any(|output| output.kind == Kind::F64);
    // SAFETY: the caller guarantees the operands and the elements of all outputs.
    unsafe {
        if is_wide {
            run_in::<f64>(program, operands, outputs, pool)
        } else {
            run_in::<f32>(program, operands, outputs, pool)
        }
    }
}

/// Runs a program with a dim of size 0. Outputs that do not have the empty dims are made of
/// constants, and of the results of reductions over nothing.
///
/// # Safety
/// Each output must have an address in `outputs`. From there on, as many elements of the output's
/// type as it has must be aligned, writable, and used by nobody else during the call; they may be
/// uninitialised.
unsafe fn run_empty(
    program: &Program,
    outputs: &[OutputPtr],
    pool: &dyn Pool,
) -> Result<(), Error> {
    let is_empty = |dim: usize| program.dims[dim] == 0;
    let empty =
        (0..program.dims.len()).filter(|&dim| is_empty(dim)).fold(0u64, |set, i| set | 1 << i);
    let mut left = program.clone();
    left.dims.iter_mut().for_each(|dim| *dim = (*dim).max(1));
    for node in &mut left.nodes {
        match *node {
            ProgramNode::Reduce(reduction, _, axes) if axes & empty != 0 => {
                *node = ProgramNode::Constant(if reduction == Reduction::Sum { 0.0 } else { 1.0 });
            }
            _ => {}
        }
    }
    let has_elements = |dropped: u64| empty & !dropped == 0;
    let starts = program.outputs.iter().zip(outputs);
    let starts = starts.filter(|(output, _)| has_elements(output.dropped));
    let starts: Vec<OutputPtr> = starts.map(|(_, &start)| start).collect();
    left.outputs.retain(|output| has_elements(output.dropped));
    let space = Space::of(&left, &[])?;
    let reads = left
        .nodes
        .iter()
        .zip(&space.needed)
        .any(|(n, &is)| is && matches!(n, ProgramNode::Input(_)));
    if reads {
        return Err(Error::Empty);
    }
    // SAFETY: no input is needed. These outputs have no empty dim, so they have as many elements as
    // before dims of 0 became 1, and the caller guarantees these elements.
    unsafe { run_in::<f64>(&left, &[], &starts, pool) }
}

/// Runs a program whose values are `R`.
///
/// # Safety
/// Each input that an output needs must have an operand with the program's dims, and each output an
/// address in `outputs`. From there on, as many elements of the output's type as it has must be
/// aligned, writable, and used by nobody else during the call; they may be uninitialised.
unsafe fn run_in<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[OutputPtr],
    pool: &dyn Pool,
) -> Result<(), Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let better = simplified(program);
    let program = better.as_ref().unwrap_or(program);
    let plan = TilePlan::of(program, Space::of(program, operands)?);
    let level = detect();
    let were_written = || {
        let mut outputs = outputs.iter().enumerate();
        outputs.all(|(number, start)| was_written(start.place(), bytes_of(program, number)))
    };
    let in_main_memory = bytes(program, operands) >= last_cache();
    let non_temporal = HAS_STORES_PAST_CACHES && in_main_memory && were_written();
    let run = FusedRun { plan: &plan, operands, outputs, level, non_temporal };
    let sinks = run.all::<R>(pool)?;
    if plan.later.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller guarantees the operands and the elements of all outputs, and no task uses
    // the outputs any more.
    unsafe { later(program, operands, outputs, (&plan, &sinks), pool) }
}

/// The number of bytes of all operands and outputs; what an operand repeats counts once.
fn bytes(program: &Program, operands: &[Operand<'_>]) -> usize {
    let read = operands.iter().map(|operand| {
        let dims = operand.dims().iter().zip(operand.strides());
        let own = dims.filter(|(_, stride)| **stride != 0);
        own.fold(operand.kind().size(), |bytes, (dim, _)| bytes.saturating_mul(*dim))
    });
    let written = (0..program.outputs.len()).map(|output| bytes_of(program, output));
    read.chain(written).fold(0, usize::saturating_add)
}

/// The number of bytes of an output.
fn bytes_of(program: &Program, output: usize) -> usize {
    let size = program.outputs.get(output).map_or(0, |output| output.kind.size());
    program.dims_of(output).into_iter().fold(size, usize::saturating_mul)
}

/// Computes the outputs that need sinks, by a program in which the results of sinks are operands.
///
/// # Safety
/// Each input that an output needs must have an operand with the program's dims, and each output an
/// address in `outputs`. From there on, as many elements of the output's type as it has must be
/// aligned, writable, and used by nobody else during the call; they may be uninitialised.
unsafe fn later<R: Real>(
    program: &Program,
    operands: &[Operand<'_>],
    outputs: &[OutputPtr],
    (plan, sinks): (&TilePlan, &[TotalAccumulators]),
    pool: &dyn Pool,
) -> Result<(), Error>
where
    for<'a> Operand<'a>: From<View<'a, R>>,
{
    let mut rest = program.clone();
    rest.outputs = plan.later.iter().map(|&output| program.outputs[output]).collect();
    let outputs: Vec<OutputPtr> = plan.later.iter().map(|&output| outputs[output]).collect();
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
        let input = |results: &Vec<_>| ProgramNode::Input(operands.len() + results.len());
        rest.nodes[node] = input(&results);
        results.push((first, strides.clone()));
        let is_its = |other: &&mut ProgramNode| matches!(other, ProgramNode::Deviations(Id(of)) if *of == node);
        rest.nodes.iter_mut().filter(is_its).for_each(|other| *other = input(&results));
        results.push((second, strides));
    }
    rest.inputs = operands.len() + results.len();
    let mut all = operands.to_vec();
    for (data, strides) in &results {
        all.push(View::new(data, 0, &program.dims, strides)?.into());
    }
    // SAFETY: the caller guarantees the operands, and the views of results have the program's dims.
    // The outputs are some of those whose elements the caller guarantees.
    unsafe { run(&rest, &all, &outputs, pool) }
}

/// The state of a run, shared by its tasks.
pub(super) struct FusedRun<'a> {
    pub(super) plan: &'a TilePlan,
    pub(super) operands: &'a [Operand<'a>],
    pub(super) outputs: &'a [OutputPtr],
    pub(super) level: Level,
    /// Whether outputs are stored past the caches, as all arrays together do not fit in a cache: lines
    /// that are written as a whole are then not read first.
    pub(super) non_temporal: bool,
}

// SAFETY: threads only read operands, which outlive the run. Tiles write distinct elements of
// outputs, since a tile writes only if it is the first one along the axes that the output does not
// have.
unsafe impl Sync for FusedRun<'_> {}

impl FusedRun<'_> {
    /// Runs all passes over all slabs, and returns the accumulators of the sinks.
    fn all<R: Real>(&self, pool: &dyn Pool) -> Result<Vec<TotalAccumulators>, Error> {
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
        let parts: Vec<Mutex<Option<Vec<TotalAccumulators>>>> =
            (0..tasks).map(|_| Mutex::new(None)).collect();
        let idle = Idle::new();
        run_once(pool, tasks, &|task| {
            let _fence = self.non_temporal.then_some(Fence);
            let mut scratch: Scratch<R> = idle.take(plan, true);
            for unit in share(units, tasks, task)..share(units, tasks, task + 1) {
                for (number, pass) in plan.passes.iter().enumerate() {
                    self.slab(number, pass, unit, &mut scratch);
                }
            }
            if let Ok(mut part) = parts[task].lock() {
                *part = Some(scratch.memory.taken(plan));
            }
            idle.put(scratch);
        })?;
        let mut sums = accumulators(plan);
        for part in parts.into_iter().filter_map(|part| part.into_inner().ok().flatten()) {
            for (number, _) in self.sinks() {
                sums[number].merge(&part[number]);
            }
        }
        Ok(sums)
    }

    /// Runs all passes over few, large slabs, whose tiles are divided into pieces for each pass.
    fn in_pieces<R: Real>(
        &self,
        units: usize,
        pool: &dyn Pool,
    ) -> Result<Vec<TotalAccumulators>, Error> {
        let plan = self.plan;
        let mut sums = accumulators(plan);
        let mut reduced: SlabResults<R> = results(plan);
        let idle = Idle::new();
        for unit in 0..units {
            for (number, pass) in plan.passes.iter().enumerate() {
                let tiles = PassCursor::of(plan, pass).tiles.count;
                let wanted = tiles.saturating_mul(plan.capacity) / TASK;
                let pieces = wanted.clamp(1, MOST_PIECES).min(tiles);
                let parts: Vec<Mutex<Option<Vec<TotalAccumulators>>>> =
                    (0..pieces).map(|_| Mutex::new(None)).collect();
                run_once(pool, pieces, &|piece| {
                    let _fence = self.non_temporal.then_some(Fence);
                    let mut scratch = idle.take(plan, false);
                    let range = share(tiles, pieces, piece)..share(tiles, pieces, piece + 1);
                    self.tiles(number, (unit, range), &mut scratch, Some(&reduced));
                    if let Ok(mut part) = parts[piece].lock() {
                        *part = Some(scratch.memory.taken(plan));
                    }
                    idle.put(scratch);
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

    /// The sinks, by number.
    fn sinks(&self) -> impl Iterator<Item = (usize, &ResultLayout)> {
        let layouts = self.plan.layouts.iter().enumerate();
        layouts
            .filter_map(|(number, layout)| Some((number, layout.as_ref()?)))
            .filter(|(_, l)| l.is_sink)
    }

    /// The number of slabs.
    fn units(&self) -> usize {
        let axes = self.plan.space.axes.iter().enumerate();
        let outer = axes.filter(|(i, _)| self.plan.outer >> i & 1 == 1);
        outer.map(|(i, axis)| axis.len.div_ceil(self.plan.part(i))).product()
    }

    /// Runs a pass over a slab. The results of its reductions stay in `scratch`.
    fn slab<R: Real>(&self, number: usize, pass: &Pass, unit: usize, scratch: &mut Scratch<R>) {
        let tiles = scratch.cursors[number].tiles.count;
        if tiles == 1 {
            // The tile wrote the results of its reductions itself.
            self.tiles(number, (unit, 0..1), scratch, None);
            return;
        }
        for &end in &pass.ends {
            scratch.memory.accumulators[end].clear();
        }
        // Later passes find the slab in a cache. They prefetch the next slab, if a cache holds
        // both.
        let slab = self.plan.slab();
        scratch.memory.buffers.prefetch_distance = match number {
            0 => Some(0),
            _ => Some(slab).filter(|&slab| slab <= MOST_HELD),
        };
        self.tiles(number, (unit, 0..tiles), scratch, None);
        let Memory { accumulators, pending, results, .. } = &mut scratch.memory;
        for &end in &pass.ends {
            pending[end].flush(&mut accumulators[end]);
        }
        finish(pass, accumulators, results);
    }

    /// Runs a pass over some tiles of a slab. `reduced` has the results of the passes before; if it
    /// is `None`, `scratch` has them.
    fn tiles<R: Real>(
        &self,
        pass: usize,
        (unit, range): (usize, Range<usize>),
        scratch: &mut Scratch<R>,
        reduced: Option<&SlabResults<R>>,
    ) {
        let plan = self.plan;
        let Scratch { cursors, memory } = scratch;
        let (Some(pass), Some(cursor)) = (plan.passes.get(pass), cursors.get_mut(pass)) else {
            return;
        };
        let PassCursor { tiles, bounds, shapes } = cursor;
        // If the slab is one tile, the tile's results are those of the slab.
        let is_whole = tiles.count == 1 && reduced.is_none();
        let first = range.start;
        for tile in range {
            tiles.go(unit, tile, bounds);
            let is_alike = shapes.as_ref().is_some_and(|shapes| shapes.are_for(bounds));
            if !is_alike {
                *shapes = Some(Shapes::of(plan, pass, bounds));
            }
            let Some(shapes) = shapes else { continue };
            // Kept values are there if the tile before was of the same slab, or if all slabs are
            // tiles.
            let has_invariants = is_alike && (tile > first || plan.is_whole());
            for (step, shape) in pass.steps.iter().zip(&shapes.steps) {
                if !(has_invariants && step.is_tile_invariant) {
                    self.step(step, shape, bounds, (memory, is_whole), reduced);
                }
            }
        }
    }
}

/// Writes the results of the reductions that end with a pass.
fn finish<R: Real>(pass: &Pass, accumulators: &[TotalAccumulators], reduced: &mut SlabResults<R>) {
    for &end in &pass.ends {
        let [first, second] = &mut reduced[end];
        accumulators[end].finish(first, second);
    }
}
