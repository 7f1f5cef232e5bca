//! Costs and kernels of modules, and lists of what there is.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use serde::Serialize;
use tilewright::Options;
use tilewright::listing::{OpList, PassList, TargetList};
use tilewright::lowering;
use tilewright::report::{CostReport, MemoryReport};

use crate::error::{ExceptionKind, plain, raised, usage};
use crate::module::Module;
use crate::optimize::json;
use crate::signals::interruptible;

/// The costs of a module on a target, as JSON and as text.
#[pyfunction]
pub(crate) fn cost(py: Python<'_>, module: &Module, target: &str) -> PyResult<(String, String)> {
    let module = module.verified(py)?;
    let target = tilewright::target(target).map_err(|error| raised(&error))?;
    let cancel = Arc::new(AtomicBool::new(false));
    let work = || {
        let report = CostReport::with_cancel(&module, &target, &cancel);
        let report = report.map_err(|error| raised(&error))?;
        let report =
            report.ok_or_else(|| plain(ExceptionKind::Other, "the costs were cancelled"))?;
        Ok((json(&report)?, report.to_string()))
    };
    interruptible(py, || cancel.store(true, Ordering::Relaxed), work)?
}

/// The memory of a module's arrays on a target, as JSON and as text.
#[pyfunction]
pub(crate) fn memory(py: Python<'_>, module: &Module, target: &str) -> PyResult<(String, String)> {
    let module = module.verified(py)?;
    let target = tilewright::target(target).map_err(|error| raised(&error))?;
    let cancel = Arc::new(AtomicBool::new(false));
    let options = Options::new(target).with_cancel(Arc::clone(&cancel));
    let work = || {
        let report = MemoryReport::with_options(&module, &options);
        let report = report.map_err(|error| raised(&error))?;
        Ok((json(&report)?, report.to_string()))
    };
    interruptible(py, || cancel.store(true, Ordering::Relaxed), work)?
}

/// The strategy of a name; the default one without a name.
pub(crate) fn strategy_of(name: Option<&str>) -> PyResult<lowering::Strategy> {
    name.map_or_else(|| Ok(lowering::Strategy::default()), |name| name.parse().map_err(usage))
}

/// The kernels of a module, or the plans of its reduces, as JSON and as text.
#[pyfunction]
#[pyo3(signature = (module, target, *, strategy=None, plan=false))]
pub(crate) fn lower(
    py: Python<'_>,
    module: &Module,
    target: &str,
    strategy: Option<&str>,
    plan: bool,
) -> PyResult<(String, String)> {
    let module = module.verified(py)?;
    let strategy = strategy_of(strategy)?;
    let target = tilewright::target(target).map_err(|error| raised(&error))?;
    let cancel = Arc::new(AtomicBool::new(false));
    let work = || {
        Ok(if plan {
            both(&lowering::plans_with_cancel(&module, &target, strategy, &cancel)?)
        } else {
            both(&lowering::module_kernels_with_cancel(&module, &target, strategy, &cancel)?)
        })
    };
    let done = interruptible(py, || cancel.store(true, Ordering::Relaxed), work)?;
    done.map_err(|error: tilewright::Error| raised(&error))?
}

/// Reports as JSON, and as text with empty lines between them.
fn both<T: Display + Serialize>(all: &[T]) -> PyResult<(String, String)> {
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    Ok((json(&all)?, texts.join("\n\n")))
}

/// Every pass and pipeline, as JSON and as text.
#[pyfunction]
pub(crate) fn passes() -> PyResult<(String, String)> {
    let list = PassList::new();
    Ok((json(&list)?, list.to_string()))
}

/// Every op, as JSON and as text.
#[pyfunction]
pub(crate) fn ops() -> PyResult<(String, String)> {
    let list = OpList::new();
    Ok((json(&list)?, list.to_string()))
}

/// Every target, as JSON and as text.
#[pyfunction]
pub(crate) fn targets() -> PyResult<(String, String)> {
    let list = TargetList::new().map_err(|error| raised(&error))?;
    Ok((json(&list)?, list.to_string()))
}
