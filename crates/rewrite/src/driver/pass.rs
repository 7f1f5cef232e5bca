//! The interface of passes.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use tilewright_ir::{ArrayShape, EditError, InstId, Module, Patch, Shape};
use tilewright_target::Target;

use super::costs::Costs;
use super::evaluate::Evaluate;
use super::numbers::{Class, FloatMode};
use super::options::Options;
use super::report::Note;
use crate::analysis::sharding::Traffic;
use crate::cost::{CostModel, Ledger, Memo};
use crate::pattern::Rule;

/// A transformation of a module that keeps its meaning.
pub trait Pass: Send + Sync {
    /// Returns the name for `--passes` and reports.
    fn name(&self) -> &'static str;

    /// Describes the pass in one line.
    fn summary(&self) -> &'static str;

    /// Returns the most that the pass changes floats. Where less is allowed, it makes only those of
    /// its rewrites that change floats no more than allowed.
    fn class(&self) -> Class;

    /// Returns the rules that the pass consists of; none if it is written as a function.
    fn rules(&self) -> &[Rule] {
        &[]
    }

    /// Checks whether this is one of the rewrites that the project exists for, in whichever
    /// pipeline it runs. The default pipeline returns a module untouched if none of these changed
    /// it.
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

    fn rules(&self) -> &[Rule] {
        P::rules(self)
    }

    fn is_cost_gated(&self) -> bool {
        P::is_cost_gated(self)
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        P::run(self, module, cx)
    }
}

/// A rewrite that is to be skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The pass.
    pub pass: &'static str,
    /// The place as in the rewrite's note.
    pub place: String,
}

/// The inputs and the notes of a pass.
#[derive(Debug)]
pub struct Context<'a> {
    /// The machine that costs are modelled for.
    pub target: &'a Target,
    /// The figures of the target that were computed so far.
    pub memo: &'a Memo,
    /// The amount by which floats may change.
    pub float_mode: FloatMode,
    /// The size in bytes that at least one array of a rewrite must have. A rewrite of smaller
    /// arrays alone is not worth its changes: the backend fuses the forms that it recognises.
    pub least_bytes: u64,
    /// The evaluator of constants, if there is one.
    pub evaluator: Option<&'a dyn Evaluate>,
    /// The number of instructions beyond which no pass lets the module grow by copying called
    /// computations.
    pub most_instructions: usize,
    /// Rewrites that are not made.
    pub skipped: &'a [Skipped],
    /// The number of cost-gated rewrites that may still be made.
    pub fuel: u64,
    /// The most that devices may exchange, if that is limited.
    pub(crate) most_traffic: Option<Traffic>,
    /// The instructions that rewrites gave another layout. What keeps these as they are is nothing
    /// to tell the user, who gave them none.
    pub(crate) laid_out: FxHashSet<InstId>,
    /// The findings and changes, in plain words.
    pub notes: Vec<Note>,
    /// The costs of the module.
    pub(super) costs: Costs<'a>,
}

impl<'a> Context<'a> {
    /// Returns the context of a pass that may do all that these options allow, for arrays of any
    /// size and with calls inlined however large the module grows.
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
            most_traffic: None,
            laid_out: FxHashSet::default(),
            notes: Vec::new(),
            costs: Costs::default(),
        }
    }

    /// Returns the cost model of the target.
    pub fn model(&self) -> CostModel<'a> {
        CostModel::new(self.target, self.memo)
    }

    /// Returns the costs of the module in its present state.
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

/// Returns the number of bytes of a value of a shape, without padding.
pub(crate) fn byte_size(shape: &Shape) -> u64 {
    let bytes = |array: &ArrayShape| {
        let elements = array.num_elements().map_or(u64::MAX, i64::unsigned_abs);
        elements.saturating_mul(u64::from(array.element_type.bits().div_ceil(8)))
    };
    shape.leaves().into_iter().filter_map(Shape::as_array).map(bytes).fold(0, u64::saturating_add)
}
