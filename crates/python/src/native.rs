//! The reductions on this CPU, for the registry of custom calls of JAX.

use std::ffi::c_void;
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tilewright::ir::NativeCall;

use crate::error::usage;
use crate::ffi::{self, CallFrame};

/// The least minor version of XLA's interface whose structures are known.
const LEAST_MINOR: i32 = 1;

/// Returns the name of the custom call that reduces arrays, and its handler as JAX registers it, for
/// an XLA with this minor version of the interface for such handlers.
#[pyfunction]
pub(crate) fn ffi_target(py: Python<'_>, minor: i32) -> PyResult<(&'static str, Py<PyCapsule>)> {
    if minor < LEAST_MINOR {
        return Err(usage(format!(
            "version 0.{minor} of XLA's interface for custom calls is too old: 0.{LEAST_MINOR} is \
             needed"
        )));
    }
    ffi::set_minor(minor);
    let handler: unsafe extern "C" fn(*mut CallFrame) -> *mut _ = ffi::tilewright_reduce;
    let pointer = NonNull::new(handler as *mut c_void);
    let pointer = pointer.ok_or_else(|| usage("the handler has no address"))?;
    // SAFETY: a function lives as long as the library, which Python never unloads, and whoever reads
    // a capsule of this name calls it as a handler of XLA.
    let capsule = unsafe { PyCapsule::new_with_pointer(py, pointer, c"xla._CUSTOM_CALL_TARGET") }?;
    Ok((NativeCall::TARGET, capsule.unbind()))
}
