//! Defines the options of an optimisation.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::Module;
use tilewright_target::Target;

use super::evaluate::Evaluate;
use super::numbers::FloatMode;
use super::pass::{Pass, Skipped};

/// The options of an optimisation. Begin with [`Options::new`] and set what differs:
///
/// ```
/// use tilewright_rewrite::{Options, PassSelection, numbers::FloatMode};
/// use tilewright_target::Target;
///
/// let options = Options::new(Target::builtin("cpu")?)
///     .with_float_mode(FloatMode::Exact)
///     .with_passes(PassSelection::Pipeline("cpu".into()));
/// assert_eq!(options.target.name, "cpu");
/// # Ok::<(), tilewright_target::TargetError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The machine that costs are weighed on.
    pub target: Target,
    /// The degree to which floats may change.
    pub float_mode: FloatMode,
    /// The passes that run.
    pub passes: PassSelection,
    /// The number of cost-gated rewrites after which the optimisation stops.
    pub stop_after: Option<u64>,
    /// Passes that do not run, even if a list or pipeline names them.
    pub without: Vec<&'static str>,
    /// Cost-gated rewrites that are not made.
    pub skipped: Vec<Skipped>,
    /// The most rounds through the passes.
    pub max_rounds: usize,
    /// The least part of its modelled cycles that a module must save; otherwise it is left as
    /// it is. The model is not as exact as smaller savings, and the backend fuses the forms
    /// that it recognises.
    pub least_saving: f64,
    /// The evaluator of constants; without one, no constants are folded.
    pub evaluator: Option<&'static dyn Evaluate>,
    /// The observer of the passes, if there is one: see [`Options::with_observer`].
    pub observer: Option<PassObserver>,
    /// Passes besides the built-in ones: see [`Options::with_pass`].
    pub added: Vec<AddedPass>,
}

/// A pass from outside this crate.
#[derive(Clone)]
pub struct AddedPass(pub(super) Arc<dyn Pass>);

impl fmt::Debug for AddedPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddedPass({})", self.0.name())
    }
}

/// A function that is called with the name of a pass and the module after it.
#[derive(Clone)]
pub struct PassObserver(Arc<Observe>);

type Observe = dyn Fn(&'static str, &Module) + Send + Sync;

impl fmt::Debug for PassObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PassObserver")
    }
}

/// The selection of the passes that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassSelection {
    /// A pipeline by name. A module is returned unchanged if the pipeline's cost-gated passes
    /// find nothing that pays.
    Pipeline(String),
    /// Passes by name, in the order in which they run, until none changes anything. The result
    /// is kept whatever it costs as a whole; a cost-gated pass still makes only rewrites that
    /// pay.
    List(Vec<String>),
}

impl PassSelection {
    /// Selects passes by name.
    pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(names.into_iter().map(str::to_owned).collect())
    }
}

impl Options {
    /// Selects the default pipeline for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            float_mode: FloatMode::default(),
            passes: PassSelection::Pipeline("default".into()),
            stop_after: None,
            without: Vec::new(),
            skipped: Vec::new(),
            max_rounds: 100,
            least_saving: 0.02,
            evaluator: None,
            observer: None,
            added: Vec::new(),
        }
    }

    /// Adds a pass, for example a [`Rule`](crate::pattern::Rule), whose name no other pass has.
    /// In a pipeline, a cost-gated pass runs before the built-in cost-gated passes, in a group
    /// of its own; any other pass runs with the passes that simplify. In a list of passes, the
    /// pass runs where its name stands.
    ///
    /// A pass that is not cost-gated prepares the module for the cost-gated ones. A pipeline
    /// with built-in cost-gated passes, such as the default one, undoes the pass's changes
    /// wherever no cost-gated pass had a part in them, and returns the original module if those
    /// gain nothing. To keep the changes of a pass for their own sake, name it in a list, or
    /// use the pipeline `cleanup`.
    #[must_use]
    pub fn with_pass(mut self, pass: impl Pass + 'static) -> Self {
        self.added.push(AddedPass(Arc::new(pass)));
        self
    }

    /// Sets the target.
    #[must_use]
    pub fn with_target(self, target: Target) -> Self {
        Self { target, ..self }
    }

    /// Sets how far floats may change.
    #[must_use]
    pub fn with_float_mode(self, float_mode: FloatMode) -> Self {
        Self { float_mode, ..self }
    }

    /// Sets the selection of passes.
    #[must_use]
    pub fn with_passes(self, passes: PassSelection) -> Self {
        Self { passes, ..self }
    }

    /// Limits the number of cost-gated rewrites.
    #[must_use]
    pub fn with_stop_after(self, rewrites: u64) -> Self {
        Self { stop_after: Some(rewrites), ..self }
    }

    /// Limits the number of rounds through the passes.
    #[must_use]
    pub fn with_max_rounds(self, max_rounds: usize) -> Self {
        Self { max_rounds, ..self }
    }

    /// Sets the least part of its cycles that a module must save to be changed.
    #[must_use]
    pub fn with_least_saving(self, least_saving: f64) -> Self {
        Self { least_saving, ..self }
    }

    /// Sets an observer. It is called after every pass that changed the module, with the name
    /// of the pass and the module. It is also called, with the name `put-back`, after the parts
    /// that gained nothing were restored.
    #[must_use]
    pub fn with_observer(
        self,
        observer: impl Fn(&'static str, &Module) + Send + Sync + 'static,
    ) -> Self {
        Self { observer: Some(PassObserver(Arc::new(observer))), ..self }
    }

    /// Calls the observer, if there is one.
    pub(super) fn show(&self, pass: &'static str, module: &Module) {
        if let Some(PassObserver(observer)) = &self.observer {
            observer(pass, module);
        }
    }

    /// Sets the evaluator of constants.
    #[must_use]
    pub fn with_evaluator(self, evaluator: &'static dyn Evaluate) -> Self {
        Self { evaluator: Some(evaluator), ..self }
    }
}
