//! The difference of two modules as graphs.

use std::sync::Arc;

use pyo3::prelude::*;
use tilewright::ir::Verified;
use tilewright::{Loaded, PrintOptions, Source};
use tilewright_tools::diff::{DiffOptions, DiffReport};

use crate::module::Module;
use crate::optimize::json;
use crate::signals::interruptible;

/// The most differences that a page lists, unless more are asked for.
const LISTED_ON_PAGE: usize = 2000;

/// Compares two modules. Returns the report as JSON, as text, and as a page.
#[pyfunction]
#[pyo3(signature = (a, b, *, metadata=false, limit=100))]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Module,
    b: &Module,
    metadata: bool,
    limit: usize,
) -> PyResult<(String, String, String)> {
    let (a, b) = (a.verified(py)?, b.verified(py)?);
    let options = DiffOptions::default().with_metadata(metadata);
    let work = || {
        let (a, b) = (with_text("a", &a), with_text("b", &b));
        let report = DiffReport::new(&a, &b, &options);
        let text = report.text(&a, &b, limit, false);
        let page = report.html(limit.max(LISTED_ON_PAGE));
        Ok((json(&report)?, text.trim_end().to_owned(), page))
    };
    // It ends soon: there is nothing to stop.
    interruptible(py, || (), work)?
}

/// A module with its text, which differences are shown in.
fn with_text(name: &str, module: &Arc<Verified>) -> Loaded {
    let text = tilewright::print(module, &PrintOptions::default());
    let loaded = text.and_then(|text| tilewright::load_text(name, text));
    // A module that text cannot express is compared, too, but no lines of it are shown.
    loaded.unwrap_or_else(|_| Loaded {
        module: module.as_ref().clone(),
        source: Source { name: name.to_owned(), text: Arc::from("") },
        spans: Default::default(),
        recording: None,
        notes: Vec::new(),
        verify_time: None,
    })
}
