//! Forms of a module to measure, races between them, and what is remembered of those.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use serde_json::from_str;
use tilewright_tools::tune::{
    self, Candidate, Decision, Decisions, Form, Measured, Program, RaceOptions,
};

use crate::error::{raised, usage};
use crate::module::Module;
use crate::optimize::{Optimisation, json};
use crate::signals::interruptible;

/// A form of a module, with what is known of it as JSON.
type Made = (Module, String);

/// The forms of a module to measure, the most promising first; or that of a name, if there is one.
#[pyfunction]
#[pyo3(signature = (module, target, *, numerics="guarded", name=None))]
pub(crate) fn candidates(
    py: Python<'_>,
    module: &Module,
    target: &str,
    numerics: &str,
    name: Option<&str>,
) -> PyResult<Vec<Made>> {
    let verified = module.verified(py)?;
    let cancel = Arc::new(AtomicBool::new(false));
    let options = Optimisation::plain(target, numerics).options(&cancel)?;
    let work = || match name {
        Some(name) => Ok(tune::candidate(&verified, &options, name)?.into_iter().collect()),
        None => tune::candidates(&verified, &options),
    };
    let stop = || cancel.store(true, Ordering::Relaxed);
    let found = interruptible(py, stop, work)?.map_err(|error| raised(&error))?;
    let made = |one: Candidate| Ok((one.module.clone().into(), json(&Form::from(&one))?));
    found.into_iter().map(made).collect()
}

/// A race between forms of a module.
#[pyclass]
pub(crate) struct Race(tune::Race);

#[pymethods]
impl Race {
    #[new]
    fn new(candidates: usize, seconds: f64) -> Self {
        Self(tune::Race::new(candidates, RaceOptions { seconds, ..RaceOptions::default() }))
    }

    /// The form to run next; none once the race is decided.
    #[getter]
    fn next(&self) -> Option<usize> {
        self.0.next()
    }

    /// How many rounds count so far.
    #[getter]
    fn rounds(&self) -> usize {
        self.0.rounds()
    }

    /// The form that won, once the race is decided.
    #[getter]
    fn winner(&self) -> Option<usize> {
        self.0.winner()
    }

    /// Records the seconds of the form to run next.
    fn record(&mut self, seconds: f64) {
        self.0.record(seconds);
    }

    /// Takes a form out of the race, and says why.
    fn take_out(&mut self, lane: usize, why: &str) {
        self.0.take_out(lane, why);
    }

    /// Ends the race with what is known.
    fn end(&mut self) {
        self.0.end();
    }

    /// The times of all forms as JSON, for what is known of them as JSON.
    fn measured(&self, forms: &str) -> PyResult<String> {
        let forms: Vec<Form> = from_str(forms).map_err(usage)?;
        json(&Measured::all(&self.0, &forms))
    }
}

/// A module with all floats in f64; none if they cannot be.
#[pyfunction]
pub(crate) fn widened(py: Python<'_>, module: &Module) -> PyResult<Option<Module>> {
    let verified = module.verified(py)?;
    Ok(tilewright::widened(&verified).ok().map(Into::into))
}

/// The times of forms as a table.
#[pyfunction]
pub(crate) fn tune_table(measured: &str) -> PyResult<String> {
    let measured: Vec<Measured> = from_str(measured).map_err(usage)?;
    Ok(tune::table(&measured))
}

/// The file of this user's decisions, if there is a place for it.
#[pyfunction]
pub(crate) fn decisions_path() -> Option<PathBuf> {
    tune::default_path()
}

/// The decision of a file for a program, both as JSON, and the number of damaged lines.
#[pyfunction]
pub(crate) fn find_decision(path: PathBuf, program: &str) -> PyResult<(Option<String>, usize)> {
    let program: Program = from_str(program).map_err(usage)?;
    let known = Decisions::read(&path)?;
    let found = known.find(&program).map(json).transpose()?;
    Ok((found, known.damaged))
}

/// Adds a decision, as JSON, to a file.
#[pyfunction]
pub(crate) fn remember_decision(path: PathBuf, decision: &str) -> PyResult<()> {
    let decision: Decision = from_str(decision).map_err(usage)?;
    Ok(Decisions::append(&path, &decision)?)
}
