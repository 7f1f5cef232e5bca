//! The wire form of protobuf: just enough to look at messages before they are
//! decoded.

use prost::encoding::{decode_varint, encode_varint};

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
    /// The whole field, number included.
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

/// Returns the fields of a message.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

/// Returns the first field of this number that holds bytes.
pub(crate) fn first(message: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = fields(message).map_while(Result::ok);
    fields.find_map(|field| field.payload.filter(|_| field.number == number))
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

/// Returns the first field and the bytes after it.
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

/// Returns how many bytes of an encoded message precede its first field with a number of at
/// least `number`.
pub(crate) fn position_of(message: &[u8], number: u32) -> usize {
    let before = fields(message).map_while(Result::ok).take_while(|field| field.number < number);
    before.map(|field| field.whole.len()).sum()
}

/// Appends an integer as a field.
pub(crate) fn push_integer(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_varint(u64::from(number) << 3, out);
    encode_varint(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding's specification defines a key as number << 3 | wire type.
    #[test]
    fn fields_are_told_apart() {
        // 1: 5, 2: "x", 3: fixed32
        let message = [8, 5, 18, 1, b'x', 29, 1, 2, 3, 4];
        let found: Vec<_> = fields(&message).map(|field| field.expect("a field")).collect();
        let numbers: Vec<u32> = found.iter().map(|field| field.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!((found[0].varint, found[1].payload), (Some(5), Some(&b"x"[..])));
        assert_eq!(found[2].whole, [29, 1, 2, 3, 4]);
        assert_eq!(position_of(&message, 3), 5);
    }

    #[test]
    fn malformed_messages_are_told() {
        for message in [&[8][..], &[18, 5, 1], &[11], &[0, 1], &[13, 1], &[0x80; 12]] {
            assert_eq!(fields(message).find_map(Result::err), Some(Malformed), "{message:?}");
        }
    }
}
