//! Describes the errors of a module and how to correct them.

use std::fmt::{self, Write as _};

use smol_str::SmolStr;
use tilewright_ir::metadata::MAX_RECOVERY_DEPTH;

/// Why bytes are no module, or a module cannot be written as proto.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtoError {
    /// Where: `computations[2].instructions[7].window`; empty: the whole.
    pub path: String,
    /// The instruction, if it is about one and its name could be read.
    pub instruction: Option<SmolStr>,
    /// The error.
    pub message: String,
    /// Advice on how to correct it.
    pub help: String,
}

impl fmt::Display for ProtoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}", self.path)?;
            if let Some(name) = &self.instruction {
                write!(f, " (`{}`)", name.escape_debug())?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl std::error::Error for ProtoError {}

/// The cause of most errors.
const DAMAGED: &str = "the file is damaged, or was not written by XLA";

impl ProtoError {
    /// Something that no writer of modules does.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_help(message, DAMAGED)
    }

    pub(crate) fn with_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { path: String::new(), instruction: None, message: message.into(), help: help.into() }
    }

    /// Returns the error for a number without a meaning here.
    pub(crate) fn unknown(what: &str, number: impl fmt::Display) -> Self {
        Self::with_help(
            format!("there is no {what} {number}"),
            "it may be of a newer XLA than this version of tilewright knows",
        )
    }

    /// A recovery table in the modules of too many others.
    pub(crate) fn recovery_depth() -> Self {
        let message = format!("recovery tables nest more than {MAX_RECOVERY_DEPTH} deep here");
        Self::with_help(message, "remove those of recovery modules, which XLA does not make")
    }

    /// The same, within this field.
    pub(crate) fn within(mut self, field: &str) -> Self {
        if !self.path.is_empty() && !self.path.starts_with('[') {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, field);
        self
    }

    /// The same, within an element of this repeated field.
    pub(crate) fn within_element(self, field: &str, index: usize) -> Self {
        let mut path = String::new();
        // Writing to a string cannot fail.
        let _ = write!(path, "{field}[{index}]");
        self.within(&path)
    }

    pub(crate) fn of_instruction(mut self, name: &str) -> Self {
        if !name.is_empty() {
            self.instruction = Some(name.into());
        }
        self
    }
}

/// Says in which field something went wrong.
pub(crate) trait Within<T> {
    fn within(self, field: &str) -> Result<T, ProtoError>;
}

impl<T> Within<T> for Result<T, ProtoError> {
    fn within(self, field: &str) -> Self {
        self.map_err(|error| error.within(field))
    }
}

/// Reads every element of a repeated field; an error names the wrong one.
pub(crate) fn each<'a, T: 'a, U, C: FromIterator<U>>(
    field: &str,
    elements: impl IntoIterator<Item = &'a T>,
    mut read: impl FnMut(&'a T) -> Result<U, ProtoError>,
) -> Result<C, ProtoError> {
    let read = |(index, element)| {
        read(element).map_err(|error: ProtoError| error.within_element(field, index))
    };
    elements.into_iter().enumerate().map(read).collect()
}
