//! Syntax errors as plain data.

use std::fmt;

use crate::mlir::Span;

/// A place as people count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
}

impl LineColumn {
    /// Returns the place of a byte.
    pub(super) fn of(source: &str, offset: usize) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let last = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(last..).unwrap_or("").chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A place where a text is not MLIR, or is MLIR that this reader does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The bytes of the source that are wrong.
    pub span: Span,
    /// The line and column where they begin.
    pub at: LineColumn,
    /// The error.
    pub message: String,
    /// The expected text, if there is only one possibility.
    pub expected: Option<String>,
    /// A hint for a fix.
    pub help: Option<String>,
}

impl SyntaxError {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Box<Self> {
        let at = LineColumn { line: 1, column: 1 };
        Box::new(Self { span, at, message: message.into(), expected: None, help: None })
    }

    pub(super) fn expected(mut self: Box<Self>, expected: impl Into<String>) -> Box<Self> {
        self.expected = Some(expected.into());
        self
    }

    pub(super) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}
