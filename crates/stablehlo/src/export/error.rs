//! The error of the export.

use smol_str::SmolStr;

/// Why a module could not be converted to StableHLO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction `{instruction}`: {message}")]
pub struct ExportError {
    /// The kind of the error.
    pub kind: ExportErrorKind,
    /// The name of the instruction.
    pub instruction: SmolStr,
    /// The error and what to do.
    pub message: String,
}

/// The kinds of [`ExportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExportErrorKind {
    /// StableHLO has no such op, shape or attribute.
    Unsupported,
    /// The module breaks a rule of HLO.
    Invalid,
    /// Calls and regions are nested too deeply.
    TooDeep,
}

/// The result of a step of the export.
pub(super) type Export<T> = Result<T, ExportError>;
