//! The error of the import.

use crate::mlir::{Operation, Span};

/// Why a program could not be converted to HLO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ImportError {
    /// The kind of the error.
    pub kind: ImportErrorKind,
    /// The operation in the file.
    pub span: Span,
    /// The error and what to do.
    pub message: String,
}

/// The kinds of [`ImportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImportErrorKind {
    /// HLO has no such op, attribute or type, or it is not known here.
    Unsupported,
    /// An operation lacks a part that its definition requires.
    Malformed,
    /// Functions or regions are nested too deeply, or functions call themselves.
    TooDeep,
    /// The resulting module breaks a rule of HLO.
    Invalid,
}

/// The result of a step of the import.
pub(super) type Import<T> = Result<T, ImportError>;

impl ImportError {
    pub(super) fn new(kind: ImportErrorKind, span: Span, message: impl Into<String>) -> Self {
        Self { kind, span, message: message.into() }
    }

    /// An operation that cannot be expressed in HLO.
    pub(super) fn unsupported(operation: &Operation, why: &str) -> Self {
        let message = format!("`{}` {why}", operation.name);
        Self::new(ImportErrorKind::Unsupported, operation.span, message)
    }

    /// An operation that breaks its own definition.
    pub(super) fn malformed(operation: &Operation, why: &str) -> Self {
        let message = format!("`{}` {why}", operation.name);
        Self::new(ImportErrorKind::Malformed, operation.span, message)
    }
}
