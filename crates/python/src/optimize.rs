//! Optimisation, and its report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use serde::Serialize;
use tilewright::report::OptReport;
use tilewright::{FloatMode, Options, PassSelection, Verified};
use tilewright_tools::explain::ExplainedReport;

use crate::callback::catching;
use crate::error::{ExceptionKind, plain, raised, usage};
use crate::module::Module;
use crate::rule::with_added;
use crate::signals::interruptible;

/// A report as JSON.
pub(crate) fn json(report: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| plain(ExceptionKind::Other, error))
}

/// The options of an optimisation: a dictionary of Python with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Optimisation<'py> {
    target: String,
    /// The most that may be done to floats, by the name of a class.
    numerics: String,
    pipeline: Option<String>,
    passes: Option<Vec<String>>,
    /// Rules and passes besides the built-in ones.
    added: Vec<Bound<'py, PyAny>>,
}

impl Optimisation<'_> {
    /// The default options for a target and numerics.
    pub(crate) fn plain(target: &str, numerics: &str) -> Self {
        let (target, numerics) = (target.to_owned(), numerics.to_owned());
        Self { target, numerics, pipeline: None, passes: None, added: Vec::new() }
    }

    /// The options of the library; `cancel` ends the optimisation.
    ///
    /// # Errors
    /// `UsageError` if there is no such target, or two of them contradict.
    pub(crate) fn options(self, cancel: &Arc<AtomicBool>) -> PyResult<Options> {
        let float_mode = FloatMode::named(&self.numerics)
            .ok_or_else(|| usage(format!("there are no numerics `{}`", self.numerics)))?;
        let target = tilewright::target(&self.target).map_err(|error| raised(&error))?;
        let options =
            Options::new(target).with_float_mode(float_mode).with_cancel(Arc::clone(cancel));
        let options = match (self.pipeline, self.passes) {
            (Some(_), Some(_)) => return Err(usage("pipeline and passes exclude each other")),
            (Some(name), None) => options.with_passes(PassSelection::Pipeline(name)),
            (None, Some(names)) => options.with_passes(PassSelection::List(names)),
            (None, None) => options,
        };
        with_added(options, &self.added)
    }
}

/// Optimises a module. Returns the result, the report as JSON, as text, and the explanation: all
/// notes, or what was done to each layer, which takes longer.
#[pyfunction]
#[pyo3(signature = (
    module, target, *, numerics="guarded", pipeline=None, passes=None, added=vec![], layers=false
))]
#[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
pub(crate) fn optimize(
    py: Python<'_>,
    module: &Module,
    target: &str,
    numerics: &str,
    pipeline: Option<String>,
    passes: Option<Vec<String>>,
    added: Vec<Bound<'_, PyAny>>,
    layers: bool,
) -> PyResult<(Module, String, String, String)> {
    let asked = Optimisation { pipeline, passes, added, ..Optimisation::plain(target, numerics) };
    let verified = module.verified(py)?.as_ref().clone();
    let given = layers.then(|| verified.clone());
    let cancel = Arc::new(AtomicBool::new(false));
    let options = asked.options(&cancel)?;
    let stop = || cancel.store(true, Ordering::Relaxed);
    let explained = || {
        let done = tilewright::optimize(verified, &options)?;
        let explain = |given: Verified| tilewright_tools::explain(&given, &done, &options);
        let explanation = given.map(explain).transpose()?;
        Ok::<_, tilewright::Error>((done, explanation))
    };
    let work = || catching(&cancel, explained);
    let (done, explanation) = interruptible(py, stop, work)??.map_err(|error| raised(&error))?;
    let text = match &explanation {
        Some(explanation) => explanation.to_string(),
        None => done.report.explanation().to_string(),
    };
    let report = OptReport::from(&done.report);
    let report = json(&ExplainedReport { report, explained: explanation })?;
    Ok((done.module.into(), report, done.report.to_string(), text))
}
