//! Modules on the simulated machine, with the interpreter's arithmetic.
//!
//! What has a kernel runs as one; every other instruction is a host call, which
//! the interpreter does and the report names.

mod memory;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use tilewright_interp::{Delegate, Elementwise, Evaluation, Limits, Outputs};
use tilewright_ir::{Data, ElementType, InstId, Literal, Op, Opcode, Verified};
use tilewright_lower::kernel::Kernel;
use tilewright_sim::{Arithmetic, Counters, Event, Lanes, Machine, Memory};
use tilewright_target::Target;

use crate::error::Error;
use crate::lowering::{self, Kernels};

pub use memory::{memory_of, value_of};
pub use trace::Trace;

/// What the interpreter does to elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpreterArithmetic;

impl Arithmetic for InterpreterArithmetic {
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Option<Box<dyn Lanes>> {
        let op = Elementwise::new(op, operands, result)?;
        Some(Box::new(Prepared(op)))
    }
}

struct Prepared(Elementwise);

impl Lanes for Prepared {
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        self.0.compute(operands, lanes, out)
    }
}

/// What a module took on the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// All kernels, one after the other.
    pub counters: Counters,
    /// Each kernel that ran, in order.
    pub kernels: Vec<RanKernel>,
    /// How often the host did what has no kernel, by op.
    pub host_calls: BTreeMap<&'static str, u64>,
}

/// A kernel that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct RanKernel {
    /// The instruction.
    pub name: String,
    /// From which cycle.
    pub from: f64,
    /// What it took.
    pub counters: Counters,
    /// When what was busy, from its start.
    pub events: Vec<Event>,
}

/// Runs a module on the machine that a target describes.
///
/// # Errors
/// If the module cannot be evaluated, or a kernel breaks a rule of the machine,
/// which is a bug.
pub fn run(
    module: &Verified,
    inputs: &[Literal],
    target: &Target,
    limits: &Limits,
) -> Result<(Outputs, Simulated), Error> {
    let Kernels { module, kernels: fusions } = lowering::fuse(module, target)?;
    let module = &module;
    let kernel = |id| Some((id, lowering::lowered(module, id, target).ok()?));
    let mut kernels: HashMap<InstId, (Kernel, Vec<usize>)> =
        lowering::lowerable(module).filter_map(kernel).collect();
    for (id, kernel) in fusions {
        kernels.insert(id, (kernel, (0..module.operands(id).len()).collect()));
    }
    let backend = Backend { module, target, kernels, done: Mutex::default() };
    let evaluation = Evaluation::new(module).limits(*limits).delegate(&backend);
    let mut outputs = evaluation.run(std::slice::from_ref(&inputs))?;
    let Backend { done, .. } = backend;
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let only = outputs.pop().ok_or_else(|| Error::Lower {
        name: module.name.to_string(),
        why: "there is no device".to_owned(),
    })?;
    Ok((only, done))
}

/// Runs the instructions that have kernels.
struct Backend<'a> {
    module: &'a Verified,
    target: &'a Target,
    /// Those that there are, with the operands that they read.
    kernels: HashMap<InstId, (Kernel, Vec<usize>)>,
    done: Mutex<Simulated>,
}

impl Delegate for Backend<'_> {
    fn compute(&self, id: InstId, operands: &[Literal]) -> Result<Option<Literal>, String> {
        let Some((kernel, reads)) = self.kernels.get(&id) else {
            self.host_call(id);
            return Ok(None);
        };
        let read: Option<Vec<Memory>> =
            reads.iter().map(|&place| self.memory(id, place, operands)).collect();
        let read = read.ok_or("its operands lie in no memory of the machine")?;
        self.ran(id, kernel, read).map(Some)
    }
}

impl Backend<'_> {
    /// An operand of an instruction as it lies in memory.
    fn memory(&self, id: InstId, place: usize, operands: &[Literal]) -> Option<Memory> {
        let operand = *self.module.operands(id).get(place)?;
        memory_of(self.target, self.module.array_shape(operand)?, operands.get(place)?)
    }

    /// Runs the kernel of an instruction.
    fn ran(&self, id: InstId, kernel: &Kernel, memories: Vec<Memory>) -> Result<Literal, String> {
        let module = self.module;
        let machine = Machine::new(self.target, &InterpreterArithmetic);
        let ran = machine.run(kernel, memories).map_err(|violation| violation.to_string())?;
        let leaves = module.shape(id).leaves();
        let results = leaves.into_iter().zip(&ran.outputs);
        let results: Option<Vec<Literal>> = results
            .map(|(shape, memory)| value_of(self.target, shape.as_array()?, memory))
            .collect();
        let results = results.ok_or("its kernel left some results unwritten")?;
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let name = module.name_of(id).to_owned();
        let from = done.counters.cycles;
        let (counters, events) = (ran.counters, ran.events);
        done.kernels.push(RanKernel { name, from, counters, events });
        done.counters = done.counters.then(counters);
        let is_tuple = module.shape(id).as_tuple().is_some();
        let mut results = results.into_iter();
        match (is_tuple, results.len()) {
            (false, 1) => results.next().ok_or_else(|| "it has no result".to_owned()),
            _ => Ok(Literal::Tuple(results.collect())),
        }
    }

    /// Counts what the host does; what moves no element is nobody's work.
    fn host_call(&self, id: InstId) {
        let opcode = self.module.opcode(id);
        let nothing = matches!(
            opcode,
            Opcode::Constant
                | Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::Bitcast
                | Opcode::AfterAll
                | Opcode::OptimizationBarrier
                | Opcode::AddDependency
                // Its instructions are asked for.
                | Opcode::Fusion
        );
        if !nothing {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = done.host_calls.entry(opcode.name()).or_default();
            *calls = calls.saturating_add(1);
        }
    }
}
