//! Runs kernels one after another.

use tilewright_ir::{ArrayShape, Literal};
use tilewright_lower::{Input, Sequence};
use tilewright_target::Target;

use crate::arithmetic::Arithmetic;
use crate::clock::Counters;
use crate::machine::{Machine, Ran};
use crate::memory::Memory;
use crate::value::{memory_of, value_of};

/// The results of a reduction's kernels.
#[derive(Clone, Debug)]
pub struct RanStages {
    /// The result of each kernel, in order.
    pub stages: Vec<Ran>,
    /// The sum of their counters; the workspace is the size of the arrays between them.
    pub counters: Counters,
}

/// Runs the kernels of a reduction on operands in their memory layout.
///
/// # Errors
/// Returns an error if an operand cannot be laid out in the machine's memory, or a kernel
/// breaks a rule of the machine, which is a bug.
pub fn run_stages(
    target: &Target,
    arithmetic: &dyn Arithmetic,
    lowered: &Sequence,
    operand: &dyn Fn(usize) -> Option<Memory>,
) -> Result<RanStages, String> {
    let machine = Machine::new(target, arithmetic);
    let mut stages: Vec<Ran> = Vec::with_capacity(lowered.stages.len());
    for stage in &lowered.stages {
        let input = |input: &Input| match input {
            Input::Operand(place) => operand(*place),
            Input::Result { stage, result } => stages.get(*stage)?.outputs.get(*result).cloned(),
            Input::Constant(literal) => scalar(target, literal),
        };
        let inputs: Option<Vec<Memory>> = stage.inputs.iter().map(input).collect();
        let inputs = inputs.ok_or("its operands lie in no memory of the machine")?;
        let ran = machine.run(&stage.kernel, inputs).map_err(|violation| violation.to_string())?;
        stages.push(ran);
    }
    let all = stages.iter().map(|ran| ran.counters);
    let mut counters = all.fold(Counters::default(), Counters::then);
    counters.workspace_bytes = counters.workspace_bytes.max(lowered.workspace_bytes());
    Ok(RanStages { stages, counters })
}

/// Returns a scalar in its memory layout.
fn scalar(target: &Target, literal: &Literal) -> Option<Memory> {
    let shape = ArrayShape::scalar(literal.as_array()?.element_type());
    memory_of(target, &shape, literal)
}

impl RanStages {
    /// Returns the results of the last kernel; `None` if an element was never written.
    pub fn results(&self, target: &Target, lowered: &Sequence) -> Option<Vec<Literal>> {
        let shapes = &lowered.stages.last()?.results;
        let outputs = &self.stages.last()?.outputs;
        shapes.iter().zip(outputs).map(|(shape, memory)| value_of(target, shape, memory)).collect()
    }
}
