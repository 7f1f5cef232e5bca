//! Reductions and programs as custom calls of XLA, by its typed foreign function interface (FFI).
//!
//! XLA calls [`tilewright_reduce`] or [`tilewright_program`] with a *call frame* (`abi`): buffers,
//! attributes, and functions of its own. `frame` checks all of it and makes slices, `kernel` chooses
//! the reduction by types and attributes, `program` reads the program, and `pool` runs tasks on XLA's
//! threads. Whatever is wrong becomes an error of
//! XLA, and no panic leaves a call.

mod abi;
mod frame;
mod kernel;
mod pool;
mod program;
#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use tilewright::ir::{NativeCall, NativeProgram};

use abi::{Api, ErrorCreateArgs, Extension, Metadata, MetadataExtension, has};
pub(crate) use abi::{CallFrame, XlaError};
use frame::{Call, Frame, ProgramCall};
use pool::XlaPool;

/// The newest minor version of the interface whose header was read: `XLA_FFI_API_MINOR`.
const NEWEST_MINOR: i32 = 5;

/// The minor version that the handler says it was built for.
static MINOR: AtomicI32 = AtomicI32::new(NEWEST_MINOR);

/// Sets the minor version of the XLA that the handler is registered with: XLA took handlers of its
/// own version alone for long. Versions after [`NEWEST_MINOR`] add fields at the ends of structures,
/// and XLA takes older handlers there.
pub(crate) fn set_minor(minor: i32) {
    MINOR.store(minor.min(NEWEST_MINOR), Ordering::Relaxed);
}

/// Why a call is refused, with a code of XLA's.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    /// The arguments are wrong.
    fn invalid(message: impl Into<String>) -> Self {
        Self { code: abi::INVALID_ARGUMENT, message: message.into() }
    }
}

impl From<tilewright_native::Error> for Refusal {
    fn from(error: tilewright_native::Error) -> Self {
        let code = match error {
            tilewright_native::Error::Unfinished => abi::INTERNAL,
            _ => abi::INVALID_ARGUMENT,
        };
        Self { code, message: error.to_string() }
    }
}

/// Reduces the only argument along the attribute `axes` by the attribute `fold`, and writes the
/// results to the only result, row major. [`tilewright::ir::NativeFold`] lists the folds.
///
/// The metadata of the handler are told whoever asks for them. Returns null, or an error of XLA.
///
/// # Safety
/// `frame` must be a frame as XLA passes it to handlers: what it points to must be of the sizes that
/// it says, and nobody else may write its buffers meanwhile.
pub(crate) unsafe extern "C" fn tilewright_reduce(frame: *mut CallFrame) -> *mut XlaError {
    let reduce = |frame: &Frame<'_>, pool: &XlaPool<'_>| kernel::run(Call::read(frame)?, pool);
    // SAFETY: as the caller says.
    unsafe { handle(frame, NativeCall::TARGET, reduce) }
}

/// Computes the results by the program whose text is the attribute `program`, as
/// [`tilewright::native::sealed`] writes it.
///
/// # Safety
/// As for [`tilewright_reduce`].
pub(crate) unsafe extern "C" fn tilewright_program(frame: *mut CallFrame) -> *mut XlaError {
    let run = |frame: &Frame<'_>, pool: &XlaPool<'_>| program::run(ProgramCall::read(frame)?, pool);
    // SAFETY: as the caller says.
    unsafe { handle(frame, NativeProgram::TARGET, run) }
}

/// Handles a call frame of the target `name`.
///
/// # Safety
/// As for [`tilewright_reduce`].
unsafe fn handle(
    frame: *mut CallFrame,
    name: &str,
    work: impl Fn(&Frame<'_>, &XlaPool<'_>) -> Result<(), Refusal>,
) -> *mut XlaError {
    // SAFETY: every version of the frame begins with its size.
    let Some(size) = (unsafe { frame.cast::<usize>().as_ref() }) else { return null_mut() };
    if !has(*size, CallFrame::LEAST) {
        // Without a frame there is nobody to tell.
        return null_mut();
    }
    // SAFETY: it has all fields up to the attributes, which alone are read.
    let frame = unsafe { Frame::new(frame) };
    if let Some(extension) = frame.metadata() {
        // SAFETY: XLA keeps the extension and what it points to for the call.
        unsafe { tell(extension) };
        return null_mut();
    }
    let Some(api) = frame.api() else { return null_mut() };
    let pool = XlaPool::new(api, frame.context());
    let refusal = match catch_unwind(AssertUnwindSafe(|| work(&frame, &pool))) {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(refusal)) => refusal,
        Err(_) => Refusal { code: abi::INTERNAL, message: "the call panicked".into() },
    };
    error(api, name, &refusal)
}

/// Fills in the version of the interface and the traits of the handler, of which it has none.
///
/// # Safety
/// `extension` must be as large as it says, and its metadata writable.
unsafe fn tell(extension: *mut Extension) {
    // SAFETY: the caller says so of the size, which is compared before more is read.
    let Some(size) = (unsafe { extension.cast::<usize>().as_ref() }) else { return };
    if !has(*size, size_of::<MetadataExtension>()) {
        return;
    }
    // SAFETY: an extension of this kind and size is a `MetadataExtension`.
    let metadata = unsafe { (*extension.cast::<MetadataExtension>()).metadata };
    // SAFETY: metadata begin with their size.
    let Some(size) = (unsafe { metadata.cast::<usize>().as_ref() }) else { return };
    if !has(*size, Metadata::LEAST) {
        return;
    }
    // SAFETY: the fields are within the size that the metadata have, and theirs alone are written.
    unsafe {
        (*metadata).api_version.major = abi::MAJOR;
        (*metadata).api_version.minor = MINOR.load(Ordering::Relaxed);
        (*metadata).traits = 0;
    }
}

/// Makes an error of XLA.
fn error(api: &Api, name: &str, refusal: &Refusal) -> *mut XlaError {
    let message = format!("{name}: {}", refusal.message).replace('\0', "?");
    let message = CString::new(message).unwrap_or_default();
    let mut args = ErrorCreateArgs {
        struct_size: ErrorCreateArgs::SIZE,
        extension_start: null_mut(),
        message: message.as_ptr(),
        code: refusal.code,
    };
    // SAFETY: the arguments are as the header says; XLA copies the message.
    api.error_create.map_or(null_mut(), |create| unsafe { create(&raw mut args) })
}
