//! The wire form of protobuf: just enough to look at messages before they are
//! decoded, and to keep of them what the schema does not know.
//!
//! **Residue.** Fields that are not declared in `proto/hlo.proto`, from a newer
//! XLA or without a place in the ir, are cut out of a message as a message of
//! their own, nested where they were nested:
//!
//! ```text
//! {name: "add"  metadata: {op_name: "f"  ?200: 7}  ?300: "new"}
//!                       residue: {metadata: {?200: 7}  ?300: "new"}
//! ```
//!
//! Protobuf merges messages that stand behind each other, so appending the
//! residue to the message written anew gives all of it back. Only messages
//! that a field holds once can be merged so: what is unknown within the
//! elements of a repeated field is lost.

use prost::encoding::{decode_varint, encode_varint};

/// What the schema says of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Known as a whole.
    Leaf,
    /// A message with these fields, at most once.
    Message(&'static [(u32, Known)]),
}

/// The bytes are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A field as it stands on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    /// Its value, if it is a single integer.
    pub(crate) varint: Option<u64>,
    /// Its bytes, if it is a string, bytes, a message or packed.
    pub(crate) payload: Option<&'a [u8]>,
    /// All of it, number included.
    pub(crate) whole: &'a [u8],
}

/// The fields of a message, up to the first that is malformed.
pub(crate) struct Fields<'a>(&'a [u8]);

impl Field<'_> {
    /// Appends its integers, packed or not.
    pub(crate) fn push_integers(&self, out: &mut impl Extend<i64>) -> Result<(), Malformed> {
        out.extend(self.varint.map(u64::cast_signed));
        let mut packed = self.payload.unwrap_or_default();
        while !packed.is_empty() {
            let value = decode_varint(&mut packed).map_err(|_| Malformed)?;
            out.extend([value.cast_signed()]);
        }
        Ok(())
    }
}

/// The fields of a message.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = split_field(self.0);
        match field {
            Some((field, rest)) => {
                self.0 = rest;
                Some(Ok(field))
            }
            None => {
                self.0 = &[];
                Some(Err(Malformed))
            }
        }
    }
}

/// The first field and the bytes after it.
fn split_field(message: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let mut rest = message;
    let key = decode_varint(&mut rest).ok()?;
    let number = u32::try_from(key >> 3).ok().filter(|&number| number != 0)?;
    let (mut varint, mut payload) = (None, None);
    rest = match key & 7 {
        0 => {
            varint = Some(decode_varint(&mut rest).ok()?);
            rest
        }
        1 => rest.get(8..)?,
        2 => {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            let (inside, after) = rest.split_at_checked(length)?;
            payload = Some(inside);
            after
        }
        5 => rest.get(4..)?,
        // Groups left protobuf before XLA began.
        _ => return None,
    };
    let whole = message.get(..message.len().checked_sub(rest.len())?)?;
    Some((Field { number, varint, payload, whole }, rest))
}

/// The fields that the schema does not know, as a message; see the file's
/// head.
pub(crate) fn residue(message: &[u8], known: &[(u32, Known)]) -> Result<Vec<u8>, Malformed> {
    let mut left = Vec::new();
    for field in fields(message) {
        let field = field?;
        // Numbers ascend in the schema.
        match known.binary_search_by_key(&field.number, |&(number, _)| number) {
            Err(_) => left.extend_from_slice(field.whole),
            Ok(at) => {
                if let (Some(&(_, Known::Message(inner))), Some(payload)) =
                    (known.get(at), field.payload)
                {
                    push_message(&mut left, field.number, &residue(payload, inner)?);
                }
            }
        }
    }
    Ok(left)
}

/// Takes a nested message out of a residue.
pub(crate) fn take_message(residue: &mut Vec<u8>, number: u32) -> Vec<u8> {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    for field in fields(residue).flatten() {
        match field.payload {
            Some(payload) if field.number == number => taken.extend_from_slice(payload),
            _ => left.extend_from_slice(field.whole),
        }
    }
    *residue = left;
    taken
}

/// Appends a message as a field, unless it is empty.
pub(crate) fn push_message(out: &mut Vec<u8>, number: u32, message: &[u8]) {
    if !message.is_empty() {
        push_bytes(out, number, message);
    }
}

/// Appends bytes, a string or a message as a field.
pub(crate) fn push_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_varint(u64::from(number) << 3 | 2, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A message with its residue, fields in the order of their numbers, as XLA
/// writes them.
pub(crate) fn with_residue(mut message: Vec<u8>, residue: &[u8]) -> Vec<u8> {
    if residue.is_empty() {
        return message;
    }
    message.extend_from_slice(residue);
    let Ok(mut all) = fields(&message).collect::<Result<Vec<_>, _>>() else { return message };
    // Stable: fields of one number keep their order.
    all.sort_by_key(|field| field.number);
    all.iter().flat_map(|field| field.whole).copied().collect()
}

/// How many bytes of an encoded message precede its first field with a number
/// of at least `number`.
pub(crate) fn position_of(message: &[u8], number: u32) -> usize {
    let before = fields(message).map_while(Result::ok).take_while(|field| field.number < number);
    before.map(|field| field.whole.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: &[(u32, Known)] = &[(1, Known::Leaf)];
    const OUTER: &[(u32, Known)] = &[(1, Known::Leaf), (2, Known::Message(INNER))];

    /// By the encoding's specification: a key is number << 3 | wire type.
    #[test]
    fn residue_is_what_is_unknown_at_every_level() {
        // 1: 5, 2: {1: 6, 9: 7}, 3: fixed32, 4: "x"
        let message = [8, 5, 18, 4, 8, 6, 72, 7, 29, 1, 2, 3, 4, 34, 1, b'x'];
        let left = residue(&message, OUTER).expect("a message");
        assert_eq!(left, [18, 2, 72, 7, 29, 1, 2, 3, 4, 34, 1, b'x']);
        let mut rest = left;
        assert_eq!(take_message(&mut rest, 2), [72, 7]);
        assert_eq!(rest, [29, 1, 2, 3, 4, 34, 1, b'x']);
        assert_eq!(position_of(&message, 3), 8);
    }

    #[test]
    fn malformed_messages_are_told() {
        for message in [&[8][..], &[18, 5, 1], &[11], &[0, 1], &[13, 1], &[0x80; 12]] {
            assert_eq!(residue(message, OUTER), Err(Malformed), "{message:?}");
        }
    }
}
