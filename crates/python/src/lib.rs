//! The module `tilewright._core`: the library for Python.
//!
//! Everything that takes long releases the GIL. `python/tilewright/_core.pyi` has the signatures
//! and docstrings that editors show.

use pyo3::prelude::*;

/// The allocator of the library, as in the command; Python has its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod error;
mod module;
mod optimize;

/// The library for Python.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::error::TilewrightError;
    #[pymodule_export]
    use crate::module::Module;
    #[pymodule_export]
    use crate::optimize::optimize;
}
