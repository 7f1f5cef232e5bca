//! Runs modules on this CPU: reductions and norms by the vector instructions of
//! `tilewright-native`, all else by the interpreter.
//!
//! Reduces of floats become programs together with the elementwise ops, broadcasts and reductions
//! around them that go over the same indices, so that a norm reads its arrays once or twice. The
//! results are the interpreter's up to rounding; reduces of whole numbers are exact.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tilewright_interp::{Delegate, Evaluation, Limits, Outputs, Progress, check_precision};
use tilewright_ir::expand::plain;
use tilewright_ir::{ArrayLiteral, CompId, Data, InstId, Literal, Module, Op, Verified, verify};
use tilewright_lower::{ErrorKind, Group, LowerError, executed, outlined};
use tilewright_native::fused::{Operand, Values};
use tilewright_native::{Error as NativeError, Pool, Threads};
use tilewright_rewrite::analysis::iteration::{Along, IterationRegion, Order};

use super::program::Prepared;
use super::{places, reduce};
use crate::error::Error;
use crate::host;
use crate::pipeline::{FloatMode, Options, PassSelection, optimize};
use crate::report::RunReport;

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
        let mut order = Order::of(&edited, computation);
        while let Some(seed) = next(&edited, computation, &mut tried) {
            let Some(region) = IterationRegion::of(&edited, &order, seed) else { continue };
            let Some(program) = Prepared::of(&edited, &region) else { continue };
            let name = edited.name_of(seed).to_owned();
            let IterationRegion { inputs, outputs, .. } = region;
            let group = Group { name, inputs, outputs };
            programs.insert(outlined(&mut edited, computation, &group)?, program);
            order = Order::of(&edited, computation);
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
        } else if let Some(call) = places::call(self.module, id) {
            Some(places::reduced(self.module, id, &call, operands, &pool)?)
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

impl Prepared {
    /// Runs the program.
    fn run(&self, operands: &[Literal], pool: &dyn Pool) -> Result<Literal, String> {
        let operands = operands.iter().zip(&self.inputs).map(|(literal, along)| {
            let array = literal.as_array().ok_or("an operand is no array")?;
            self.operand(array, along).map_err(|error| error.to_string())
        });
        let operands: Vec<Operand<'_>> = operands.collect::<Result<_, String>>()?;
        let results = self.program.run(&operands, pool).map_err(|error| error.to_string())?;
        let literals = results.into_iter().zip(&self.outputs).map(|(result, (kind, dims))| {
            let data = match result.values {
                Values::F32(data) => Data::F32(data),
                Values::F64(data) => Data::F64(data),
                Values::Bf16(data) => Data::BF16(data),
                Values::F16(data) => Data::F16(data),
                Values::Bool(data) => Data::Pred(data),
            };
            let array = ArrayLiteral::new(*kind, dims.iter().copied(), data);
            array.map(Literal::Array).map_err(|error| error.to_string())
        });
        let mut literals: Vec<Literal> = literals.collect::<Result<_, String>>()?;
        match literals.len() {
            1 => literals.pop().ok_or_else(|| "no result".to_owned()),
            _ => Ok(Literal::Tuple(literals)),
        }
    }

    /// Returns an array that lies along some dims of the space.
    fn operand<'a>(
        &self,
        array: &'a ArrayLiteral,
        along: &Along,
    ) -> Result<Operand<'a>, NativeError> {
        Ok(match array.data() {
            Data::F32(data) => self.along(along, data)?.into(),
            Data::F64(data) => self.along(along, data)?.into(),
            Data::BF16(data) => self.along(along, data)?.into(),
            Data::F16(data) => self.along(along, data)?.into(),
            Data::Pred(data) => self.along(along, data)?.into(),
            _ => return Err(NativeError::OfAnotherProgram),
        })
    }
}
