//! Reads and writes MLIR's bytecode: plain, and portable artifacts of StableHLO, whose operations
//! are VHLO's.

pub(crate) mod builtin;
mod cursor;
pub(crate) mod dense;
mod entries;
mod error;
mod file;
mod locations;
pub(crate) mod numbers;
mod operations;
mod sdy;
pub(crate) mod stablehlo;
pub(crate) mod structures;
mod write;

use crate::mlir::Program;

pub use error::{BytecodeError, Section, WriteError};
pub use write::{Format, Version, write};

/// The state that the readers of dialects share.
pub(crate) mod read {
    pub(crate) use super::Read;
    pub(crate) use super::cursor::Cursor;
    pub(crate) use super::entries::Entries;
    pub(crate) use super::{builtin, dense, numbers, stablehlo, structures};
}

/// The first bytes of a file.
pub(crate) const MAGIC: [u8; 4] = *b"ML\xEFR";

/// The result of reading a part of a file.
pub(crate) type Read<T> = Result<T, Box<BytecodeError>>;

/// Checks whether bytes are MLIR's bytecode, by their beginning.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Reads a program from MLIR's bytecode. The result is that of reading the text of the same
/// program; the operations of a portable artifact become StableHLO's.
///
/// # Errors
///
/// Returns the first place that cannot be read.
pub fn read(bytes: &[u8]) -> Result<Program, BytecodeError> {
    program(bytes).map_err(|error| *error)
}

fn program(bytes: &[u8]) -> Read<Program> {
    let file = file::File::read(bytes)?;
    operations::program(&file, bytes.len())
}
