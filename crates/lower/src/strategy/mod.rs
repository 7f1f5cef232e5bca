//! Strategies for reductions along several axes: the one-pass strategy, and those of other
//! compilers for comparison.
//!
//! Every strategy makes kernels that run one after another. Arrays between kernels are in main
//! memory, as *workspace*.

mod looped;
mod transposed;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;
use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{InstId, Literal, Verified};
use tilewright_target::Target;

use crate::codegen::reduce::ReductionSpec;
use crate::error::LowerError;
use crate::kernel::{Kernel, Space};

/// The way a reduction along several axes is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// In one pass over the input, without a workspace.
    #[default]
    Fused,
    /// One axis after another, with an array in between.
    Looped,
    /// A kernel transposes the array to rows, then another reduces the rows.
    Transposed,
}

/// The error for an unknown name of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no such strategy: there are fused, looped and transposed")]
pub struct NoSuchStrategy;

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::Fused, Self::Looped, Self::Transposed];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::Looped => "looped",
            Self::Transposed => "transposed",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = NoSuchStrategy;

    fn from_str(name: &str) -> Result<Self, NoSuchStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or(NoSuchStrategy)
    }
}

/// Kernels that compute a reduction together.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The stages in order; the results of the last are those of the reduction.
    pub stages: Vec<Stage>,
}

/// A kernel, with its inputs and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The kernel.
    pub kernel: Kernel,
    /// The source of each `in` buffer, in order.
    pub inputs: Vec<Input>,
    /// The shape of each `out` buffer, in order.
    pub results: Vec<ArrayShape>,
}

/// The source of an input of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An operand of the reduce; arrays come before inits.
    Operand(usize),
    /// A result of an earlier stage.
    Result {
        /// The number of the stage.
        stage: usize,
        /// The number of its result.
        result: usize,
    },
    /// A scalar constant.
    Constant(Literal),
}

impl Sequence {
    /// A sequence of one kernel that computes an instruction and reads the given operands.
    pub fn of_one(module: &Verified, id: InstId, kernel: Kernel, operands: Range<usize>) -> Self {
        let shapes = module.shape(id).leaves();
        let results = shapes.into_iter().filter_map(|shape| shape.as_array().cloned()).collect();
        let inputs = operands.map(Input::Operand).collect();
        Self { stages: vec![Stage { kernel, inputs, results }] }
    }

    /// Returns the largest number of bytes that arrays between stages take in main memory at
    /// one time, padding included.
    pub fn workspace_bytes(&self) -> u64 {
        let last = self.stages.len().saturating_sub(1);
        let at = |now: usize| {
            let there = self.stages.iter().enumerate().take(last.min(now.saturating_add(1)));
            let needed = there.filter(|&(stage, _)| stage == now || self.is_read_from(stage, now));
            needed.map(|(_, stage)| bytes_written(&stage.kernel)).fold(0, u64::saturating_add)
        };
        (0..self.stages.len()).map(at).max().unwrap_or(0)
    }

    /// Checks whether the results of a stage are read by `reader` or a later stage.
    fn is_read_from(&self, stage: usize, reader: usize) -> bool {
        let inputs = self.stages.iter().skip(reader).flat_map(|later| &later.inputs);
        let mut read = inputs.filter_map(|input| match input {
            Input::Result { stage, .. } => Some(*stage),
            Input::Operand(_) | Input::Constant(_) => None,
        });
        read.any(|read| read == stage)
    }
}

/// Bytes that a kernel writes.
fn bytes_written(kernel: &Kernel) -> u64 {
    let left = kernel.buffers.iter().filter(|buffer| buffer.space == Space::Out);
    let bytes = left.map(|buffer| buffer.len.saturating_mul(buffer.element_type.bytes().into()));
    bytes.fold(0, u64::saturating_add)
}

impl ReductionSpec {
    /// Returns the kernels of the reduction on a target with a strategy.
    ///
    /// # Errors
    /// Returns an error if kernels cannot walk arrays of these layouts or sizes on this target,
    /// or the strategy does not support the computation.
    pub fn lowered(&self, target: &Target, strategy: Strategy) -> Result<Sequence, LowerError> {
        match strategy {
            Strategy::Fused => self.in_one_stage(target),
            Strategy::Looped => looped::lowered(self, target),
            Strategy::Transposed => transposed::lowered(self, target),
        }
    }

    fn in_one_stage(&self, target: &Target) -> Result<Sequence, LowerError> {
        let kernel = self.fused(target)?;
        let inputs = self.inputs().into_iter().map(Input::Operand).collect();
        Ok(Sequence { stages: vec![Stage { kernel, inputs, results: self.results.clone() }] })
    }
}
