//! Syntax errors as plain data.

use std::fmt;
use std::ops::Range;

use crate::span::{LineColumn, LineIndex, Span};

/// The number of reported errors after which the parser gives up.
pub const MAX_ERRORS: usize = 100;

/// A place where text is not HLO.
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
    /// The first occurrence of a part that may occur once.
    pub(crate) first: Option<Span>,
}

impl SyntaxError {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        let at = LineColumn { line: 1, column: 1 };
        Self { span, at, message: message.into(), expected: None, help: None, first: None }
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// The help is where the first of them stands.
    pub(crate) fn first(mut self, first: Option<Span>) -> Self {
        self.first = first;
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
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

/// All that is wrong with a text, in its order; at least one error.
///
/// Draw it with [`crate::render`]; `Display` gives a line for each error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxErrors {
    errors: Vec<SyntaxError>,
    gave_up: bool,
}

impl SyntaxErrors {
    /// Sorts errors found while parsing and finds their lines.
    pub(crate) fn new(mut errors: Vec<SyntaxError>, gave_up: bool, source: &str) -> Self {
        errors.sort_by_key(|error| error.span);
        let lines = LineIndex::new(source);
        for error in &mut errors {
            error.at = lines.at(error.span.start as usize);
            if let Some(first) = error.first {
                let at = lines.at(first.start as usize);
                error.help = Some(format!("the first stands on line {}", at.line));
            }
        }
        Self { errors, gave_up }
    }

    /// One error in a text, which may be of another language than HLO; the hints are the expected
    /// text, and a fix.
    pub fn one(
        source: &str,
        bytes: Range<usize>,
        message: String,
        [expected, help]: [Option<String>; 2],
    ) -> Self {
        let span = Span::new(bytes.start, bytes.end);
        let error = SyntaxError { expected, help, ..SyntaxError::new(span, message) };
        Self::new(vec![error], false, source)
    }

    /// Returns the errors, in the order of the text.
    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }

    /// Checks whether the parser stopped because there were too many errors.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }
}

impl fmt::Display for SyntaxErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        if self.gave_up {
            write!(f, "\nmore errors follow; only the first {MAX_ERRORS} are reported")?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxErrors {}
