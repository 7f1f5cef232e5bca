//! Reductions and programs on this CPU, for the registry of custom calls of JAX.

use std::ffi::c_void;
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tilewright::ir::{NativeCall, NativeProgram};

use crate::error::{raised, usage};
use crate::ffi::{self, CallFrame};
use crate::module::Module;

/// The least minor version of XLA's interface whose structures are known.
const LEAST_MINOR: i32 = 1;

type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut ffi::XlaError;

/// Returns the names of the custom calls, each with its handler as JAX registers it, for an XLA with
/// this minor version of the interface for such handlers.
#[pyfunction]
pub(crate) fn ffi_targets(
    py: Python<'_>,
    minor: i32,
) -> PyResult<Vec<(&'static str, Py<PyCapsule>)>> {
    if minor < LEAST_MINOR {
        return Err(usage(format!(
            "version 0.{minor} of XLA's interface for custom calls is too old: 0.{LEAST_MINOR} is \
             needed"
        )));
    }
    ffi::set_minor(minor);
    let handlers: [(&str, Handler); 2] = [
        (NativeCall::TARGET, ffi::tilewright_reduce),
        (NativeProgram::TARGET, ffi::tilewright_program),
    ];
    let capsules = handlers.into_iter().map(|(name, handler)| {
        let pointer = NonNull::new(handler as *mut c_void);
        let pointer = pointer.ok_or_else(|| usage("the handler has no address"))?;
        // SAFETY: a function lives as long as the library, which Python never unloads, and whoever
        // reads a capsule of this name calls it as a handler of XLA.
        let capsule =
            unsafe { PyCapsule::new_with_pointer(py, pointer, c"xla._CUSTOM_CALL_TARGET") }?;
        Ok((name, capsule.unbind()))
    });
    capsules.collect()
}

/// Returns a module as it is handed to XLA: calls of programs have their text.
#[pyfunction]
pub(crate) fn sealed(py: Python<'_>, module: &Module) -> PyResult<Module> {
    let module = module.verified(py)?;
    let sealed = tilewright::native::sealed(&module).map_err(|error| raised(&error))?;
    Ok(sealed.unwrap_or_else(|| module.as_ref().clone()).into())
}
