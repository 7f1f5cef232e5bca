//! Recognises the message type of bytes.

use crate::wire::fields;

/// Checks whether bytes are a module in binary form rather than text.
///
/// The messages begin with a string or a message, and fields are separated by control
/// characters, which text does not have; text may begin with the same byte, an empty line.
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
    matches!(head.first(), Some(0x0a | 0x12 | 0x1a | 0x22)) && head.iter().any(is_control)
}

/// Returns the `HloModuleProto` in bytes that are one, or an `HloProto` or `HloSnapshot` with
/// one.
pub(crate) fn module_in(bytes: &[u8]) -> &[u8] {
    // A module begins with its name instead, which is no message with
    // computations.
    match first(bytes, 1) {
        Some(inner) if is_module(inner) => inner,
        Some(inner) if snapshot_of(bytes).is_some() => first(inner, 1).unwrap_or(bytes),
        _ => bytes,
    }
}

/// Returns the bytes, if they are an `HloSnapshot`: its first field is an `HloProto`.
pub(crate) fn snapshot_of(bytes: &[u8]) -> Option<&[u8]> {
    let inner = first(bytes, 1).filter(|inner| !is_module(inner))?;
    first(inner, 1).filter(|module| is_module(module)).map(|_| bytes)
}

/// Checks whether a message has computations that have instructions that have opcodes.
fn is_module(bytes: &[u8]) -> bool {
    let well_formed = |bytes: &[u8]| fields(bytes).all(|field| field.is_ok());
    well_formed(bytes)
        && first(bytes, 3)
            .and_then(|computation| first(computation, 2))
            .is_some_and(|instruction| well_formed(instruction) && first(instruction, 2).is_some())
}

/// Returns the first field of this number that holds bytes.
fn first(bytes: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = fields(bytes).map_while(Result::ok);
    fields.find_map(|field| field.payload.filter(|_| field.number == number))
}
