//! Modules.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilewright::ir::Verified;
use tilewright::{Form, Loaded, PrintOptions};

use crate::error::raised;

/// A verified HLO module.
#[pyclass(frozen, module = "tilewright")]
pub(crate) struct Module {
    pub(crate) module: Arc<Verified>,
}

impl From<Verified> for Module {
    fn from(module: Verified) -> Self {
        Self { module: Arc::new(module) }
    }
}

fn made(loaded: Result<Loaded, tilewright::Error>) -> PyResult<Module> {
    Ok(loaded.map_err(|error| raised(&error))?.module.into())
}

#[pymethods]
impl Module {
    /// Reads HLO text.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_text("<text>", text)))
    }

    /// Reads a serialised `HloModuleProto`, `HloProto` or `HloSnapshot`.
    #[staticmethod]
    fn from_proto(py: Python<'_>, proto: &[u8]) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_proto("<proto>", proto)))
    }

    /// Reads a file of HLO text or a proto.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        made(py.detach(|| tilewright::load_file(&path)))
    }

    /// Returns a serialised `HloModuleProto`.
    fn to_proto<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let encoded = py.detach(|| tilewright::encode(&self.module));
        Ok(PyBytes::new(py, &encoded.map_err(|error| raised(&error))?))
    }

    /// The name of the module.
    #[getter]
    fn name(&self) -> &str {
        &self.module.name
    }

    /// The number of instructions in all computations.
    #[getter]
    fn instruction_count(&self) -> usize {
        self.module.instruction_count()
    }

    /// Returns HLO text; `form` is `default`, `short` or `canonical`.
    #[pyo3(signature = (form="default"))]
    fn to_text(&self, py: Python<'_>, form: &str) -> PyResult<String> {
        let form = match form {
            "default" => Form::Default,
            "short" => Form::Short,
            "canonical" => Form::Canonical,
            other => return Err(PyValueError::new_err(format!("there is no form `{other}`"))),
        };
        let options = PrintOptions::default().with_form(form);
        let text = py.detach(|| tilewright::print(&self.module, &options));
        text.map_err(|error| raised(&error))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let text = py.detach(|| tilewright::print(&self.module, &PrintOptions::default()));
        text.map_err(|error| raised(&error))
    }

    fn __repr__(&self) -> String {
        format!("<Module {}: {} instructions>", self.module.name, self.module.instruction_count())
    }
}
