//! Reduction of a module that a function of Python judges.
//!
//! The function runs on the thread that called, as it would without the library: what it has set for
//! its thread holds, and Ctrl-C ends it at once. So candidates are tried one by one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tilewright::Error;
use tilewright::ir::Verified;
use tilewright_tools::{Candidate, ReduceOptions, ReduceStep, Reduction};

use crate::callback::{call, catching};
use crate::error::{raised, usage};
use crate::module::Module;

/// A search for a smaller module.
pub(crate) struct ReduceSearch {
    /// Says whether a module still shows what is looked for.
    pub(crate) keep: Py<PyAny>,
    /// Is called with each smaller module.
    pub(crate) progress: Option<Py<PyAny>>,
    pub(crate) max_runs: Option<u64>,
    pub(crate) max_seconds: Option<f64>,
}

impl ReduceSearch {
    /// Returns the smallest module.
    ///
    /// # Errors
    /// `UsageError` if `keep` is false for the module itself; what a function raises.
    pub(crate) fn reduce(&self, py: Python<'_>, module: &Verified) -> PyResult<Verified> {
        for function in [Some(&self.keep), self.progress.as_ref()].into_iter().flatten() {
            if !function.bind(py).is_callable() {
                return Err(PyTypeError::new_err("keep and progress are functions of a module"));
            }
        }
        let max_time = self.max_seconds.map(Duration::try_from_secs_f64).transpose();
        let max_time = max_time.map_err(|_| {
            usage("max_seconds is a number of seconds that is neither negative nor endless")
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let reduced = py.detach(|| catching(&stop, || self.search(module, max_time, &stop)));
        reduced?.map(|reduction| reduction.module).map_err(|error| match error {
            Error::NotKept => usage(
                "keep is false for the module itself, as its text has it: `Module.from_text` of \
                 `module.to_text()`",
            ),
            other => raised(&other),
        })
    }

    fn search(
        &self,
        module: &Verified,
        max_time: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Reduction, Error> {
        let keep = |candidate: &Candidate<'_>| self.keeps(candidate.module);
        let progress = |step: &ReduceStep<'_>| self.tell(step.module);
        let mut options = ReduceOptions::default().with_jobs(1).with_stop(stop);
        (options.max_runs, options.max_time) = (self.max_runs, max_time);
        if self.progress.is_some() {
            options.progress = Some(&progress);
        }
        tilewright_tools::reduce(module, &options, &keep)
    }

    /// Asks Python. An exception of the callable ends the search.
    fn keeps(&self, module: &Verified) -> bool {
        let kept = call(|py| {
            py.check_signals()?;
            let module = Module::from(module.clone());
            self.keep.bind(py).call1((module,))?.is_truthy()
        });
        kept.unwrap_or(false)
    }

    fn tell(&self, module: &Verified) {
        let Some(progress) = &self.progress else { return };
        // An exception of the callable ends the search.
        call(|py| progress.bind(py).call1((Module::from(module.clone()),)).map(drop));
    }
}
