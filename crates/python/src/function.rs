//! Python functions that patterns and rules call, where the garbage collector sees them.
//!
//! A function often refers to the rule that calls it, which is a cycle. To free it, the collector
//! must be shown each counted reference once, by one Python object. But the closures of the library
//! are shared: by clones of a rule, in sets of rules and in the options of an optimisation. So a
//! reference to a function lies in a [`Slot`], which closures share, and one [`Function`] shows it
//! to the collector. Patterns, rules and sets keep the `Function`s of their closures alive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::error::{ExceptionKind, plain};

/// A place of a Python function; empty once the collector has freed what calls it. While it is
/// locked, nothing runs Python code or waits, so a thread with the GIL finds it free.
#[derive(Clone, Debug)]
pub(crate) struct Slot(Arc<Mutex<Option<Py<PyAny>>>>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = self.lock().as_ref().map(|function| function.clone_ref(py));
        let gone =
            || plain(ExceptionKind::Removed, "the function of the rule or pattern was freed");
        function.ok_or_else(gone)?.into_bound(py).call1(arguments)
    }
}

/// The owner of a function for the garbage collector. Python does not get hold of it.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Function(Slot);

impl Function {
    /// Puts a function into a slot, and adds its owner to the others.
    pub(crate) fn hold(
        function: Py<PyAny>,
        py: Python<'_>,
        owners: &mut Vec<Py<Self>>,
    ) -> PyResult<Slot> {
        let slot = Slot(Arc::new(Mutex::new(Some(function))));
        owners.push(Py::new(py, Self(slot.clone()))?);
        Ok(slot)
    }

    /// Adds the owners that are not there yet.
    pub(crate) fn extend(owners: &mut Vec<Py<Self>>, py: Python<'_>, more: &[Py<Self>]) {
        for one in more {
            if !owners.iter().any(|other| other.is(one)) {
                owners.push(one.clone_ref(py));
            }
        }
    }

    /// Shows owners to the collector.
    pub(crate) fn visit(owners: &[Py<Self>], visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        owners.iter().try_for_each(|owner| visit.call(owner))
    }
}

#[pymethods]
impl Function {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.0.lock())
    }

    fn __clear__(&self) {
        // To drop the function can run Python code, so the lock ends before.
        let function = self.0.lock().take();
        drop(function);
    }
}
