//! Chains of elementwise ops, run a block of lanes at a time.
//!
//! The *lanes* of arrays are their elements in row-major order. Elementwise ops
//! on as many lanes each form a region: a list of kernels over registers of one
//! block, so that what one op hands the next stays in the fastest memory, and
//! only what others need is written to arrays. Reshapes within a region change
//! nothing, broadcasts into it are read where they lie. Blocks do not depend on
//! each other: any number of threads computes the same.

mod build;
mod parts;
mod pieces;
mod role;
#[cfg(test)]
mod tests;

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use smallvec::SmallVec;
use tilewright_ir::{Data, Dims, ElementType, InstId};

use crate::error::{Fault, Outcome};
use crate::eval::elementwise::Kernel;
use crate::strides::Nest;
use crate::value::{alike, num_bytes, with_data};

use parts::Part;
pub(crate) use pieces::{Piece, pieces};

/// The lanes of a block.
const BLOCK: usize = 2048;
/// Lanes worth a thread of their own.
const LANES_OF_A_TASK: usize = 16 * BLOCK;

/// Elementwise instructions that run together.
pub(crate) struct Region {
    pub(crate) lanes: usize,
    /// What is read from outside, in the order of the operands.
    pub(crate) inputs: Vec<Input>,
    actions: Vec<Action>,
    /// What each register holds.
    registers: Vec<ElementType>,
    /// What is written.
    pub(crate) outputs: Vec<Output>,
}

/// An array from outside.
pub(crate) struct Input {
    pub(crate) id: InstId,
    how: Reading,
}

/// How an array from outside is read.
enum Reading {
    /// Lane by lane.
    Lanes,
    /// Its only element for every lane.
    Uniform,
    /// As a walk over its elements.
    Broadcast(Nest<1>),
}

/// An array that a region yields.
pub(crate) struct Output {
    pub(crate) id: InstId,
    pub(crate) element_type: ElementType,
    pub(crate) dims: Dims,
}

/// What is done with each block.
enum Action {
    Load { input: usize, register: usize },
    Compute { kernel: Kernel, inputs: SmallVec<[usize; 3]>, register: usize },
    Store { register: usize, output: usize },
}

impl Region {
    /// How many elements of each lane it computes.
    pub(crate) fn work(&self) -> usize {
        self.actions.iter().filter(|a| matches!(a, Action::Compute { .. })).count().max(1)
    }

    /// The bytes of the registers of all threads that may run it at once.
    pub(crate) fn register_bytes(&self) -> u64 {
        let block: u64 = self.registers.iter().map(|&t| num_bytes(t, BLOCK)).sum();
        let tasks = self.lanes.div_ceil(LANES_OF_A_TASK).min(rayon::current_num_threads());
        block.saturating_mul(u64::try_from(tasks).unwrap_or(u64::MAX))
    }

    /// Computes the outputs into `out`, which has as many lanes of each, of
    /// the arrays in the order of [`Region::inputs`].
    pub(crate) fn run(&self, inputs: &[&Data], out: &mut [Data]) -> Outcome<()> {
        let task = LANES_OF_A_TASK.min(self.lanes.max(1));
        let mut tasks: Vec<Vec<Part<'_>>> = Vec::new();
        tasks.resize_with(self.lanes.div_ceil(task), Vec::new);
        for data in out {
            for (parts, part) in tasks.iter_mut().zip(Part::split(data, task)) {
                parts.push(part);
            }
        }
        let first = |task_number: usize| task_number * task;
        if let [only] = tasks.as_mut_slice() {
            return self.run_task(inputs, 0, only);
        }
        let numbered: Vec<_> = tasks.into_iter().enumerate().collect();
        numbered
            .into_par_iter()
            .try_for_each(|(number, mut parts)| self.run_task(inputs, first(number), &mut parts))
    }

    /// Computes the lanes from `first` on that fit the parts.
    fn run_task(&self, inputs: &[&Data], first: usize, out: &mut [Part<'_>]) -> Outcome<()> {
        let lanes = out.first().map_or(0, Part::len);
        let mut registers: Vec<Data> =
            self.registers.iter().map(|&element_type| Data::zeros(element_type, 0)).collect();
        for block in (0..lanes).step_by(BLOCK) {
            let count = BLOCK.min(lanes - block);
            for action in &self.actions {
                match action {
                    Action::Load { input, register } => {
                        let register = &mut registers[*register];
                        self.load(inputs, *input, first + block, count, register)?;
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
                        out[*output].write(block, count, &registers[*register])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn load(
        &self,
        inputs: &[&Data],
        input: usize,
        first: usize,
        count: usize,
        register: &mut Data,
    ) -> Outcome<()> {
        let missing = Fault::Internal("an input of a region is missing");
        let (Some(data), Some(input)) = (inputs.get(input), self.inputs.get(input)) else {
            return Err(missing);
        };
        with_data!(register, out => {
            let values = alike(out, data)?;
            match &input.how {
                Reading::Lanes => {
                    out.clear();
                    out.extend_from_slice(values.get(first..first + count).ok_or(missing)?);
                }
                Reading::Uniform => {
                    if out.len() < count {
                        out.resize(BLOCK, *values.first().ok_or(missing)?);
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
            Self::Load { register, .. } | Self::Store { register, .. } => f(*register),
            Self::Compute { inputs, register, .. } => {
                inputs.iter().copied().for_each(&mut f);
                f(*register);
            }
        }
    }

    /// The register that it fills.
    fn made(&self) -> Option<usize> {
        match self {
            Self::Load { register, .. } | Self::Compute { register, .. } => Some(*register),
            Self::Store { .. } => None,
        }
    }

    fn rename(&mut self, place: &[usize]) {
        match self {
            Self::Load { register, .. } | Self::Store { register, .. } => {
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
