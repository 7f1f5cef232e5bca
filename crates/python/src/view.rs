//! Pictures of modules, and pages on optimisations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use tilewright::ir::Verified;
use tilewright::{CheckOptions, Error, FloatMode, Limits, Optimized, Options, Progress};
use tilewright_tools::explain;
use tilewright_view::report::{Findings, report};
use tilewright_view::{Emit, Options as ViewOptions, Scene, Subject, ViewError, Weights};

use crate::callback::catching;
use crate::error::{ExceptionKind, plain, raised, usage};
use crate::module::Module;
use crate::optimize::Optimisation;
use crate::run::limits;
use crate::signals::interruptible;

/// Why there is no picture or page.
enum Failure {
    Library(Error),
    View(ViewError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Self {
        Self::View(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Library(error) => return raised(&error),
            Failure::View(error) => error,
        };
        match error {
            ViewError::TooLarge { form, nodes, most } => usage(format!(
                "the picture has {nodes} nodes, and {form} is drawn for at most {most}; give \
                 around or computation, or take the form `html`, whose parts open and close"
            )),
            ViewError::OtherProfile(_) | ViewError::Profile(_) => {
                usage("the profile is not the report of a run of this module with profile=True")
            }
            ViewError::NoInstruction { .. } | ViewError::NoComputation { .. } => usage(error),
            other => plain(ExceptionKind::Other, other),
        }
    }
}

/// The contents of a picture: a dictionary of Python with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Shown {
    form: String,
    after: bool,
    around: Option<String>,
    depth: usize,
    computation: Option<String>,
    cost: bool,
    /// The JSON of a run's report.
    profile: Option<String>,
}

impl Shown {
    fn emit(&self) -> PyResult<Emit> {
        match self.form.as_str() {
            "dot" => Ok(Emit::Dot),
            "svg" => Ok(Emit::Svg),
            "html" => Ok(Emit::Html),
            other => Err(usage(format!(
                "there is no form `{other}` of pictures; there are: dot, svg, html"
            ))),
        }
    }

    fn subject(&self) -> PyResult<Subject> {
        match (&self.around, &self.computation) {
            (Some(_), Some(_)) => Err(usage("around and computation exclude each other")),
            (Some(name), None) => Ok(Subject::Around { name: name.clone(), depth: self.depth }),
            (None, Some(name)) => Ok(Subject::Computation(name.clone())),
            (None, None) => Ok(Subject::Module),
        }
    }

    fn weights(&self) -> PyResult<Weights> {
        match (&self.profile, self.cost) {
            (Some(_), true) => Err(usage("cost and profile exclude each other")),
            (Some(profile), false) => Ok(Weights::Profile(profile.clone())),
            (None, true) => Ok(Weights::Cycles),
            (None, false) => Ok(Weights::None),
        }
    }
}

/// Draws a module, or a module before and after its optimisation.
#[pyfunction]
pub(crate) fn graph(
    py: Python<'_>,
    module: &Module,
    shown: Shown,
    optimisation: Optimisation<'_>,
) -> PyResult<String> {
    let (emit, subject, weights) = (shown.emit()?, shown.subject()?, shown.weights()?);
    let module = module.verified(py)?;
    let cancel = Arc::new(AtomicBool::new(false));
    let optimisation = optimisation.options(&cancel)?;
    let options =
        ViewOptions::new(optimisation.target.clone()).with_weights(weights).with_subject(subject);
    let draw = || -> Result<String, Failure> {
        let scene = if shown.after {
            let optimized = tilewright::optimize(module.as_ref().clone(), &optimisation)?;
            Scene::before_and_after(&module, &optimized.module, &optimized.report, &options)?
        } else {
            Scene::of(&module, &options)?
        };
        Ok(scene.print(emit)?)
    };
    let stop = || cancel.store(true, Ordering::Relaxed);
    Ok(interruptible(py, stop, || catching(&cancel, draw))???)
}

/// Writes a page on what an optimisation finds and does.
#[pyfunction]
#[pyo3(signature = (module, optimisation, *, check=false, max_steps=None, max_bytes=None))]
pub(crate) fn report_page(
    py: Python<'_>,
    module: &Module,
    optimisation: Optimisation<'_>,
    check: bool,
    max_steps: Option<u64>,
    max_bytes: Option<u64>,
) -> PyResult<String> {
    let module = module.verified(py)?;
    let cancel = Arc::new(AtomicBool::new(false));
    let options = optimisation.options(&cancel)?;
    let (limits, progress) = (limits(max_steps, max_bytes), [Progress::new(), Progress::new()]);
    let write = || -> Result<String, Failure> {
        let optimized = tilewright::optimize(module.as_ref().clone(), &options)?;
        let explanation = explain(&module, &optimized, &options)?;
        let [before, after] = tilewright::simplest_forms(&module, &optimized, &options)?;
        let verdict = check.then(|| verdict(&module, &optimized, &options, limits, &progress));
        Ok(report(&Findings {
            forms: [&before, &after],
            optimized: &optimized,
            explanation: &explanation,
            target: &options.target,
            verdict: verdict.transpose()?.as_deref(),
        })?)
    };
    let stop = || {
        cancel.store(true, Ordering::Relaxed);
        progress.iter().for_each(Progress::cancel);
    };
    Ok(interruptible(py, stop, || catching(&cancel, write))???)
}

/// Compares the module before and after; returns the first line of the verdict.
fn verdict(
    module: &Verified,
    optimized: &Optimized,
    options: &Options,
    limits: Limits,
    [before, after]: &[Progress; 2],
) -> Result<String, Error> {
    let how = CheckOptions::default()
        .with_exact(options.float_mode == FloatMode::Exact)
        .with_limits(limits)
        .with_progress([before, after]);
    let agreement = tilewright::check(module, &optimized.module, &how)?;
    Ok(agreement.to_string().lines().next().unwrap_or_default().to_owned())
}
