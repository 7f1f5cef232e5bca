//! The exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(tilewright, TilewrightError, PyException, "An error of Tilewright.");

/// Turns an error of the library into an exception with the same message.
pub(crate) fn raised(error: &tilewright::Error) -> PyErr {
    TilewrightError::new_err(error.to_string())
}
