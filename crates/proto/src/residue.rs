//! Keeps the parts of a message that the schema does not declare, and puts them back.
//!
//! **Residue.** Fields that are not declared in `proto/hlo.proto`, from a newer XLA or without
//! a place in the ir, are cut out of a message into a message of their own, with the same
//! nesting:
//!
//! ```text
//! {name: "add"  metadata: {op_name: "f"  ?200: 7}  ?300: "new"}
//!                       residue: {metadata: {?200: 7}  ?300: "new"}
//! ```
//!
//! The parts cut out of the elements of a repeated field are stored once, with the number of
//! elements and the places of the cut ones:
//!
//! ```text
//! {tiles: {dimensions: 8}  tiles: {dimensions: 2  ?200: 7}}
//!                       residue: {tiles: {count: 2  element: {index: 1  residue: {?200: 7}}}}
//! ```
//!
//! It is put back if the newly written message has as many elements; the residue of a list with
//! another length is dropped.

use smallvec::SmallVec;

use crate::wire::{Field, Malformed, fields, push_bytes, push_integer, push_message};

/// The schema of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Known as a whole.
    Leaf,
    /// A message of these fields, at most once.
    Message(Schema),
    /// Any number of messages of these fields.
    Repeated(Schema),
}

/// The fields of a message by their numbers, which ascend.
pub(crate) type Schema = &'static [(u32, Known)];

pub(crate) fn lookup(known: &[(u32, Known)], number: u32) -> Option<Known> {
    let at = known.binary_search_by_key(&number, |&(number, _)| number).ok()?;
    known.get(at).map(|&(_, known)| known)
}

/// Returns the residue of a message.
pub(crate) fn residue(message: &[u8], known: &[(u32, Known)]) -> Result<Vec<u8>, Malformed> {
    let mut left = Vec::new();
    let mut lists: SmallVec<[Elements; 2]> = SmallVec::new();
    for field in fields(message) {
        let field = field?;
        match (lookup(known, field.number), field.payload) {
            (None, _) => left.extend_from_slice(field.whole),
            (Some(Known::Message(inner)), Some(payload)) => {
                push_message(&mut left, field.number, &residue(payload, inner)?);
            }
            (Some(Known::Repeated(inner)), Some(payload)) => {
                let elements = Elements::of(&mut lists, field.number);
                elements.push(&residue(payload, inner)?);
            }
            (Some(_), _) => {}
        }
    }
    for elements in lists.iter().filter(|elements| !elements.residues.is_empty()) {
        push_bytes(&mut left, elements.number, &elements.message());
    }
    Ok(left)
}

const COUNT: u32 = 1;
const ELEMENT: u32 = 2;
const INDEX: u32 = 1;
const RESIDUE: u32 = 2;

/// The elements of a repeated field.
struct Elements {
    number: u32,
    count: u64,
    /// The residues of elements that have one, by index.
    residues: Vec<(u64, Vec<u8>)>,
}

impl Elements {
    /// Returns the elements of one field.
    fn of(lists: &mut SmallVec<[Self; 2]>, number: u32) -> &mut Self {
        let at = lists.iter().position(|elements| elements.number == number);
        let at = at.unwrap_or_else(|| {
            lists.push(Self { number, count: 0, residues: Vec::new() });
            lists.len() - 1
        });
        &mut lists[at]
    }

    fn push(&mut self, residue: &[u8]) {
        if !residue.is_empty() {
            self.residues.push((self.count, residue.to_owned()));
        }
        self.count = self.count.saturating_add(1);
    }

    fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_integer(&mut out, COUNT, self.count);
        for (index, residue) in &self.residues {
            let mut element = Vec::new();
            push_integer(&mut element, INDEX, *index);
            push_bytes(&mut element, RESIDUE, residue);
            push_bytes(&mut out, ELEMENT, &element);
        }
        out
    }

    fn read(number: u32, message: &[u8]) -> Self {
        let mut elements = Self { number, count: 0, residues: Vec::new() };
        for field in fields(message).flatten() {
            match (field.number, field.payload) {
                (COUNT, _) => elements.count = field.varint.unwrap_or_default(),
                (ELEMENT, Some(element)) => elements.residues.extend(read_element(element)),
                _ => {}
            }
        }
        elements
    }

    /// Returns the residue of the element at a place.
    fn at(&self, index: u64) -> &[u8] {
        let found = self.residues.binary_search_by_key(&index, |&(index, _)| index);
        found.ok().and_then(|at| self.residues.get(at)).map_or(&[], |(_, residue)| residue)
    }
}

fn read_element(message: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut found = fields(message).flatten();
    let index = found.next()?.varint?;
    let residue = found.next()?.payload?;
    Some((index, residue.to_owned()))
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

/// Returns a message with its residue, fields in the order of their numbers, as XLA writes
/// them.
pub(crate) fn with_residue(message: Vec<u8>, residue: &[u8], known: &[(u32, Known)]) -> Vec<u8> {
    if residue.is_empty() {
        return message;
    }
    merged(&message, residue, known).unwrap_or(message)
}

fn merged(message: &[u8], residue: &[u8], known: &[(u32, Known)]) -> Result<Vec<u8>, Malformed> {
    let written = fields(message).collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<(u32, Vec<u8>)> =
        written.iter().map(|field| (field.number, field.whole.to_owned())).collect();
    for field in fields(residue) {
        let field = field?;
        match (lookup(known, field.number), field.payload) {
            (Some(Known::Message(inner)), Some(left)) => {
                let nested = put_back(&written, &mut all, field.number, left, inner)?;
                all.extend(nested.map(|whole| (field.number, whole)));
            }
            (Some(Known::Repeated(inner)), Some(left)) => {
                let elements = Elements::read(field.number, left);
                put_back_each(&written, &mut all, &elements, inner)?;
            }
            _ => all.push((field.number, field.whole.to_owned())),
        }
    }
    // Stable: fields of one number keep their order.
    all.sort_by_key(|&(number, _)| number);
    Ok(all.into_iter().flat_map(|(_, whole)| whole).collect())
}

/// Puts a residue into the message that a field holds; where the field was not
/// written, it is returned with the residue alone.
fn put_back(
    written: &[Field<'_>],
    all: &mut [(u32, Vec<u8>)],
    number: u32,
    residue: &[u8],
    known: Schema,
) -> Result<Option<Vec<u8>>, Malformed> {
    let whole = |message: &[u8]| -> Result<Vec<u8>, Malformed> {
        let mut whole = Vec::new();
        push_bytes(&mut whole, number, &merged(message, residue, known)?);
        Ok(whole)
    };
    let found = written.iter().position(|field| field.number == number);
    match found.and_then(|at| Some((all.get_mut(at)?, written.get(at)?.payload?))) {
        Some((place, payload)) => {
            place.1 = whole(payload)?;
            Ok(None)
        }
        None => whole(&[]).map(Some),
    }
}

/// Puts residues into the elements of a repeated field, if they are as many.
fn put_back_each(
    written: &[Field<'_>],
    all: &mut [(u32, Vec<u8>)],
    elements: &Elements,
    known: Schema,
) -> Result<(), Malformed> {
    let places = || (0..).zip(written).filter(|(_, field)| field.number == elements.number);
    if places().count() as u64 != elements.count {
        return Ok(());
    }
    for (index, (at, field)) in (0..).zip(places()) {
        let (residue, at): (_, usize) = (elements.at(index), at);
        if let (false, Some(payload), Some(place)) =
            (residue.is_empty(), field.payload, all.get_mut(at))
        {
            place.1.clear();
            push_bytes(&mut place.1, field.number, &merged(payload, residue, known)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Known::{Leaf, Message, Repeated};
    use super::*;

    const INNER: &[(u32, Known)] = &[(1, Leaf)];
    const OUTER: &[(u32, Known)] = &[(1, Leaf), (2, Message(INNER)), (5, Repeated(INNER))];

    /// The encoding's specification defines a key as number << 3 | wire type.
    #[test]
    fn residue_is_what_is_unknown_at_every_level() {
        // 1: 5, 2: {1: 6, 9: 7}, 3: fixed32, 4: "x"
        let message = [8, 5, 18, 4, 8, 6, 72, 7, 29, 1, 2, 3, 4, 34, 1, b'x'];
        let left = residue(&message, OUTER).expect("a message");
        assert_eq!(left, [18, 2, 72, 7, 29, 1, 2, 3, 4, 34, 1, b'x']);
        assert_eq!(with_residue(vec![8, 5, 18, 2, 8, 6], &left, OUTER), message);
        // If the nested message is gone, its residue becomes a message of its own.
        let alone = [8, 5, 18, 2, 72, 7, 29, 1, 2, 3, 4, 34, 1, b'x'];
        assert_eq!(with_residue(vec![8, 5], &left, OUTER), alone);
        let mut rest = left;
        assert_eq!(take_message(&mut rest, 2), [72, 7]);
        assert_eq!(rest, [29, 1, 2, 3, 4, 34, 1, b'x']);
    }

    #[test]
    fn elements_keep_their_own() {
        // 5: {1: 6}, 5: {1: 7, 9: 8}, 5: {9: 9}
        let message = [42, 2, 8, 6, 42, 4, 8, 7, 72, 8, 42, 2, 72, 9];
        let left = residue(&message, OUTER).expect("a message");
        let known = vec![42, 2, 8, 6, 42, 2, 8, 7, 42, 0];
        assert_eq!(with_residue(known, &left, OUTER), message);
        // A list of another length cannot be matched with the residues.
        let fewer = vec![42, 2, 8, 6, 42, 2, 8, 7];
        assert_eq!(with_residue(fewer.clone(), &left, OUTER), fewer);
        assert_eq!(residue(&fewer, OUTER), Ok(Vec::new()));
    }

    #[test]
    fn malformed_messages_are_told() {
        for message in [&[8][..], &[18, 5, 1], &[11], &[18, 1, 8], &[42, 1, 8]] {
            assert_eq!(residue(message, OUTER), Err(Malformed), "{message:?}");
        }
    }
}
