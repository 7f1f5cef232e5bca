//! Defines passes and the context in which they run.

use std::sync::LazyLock;

use tilewright_ir::{ArrayShape, EditError, Module, Patch, Shape};
use tilewright_target::Target;

use super::costs::Costs;
use super::evaluate::Evaluate;
use super::numbers::{Class, FloatMode};
use super::options::Options;
use super::report::Note;
use crate::cost::{CostModel, Ledger, Memo};

/// A transformation of a module that keeps its meaning.
pub trait Pass: Send + Sync {
    /// Returns the name for `--passes` and reports.
    fn name(&self) -> &'static str;

    /// Describes the pass in one line.
    fn summary(&self) -> &'static str;

    /// Returns the largest change that the pass makes to floats. If the options allow less, the
    /// pass makes only those of its rewrites that the options allow.
    fn class(&self) -> Class;

    /// Checks whether the pass makes rewrites that must pay for themselves; they are the
    /// purpose of the project. The default pipeline returns a module unchanged if no cost-gated
    /// pass found anything to do.
    fn is_cost_gated(&self) -> bool {
        false
    }

    /// Changes the module once, in one sweep, and returns the number of changes. It is called
    /// again until it makes none.
    ///
    /// # Errors
    /// Returns an error if an edit was refused, which is a bug of the pass.
    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError>;
}

/// A pass of this crate that is made when it is first asked for.
impl<P: Pass> Pass for LazyLock<P> {
    fn name(&self) -> &'static str {
        P::name(self)
    }

    fn summary(&self) -> &'static str {
        P::summary(self)
    }

    fn class(&self) -> Class {
        P::class(self)
    }

    fn is_cost_gated(&self) -> bool {
        P::is_cost_gated(self)
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        P::run(self, module, cx)
    }
}

/// A rewrite that is not to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The pass.
    pub pass: &'static str,
    /// The place in its note.
    pub place: String,
}

/// The data that a pass may read, and the place for its notes.
#[derive(Debug)]
pub struct Context<'a> {
    /// The machine that costs are weighed on.
    pub target: &'a Target,
    /// The costs computed for the target so far.
    pub memo: &'a Memo,
    /// The degree to which floats may change.
    pub float_mode: FloatMode,
    /// The least size in bytes of an array whose rewrite is worthwhile. If all arrays are
    /// smaller, a rewrite might break a form that the backend recognises and fuses.
    pub least_bytes: u64,
    /// The evaluator of constants, if there is one.
    pub evaluator: Option<&'a dyn Evaluate>,
    /// The most instructions to which a pass may grow the module by copying called
    /// computations.
    pub most_instructions: usize,
    /// Rewrites that are not made.
    pub skipped: &'a [Skipped],
    /// The number of cost-gated rewrites that may still be made.
    pub fuel: u64,
    /// Notes on what the passes found and did, in plain words.
    pub notes: Vec<Note>,
    /// The costs of the module.
    pub(super) costs: Costs<'a>,
}

impl<'a> Context<'a> {
    /// Creates the context of a pass that may do everything the options allow, on arrays of any
    /// size, and may inline calls however large the module grows.
    pub fn new(options: &'a Options, memo: &'a Memo) -> Self {
        Self {
            target: &options.target,
            memo,
            float_mode: options.float_mode,
            least_bytes: 0,
            evaluator: options.evaluator,
            most_instructions: usize::MAX,
            skipped: &options.skipped,
            fuel: options.stop_after.unwrap_or(u64::MAX),
            notes: Vec::new(),
            costs: Costs::default(),
        }
    }

    /// Returns the cost model of the target.
    pub fn model(&self) -> CostModel<'a> {
        CostModel::new(self.target, self.memo)
    }

    /// Returns the costs of the current module.
    pub(crate) fn ledger(&mut self, module: &mut Module) -> &Ledger<'a> {
        let model = self.model();
        self.costs.ledger(module, model)
    }

    /// Checks whether a patch reads or makes an array of at least [`Self::least_bytes`].
    pub fn is_worthwhile(&self, module: &Module, patch: &Patch) -> bool {
        let values = patch.planned().iter().flat_map(|planned| planned.operands.iter().copied());
        let read = values.map(|value| byte_size(patch.shape(module, value)));
        let made = patch.planned().iter().map(|planned| byte_size(&planned.shape));
        let replaced = patch.replaced().iter().map(|&(old, _)| byte_size(module.shape(old)));
        read.chain(made).chain(replaced).any(|bytes| bytes >= self.least_bytes)
    }
}

/// Returns the bytes of a value of a shape, without padding.
pub(crate) fn byte_size(shape: &Shape) -> u64 {
    let bytes = |array: &ArrayShape| {
        let elements = array.num_elements().map_or(u64::MAX, i64::unsigned_abs);
        elements.saturating_mul(u64::from(array.element_type.bits().div_ceil(8)))
    };
    shape.leaves().into_iter().filter_map(Shape::as_array).map(bytes).fold(0, u64::saturating_add)
}
