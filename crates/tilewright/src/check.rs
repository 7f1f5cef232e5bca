//! Checks whether two modules return the same outputs.

mod options;

use std::sync::OnceLock;

use tilewright_interp::algebra::{Ties, Verdict};
use tilewright_interp::{
    CompareError, Comparison, Devices, Evaluation, InputKind, Observer, Outputs, Progress,
    RandomInputs, Rounding, Slack, takes_parts, tells_devices_apart,
};
use tilewright_ir::expand::plain;
use tilewright_ir::{Literal, Verified};
use tilewright_rewrite::guards;

use crate::agreement::{Agreement, Excuse, Findings, GIVEN, Subject, Tried};
use crate::algebra::verdicts;
use crate::error::Error;
use crate::nudge::{EXCUSED, NUDGES, UNMOVED, nudged_all};
use crate::run::{counted, parameter_shapes};

pub use options::{CheckOptions, Within};

/// Evaluates two modules on the same inputs and compares their outputs.
///
/// ```
/// use tilewright::CheckOptions;
///
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = |addend: &str| {
///     tilewright::parse(&format!(
///         "HloModule m
///          ENTRY main {{
///            x = f32[] parameter(0)
///            c = f32[] constant({addend})
///            ROOT y = f32[] add(x, c)
///          }}"
///     ))
/// };
/// let how = CheckOptions::default();
/// assert!(tilewright::check(&module("1")?, &module("1")?, &how)?.equal());
/// assert!(!tilewright::check(&module("1")?, &module("2")?, &how)?.equal());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if the modules differ in the types of parameters or results, or one of them
/// cannot be evaluated.
pub fn check(a: &Verified, b: &Verified, options: &CheckOptions<'_>) -> Result<Agreement, Error> {
    agreement(&Trial::new(&plain(a), &plain(b), options)?)
}

pub(crate) fn agreement(trial: &Trial<'_>) -> Result<Agreement, Error> {
    let mut agreement = trial.agreement();
    trial.each_input(&mut |inputs, kind, seed| {
        let tried = trial.compared(&inputs, kind, &|leaf| agreement.differs(leaf))?;
        agreement.add(&tried, trial.name_of(kind), seed);
        Ok(true)
    })?;
    // The second branches of guards, which hardly any inputs reach.
    if let Some(failing) = guards::failing(trial.b).filter(|_| trial.recorded.is_none()) {
        let failing = Trial { b: &failing, ..Trial::new(trial.a, trial.b, trial.options)? };
        failing.each_input(&mut |inputs, kind, seed| {
            let tried = failing.compared(&inputs, kind, &|leaf| agreement.differs(leaf))?;
            agreement.add(&tried, GUARDS_FAIL, seed);
            Ok(false)
        })?;
    }
    Ok(agreement)
}

/// The name of the first inputs where the tests of all guards are made to fail.
const GUARDS_FAIL: &str = "guards-fail";

/// Compares on inputs until the first on which the modules differ.
pub(crate) fn agreement_until_fault(
    trial: &Trial<'_>,
) -> Result<(Agreement, Option<Fault>), Error> {
    let mut agreement = trial.agreement();
    let mut fault = None;
    trial.each_input(&mut |inputs, kind, seed| {
        let tried = trial.compared(&inputs, kind, &|_| false)?;
        agreement.add(&tried, trial.name_of(kind), seed);
        if !agreement.is_within() {
            fault = Some(Fault::OnInputs { inputs, kind, tried });
        }
        Ok(fault.is_none())
    })?;
    if fault.is_none() && agreement.disproved().next().is_some() {
        fault = Some(Fault::OverReals);
    }
    Ok((agreement, fault))
}

/// How two modules were found to differ.
pub(crate) enum Fault {
    /// On these inputs.
    OnInputs { inputs: Inputs, kind: InputKind, tried: Tried },
    /// By algebra.
    OverReals,
}

/// Two modules, and the options of their evaluation.
pub(crate) struct Trial<'a> {
    pub(crate) a: &'a Verified,
    pub(crate) b: &'a Verified,
    pub(crate) options: &'a CheckOptions<'a>,
    /// The rounding of the first module.
    pub(crate) rounding: Rounding,
    /// The first module in wider floats, computed on first use.
    pub(crate) wide: OnceLock<Option<Verified>>,
    /// The comparisons of the first module that rounding alone decides, computed on first use.
    pub(crate) ties: OnceLock<Ties>,
    pub(crate) devices: Devices,
    /// Whether a module takes each device's part of whole arrays, which are the same on all
    /// devices.
    takes_parts: bool,
    pub(crate) progress: [Option<&'a Progress>; 2],
    /// The result of the second module, if a snapshot recorded it.
    pub(crate) recorded: Option<&'a Literal>,
}

/// The inputs of each device.
pub(crate) type Inputs = Vec<Vec<Literal>>;

impl<'a> Trial<'a> {
    /// Creates a trial; fails unless the modules have the same parameter and result shapes.
    pub(crate) fn new(
        a: &'a Verified,
        b: &'a Verified,
        options: &'a CheckOptions<'a>,
    ) -> Result<Self, Error> {
        comparable(a, b)?;
        let devices = match options.devices {
            Some(devices) => devices,
            None => devices_of_both(a, b)?,
        };
        Ok(Self {
            a,
            b,
            options,
            rounding: Rounding::of_module(a),
            wide: OnceLock::new(),
            ties: OnceLock::new(),
            devices,
            takes_parts: takes_parts(a) || takes_parts(b),
            progress: options.progress.map_or([None; 2], |progress| progress.map(Some)),
            recorded: None,
        })
    }

    /// Inputs of a kind from a seed, or the inputs given in the options.
    pub(crate) fn inputs(&self, kind: InputKind, seed: u64) -> Result<Inputs, Error> {
        if let Some(given) = self.options.inputs {
            return Ok(given.to_vec());
        }
        let count = counted(self.devices)?;
        let inputs = RandomInputs::new(seed, kind).limits(self.options.limits);
        if self.takes_parts {
            let same = inputs.generate(self.a)?.pop().unwrap_or_default();
            return Ok(vec![same; count]);
        }
        Ok(inputs.devices(count).generate(self.a)?)
    }

    /// Returns the evaluation of a module with the options.
    pub(crate) fn evaluation<'m>(&self, module: &'m Verified) -> Evaluation<'m>
    where
        'a: 'm,
    {
        let CheckOptions { limits, infeed, .. } = *self.options;
        Evaluation::new(module).limits(limits).infeed(infeed).opaque_calls().devices(self.devices)
    }

    /// Evaluates one of the modules with an observer on one device.
    pub(crate) fn observe(
        &self,
        module: &Verified,
        inputs: &Inputs,
        observer: &dyn Observer,
        device: usize,
    ) -> Result<(), Error> {
        self.evaluation(module).observer(observer).watched(device).run(inputs)?;
        Ok(())
    }

    /// Evaluates one of the modules. Returns for each device its outputs and outfeed arrays as
    /// one value.
    pub(crate) fn run(
        &self,
        module: &Verified,
        inputs: &Inputs,
        progress: Option<&Progress>,
    ) -> Result<Vec<Literal>, Error> {
        let mut evaluation = self.evaluation(module);
        if let Some(progress) = progress {
            evaluation = evaluation.progress(progress);
        }
        Ok(wholes(evaluation.run(inputs)?))
    }

    /// Returns the first module on inputs that differ in the last place, with noise for every
    /// other `turn`.
    pub(crate) fn moved(&self, inputs: &Inputs, turn: u64) -> (Evaluation<'a>, Inputs) {
        let mut evaluation = self.evaluation(self.a);
        if let Some(progress) = self.progress[0] {
            evaluation = evaluation.progress(progress);
        }
        if !turn.is_multiple_of(2) {
            evaluation = evaluation.noise(turn);
        }
        (evaluation, self.nudged(inputs, turn))
    }

    /// Inputs that differ in the last place; still equal on all devices if the given ones are.
    fn nudged(&self, inputs: &Inputs, turn: u64) -> Inputs {
        match inputs.first() {
            Some(first) if self.takes_parts && inputs.iter().all(|other| other == first) => {
                let same = nudged_all(&vec![first.clone()], turn).pop().unwrap_or_default();
                vec![same; inputs.len()]
            }
            _ => nudged_all(inputs, turn),
        }
    }

    /// Returns the agreement before the first inputs.
    fn agreement(&self) -> Agreement {
        Agreement::new(self.subject(), self.verdicts(), self.options.within.is_some())
    }

    /// With what the first module is compared, and on which inputs.
    fn subject(&self) -> Subject {
        let CheckOptions { first_seed, seeds, inputs, .. } = *self.options;
        match (self.recorded, inputs) {
            (Some(_), _) => Subject::Recording,
            (None, Some(_)) => Subject::Given,
            (None, None) => Subject::Random { first_seed, seeds },
        }
    }

    /// Returns the verdict of algebra on each output; empty if the second module is a
    /// recording.
    fn verdicts(&self) -> Vec<Verdict> {
        match self.recorded {
            Some(_) => Vec::new(),
            None => verdicts(self.a, self.b, self.options),
        }
    }

    /// Returns the result of the second module on each device, or the recorded result.
    fn second(&self, inputs: &Inputs) -> Result<Vec<Literal>, Error> {
        match self.recorded {
            Some(result) => Ok(vec![Literal::Tuple(vec![result.clone()])]),
            None => self.run(self.b, inputs, self.progress[1]),
        }
    }

    /// Returns the name of a kind of inputs in reports.
    fn name_of(&self, kind: InputKind) -> &'static str {
        if self.options.inputs.is_some() { GIVEN } else { kind.name() }
    }

    /// Calls the function for all inputs until it returns `false`.
    fn each_input(
        &self,
        tried: &mut dyn FnMut(Inputs, InputKind, u64) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let CheckOptions { first_seed, seeds, .. } = *self.options;
        for kind in self.options.kinds() {
            for seed in (0..seeds).map(|seed| first_seed.wrapping_add(seed)) {
                let inputs = self.inputs(kind, seed)?;
                let nothing_to_vary =
                    self.options.inputs.is_some() || inputs.iter().all(Vec::is_empty);
                if !tried(inputs, kind, seed)? || nothing_to_vary {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Checks whether the second module differs on the inputs of a fault, or by algebra if that found it. The
    /// first module, which must be the same as for the fault, is not evaluated again.
    pub(crate) fn shows(&self, fault: &Fault) -> Result<bool, Error> {
        let Fault::OnInputs { inputs, kind, tried: Tried { expected, slack, .. } } = fault else {
            return Ok(self.verdicts().iter().any(Verdict::disproves));
        };
        let actual = self.second(inputs)?;
        let found = self.differences(expected, &actual, *kind, slack)?;
        Ok(found.iter().flatten().any(|found| !found.equal))
    }

    /// Compares the outputs of both modules on inputs, on each device. Outputs for which
    /// `settled` is true are not examined closely again.
    fn compared(
        &self,
        inputs: &Inputs,
        kind: InputKind,
        settled: &dyn Fn(usize) -> bool,
    ) -> Result<Tried, Error> {
        let expected = self.run(self.a, inputs, self.progress[0])?;
        let actual = self.second(inputs)?;
        let mut slack = vec![Slack::default(); expected.len()];
        let mut found = Findings::new(self.differences(&expected, &actual, kind, &slack)?);
        if !self.options.exact && self.options.within.is_none() && !found.settled(settled) {
            let case = Case { inputs, kind, expected: &expected, actual: &actual, settled };
            self.excuse(&case, &mut slack, &mut found)?;
        }
        Ok(Tried { expected, found, slack })
    }

    fn differences(
        &self,
        expected: &[Literal],
        actual: &[Literal],
        kind: InputKind,
        slack: &[Slack],
    ) -> Result<Vec<Vec<Comparison>>, Error> {
        let tolerance = |leaf, element_type| {
            self.options.tolerance(kind, element_type, self.rounding.of_output(leaf))
        };
        let devices = expected.iter().zip(actual).zip(slack);
        let found = devices.map(|((expected, actual), slack)| {
            slack.compare(expected, actual, tolerance).map_err(not_comparable)
        });
        found.collect()
    }

    /// Compares again and excuses differences that are no worse than the first module's own:
    /// errors against the exact result, overflow, and sensitivity to rounding. If the result of
    /// a program changes on inputs that differ in the last place, or with other roundings (the
    /// sine of 1e8, the small difference of large sums), it is no reference for another program
    /// there.
    fn excuse(
        &self,
        case: &Case<'_>,
        slack: &mut [Slack],
        found: &mut Findings,
    ) -> Result<(), Error> {
        let Case { inputs, kind, expected, actual, settled } = *case;
        if self.pardon_near(case, slack) {
            let again = self.differences(expected, actual, kind, slack)?;
            found.update(again, Excuse::AsNear);
        }
        if !found.settled(settled) && found.not_finite() && self.pardon_overflow(case, slack)? {
            let again = self.differences(expected, actual, kind, slack)?;
            found.update(again, Excuse::Overflow);
        }
        if !found.settled(settled) && found.not_finite() && self.pardon_chance(case, slack)? {
            let again = self.differences(expected, actual, kind, slack)?;
            found.update(again, Excuse::Sensitive);
        }
        if !found.settled(settled) && self.widen_by_ties(case, slack) {
            let again = self.differences(expected, actual, kind, slack)?;
            found.update(again, Excuse::Sensitive);
        }
        for seed in 0..NUDGES {
            if found.settled(settled) {
                break;
            }
            let (evaluation, inputs) = self.moved(inputs, seed);
            // With noise, an evaluation needs more memory and may exceed the limits.
            let Ok(moved) = evaluation.run(&inputs) else { continue };
            let moved = wholes(moved);
            for ((slack, expected), moved) in slack.iter_mut().zip(expected).zip(&moved) {
                slack.widen(expected, moved, EXCUSED, UNMOVED);
            }
            let again = self.differences(expected, actual, kind, slack)?;
            found.update(again, Excuse::Sensitive);
        }
        Ok(())
    }
}

/// Returns the outputs and outfeed arrays of each device as one value.
pub(crate) fn wholes(outputs: Vec<Outputs>) -> Vec<Literal> {
    let whole = |Outputs { output, outfeed }| {
        Literal::Tuple(std::iter::once(output).chain(outfeed).collect())
    };
    outputs.into_iter().map(whole).collect()
}

/// The outputs of both modules on inputs.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) inputs: &'a Inputs,
    kind: InputKind,
    pub(crate) expected: &'a [Literal],
    pub(crate) actual: &'a [Literal],
    settled: &'a dyn Fn(usize) -> bool,
}

/// Returns the devices on which both run: those of the module whose results depend on the
/// device.
fn devices_of_both(a: &Verified, b: &Verified) -> Result<Devices, Error> {
    let (of_a, of_b) = (Devices::of(a), Devices::of(b));
    match (tells_devices_apart(a), tells_devices_apart(b)) {
        (true, true) if of_a != of_b => Err(Error::NotComparable(format!(
            "one is for {} replicas of {} partitions, the other for {} of {}; \
             say on how many both shall run (`--replicas`, `--partitions`)",
            of_a.replicas, of_a.partitions, of_b.replicas, of_b.partitions
        ))),
        (true, _) => Ok(of_a),
        (false, true) => Ok(of_b),
        (false, false) => Ok(Devices::ONE),
    }
}

pub(crate) fn not_comparable(error: CompareError) -> Error {
    Error::NotComparable(error.to_string())
}

/// Fails unless both have the same parameter and result shapes.
pub(crate) fn comparable(a: &Verified, b: &Verified) -> Result<(), Error> {
    let (from, to) = (parameter_shapes(a), parameter_shapes(b));
    if from.len() != to.len() {
        let message = format!("one takes {} parameters, the other {}", from.len(), to.len());
        return Err(Error::NotComparable(message));
    }
    for (i, (a, b)) in from.iter().zip(to).enumerate() {
        if !a.compatible(b) {
            let message = format!("parameter {i} is {a} in one and {b} in the other");
            return Err(Error::NotComparable(message));
        }
    }
    let root = |m: &Verified| Some(m.shape(m.computation(m.entry()?).root()?).clone());
    match (root(a), root(b)) {
        (Some(a), Some(b)) if !a.compatible(&b) => {
            Err(Error::NotComparable(format!("the result is {a} in one and {b} in the other")))
        }
        _ => Ok(()),
    }
}
