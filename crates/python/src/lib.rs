//! The module `tilewright._core`: the library for Python.
//!
//! Everything that takes long releases the GIL. `python/tilewright/_core.pyi` has the signatures
//! and docstrings that editors show.
//!
//! - `module`, `instruction`, `shape`, `attributes`: modules and their parts; `state` is what
//!   handles refer to.
//! - `edit`, `builder`, `expression`: changes, and modules from nothing.
//! - `optimize`, `run`, `report`, `view`, `compare`, `reduce`: the verbs; `signals` lets Ctrl-C end
//!   them.
//! - `tune`: what measures forms of a module.
//! - `pattern`, `rule`, `replacement`: rewrites in Python; `callback` is how they are called,
//!   and `function` is how they are freed.
//! - `ffi`: reductions on this CPU as custom calls of XLA; `native` hands them to Python.
//! - `value`: arrays from and to NumPy. `error`: the exceptions.

use pyo3::prelude::*;

/// The allocator of the library, as in the command; Python has its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod attributes;
mod builder;
mod callback;
mod compare;
mod edit;
mod error;
mod expression;
mod ffi;
mod function;
mod instruction;
mod module;
mod native;
mod optimize;
mod pattern;
mod reduce;
mod replacement;
mod report;
mod rule;
mod run;
mod shape;
mod signals;
mod state;
mod tune;
mod value;
mod view;

/// The library for Python.
#[pymodule]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::builder::{Builder, Subcomputation, Value};
    #[pymodule_export]
    use crate::compare::diff;
    #[pymodule_export]
    use crate::edit::Edit;
    #[pymodule_export]
    use crate::instruction::{Computation, Instruction};
    #[pymodule_export]
    use crate::module::Module;
    #[pymodule_export]
    use crate::native::{ffi_targets, sealed};
    #[pymodule_export]
    use crate::optimize::optimize;
    #[pymodule_export]
    use crate::pattern::Pattern;
    #[pymodule_export]
    use crate::replacement::{Match, NewValue, Replacement};
    #[pymodule_export]
    use crate::report::{cost, lower, memory, ops, passes, targets};
    #[pymodule_export]
    use crate::rule::{Rule, RuleSet};
    #[pymodule_export]
    use crate::run::{check, parameter_shapes, run, simulate};
    #[pymodule_export]
    use crate::shape::Shape;
    #[pymodule_export]
    use crate::tune::{
        Race, candidates, decisions_path, find_decision, remember_decision, tune_table, widened,
    };
    #[pymodule_export]
    use crate::value::{Buffer, Literal};
    #[pymodule_export]
    use crate::view::{graph, report_page};
}
