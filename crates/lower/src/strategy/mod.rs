//! Ways to reduce along several axes: in one pass, and, to measure that against, as
//! it is done elsewhere.
//!
//! Every way makes kernels that run one after the other. What one of them hands to
//! later ones lies in main memory, as *workspace*.

mod looped;
mod transposed;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;
use tilewright_ir::shape::ArrayShape;
use tilewright_ir::{InstId, Literal, Verified};
use tilewright_target::Target;

use crate::codegen::reduce::Reduction;
use crate::error::LowerError;
use crate::kernel::{Kernel, Space};

/// How a reduction along several axes is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// In one pass over the input, without a workspace.
    #[default]
    Fused,
    /// One axis after the other, with an array in between.
    Looped,
    /// As rows, which a kernel of their own makes first.
    Transposed,
}

/// The name of no strategy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no such strategy: there are fused, looped and transposed")]
pub struct NoSuchStrategy;

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fused, Self::Looped, Self::Transposed];

    /// What it is called.
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

/// Kernels that do a reduction together.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Each, in order; the results of the last are those of the reduction.
    pub stages: Vec<Stage>,
}

/// A kernel, with what it reads and what it writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What is done.
    pub kernel: Kernel,
    /// What its `in` buffers hold, in their order.
    pub inputs: Vec<Input>,
    /// What its `out` buffers hold, in their order.
    pub results: Vec<ArrayShape>,
}

/// What a stage reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// One of the reduce's operands, arrays before inits.
    Operand(usize),
    /// What an earlier stage wrote.
    Result {
        /// Which stage.
        stage: usize,
        /// Which of its results.
        result: usize,
    },
    /// A scalar.
    Constant(Literal),
}

impl Sequence {
    /// One kernel that computes an instruction and reads these of its operands.
    pub fn of_one(module: &Verified, id: InstId, kernel: Kernel, operands: Range<usize>) -> Self {
        let shapes = module.shape(id).leaves();
        let results = shapes.into_iter().filter_map(|shape| shape.as_array().cloned()).collect();
        let inputs = operands.map(Input::Operand).collect();
        Self { stages: vec![Stage { kernel, inputs, results }] }
    }

    /// The most bytes that arrays between stages take in main memory at one time, with
    /// all padding.
    pub fn workspace_bytes(&self) -> u64 {
        let last = self.stages.len().saturating_sub(1);
        let at = |now: usize| {
            let there = self.stages.iter().enumerate().take(last.min(now.saturating_add(1)));
            let needed = there.filter(|&(stage, _)| stage == now || self.is_read_from(stage, now));
            needed.map(|(_, stage)| bytes_written(&stage.kernel)).fold(0, u64::saturating_add)
        };
        (0..self.stages.len()).map(at).max().unwrap_or(0)
    }

    /// Whether what a stage wrote is read by this stage or a later one.
    fn is_read_from(&self, stage: usize, reader: usize) -> bool {
        let inputs = self.stages.iter().skip(reader).flat_map(|later| &later.inputs);
        let mut read = inputs.filter_map(|input| match input {
            Input::Result { stage, .. } => Some(*stage),
            Input::Operand(_) | Input::Constant(_) => None,
        });
        read.any(|read| read == stage)
    }
}

/// Bytes of what a kernel writes.
fn bytes_written(kernel: &Kernel) -> u64 {
    let left = kernel.buffers.iter().filter(|buffer| buffer.space == Space::Out);
    let bytes = left.map(|buffer| buffer.len.saturating_mul(buffer.element_type.bytes().into()));
    bytes.fold(0, u64::saturating_add)
}

impl Reduction {
    /// The kernels that do it on a target.
    ///
    /// # Errors
    /// If the layouts or sizes are none that kernels can walk on this target, or the
    /// strategy is none for such a computation.
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
