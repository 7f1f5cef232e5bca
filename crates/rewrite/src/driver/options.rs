//! The options of an optimisation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_ir::Module;
use tilewright_target::Target;

use super::evaluate::Evaluate;
use super::numbers::FloatMode;
use super::pass::{Pass, Skipped};

/// The way in which a module is optimised. Begin with [`Options::new`] and set what differs:
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
    /// The machine that costs are modelled for.
    pub target: Target,
    /// The amount by which floats may change.
    pub float_mode: FloatMode,
    /// The passes to run.
    pub passes: PassSelection,
    /// The number of cost-gated rewrites after which to stop.
    pub stop_after: Option<u64>,
    /// Passes that do not run, whichever list or pipeline names them.
    pub without: Vec<&'static str>,
    /// Cost-gated rewrites that are not made.
    pub skipped: Vec<Skipped>,
    /// The largest number of rounds through the passes.
    pub max_rounds: usize,
    /// The evaluator of constants; without one, none are folded.
    pub evaluator: Option<&'static dyn Evaluate>,
    /// The observer of the passes, if there is one: see [`Options::with_observer`].
    pub observer: Option<PassObserver>,
    /// Whether another thread cancelled the optimisation: see [`Options::with_cancel`].
    pub cancel: Option<Arc<AtomicBool>>,
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

/// The passes to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassSelection {
    /// A pipeline by name. A module comes back untouched if the cost-gated passes find no rewrite
    /// that pays.
    Pipeline(String),
    /// These passes, by name, in this order, until none changes anything. The result is kept
    /// whatever it costs as a whole; a cost-gated pass still makes only rewrites that pay.
    List(Vec<String>),
}

impl PassSelection {
    /// Returns the selection of these passes, by name.
    pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(names.into_iter().map(str::to_owned).collect())
    }
}

impl Options {
    /// Returns the default options for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            float_mode: FloatMode::default(),
            passes: PassSelection::Pipeline("default".into()),
            stop_after: None,
            without: Vec::new(),
            skipped: Vec::new(),
            max_rounds: 100,
            evaluator: None,
            observer: None,
            cancel: None,
            added: Vec::new(),
        }
    }

    /// Adds a pass, for example a [`Rule`](crate::pattern::Rule), whose name no other pass has. In
    /// a pipeline, a cost-gated pass runs in a group of its own before the built-in cost-gated
    /// passes, and any other pass runs with those that simplify. In a list of passes, it runs at
    /// the place of its name.
    ///
    /// A pass that is not cost-gated prepares the module for those that are. A pipeline that has
    /// built-in cost-gated passes, such as the default one, undoes its changes wherever no
    /// cost-gated pass had a part in them, and returns the module as given if these gain nothing.
    /// To keep its changes for their own sake, name it in a list, or use the pipeline `cleanup`.
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

    /// Sets the amount by which floats may change.
    #[must_use]
    pub fn with_float_mode(self, float_mode: FloatMode) -> Self {
        Self { float_mode, ..self }
    }

    /// Sets the selection of passes.
    #[must_use]
    pub fn with_passes(self, passes: PassSelection) -> Self {
        Self { passes, ..self }
    }

    /// Sets the number of cost-gated rewrites after which to stop.
    #[must_use]
    pub fn with_stop_after(self, rewrites: u64) -> Self {
        Self { stop_after: Some(rewrites), ..self }
    }

    /// Sets the largest number of rounds through the passes.
    #[must_use]
    pub fn with_max_rounds(self, max_rounds: usize) -> Self {
        Self { max_rounds, ..self }
    }

    /// Sets the observer. It is called after every pass that changed the module, with the name of
    /// the pass and the module. It is called with the name `put-back` after the parts that gained
    /// nothing were put back as they were.
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

    /// Sets a flag by which another thread cancels the optimisation: once it is true, the
    /// optimisation fails before its next pass, as
    /// [`OptimizeError::Cancelled`](crate::OptimizeError::Cancelled).
    #[must_use]
    pub fn with_cancel(self, cancel: Arc<AtomicBool>) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// Checks whether another thread cancelled the optimisation.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Sets the evaluator of constants.
    #[must_use]
    pub fn with_evaluator(self, evaluator: &'static dyn Evaluate) -> Self {
        Self { evaluator: Some(evaluator), ..self }
    }
}
