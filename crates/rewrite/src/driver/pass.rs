//! What a pass is.

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
    /// The name for `--passes` and reports.
    fn name(&self) -> &'static str;

    /// One line on what it does.
    fn summary(&self) -> &'static str;

    /// The most that it does to floats. Where less is allowed, it keeps to those of its
    /// rewrites that do no more.
    fn class(&self) -> Class;

    /// Whether this is one of the rewrites that the project exists for,
    /// wherever a pipeline has it. The default one gives a module back
    /// untouched where none of these found anything to do.
    fn is_cost_gated(&self) -> bool {
        false
    }

    /// Changes the module once, in one sweep, and returns how many changes
    /// were made. It is called again until it makes none.
    ///
    /// # Errors
    /// If an edit was refused, which is a bug of the pass.
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
    /// Where: the place in its note.
    pub place: String,
}

/// What a pass may look at, and where it reports.
#[derive(Debug)]
pub struct Context<'a> {
    /// The machine that costs are weighed on.
    pub target: &'a Target,
    /// What was computed of it so far.
    pub memo: &'a Memo,
    /// How far floats may change.
    pub float_mode: FloatMode,
    /// A rewrite of arrays that are all smaller than this, in bytes, is not worth what it
    /// changes: the backend fuses what it recognises.
    pub least_bytes: u64,
    /// What computes constants, if there is anything.
    pub evaluator: Option<&'a dyn Evaluate>,
    /// No pass lets the module grow beyond so many instructions by copying
    /// what is called.
    pub most_instructions: usize,
    /// These rewrites are not made.
    pub skipped: &'a [Skipped],
    /// How many more cost-gated rewrites may be made.
    pub fuel: u64,
    /// What was found and done, in plain words.
    pub notes: Vec<Note>,
    /// The costs of the module.
    pub(super) costs: Costs<'a>,
}

impl<'a> Context<'a> {
    /// The context of a pass that may do all that these options allow, for any array and with
    /// calls inlined however large the module grows.
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

    /// Costs on the target.
    pub fn model(&self) -> CostModel<'a> {
        CostModel::new(self.target, self.memo)
    }

    /// The costs of the module as it is.
    pub(crate) fn ledger(&mut self, module: &mut Module) -> &Ledger<'a> {
        let model = self.model();
        self.costs.ledger(module, model)
    }

    /// Whether a patch reads or makes an array of at least [`Self::least_bytes`].
    pub fn is_worthwhile(&self, module: &Module, patch: &Patch) -> bool {
        let values = patch.planned().iter().flat_map(|planned| planned.operands.iter().copied());
        let read = values.map(|value| byte_size(patch.shape(module, value)));
        let made = patch.planned().iter().map(|planned| byte_size(&planned.shape));
        let replaced = patch.replaced().iter().map(|&(old, _)| byte_size(module.shape(old)));
        read.chain(made).chain(replaced).any(|bytes| bytes >= self.least_bytes)
    }
}

/// The bytes of a value of a shape, without padding.
pub(crate) fn byte_size(shape: &Shape) -> u64 {
    let bytes = |array: &ArrayShape| {
        let elements = array.num_elements().map_or(u64::MAX, i64::unsigned_abs);
        elements.saturating_mul(u64::from(array.element_type.bits().div_ceil(8)))
    };
    shape.leaves().into_iter().filter_map(Shape::as_array).map(bytes).fold(0, u64::saturating_add)
}
