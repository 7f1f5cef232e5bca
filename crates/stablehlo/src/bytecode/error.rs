//! Errors of the reader and the writer as plain data.

use std::fmt;

/// A part of a bytecode file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The magic bytes, the version, the producer and the headers of the sections.
    File,
    /// The strings.
    Strings,
    /// The dialects and the names of operations.
    Dialects,
    /// The encodings of attributes and types.
    Attributes,
    /// The sizes of these encodings.
    AttributeOffsets,
    /// The operations.
    Operations,
    /// The contents of resources.
    Resources,
    /// The sizes of resources.
    ResourceOffsets,
    /// The properties of operations.
    Properties,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "the file",
            Self::Strings => "the section of strings",
            Self::Dialects => "the section of dialects",
            Self::Attributes => "the section of attributes and types",
            Self::AttributeOffsets => "the section of the sizes of attributes and types",
            Self::Operations => "the section of operations",
            Self::Resources => "the section of resources",
            Self::ResourceOffsets => "the section of the sizes of resources",
            Self::Properties => "the section of properties",
        })
    }
}

/// A place where bytes are not MLIR bytecode, or are bytecode that this reader does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytecodeError {
    /// The section.
    pub section: Section,
    /// The offset in the file.
    pub offset: usize,
    /// The error.
    pub message: String,
    /// A hint for a fix.
    pub help: Option<String>,
}

impl BytecodeError {
    pub(crate) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for BytecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} in {}: {}", self.offset, self.section, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BytecodeError {}

/// A program that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{operation}` cannot be written: {message}")]
pub struct WriteError {
    /// The name of the operation.
    pub operation: String,
    /// The reason.
    pub message: String,
}
