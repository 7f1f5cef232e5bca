//! Runs modules on the simulated machine, with the interpreter's arithmetic.
//!
//! Instructions with a kernel run as that kernel; every other instruction is a host call, which
//! the interpreter evaluates and the report lists.

mod trace;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use tilewright_interp::{Delegate, Elementwise, Evaluation, Limits, Outputs, Progress};
use tilewright_ir::{Data, ElementType, InstId, Literal, Op, Verified};
use tilewright_lower::{ErrorKind, LowerError, Lowered, Sequence, Strategy};
use tilewright_sim::{Arithmetic, Lanes, Memory, memory_of};
use tilewright_target::Target;

use crate::error::Error;
use crate::host;
use crate::lowering;
use crate::report::RunReport;

pub use crate::report::Refused;
pub use tilewright_sim::{Counters, Event};
pub use trace::Trace;

/// Applies ops to elements with the interpreter.
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

/// The measurements of a module's run on the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// All kernels, one after the other.
    pub counters: Counters,
    /// Each kernel that ran, in order.
    pub kernels: Vec<RanKernel>,
    /// The reduces that ran in one pass instead of the requested strategy, with the reason.
    pub refused: Vec<Refused>,
    /// Number of host calls by op.
    pub host_calls: BTreeMap<&'static str, u64>,
}

/// A kernel that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct RanKernel {
    /// The name of the kernel.
    pub name: String,
    /// The cycle in which it started.
    pub from: f64,
    /// Its counters.
    pub counters: Counters,
    /// The busy times of the machine's units, relative to its start.
    pub events: Vec<Event>,
}

impl RunReport {
    /// The report of the simulated machine.
    pub fn simulated(time: std::time::Duration, simulated: &Simulated) -> Self {
        let Counters {
            cycles,
            hbm_read_bytes,
            hbm_write_bytes,
            workspace_bytes,
            vmem_peak_bytes,
            vector_ops,
            realign_ops,
        } = simulated.counters;
        let host_ops = simulated.host_calls.clone();
        Self {
            backend: "sim",
            cycles: Some(cycles),
            hbm_read_bytes: Some(hbm_read_bytes),
            hbm_write_bytes: Some(hbm_write_bytes),
            workspace_bytes: Some(workspace_bytes),
            vmem_peak_bytes: Some(vmem_peak_bytes),
            vector_ops: Some(vector_ops),
            realign_ops: Some(realign_ops),
            host_calls: Some(host_ops.values().fold(0, |sum: u64, n| sum.saturating_add(*n))),
            host_ops: Some(host_ops),
            refused: simulated.refused.clone(),
            ..Self::interpreter(time)
        }
    }
}

/// Simplifies a module and runs it on the machine that a target describes. Reduces for which the strategy has no
/// kernels run in one pass.
///
/// # Errors
/// Returns an error if the module cannot be evaluated, or a kernel breaks a rule of the
/// machine, which is a bug.
pub fn run(
    module: &Verified,
    inputs: &[Literal],
    target: &Target,
    strategy: Strategy,
    limits: &Limits,
) -> Result<(Outputs, Simulated), Error> {
    run_with_progress(module, inputs, target, strategy, limits, &Progress::new())
}

/// Like [`run`], with progress for another thread, which can also cancel the run.
///
/// # Errors
/// The errors of [`run`]; also if the run is cancelled.
pub fn run_with_progress(
    module: &Verified,
    inputs: &[Literal],
    target: &Target,
    strategy: Strategy,
    limits: &Limits,
    progress: &Progress,
) -> Result<(Outputs, Simulated), Error> {
    let cancel = progress.cancel_flag();
    let lowered = lowering::fuse_with_cancel(module, target, strategy, &cancel)?;
    let Lowered { module, kernels: fusions, alone, .. } = lowered;
    let module = &module;
    let mut backend = Backend { module, target, kernels: HashMap::new(), done: Mutex::default() };
    backend.take(alone, strategy);
    for (id, kernel) in fusions {
        let operands = 0..module.operands(id).len();
        backend.kernels.insert(id, Sequence::of_one(module, id, kernel, operands));
    }
    let evaluation = Evaluation::new(module).limits(*limits).delegate(&backend).progress(progress);
    let mut outputs = evaluation.run(std::slice::from_ref(&inputs))?;
    let Backend { done, .. } = backend;
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let no_device = || LowerError::from(ErrorKind::Internal("an evaluation on no device".into()));
    Ok((outputs.pop().ok_or_else(no_device)?, done))
}

/// Runs the instructions that have kernels.
struct Backend<'a> {
    module: &'a Verified,
    target: &'a Target,
    /// The kernels of each instruction that has them.
    kernels: HashMap<InstId, Sequence>,
    done: Mutex<Simulated>,
}

impl Delegate for Backend<'_> {
    fn compute(&self, id: InstId, operands: &[Literal]) -> Result<Option<Literal>, String> {
        let Some(lowered) = self.kernels.get(&id) else {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            host::count(&mut done.host_calls, self.module.opcode(id));
            return Ok(None);
        };
        self.ran(id, lowered, operands).map(Some)
    }
}

impl Backend<'_> {
    /// Stores the kernels of reduces and top-ks; if the strategy has none, those of one pass.
    fn take(&mut self, alone: Vec<(InstId, Result<Sequence, LowerError>)>, strategy: Strategy) {
        let Self { module, target, kernels, done } = self;
        let done = done.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (id, asked) in alone {
            let lowered = match asked {
                Err(why) if strategy != Strategy::Fused => {
                    let fused = tilewright_lower::lowered(module, id, target, Strategy::Fused);
                    let (name, why) = (module.name_of(id).to_owned(), why.to_string());
                    fused.inspect(|_| done.refused.push(Refused { name, why }))
                }
                asked => asked,
            };
            kernels.extend(lowered.ok().map(|lowered| (id, lowered)));
        }
    }

    /// Returns an operand of an instruction in its memory layout.
    fn memory(&self, id: InstId, place: usize, operands: &[Literal]) -> Option<Memory> {
        let operand = *self.module.operands(id).get(place)?;
        memory_of(self.target, self.module.array_shape(operand)?, operands.get(place)?)
    }

    /// Runs the kernels of an instruction.
    fn ran(&self, id: InstId, lowered: &Sequence, operands: &[Literal]) -> Result<Literal, String> {
        let operand = |place| self.memory(id, place, operands);
        let arithmetic = &InterpreterArithmetic;
        let ran = tilewright_sim::run_stages(self.target, arithmetic, lowered, &operand)?;
        let results = ran.results(self.target, lowered);
        let results = results.ok_or("its kernel left some results unwritten")?;
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let mut from = done.counters.cycles;
        done.counters = done.counters.then(ran.counters);
        for (stage, ran) in lowered.stages.iter().zip(ran.stages) {
            let (name, counters) = (stage.kernel.name.to_string(), ran.counters);
            done.kernels.push(RanKernel { name, from, counters, events: ran.events });
            from += counters.cycles;
        }
        let is_tuple = self.module.shape(id).as_tuple().is_some();
        let mut results = results.into_iter();
        match (is_tuple, results.len()) {
            (false, 1) => results.next().ok_or_else(|| "it has no result".to_owned()),
            _ => Ok(Literal::Tuple(results.collect())),
        }
    }
}
