//! Optimisation, and its report.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::report::OptReport;
use tilewright::{FloatMode, Options};

use crate::error::{TilewrightError, raised};
use crate::module::Module;

/// Optimises a module. Returns the result, the report as JSON, as text, and the explanation.
#[pyfunction]
#[pyo3(signature = (module, target, *, exact=false, fast_math=false))]
pub(crate) fn optimize(
    py: Python<'_>,
    module: &Module,
    target: &str,
    exact: bool,
    fast_math: bool,
) -> PyResult<(Module, String, String, String)> {
    let float_mode = match (exact, fast_math) {
        (true, true) => {
            return Err(PyValueError::new_err("exact and fast_math exclude each other"));
        }
        (true, false) => FloatMode::Exact,
        (false, true) => FloatMode::Fast,
        (false, false) => FloatMode::default(),
    };
    let verified = module.module.as_ref().clone();
    let done = py.detach(|| {
        let options = Options::new(tilewright::target(target)?).with_float_mode(float_mode);
        tilewright::optimize(verified, &options)
    });
    let done = done.map_err(|error| raised(&error))?;
    let report = serde_json::to_string(&OptReport::from(&done.report));
    let report = report.map_err(|error| TilewrightError::new_err(error.to_string()))?;
    let explanation = done.report.explanation().to_string();
    Ok((done.module.into(), report, done.report.to_string(), explanation))
}
