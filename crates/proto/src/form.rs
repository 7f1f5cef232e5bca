//! Recognises the message type of bytes.

use prost::encoding::decode_varint;

use crate::wire::{fields, first};

/// Checks whether bytes are a module in binary form rather than text.
///
/// The messages begin with a string or a message, and fields are separated by control
/// characters, which text does not have; text may begin with the same byte, an empty line.
/// A snapshot of a module before optimisation begins with its length instead.
/// Damaged messages count as messages, so that their errors can be reported.
///
/// ```
/// assert!(tilewright_proto::looks_like_proto(b"\x0a\x01m\x12\x04main\x1a"));
/// assert!(!tilewright_proto::looks_like_proto(b"\nHloModule m\n"));
/// ```
pub fn looks_like_proto(bytes: &[u8]) -> bool {
    const LOOKED_AT: usize = 1 << 16;
    let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    // The first four fields of a module, as bytes.
    let begins = matches!(head.first(), Some(0x0a | 0x12 | 0x1a | 0x22)) || begins_delimited(head);
    begins && head.iter().any(is_control)
}

/// Checks whether bytes begin with a length of several bytes and a first field.
fn begins_delimited(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    bytes.first().is_some_and(|&byte| byte >= 0x80)
        && decode_varint(&mut rest).is_ok()
        && rest.first() == Some(&0x0a)
}

/// A message that has a module in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'a> {
    /// `HloModuleProto`, or damaged bytes.
    Module(&'a [u8]),
    /// `HloProto`, or `HloUnoptimizedSnapshot` with its arguments in it.
    Dump(&'a [u8]),
    /// `HloSnapshot`.
    Snapshot(&'a [u8]),
    /// `HloUnoptimizedSnapshot` after its length and before its arguments.
    Delimited {
        /// The message.
        message: &'a [u8],
        /// The arguments, one after another.
        values: &'a [u8],
    },
}

impl<'a> Form<'a> {
    /// Returns the form of bytes.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        if let Some((message, values)) = delimited(bytes) {
            return Self::Delimited { message, values };
        }
        // A module begins with its name instead, which is no message with
        // computations.
        match first(bytes, 1) {
            Some(inner) if is_module(inner) => Self::Dump(bytes),
            Some(inner) if holds_module(inner) => Self::Snapshot(bytes),
            _ => Self::Module(bytes),
        }
    }

    /// Returns the `HloModuleProto`.
    pub(crate) fn module(self) -> &'a [u8] {
        let found = match self {
            Self::Module(bytes) => return bytes,
            Self::Dump(bytes) | Self::Delimited { message: bytes, .. } => first(bytes, 1),
            Self::Snapshot(bytes) => first(bytes, 1).and_then(|dump| first(dump, 1)),
        };
        found.unwrap_or_default()
    }
}

/// Checks whether the first field of a message is a module.
pub(crate) fn holds_module(bytes: &[u8]) -> bool {
    first(bytes, 1).is_some_and(is_module)
}

/// Returns the message that follows its length, and the bytes after it.
fn delimited(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
    rest.split_at_checked(length).filter(|(message, _)| holds_module(message))
}

/// Checks whether a message has computations that have instructions that have opcodes.
fn is_module(bytes: &[u8]) -> bool {
    let well_formed = |bytes: &[u8]| fields(bytes).all(|field| field.is_ok());
    well_formed(bytes)
        && first(bytes, 3)
            .and_then(|computation| first(computation, 2))
            .is_some_and(|instruction| well_formed(instruction) && first(instruction, 2).is_some())
}
