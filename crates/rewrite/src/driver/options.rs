//! What an optimisation is asked to do.

use tilewright_target::Target;

use super::evaluate::Evaluate;
use super::numbers::Numbers;
use super::pass::Skipped;

/// How a module is optimised.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine that costs are weighed on.
    pub target: Target,
    /// Forbids all that changes the order of float sums and products.
    pub exact: bool,
    /// Allows rewrites of floats whose error has no bound that holds for all data: sums
    /// of differences as differences of sums, and factors out of sums that may overflow
    /// without them. See `docs/numerics.md`.
    pub fast_math: bool,
    /// Which passes run.
    pub passes: Passes,
    /// Stops after this many cost-gated rewrites.
    pub stop_after: Option<u64>,
    /// These passes do not run, whatever list or pipeline names them.
    pub without: Vec<&'static str>,
    /// These cost-gated rewrites are not made.
    pub skipped: Vec<Skipped>,
    /// How often the passes are gone through at most.
    pub max_rounds: usize,
    /// A module that would save less than this part of its modelled cycles is left as it
    /// is: the model is not as exact as that, and the backend fuses what it recognises.
    pub least_saving: f64,
    /// What computes constants; without it, none are folded.
    pub evaluator: Option<&'static dyn Evaluate>,
}

/// Which passes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passes {
    /// A pipeline by name: a module where its cost-gated passes find nothing that pays
    /// comes back untouched.
    Pipeline(String),
    /// These passes, by name, in this order, until none changes anything.
    List(Vec<String>),
}

impl Options {
    /// The default pipeline for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            exact: false,
            fast_math: false,
            passes: Passes::Pipeline("default".into()),
            stop_after: None,
            without: Vec::new(),
            skipped: Vec::new(),
            max_rounds: 100,
            least_saving: 0.02,
            evaluator: None,
        }
    }
}

impl Options {
    /// How far floats may change.
    pub fn numbers(&self) -> Numbers {
        match self {
            Self { exact: true, .. } => Numbers::Exact,
            Self { fast_math: true, .. } => Numbers::FastMath,
            Self { .. } => Numbers::Bounded,
        }
    }
}
