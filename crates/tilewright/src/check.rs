//! Do two modules give the same outputs?

use std::fmt;

use tilewright_interp::{
    CompareError, Comparison, InputKind, Limits, Slack, Tolerance, compare, compare_with,
    inputs_within,
};
use tilewright_ir::{ElementType, Literal, Verified};

use crate::error::Error;
use crate::nudge::nudged;
use crate::run::{parameter_shapes, run};

/// How modules are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// How many inputs of each kind are tried.
    pub seeds: u64,
    /// Whether nothing but equal values will do: no float may be rounded
    /// otherwise, and infinities, NaN and sums that overflow are tried too.
    /// Without it, floats may differ by rounding, as they do where a sum is
    /// taken in another order, and by what the first module makes of rounding:
    /// where it gives something else on inputs that differ in the last place,
    /// so may the second.
    pub exact: bool,
    /// What one evaluation may use.
    pub limits: Limits,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { seeds: 2, exact: false, limits: Limits::default() }
    }
}

impl CheckOptions {
    /// The kinds of inputs that are tried.
    fn kinds(&self) -> impl Iterator<Item = InputKind> {
        // Sums in another order may rightly overflow where the first did not.
        let exact = self.exact;
        let all = InputKind::ALL.iter().copied();
        all.filter(move |&kind| exact || kind != InputKind::NonFinite)
    }

    /// Without `exact`, floats may differ by a little of the largest magnitude
    /// of an output, since that is what sums lose; by less where inputs have
    /// numbers of all sizes beside each other.
    fn tolerance(&self, kind: InputKind, element_type: ElementType) -> Tolerance {
        let lax = Tolerance::of(element_type);
        let relative = match kind {
            _ if self.exact => return Tolerance::EXACT,
            InputKind::Edges | InputKind::NonFinite => lax.relative / 16.0,
            InputKind::Normal | InputKind::Offset | InputKind::Uniform | InputKind::Ties => {
                lax.relative
            }
        };
        Tolerance { relative, floor: lax.floor.min(LEAST_MAGNITUDE), ..lax }
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// On how many inputs both modules were evaluated.
    pub inputs_tried: usize,
    /// Each output, tuples flattened in order.
    pub outputs: Vec<OutputDifference>,
}

/// How far apart an output of two modules was, at worst.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputDifference {
    /// The greatest absolute difference; infinite where only one was finite.
    pub max_abs: f64,
    /// The greatest difference in units of the last place.
    pub max_ulp: u64,
    /// An element that differs by more than it may, if one does.
    pub witness: Option<Witness>,
}

/// An element of an output that differs by more than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its index in the output.
    pub index: Vec<i64>,
    /// Its value in the first module.
    pub expected: String,
    /// Its value in the second.
    pub actual: String,
    /// The kind of the inputs.
    pub inputs: &'static str,
    /// The seed of the inputs.
    pub seed: u64,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, expected, actual, inputs, seed } = self;
        write!(f, "element {index:?} is {expected} in the first and {actual} in the second")?;
        write!(f, ", on {inputs} inputs from seed {seed}")
    }
}

impl Agreement {
    /// Whether all outputs were the same, within the tolerance of their type.
    pub fn equal(&self) -> bool {
        self.outputs.iter().all(|output| output.witness.is_none())
    }

    fn add(&mut self, found: Vec<Comparison>, kind: InputKind, seed: u64) {
        self.inputs_tried += 1;
        self.outputs.resize_with(found.len(), OutputDifference::default);
        for (output, Comparison { max_abs, max_ulp, at, .. }) in self.outputs.iter_mut().zip(found)
        {
            output.max_abs = output.max_abs.max(max_abs);
            output.max_ulp = output.max_ulp.max(max_ulp);
            output.witness = output.witness.take().or(at.map(|at| Witness {
                index: at.index.to_vec(),
                expected: at.expected,
                actual: at.actual,
                inputs: kind.name(),
                seed,
            }));
        }
    }
}

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
/// If the modules differ in the types of parameters or results, or one of them
/// cannot be evaluated.
pub fn check(a: &Verified, b: &Verified, options: &CheckOptions) -> Result<Agreement, Error> {
    comparable(a, b)?;
    let mut agreement = Agreement::default();
    for kind in options.kinds() {
        for seed in 0..options.seeds {
            let inputs = inputs_within(a, seed, kind, &options.limits)?;
            let expected = run(a, &inputs, &options.limits)?;
            let actual = run(b, &inputs, &options.limits)?;
            let tolerance = |element_type| options.tolerance(kind, element_type);
            let mut found = difference(&expected, &actual, tolerance)?;
            if !options.exact && found.iter().any(|comparison| !comparison.equal) {
                found = excused(a, &inputs, &expected, &actual, kind, options)?;
            }
            agreement.add(found, kind, seed);
            if inputs.is_empty() {
                // There is nothing to vary.
                return Ok(agreement);
            }
        }
    }
    Ok(agreement)
}

fn difference(
    expected: &Literal,
    actual: &Literal,
    tolerance: impl Fn(ElementType) -> Tolerance,
) -> Result<Vec<Comparison>, Error> {
    compare(expected, actual, tolerance).map_err(not_comparable)
}

/// An output that is all smaller is judged as if something of this size were in
/// it: inputs are of the order of one, and differences of theirs are as inexact.
const LEAST_MAGNITUDE: f64 = 0.1;

/// How many times a program is run on inputs next to the given ones, at most.
/// Each number moves up or down by chance: what two of them make of it shows
/// only where they move apart, which this often they all but surely do.
const NUDGES: u64 = 24;
/// How much further apart than those runs two programs may be: sums in another
/// order round at every step, inputs that move do so by chance in both ways.
const EXCUSED: f64 = 64.0;

/// Compares again, letting pass what rounding explains: a program that itself
/// gives something else on inputs that differ in the last place (the sine of
/// 1e8, the small difference of large sums) says nothing about another program
/// there.
fn excused(
    module: &Verified,
    inputs: &[Literal],
    expected: &Literal,
    actual: &Literal,
    kind: InputKind,
    options: &CheckOptions,
) -> Result<Vec<Comparison>, Error> {
    let mut slack = Slack::default();
    let mut found = Vec::new();
    for seed in 0..NUDGES {
        // Each input moves on its own.
        let seeds = (0u64..).map(|i| i.wrapping_mul(NUDGES).wrapping_add(seed));
        let inputs: Vec<Literal> =
            inputs.iter().zip(seeds).map(|(input, seed)| nudged(input, seed)).collect();
        slack.widen(expected, &run(module, &inputs, &options.limits)?, EXCUSED);
        let tolerance = |element_type| options.tolerance(kind, element_type);
        found = compare_with(expected, actual, tolerance, &slack).map_err(not_comparable)?;
        if found.iter().all(|comparison| comparison.equal) {
            break;
        }
    }
    Ok(found)
}

fn not_comparable(error: CompareError) -> Error {
    Error::NotComparable(error.to_string())
}

/// Fails unless both take and give values of the same shapes.
fn comparable(a: &Verified, b: &Verified) -> Result<(), Error> {
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
