//! The structures of XLA's `xla/ffi/api/c_api.h`, versions 0.1 to 0.5, as far as reductions need
//! them. Newer versions add fields at the ends; every structure begins with its size.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// The major version of the interface, `XLA_FFI_API_MAJOR`.
pub(crate) const MAJOR: i32 = 0;

/// `XLA_FFI_Error_Code_INVALID_ARGUMENT`.
pub(crate) const INVALID_ARGUMENT: i32 = 3;
/// `XLA_FFI_Error_Code_INTERNAL`.
pub(crate) const INTERNAL: i32 = 13;

/// `XLA_FFI_Extension_Metadata`.
pub(crate) const METADATA: i32 = 1;
/// `XLA_FFI_ExecutionStage_EXECUTE`.
pub(crate) const EXECUTE: i32 = 3;
/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
pub(crate) const BUFFER: i32 = 1;
/// `XLA_FFI_AttrType_ARRAY`.
pub(crate) const ARRAY: i32 = 1;
/// `XLA_FFI_AttrType_STRING`.
pub(crate) const STRING: i32 = 4;

/// `XLA_FFI_DataType`: the types of elements that reductions are made for.
pub(crate) mod data_type {
    pub(crate) const PRED: i32 = 1;
    pub(crate) const S32: i32 = 4;
    pub(crate) const S64: i32 = 5;
    pub(crate) const U8: i32 = 6;
    pub(crate) const F16: i32 = 10;
    pub(crate) const F32: i32 = 11;
    pub(crate) const F64: i32 = 12;
    pub(crate) const BF16: i32 = 16;
}

/// Checks whether a structure that says that it has `size` bytes has the first `least`.
pub(crate) fn has(size: usize, least: usize) -> bool {
    size >= least
}

/// An error, which is XLA's own.
#[repr(C)]
pub(crate) struct XlaError {
    _private: [u8; 0],
}

/// The state of an execution, which is XLA's own.
#[repr(C)]
pub(crate) struct Context {
    _private: [u8; 0],
}

/// `XLA_FFI_InternalExtension`; before version 0.5, `XLA_FFI_Extension_Base`.
#[repr(C)]
pub(crate) struct Extension {
    pub(crate) struct_size: usize,
    pub(crate) kind: i32,
    pub(crate) next: *mut Extension,
}

/// `XLA_FFI_Api_Version`.
#[repr(C)]
pub(crate) struct ApiVersion {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) major: i32,
    pub(crate) minor: i32,
}

/// `XLA_FFI_Metadata`, up to its traits: the type of a state follows in newer versions, and 0, as
/// it is passed, says that there is none.
#[repr(C)]
pub(crate) struct Metadata {
    pub(crate) struct_size: usize,
    pub(crate) api_version: ApiVersion,
    pub(crate) traits: u32,
}

impl Metadata {
    pub(crate) const LEAST: usize = offset_of!(Self, traits) + size_of::<u32>();
}

/// `XLA_FFI_Metadata_Extension`.
#[repr(C)]
pub(crate) struct MetadataExtension {
    pub(crate) base: Extension,
    pub(crate) metadata: *mut Metadata,
}

/// `XLA_FFI_Buffer`.
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) data_type: i32,
    pub(crate) data: *mut c_void,
    pub(crate) rank: i64,
    pub(crate) dims: *const i64,
}

/// `XLA_FFI_ByteSpan`.
#[repr(C)]
pub(crate) struct ByteSpan {
    pub(crate) start: *const u8,
    pub(crate) len: usize,
}

/// `XLA_FFI_Array`.
#[repr(C)]
pub(crate) struct Array {
    pub(crate) data_type: i32,
    pub(crate) size: usize,
    pub(crate) data: *const c_void,
}

/// `XLA_FFI_Args` and `XLA_FFI_Rets`.
#[repr(C)]
pub(crate) struct Values {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) size: i64,
    pub(crate) types: *const i32,
    pub(crate) values: *const *const c_void,
}

/// `XLA_FFI_Attrs`.
#[repr(C)]
pub(crate) struct Attributes {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) size: i64,
    pub(crate) types: *const i32,
    pub(crate) names: *const *const ByteSpan,
    pub(crate) values: *const *const c_void,
}

/// `XLA_FFI_CallFrame`, up to its attributes: a future follows, of which reductions have no need.
#[repr(C)]
pub(crate) struct CallFrame {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) api: *const Api,
    pub(crate) context: *mut Context,
    pub(crate) stage: i32,
    pub(crate) args: Values,
    pub(crate) rets: Values,
    pub(crate) attrs: Attributes,
}

impl CallFrame {
    pub(crate) const LEAST: usize = size_of::<Self>();
}

/// `XLA_FFI_Error_Create_Args`.
#[repr(C)]
pub(crate) struct ErrorCreateArgs {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) message: *const c_char,
    pub(crate) code: i32,
}

impl ErrorCreateArgs {
    pub(crate) const SIZE: usize = offset_of!(Self, code) + size_of::<i32>();
}

/// `XLA_FFI_Error_Destroy_Args`.
#[repr(C)]
pub(crate) struct ErrorDestroyArgs {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) error: *mut XlaError,
}

/// A task for XLA's threads.
pub(crate) type Task = unsafe extern "C" fn(*mut c_void);

/// `XLA_FFI_ThreadPool_Schedule_Args`.
#[repr(C)]
pub(crate) struct ScheduleArgs {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) context: *mut Context,
    pub(crate) task: Task,
    pub(crate) data: *mut c_void,
}

/// `XLA_FFI_ThreadPool_NumThreads_Args`.
#[repr(C)]
pub(crate) struct NumThreadsArgs {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) context: *mut Context,
    pub(crate) threads: *mut i64,
}

/// A function of XLA's that takes a structure.
type Function<A> = Option<unsafe extern "C" fn(*mut A) -> *mut XlaError>;

/// `XLA_FFI_Api`, up to the functions of the pool.
#[repr(C)]
pub(crate) struct Api {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut Extension,
    pub(crate) version: ApiVersion,
    pub(crate) internal: *const c_void,
    pub(crate) error_create: Function<ErrorCreateArgs>,
    pub(crate) error_details: *const c_void,
    pub(crate) error_destroy: Option<unsafe extern "C" fn(*mut ErrorDestroyArgs)>,
    /// Handlers, streams, types, states and memory of devices.
    pub(crate) others: [*const c_void; 8],
    pub(crate) schedule: Function<ScheduleArgs>,
    pub(crate) num_threads: Function<NumThreadsArgs>,
}
