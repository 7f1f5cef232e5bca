//! Runs modules on this CPU: reductions and norms by the vector instructions of
//! `tilewright-native`, all else by the interpreter.
//!
//! Reduces of floats become programs together with the elementwise ops, broadcasts and reductions
//! around them that go over the same indices, so that a norm reads its arrays once or twice. The
//! results are the interpreter's up to rounding; reduces of whole numbers are exact.

mod program;
mod reduce;
mod region;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tilewright_interp::{Delegate, Evaluation, Limits, Outputs, Progress, check_precision};
use tilewright_ir::expand::plain;
use tilewright_ir::{CompId, InstId, Literal, Module, Op, Verified, verify};
use tilewright_lower::{ErrorKind, Group, LowerError, executed, outlined};
use tilewright_native::Threads;

use crate::error::Error;
use crate::host;
use crate::pipeline::{FloatMode, Options, PassSelection, optimize};
use crate::report::RunReport;
use program::Prepared;
use region::Region;

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The number of programs and reduces that ran here.
    pub programs: u64,
    /// The number of host calls by op.
    pub host_calls: BTreeMap<&'static str, u64>,
}

impl RunReport {
    /// The report of a run on this CPU.
    pub fn native(time: std::time::Duration, ran: &Ran) -> Self {
        let host_ops = ran.host_calls.clone();
        Self {
            backend: "native",
            programs: Some(ran.programs),
            host_calls: Some(host_ops.values().fold(0, |sum: u64, n| sum.saturating_add(*n))),
            host_ops: Some(host_ops),
            ..Self::interpreter(time)
        }
    }
}

/// Simplifies a module and runs it on this CPU with so many threads, which change no result;
/// another thread sees the progress, and can cancel the run.
///
/// # Errors
/// Returns an error if the module cannot be evaluated, or the run is cancelled.
pub fn run(
    module: &Verified,
    inputs: &[Literal],
    threads: usize,
    limits: &Limits,
    progress: &Progress,
) -> Result<(Outputs, Ran), Error> {
    // Names in messages would not be those of the program.
    check_precision(module)?;
    let options = Options::new(crate::pipeline::target(tilewright_target::Target::DEFAULT)?)
        .with_float_mode(FloatMode::Exact)
        .with_passes(PassSelection::Pipeline("cleanup".to_owned()))
        .with_cancel(progress.cancel_flag());
    let simple = optimize(module.clone(), &options)?.module;
    // The evaluation would take batch norms apart in a module of its own.
    let (module, programs) = partitioned(&plain(&simple))?;
    let backend = Backend { module: &module, programs, threads, ran: Mutex::default() };
    let evaluation = Evaluation::new(&module).limits(*limits).delegate(&backend).progress(progress);
    let mut outputs = evaluation.run(std::slice::from_ref(&inputs))?;
    let ran = backend.ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    let no_device = tilewright_interp::EvalError::Devices("there is no device".into());
    Ok((outputs.pop().ok_or(no_device)?, ran))
}

/// Makes the regions of a module fusions of it, with their programs.
fn partitioned(module: &Verified) -> Result<(Verified, HashMap<InstId, Prepared>), Error> {
    let mut edited: Module = (**module).clone();
    let mut programs = HashMap::new();
    for computation in executed(&edited) {
        let mut tried = FxHashSet::default();
        while let Some(seed) = next(&edited, computation, &mut tried) {
            let Some(region) = Region::of(&edited, computation, seed) else { continue };
            let Some(program) = Prepared::of(&edited, &region) else { continue };
            let name = edited.name_of(seed).to_owned();
            let Region { inputs, outputs, .. } = region;
            let group = Group { name, inputs, outputs };
            programs.insert(outlined(&mut edited, computation, &group)?, program);
        }
    }
    let refused = |text: String| LowerError::from(ErrorKind::Internal(text.into()));
    let module = verify(edited).map_err(|error| refused(error.to_string()))?;
    Ok((module, programs))
}

/// Returns the next reduce of a computation.
fn next(module: &Module, computation: CompId, tried: &mut FxHashSet<InstId>) -> Option<InstId> {
    let mut reduces =
        module.instructions(computation).filter(|&id| matches!(module.op(id), Op::Reduce(_)));
    reduces.find(|&id| tried.insert(id))
}

/// Runs the instructions that have programs.
struct Backend<'a> {
    module: &'a Verified,
    programs: HashMap<InstId, Prepared>,
    threads: usize,
    ran: Mutex<Ran>,
}

impl Delegate for Backend<'_> {
    fn compute(&self, id: InstId, operands: &[Literal]) -> Result<Option<Literal>, String> {
        let pool = Threads(self.threads);
        let result = if let Some(program) = self.programs.get(&id) {
            Some(program.run(operands, &pool)?)
        } else if let Some(monoid) = reduce::monoid(self.module, id) {
            Some(reduce::reduced(self.module, id, monoid, operands, &pool)?)
        } else {
            None
        };
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Some(_) => ran.programs = ran.programs.saturating_add(1),
            None => host::count(&mut ran.host_calls, self.module.opcode(id)),
        }
        Ok(result)
    }
}
