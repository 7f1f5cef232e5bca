//! Chains of elementwise ops, run a block of lanes at a time.
//!
//! The *lanes* of arrays are their elements in row-major order. Elementwise ops with equally
//! many lanes form a region: a list of kernels over registers of one block. Intermediate values
//! stay in the fastest memory, and only values needed outside are written to arrays. A value
//! that is only reduced is folded block by block and never exists as a whole. Reshapes within a
//! region change nothing, and broadcasts into it are read in place. Blocks do not depend on
//! each other, so any number of threads computes the same.

mod build;
mod parts;
mod pieces;
mod role;

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use smallvec::SmallVec;
use tilewright_ir::{Data, Dims, ElementType, InstId};

use crate::error::{Fault, Outcome};
use crate::eval::elementwise::Kernel;
use crate::eval::fold::{Fold, FoldShape, Totals, accumulator_bytes};
use crate::strides::Nest;
use crate::value::{alike, num_bytes, with_data};

pub(crate) use parts::Part;
pub(crate) use pieces::{Piece, pieces};

/// The lanes of a block.
const BLOCK: usize = 2048;
/// Lanes worth a thread of their own.
const LANES_OF_A_TASK: usize = 16 * BLOCK;

/// Elementwise instructions that run together.
pub(crate) struct LaneRegion {
    pub(crate) lanes: usize,
    /// The values read from outside, in the order of the operands.
    pub(crate) inputs: Vec<Input>,
    actions: Vec<Action>,
    /// The element type of each register.
    registers: Vec<ElementType>,
    /// The values that are written.
    pub(crate) outputs: Vec<Output>,
    /// Inputs, each with an output that may overwrite it.
    pub(crate) in_place: Vec<(usize, usize)>,
    /// The values that are reduced.
    pub(crate) folds: Vec<RegionFold>,
    /// How, for all that is reduced.
    pub(crate) fold_shape: Option<FoldShape>,
}

/// An array from outside.
pub(crate) struct Input {
    pub(crate) id: InstId,
    how: Reading,
}

/// The way an array from outside is read.
enum Reading {
    /// Lane by lane.
    Lanes,
    /// Its only element for every lane.
    Uniform,
    /// As a walk over its elements.
    Broadcast(Nest<1>),
}

/// The source of an input's elements.
pub(crate) enum Feed<'a> {
    /// In an array.
    Array(&'a Data),
    /// The position of this output in memory.
    Output(usize),
}

/// An array that a region yields.
pub(crate) struct Output {
    pub(crate) id: InstId,
    pub(crate) element_type: ElementType,
    pub(crate) dims: Dims,
}

/// A reduction of a value that a region computes.
pub(crate) struct RegionFold {
    pub(crate) id: InstId,
    /// Its initial value, among the inputs.
    pub(crate) init: usize,
    pub(crate) element_type: ElementType,
    pub(crate) dims: Dims,
}

/// An action on each block.
enum Action {
    Load { input: usize, register: usize },
    Compute { kernel: Kernel, inputs: SmallVec<[usize; 3]>, register: usize },
    Store { register: usize, output: usize },
    Fold { register: usize, fold: usize },
}

/// The outputs and folds of a task.
#[derive(Default)]
struct Task<'a> {
    parts: Vec<Part<'a>>,
    totals: Vec<Box<dyn Totals + 'a>>,
}

impl LaneRegion {
    /// Returns how many elements of each lane it computes or reads to fold them.
    pub(crate) fn work(&self) -> usize {
        let works = |a: &&Action| matches!(a, Action::Compute { .. } | Action::Fold { .. });
        self.actions.iter().filter(works).count().max(1)
    }

    /// Returns the bytes of the registers of all threads that may run it at once.
    pub(crate) fn register_bytes(&self) -> u64 {
        let block: u64 = self.registers.iter().map(|&t| num_bytes(t, BLOCK)).sum();
        let tasks = self.lanes.div_ceil(self.task()).min(rayon::current_num_threads());
        block.saturating_mul(u64::try_from(tasks).unwrap_or(u64::MAX))
    }

    /// Returns the bytes of the totals of all reductions.
    pub(crate) fn total_bytes(&self) -> u64 {
        let totals = self.fold_shape.as_ref().map_or(0, FoldShape::totals);
        let bytes = |fold: &RegionFold| accumulator_bytes(fold.element_type).saturating_mul(totals);
        let bytes = self.folds.iter().map(bytes).fold(0, usize::saturating_add);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the lanes of a task; of the last, fewer.
    fn task(&self) -> usize {
        let lanes = self.fold_shape.as_ref().map_or(LANES_OF_A_TASK, FoldShape::chunk);
        lanes.min(self.lanes).max(1)
    }

    /// Computes the outputs into `out`, which has the lanes of each output, and the reductions
    /// into `folds`. The inputs are in the order of [`LaneRegion::inputs`].
    pub(crate) fn run(
        &self,
        inputs: &[Feed<'_>],
        out: &mut [Data],
        folds: &mut [Box<dyn Fold>],
    ) -> Outcome<()> {
        let lanes = self.task();
        let mut tasks: Vec<Task<'_>> = Vec::new();
        tasks.resize_with(self.lanes.div_ceil(lanes), Task::default);
        for data in out {
            for (task, part) in tasks.iter_mut().zip(Part::split(data, lanes)) {
                task.parts.push(part);
            }
        }
        for fold in folds {
            for (task, totals) in tasks.iter_mut().zip(fold.chunks()) {
                task.totals.push(totals);
            }
        }
        if let [only] = tasks.as_mut_slice() {
            return self.run_task(inputs, 0, only);
        }
        let numbered: Vec<_> = tasks.into_iter().enumerate().collect();
        numbered
            .into_par_iter()
            .try_for_each(|(number, mut task)| self.run_task(inputs, number * lanes, &mut task))
    }

    /// Returns how many lanes from a place in a task on are a block.
    fn block(&self, at: usize, left: usize) -> usize {
        match &self.fold_shape {
            Some(shape) => shape.block(at, left, BLOCK),
            None => BLOCK.min(left),
        }
    }

    /// Computes the lanes of a task, from `first` on.
    fn run_task(&self, inputs: &[Feed<'_>], first: usize, task: &mut Task<'_>) -> Outcome<()> {
        let lanes = self.task().min(self.lanes - first);
        let mut registers: Vec<Data> =
            self.registers.iter().map(|&element_type| Data::zeros(element_type, 0)).collect();
        let mut block = 0;
        while block < lanes {
            let count = self.block(block, lanes - block);
            for action in &self.actions {
                match action {
                    Action::Load { input, register } => {
                        let register = &mut registers[*register];
                        match inputs.get(*input) {
                            Some(Feed::Output(output)) => {
                                task.parts[*output].read(block, count, register)?;
                            }
                            Some(Feed::Array(data)) => {
                                self.load(data, *input, first + block, count, register)?;
                            }
                            None => return Err(Fault::Internal("an input of a region is missing")),
                        }
                    }
                    Action::Compute { kernel, inputs, register } => {
                        let mut result =
                            std::mem::replace(&mut registers[*register], Data::Pred(Vec::new()));
                        {
                            let operands = inputs.iter().map(|&input| &registers[input]);
                            let operands: SmallVec<[&Data; 3]> = operands.collect();
                            kernel(&operands, count, &mut result)?;
                        }
                        registers[*register] = result;
                    }
                    Action::Store { register, output } => {
                        task.parts[*output].write(block, count, &registers[*register])?;
                    }
                    Action::Fold { register, fold } => {
                        task.totals[*fold].take(&registers[*register], 0..count)?;
                    }
                }
            }
            block += count;
        }
        Ok(())
    }

    fn load(
        &self,
        data: &Data,
        input: usize,
        first: usize,
        count: usize,
        register: &mut Data,
    ) -> Outcome<()> {
        let missing = || Fault::Internal("an input of a region is missing");
        let input = self.inputs.get(input).ok_or_else(missing)?;
        with_data!(register, out => {
            let values = alike(out, data)?;
            match &input.how {
                Reading::Lanes => {
                    out.clear();
                    out.extend_from_slice(values.get(first..first + count).ok_or_else(missing)?);
                }
                Reading::Uniform => {
                    if out.len() < count {
                        out.resize(BLOCK, *values.first().ok_or_else(missing)?);
                    }
                }
                Reading::Broadcast(walk) => {
                    out.clear();
                    walk.extend_part(out, values, first, count);
                }
            }
        });
        Ok(())
    }
}

impl Action {
    fn for_each_register(&self, mut f: impl FnMut(usize)) {
        match self {
            Self::Load { register, .. }
            | Self::Store { register, .. }
            | Self::Fold { register, .. } => f(*register),
            Self::Compute { inputs, register, .. } => {
                inputs.iter().copied().for_each(&mut f);
                f(*register);
            }
        }
    }

    /// Returns the register that it fills.
    fn made(&self) -> Option<usize> {
        match self {
            Self::Load { register, .. } | Self::Compute { register, .. } => Some(*register),
            Self::Store { .. } | Self::Fold { .. } => None,
        }
    }

    fn rename(&mut self, place: &[usize]) {
        match self {
            Self::Load { register, .. }
            | Self::Store { register, .. }
            | Self::Fold { register, .. } => {
                *register = place[*register];
            }
            Self::Compute { inputs, register, .. } => {
                inputs
                    .iter_mut()
                    .chain([register])
                    .for_each(|register| *register = place[*register]);
            }
        }
    }
}
