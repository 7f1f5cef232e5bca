//! Calls of Python functions by the optimiser: rules and passes.
//!
//! The optimiser does not know of exceptions. The first one that a call raises is put aside, the
//! optimisation is cancelled, and whoever began it raises the exception.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

/// The exceptions that calls on this thread have raised.
#[derive(Default)]
struct Calls {
    cancel: Option<Arc<AtomicBool>>,
    raised: Option<PyErr>,
}

thread_local! {
    static CALLS: RefCell<Calls> = RefCell::default();
}

/// Runs work that calls Python functions from this thread. A function that raises sets `cancel`.
///
/// # Errors
/// The first exception of such a function.
pub(crate) fn catching<T>(cancel: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> PyResult<T> {
    let fresh = Calls { cancel: Some(Arc::clone(cancel)), raised: None };
    let outer = CALLS.with(|calls| calls.replace(fresh));
    let done = work();
    let Calls { raised, .. } = CALLS.with(|calls| calls.replace(outer));
    raised.map_or(Ok(done), Err)
}

/// Calls Python, unless a call has raised before. `None` if it raises.
pub(crate) fn call<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    if CALLS.with_borrow(|calls| calls.raised.is_some()) {
        return None;
    }
    match Python::attach(f) {
        Ok(value) => Some(value),
        Err(error) => {
            CALLS.with_borrow_mut(|calls| {
                if let Some(cancel) = &calls.cancel {
                    cancel.store(true, Ordering::Relaxed);
                }
                calls.raised = Some(error);
            });
            None
        }
    }
}

/// Returns the same text for the rest of the process: the library names rules, passes and parts of
/// patterns by such texts. Each text is kept once.
pub(crate) fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(&text) = kept.get(text) {
        return text;
    }
    let text: &'static str = Box::leak(Box::from(text));
    kept.insert(text);
    text
}
