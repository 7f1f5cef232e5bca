//! The result of comparing the outputs of two modules.

mod text;

use std::fmt;

use tilewright_interp::algebra::Verdict;
use tilewright_interp::{Comparison, Coverage, Slack};
use tilewright_ir::Literal;

/// The result of a comparison. `Display` writes whether the outputs agree, and where they differ.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// Number of inputs on which both modules were evaluated.
    pub inputs_tried: usize,
    /// Each output, tuples flattened in order, then each outfeed array.
    pub outputs: Vec<OutputDifference>,
    /// The verdict of algebra on each output, without outfeed arrays.
    pub algebra: Vec<Verdict>,
    /// For each device, the finite elements of its outputs.
    coverage: Vec<Coverage>,
    subject: Subject,
    /// Whether the caller says how large differences may be, so that outputs may differ over the reals.
    tolerant: bool,
}

/// With what the first module was compared, and on which inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// A second module, on random inputs.
    Random {
        /// The first seed.
        first_seed: u64,
        /// The number of seeds.
        seeds: u64,
    },
    /// A second module, on inputs that the caller provides.
    Given,
    /// The result that a snapshot recorded, on its inputs.
    Recording,
}

/// The greatest difference of an output between two modules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputDifference {
    /// The greatest absolute difference; infinite if only one value was finite.
    pub max_abs: f64,
    /// The greatest difference in units of the last place.
    pub max_ulp: u64,
    /// The greatest difference in units of the largest finite magnitude that the output
    /// of the first module has on the same inputs.
    pub max_relative: f64,
    /// The kind and the seed of the inputs with the greatest relative difference.
    pub largest_on: Option<(&'static str, u64)>,
    /// The weakest reason that excused a difference.
    pub excuse: Option<Excuse>,
    /// Number of elements, on all devices together.
    pub elements: usize,
    /// Number of elements that were infinite or NaN on all inputs, so that they were not
    /// compared.
    pub not_compared: usize,
    /// An element that differs by more than the tolerance, if there is one.
    pub witness: Option<Witness>,
}

/// Why a difference is excused, the strongest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Excuse {
    /// It is within the rounding error for the magnitude of the output.
    Rounding,
    /// The second module's value is as near to the result in wider floats as the first's.
    AsNear,
    /// The first module computes an infinity or a NaN from finite numbers.
    Overflow,
    /// The first module differs as much on inputs that differ in the last place.
    Sensitive,
}

impl Excuse {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rounding => "rounding",
            Self::AsNear => "as-near",
            Self::Overflow => "overflow",
            Self::Sensitive => "sensitive",
        }
    }

    /// Returns the reason in words.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Rounding => "within the rounding error for the magnitude of the output",
            Self::AsNear => {
                "the second module is as near to the result in wider floats as the first"
            }
            Self::Overflow => "the first module computes an infinity or a NaN from finite numbers",
            Self::Sensitive => {
                "the first module differs as much if its inputs change in the last place"
            }
        }
    }
}

/// An element of an output that differs by more than the tolerance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The device, if there are several.
    pub device: Option<usize>,
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

/// The name of inputs that the caller provides.
pub(crate) const GIVEN: &str = "given";

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, index, expected, actual, inputs, seed } = self;
        write!(f, "element {index:?} is {expected} in the first and {actual} in the second")?;
        if let Some(device) = device {
            write!(f, ", on device {device}")?;
        }
        if *inputs == GIVEN {
            return write!(f, ", on the given inputs");
        }
        write!(f, ", on {inputs} inputs from seed {seed}")
    }
}

/// The results of the first module, and the differences of the second.
pub(crate) struct Tried {
    pub(crate) expected: Vec<Literal>,
    pub(crate) found: Findings,
    /// For each device, the differences that are excused.
    pub(crate) slack: Vec<Slack>,
}

/// The comparisons of each device, with the reasons that excuse differences.
pub(crate) struct Findings(Vec<Vec<Finding>>);

struct Finding {
    comparison: Comparison,
    excuse: Option<Excuse>,
}

impl Findings {
    /// Findings with the usual tolerances.
    pub(crate) fn new(found: Vec<Vec<Comparison>>) -> Self {
        let finding = |comparison: Comparison| {
            let excuse = (comparison.equal && comparison.max_ulp > 0).then_some(Excuse::Rounding);
            Finding { comparison, excuse }
        };
        Self(found.into_iter().map(|found| found.into_iter().map(finding).collect()).collect())
    }

    /// Replaces the findings by those with wider tolerances, and records the reason.
    pub(crate) fn update(&mut self, found: Vec<Vec<Comparison>>, excuse: Excuse) {
        for (finding, next) in self.0.iter_mut().flatten().zip(found.into_iter().flatten()) {
            if !finding.comparison.equal {
                finding.excuse = next.equal.then_some(excuse);
                finding.comparison = next;
            }
        }
    }

    /// Checks whether all outputs agree, except for those already known to differ.
    pub(crate) fn settled(&self, known: &dyn Fn(usize) -> bool) -> bool {
        let differing = self.0.iter().flatten().filter(|finding| !finding.comparison.equal);
        differing.into_iter().all(|finding| known(finding.comparison.index))
    }

    /// Checks whether an element may be finite in one module and not in the other.
    pub(crate) fn not_finite(&self) -> bool {
        let differing = self.0.iter().flatten().filter(|finding| !finding.comparison.equal);
        differing.into_iter().any(|finding| finding.comparison.max_abs.is_infinite())
    }
}

impl Agreement {
    /// An agreement before the first inputs.
    pub(crate) fn new(subject: Subject, algebra: Vec<Verdict>, tolerant: bool) -> Self {
        let (outputs, coverage) = (Vec::new(), Vec::new());
        Self { inputs_tried: 0, outputs, algebra, coverage, subject, tolerant }
    }

    /// Checks whether all outputs were the same, within the tolerance of their type, and algebra disproves none.
    pub fn equal(&self) -> bool {
        self.is_within() && self.disproved().next().is_none()
    }

    /// Checks whether all outputs were the same, within the tolerance of their type.
    pub fn is_within(&self) -> bool {
        self.outputs.iter().all(|output| output.witness.is_none())
    }

    /// Outputs that certainly differ over the reals. With a tolerance of the caller's own, none counts.
    pub fn disproved(&self) -> impl Iterator<Item = (usize, &Verdict)> {
        self.algebra.iter().enumerate().filter(|(_, verdict)| !self.tolerant && verdict.disproves())
    }

    /// Outputs that differ over the reals and do not count as disproved.
    pub fn doubts(&self) -> impl Iterator<Item = (usize, &Verdict)> {
        let doubtful =
            |verdict: &Verdict| verdict.differs() && (self.tolerant || !verdict.disproves());
        self.algebra.iter().enumerate().filter(move |(_, verdict)| doubtful(verdict))
    }

    /// Checks whether the output with this number is known to differ.
    pub(crate) fn differs(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|output| output.witness.is_some())
    }

    /// Adds the findings on inputs, device by device.
    pub(crate) fn add(&mut self, tried: &Tried, kind: &'static str, seed: u64) {
        self.inputs_tried += 1;
        let several = tried.found.0.len() > 1;
        for (device, found) in tried.found.0.iter().enumerate() {
            self.outputs.resize_with(found.len(), OutputDifference::default);
            for (output, found) in self.outputs.iter_mut().zip(found) {
                output.add(found, several.then_some(device), kind, seed);
            }
        }
        self.cover(&tried.expected);
    }

    fn cover(&mut self, expected: &[Literal]) {
        self.coverage.resize_with(expected.len(), Coverage::default);
        for (coverage, expected) in self.coverage.iter_mut().zip(expected) {
            coverage.add(expected);
        }
        for (leaf, output) in self.outputs.iter_mut().enumerate() {
            (output.not_compared, output.elements) = (0, 0);
            for coverage in &self.coverage {
                let (missing, elements) = coverage.missing(leaf);
                output.not_compared = output.not_compared.saturating_add(missing);
                output.elements = output.elements.saturating_add(elements);
            }
        }
    }
}

impl OutputDifference {
    fn add(&mut self, found: &Finding, device: Option<usize>, kind: &'static str, seed: u64) {
        let Comparison { max_abs, max_ulp, largest, ref at, .. } = found.comparison;
        self.max_abs = self.max_abs.max(max_abs);
        self.max_ulp = self.max_ulp.max(max_ulp);
        self.excuse = self.excuse.max(found.excuse);
        let relative = if max_abs == 0.0 { 0.0 } else { max_abs / largest };
        if relative > self.max_relative {
            self.max_relative = relative;
            self.largest_on = Some((kind, seed));
        }
        self.witness = self.witness.take().or(at.as_ref().map(|at| Witness {
            device,
            index: at.index.to_vec(),
            expected: at.expected.clone(),
            actual: at.actual.clone(),
            inputs: kind,
            seed,
        }));
    }
}
