//! One run of a program, on one device or on several.

use std::borrow::Cow;
use std::sync::Arc;
use std::thread;

use smallvec::SmallVec;
use tilewright_ir::expand::plain;
use tilewright_ir::{Literal, Shape, Verified};

use crate::algebra::Ties;
use crate::delegate::{Delegate, Delegated};
use crate::devices::exchange::Exchange;
use crate::devices::{Device, Devices, MOST_DEVICES};
use crate::dynamic::admits;
use crate::error::{ABANDONED, EvalError, Fault};
use crate::frame::Evaluator;
use crate::limits::Limits;
use crate::observe::{BranchCounts, Observer, Progress, Watch};
use crate::value::Value;

/// The options of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation<'m> {
    module: &'m Verified,
    limits: Limits,
    devices: Devices,
    infeed: &'m [Literal],
    fuses: bool,
    invents: bool,
    noise: Option<u64>,
    ties: Option<&'m Ties>,
    watch: Watch<'m>,
    delegated: Delegated<'m>,
    /// The device that is looked at.
    watched: usize,
}

/// The results of a program on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// The result of the entry computation.
    pub output: Literal,
    /// The outfeed arrays, in order.
    pub outfeed: Vec<Literal>,
}

/// The stack of a device's thread: calls nest up to a limit within it.
const STACK: usize = 16 << 20;

impl<'m> Evaluation<'m> {
    /// Evaluates on a single device, within the default limits, without infeed.
    pub fn new(module: &'m Verified) -> Self {
        Self {
            module,
            limits: Limits::default(),
            devices: Devices::ONE,
            infeed: &[],
            fuses: true,
            invents: false,
            noise: None,
            ties: None,
            watch: Watch::default(),
            delegated: Delegated::default(),
            watched: 0,
        }
    }

    /// The limits; each device has an equal part of the memory.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// On which devices it runs.
    #[must_use]
    pub fn devices(self, devices: Devices) -> Self {
        Self { devices, ..self }
    }

    /// The arrays that each device's infeed instructions read, in order; one
    /// that reads a tuple reads several. Types that NumPy lacks may come as
    /// unsigned integers with their bits.
    #[must_use]
    pub fn infeed(self, infeed: &'m [Literal]) -> Self {
        Self { infeed, ..self }
    }

    /// Every instruction by itself. Otherwise elementwise ones run together,
    /// which is faster and computes the same.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { fuses: false, ..self }
    }

    /// Evaluates unknown custom calls as functions of their target, options and operands, with
    /// results within the type and near 1. Calls between the shapes of the whole and of a shard
    /// return a part of their operands, or repeat them. This compares programs and does not
    /// compute their results. Without it, both are errors.
    #[must_use]
    pub fn opaque_calls(self) -> Self {
        Self { invents: true, ..self }
    }

    /// Moves every rounded result to a neighbouring number, chosen by the seed, to measure how
    /// inexact a program is by itself. Elementwise instructions run one by one.
    #[must_use]
    pub fn noise(self, seed: u64) -> Self {
        Self { noise: Some(seed), fuses: false, ..self }
    }

    /// Makes comparisons whose sides are equal over the reals find them equal, regardless of
    /// their rounding. Elementwise instructions run one by one.
    #[must_use]
    pub fn ties(self, ties: &'m Ties) -> Self {
        Self { ties: Some(ties), fuses: false, ..self }
    }

    /// Shows every instruction to an observer, one by one, as evaluated on the
    /// first device or the one chosen with [`Evaluation::watched`].
    #[must_use]
    pub fn observer(self, observer: &'m dyn Observer) -> Self {
        Self { watch: Watch { observer: Some(observer), ..self.watch }, ..self }
    }

    /// Counts the branches that conditionals take.
    #[must_use]
    pub fn branches(self, branches: &'m BranchCounts) -> Self {
        Self { watch: Watch { branches: Some(branches), ..self.watch }, ..self }
    }

    /// Keeps the progress of the device that is looked at up to date. Its
    /// [cancellation](Progress::cancel) stops all devices.
    #[must_use]
    pub fn progress(self, progress: &'m Progress) -> Self {
        let watch = Watch { progress: Some(progress), cancel: Some(progress), ..self.watch };
        Self { watch, ..self }
    }

    /// Asks a delegate first for the value of every instruction, one by one.
    #[must_use]
    pub fn delegate(self, delegate: &'m dyn Delegate) -> Self {
        Self { delegated: Delegated(Some(delegate)), fuses: false, ..self }
    }

    /// Chooses the observed device.
    #[must_use]
    pub fn watched(self, device: usize) -> Self {
        Self { watched: device, ..self }
    }

    /// Runs the program and returns the results of each device. `inputs` are the parameters'
    /// values, of each device or the same for all.
    ///
    /// # Errors
    /// Returns an error if the inputs do not fit the parameters, a limit is exceeded, devices
    /// wait for each other, or the module uses something that has no evaluation here; the error
    /// names the instruction.
    pub fn run<I: AsRef<[Literal]> + Sync>(&self, inputs: &[I]) -> Result<Vec<Outputs>, EvalError> {
        match &plain(self.module) {
            Cow::Owned(module) => Evaluation { module, ..self.clone() }.run_plain(inputs),
            Cow::Borrowed(_) => self.run_plain(inputs),
        }
    }

    /// Runs a program without batch norms.
    fn run_plain<I: AsRef<[Literal]> + Sync>(
        &self,
        inputs: &[I],
    ) -> Result<Vec<Outputs>, EvalError> {
        check_precision(self.module)?;
        let Devices { replicas, partitions } = self.devices;
        let count = self.devices.count().ok_or_else(|| {
            EvalError::Devices(format!(
                "{replicas} replicas of {partitions} partitions cannot be simulated: there may \
                 be 1 to {MOST_DEVICES} devices"
            ))
        })?;
        let mine = |device: usize| match inputs {
            [same] => Ok(same.as_ref()),
            inputs if inputs.len() == count => Ok(inputs[device].as_ref()),
            _ => Err(EvalError::Devices(format!(
                "{} lists of inputs were given for {count} devices",
                inputs.len()
            ))),
        };
        let inputs = (0..count).map(mine).collect::<Result<Vec<_>, _>>()?;
        for inputs in &inputs {
            check_inputs(self.module, inputs)?;
        }
        match inputs.as_slice() {
            [only] => Ok(vec![self.run_on(Device::single(), only)?]),
            all => self.run_on_threads(all),
        }
    }

    fn run_on_threads(&self, inputs: &[&[Literal]]) -> Result<Vec<Outputs>, EvalError> {
        let exchange = Arc::new(Exchange::new(inputs.len()));
        let share = u64::try_from(inputs.len()).unwrap_or(u64::MAX);
        let limits = Limits { max_bytes: self.limits.max_bytes / share, ..self.limits };
        let part = &Self { limits, ..self.clone() };
        let results = thread::scope(|scope| {
            let threads: Vec<_> = (0..inputs.len())
                .map(|number| {
                    let device =
                        Device { all: self.devices, number, exchange: Arc::clone(&exchange) };
                    let end = End { exchange: Arc::clone(&exchange), failed: true };
                    let run = move || part.run_to_the_end(device, inputs[number], end);
                    thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run)
                })
                .collect();
            let join = |thread: std::io::Result<thread::ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| {
                    Err(EvalError::Devices("a device panicked; this is a bug".into()))
                }),
                Err(error) => Err(EvalError::Devices(format!("no thread for a device: {error}"))),
            };
            threads.into_iter().map(join).collect::<Vec<Result<Outputs, EvalError>>>()
        });
        first_failure(results)
    }

    fn run_to_the_end(
        &self,
        device: Device,
        inputs: &[Literal],
        mut end: End,
    ) -> Result<Outputs, EvalError> {
        let result = self.run_on(device, inputs);
        end.failed = result.is_err();
        result
    }

    fn run_on(&self, device: Device, inputs: &[Literal]) -> Result<Outputs, EvalError> {
        let module = self.module;
        let nothing = |what| EvalError::Internal { instruction: String::new(), what };
        let entry = module.entry().ok_or(nothing("the module has no entry"))?;
        let computation = module.computation(entry);
        let watched = device.number == self.watched;
        let mut evaluator = Evaluator::new(module, self.limits, device);
        evaluator.watch = if watched { self.watch } else { self.watch.unwatched() };
        evaluator.fuses = self.fuses && evaluator.watch.observer.is_none();
        evaluator.invents = self.invents;
        evaluator.noise = self.noise;
        evaluator.ties = self.ties;
        evaluator.delegated = self.delegated;
        evaluator.infeed = self.infeed.iter().cloned().collect();
        let root = computation.root().ok_or(nothing("an empty entry"))?;
        evaluator.foresee(entry).map_err(|fault| fault.at(module, root))?;
        let mut arguments = SmallVec::new();
        for (&id, input) in computation.parameters().iter().zip(inputs) {
            let value = Value::from_literal(input, &evaluator.ledger);
            arguments.push(value.map_err(|fault| fault.at(module, id))?);
        }
        let result = evaluator.run(entry, arguments).map_err(|fault| fault.at(module, root))?;
        let outfeed = std::mem::take(&mut evaluator.outfeed);
        // Memory of the evaluation is freed before results are returned.
        drop(evaluator);
        let output = result.into_literal();
        let no_literal = Fault::Internal("the result is not a literal");
        let output = output.map_err(|_| no_literal.at(module, root))?;
        Ok(Outputs { output, outfeed })
    }
}

/// Tells the other devices once a device has ended, however it does.
struct End {
    exchange: Arc<Exchange>,
    failed: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        self.exchange.end(self.failed);
    }
}

/// Returns all results, or the error of the first device that did not fail because another did.
fn first_failure(results: Vec<Result<Outputs, EvalError>>) -> Result<Vec<Outputs>, EvalError> {
    let abandoned =
        |error: &EvalError| matches!(error, EvalError::Internal { what, .. } if *what == ABANDONED);
    let own = results.iter().position(|r| r.as_ref().is_err_and(|error| !abandoned(error)));
    match own {
        Some(own) => results.into_iter().skip(own).take(1).collect(),
        None => results.into_iter().collect(),
    }
}

/// Checks that no op computes with floats of different precision: its own precision is not
/// defined. [`Evaluation::run`] checks this first.
///
/// # Errors
/// Returns an error if an op does; the error names it.
pub fn check_precision(module: &Verified) -> Result<(), EvalError> {
    match module.mixes_precision() {
        None => Ok(()),
        Some(id) => Err(EvalError::Unsupported {
            instruction: module.name_of(id).to_owned(),
            op: module.opcode(id),
            what: "floats of different precision meet; put a `convert` between them".into(),
        }),
    }
}

fn check_inputs(module: &Verified, inputs: &[Literal]) -> Result<(), EvalError> {
    let parameters = module.entry().map(|c| module.computation(c).parameters()).unwrap_or_default();
    if parameters.len() != inputs.len() {
        let (expected, given) = (parameters.len(), inputs.len());
        return Err(EvalError::InputCount { expected, given });
    }
    let mut pairs = parameters.iter().zip(inputs).enumerate();
    pairs.try_for_each(|(index, (&id, input))| check_input(module, index, module.shape(id), input))
}

fn check_input(
    module: &Verified,
    index: usize,
    expected: &Shape,
    input: &Literal,
) -> Result<(), EvalError> {
    let given = input.shape();
    if admits(expected, &given) {
        return Ok(());
    }
    let entry = module.entry().map(|c| module.computation(c).parameters());
    let name = entry.and_then(|p| p.get(index)).map_or("", |&id| module.name_of(id));
    Err(EvalError::InputShape {
        index,
        instruction: name.to_owned(),
        expected: expected.without_layout().to_string(),
        given: given.to_string(),
    })
}
