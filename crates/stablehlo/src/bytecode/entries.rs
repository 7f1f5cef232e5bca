//! Attributes and types, read when they are needed and then kept.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use super::cursor::Cursor;
use super::error::BytecodeError;
use super::file::{Entry, File};
use super::{Read, builtin, sdy, stablehlo};
use crate::mlir::{Attribute, Attributes, DenseArray, Location, Type};
use crate::{text, vhlo};

/// Attributes and types may be nested this deep.
const MAX_DEPTH: u32 = 128;

/// An attribute that stands in ten places is copied ten times. Copies of this many attributes and
/// types are made for each byte of the file: a file of StableHLO needs two.
const COPIES_PER_BYTE: usize = 16;

enum Slot<T> {
    Unread,
    Reading,
    Read(T),
}

/// The difference between attributes and types.
trait EntryKind: Clone + Sized {
    const NAME: &'static str;
    fn entries<'e, 'b>(file: &'e File<'b>) -> &'e [Entry<'b>];
    fn slots<'e>(entries: &'e mut Entries<'_>) -> &'e mut Vec<Slot<Self>>;
    fn weight(&self) -> usize;
    fn of_text(text: &str) -> Result<Self, text::SyntaxError>;
    fn of_dialect(entries: &mut Entries<'_>, dialect: &str, cursor: &mut Cursor<'_>) -> Read<Self>;
}

/// The attributes and types of a file.
pub(crate) struct Entries<'b> {
    pub(super) file: &'b File<'b>,
    attributes: Vec<Slot<Attribute>>,
    types: Vec<Slot<Type>>,
    /// The names by the addresses of their strings, so that each is stored once.
    names: FxHashMap<usize, SmolStr>,
    depth: u32,
    /// The copies that may still be made.
    copies: usize,
}

impl<'b> Entries<'b> {
    pub(super) fn new(file: &'b File<'b>, size: usize) -> Self {
        Self {
            file,
            attributes: file.attributes.iter().map(|_| Slot::Unread).collect(),
            types: file.types.iter().map(|_| Slot::Unread).collect(),
            names: FxHashMap::default(),
            depth: 0,
            copies: size.saturating_mul(COPIES_PER_BYTE).saturating_add(1 << 16),
        }
    }

    /// Takes the number of an attribute.
    pub(crate) fn attribute(&mut self, cursor: &mut Cursor<'_>) -> Read<Attribute> {
        let before = *cursor;
        let index = cursor.varint()?;
        self.entry(index, &before)
    }

    /// Takes the number of an attribute, and whether there is one.
    pub(crate) fn optional_attribute(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Read<Option<Attribute>> {
        let before = *cursor;
        let (index, present) = cursor.flagged()?;
        if present { self.entry(index, &before).map(Some) } else { Ok(None) }
    }

    /// Takes the number of a type.
    pub(crate) fn ty(&mut self, cursor: &mut Cursor<'_>) -> Read<Type> {
        let before = *cursor;
        let index = cursor.varint()?;
        self.type_at(index, &before)
    }

    pub(super) fn type_at(&mut self, index: u64, at: &Cursor<'_>) -> Read<Type> {
        self.entry(index, at)
    }

    /// Takes a list of attributes.
    pub(crate) fn attributes(&mut self, cursor: &mut Cursor<'_>) -> Read<Vec<Attribute>> {
        let count = cursor.count("attributes")?;
        (0..count).map(|_| self.attribute(cursor)).collect()
    }

    /// Takes a list of types.
    pub(crate) fn types(&mut self, cursor: &mut Cursor<'_>) -> Read<Vec<Type>> {
        let count = cursor.count("types")?;
        (0..count).map(|_| self.ty(cursor)).collect()
    }

    /// Takes the number of an attribute that is a string.
    pub(crate) fn string(&mut self, cursor: &mut Cursor<'_>) -> Read<Arc<[u8]>> {
        let before = *cursor;
        match self.attribute(cursor)? {
            Attribute::String(string) => Ok(string),
            _ => Err(before.error("this attribute should be a string")),
        }
    }

    /// Takes the number of an attribute that is a name.
    pub(crate) fn name(&mut self, cursor: &mut Cursor<'_>) -> Read<SmolStr> {
        let before = *cursor;
        let string = self.string(cursor)?;
        let address = string.as_ptr() as usize;
        if let Some(name) = self.names.get(&address) {
            return Ok(name.clone());
        }
        let name = std::str::from_utf8(&string).map_err(|_| before.error("a name is not UTF-8"))?;
        let name = SmolStr::new(name);
        self.names.insert(address, name.clone());
        Ok(name)
    }

    /// Takes the number of an attribute that is a location.
    pub(super) fn location(&mut self, cursor: &mut Cursor<'_>) -> Read<Arc<Location>> {
        let before = *cursor;
        match self.attribute(cursor)? {
            Attribute::Location(location) => Ok(location),
            _ => Err(before.error("this attribute should be a location")),
        }
    }

    /// Takes the number of a string of the file.
    pub(crate) fn file_string(&self, cursor: &mut Cursor<'_>) -> Read<Arc<[u8]>> {
        let before = *cursor;
        let index = cursor.varint()?;
        let string = self.file.string_at(index);
        string.cloned().ok_or_else(|| before.error(format!("there is no string {index}")))
    }

    /// Returns a copy of an attribute or a type.
    fn entry<K: EntryKind>(&mut self, index: u64, at: &Cursor<'_>) -> Read<K> {
        let missing = || at.error(format!("there is no {} {index}", K::NAME));
        let index = usize::try_from(index).map_err(|_| missing())?;
        let slot = K::slots(self).get_mut(index).ok_or_else(missing)?;
        match slot {
            Slot::Read(known) => {
                let weight = known.weight();
                self.spend(weight, at)?;
                match K::slots(self).get(index) {
                    Some(Slot::Read(known)) => Ok(known.clone()),
                    _ => Err(missing()),
                }
            }
            Slot::Reading => Err(at.error(format!("{} {index} contains itself", K::NAME))),
            Slot::Unread => {
                *slot = Slot::Reading;
                let entry = K::entries(self.file).get(index).copied().ok_or_else(missing)?;
                self.depth += 1;
                let value: Read<K> = self.decode(entry);
                self.depth -= 1;
                let value = value?;
                self.spend(value.weight(), at)?;
                if let Some(slot) = K::slots(self).get_mut(index) {
                    *slot = Slot::Read(value.clone());
                }
                Ok(value)
            }
        }
    }

    fn decode<K: EntryKind>(&mut self, entry: Entry<'b>) -> Read<K> {
        let mut cursor = entry.encoding;
        if self.depth > MAX_DEPTH {
            return Err(cursor.error(format!("{}s are nested too deeply", K::NAME)));
        }
        if entry.custom {
            let value = K::of_dialect(self, self.file.dialect(entry.dialect), &mut cursor)?;
            cursor.finish(K::NAME)?;
            return Ok(value);
        }
        let text = cursor.text()?;
        K::of_text(text).map_err(|error| {
            let message = format!("the text of this {} cannot be read: {}", K::NAME, error.message);
            entry.encoding.error(message)
        })
    }

    fn spend(&mut self, copies: usize, at: &Cursor<'_>) -> Read<()> {
        match self.copies.checked_sub(copies) {
            Some(left) => {
                self.copies = left;
                Ok(())
            }
            None => Err(at.error("the attributes of this file are repeated too often")),
        }
    }
}

impl EntryKind for Attribute {
    const NAME: &'static str = "attribute";

    fn entries<'e, 'b>(file: &'e File<'b>) -> &'e [Entry<'b>] {
        &file.attributes
    }

    fn slots<'e>(entries: &'e mut Entries<'_>) -> &'e mut Vec<Slot<Self>> {
        &mut entries.attributes
    }

    fn weight(&self) -> usize {
        let named = |attributes: &Attributes| -> usize {
            attributes.iter().map(|(_, value)| 1 + value.weight()).sum()
        };
        1 + match self {
            Self::Array(items) => items.iter().map(EntryKind::weight).sum(),
            Self::Dictionary(attributes) => named(attributes),
            Self::Dialect(attribute) => named(&attribute.parameters),
            Self::Integer(_, ty) | Self::Float(_, ty) => ty.weight(),
            Self::Type(ty) | Self::Resource { ty, .. } => ty.weight(),
            Self::Dense(dense) => dense.ty.weight(),
            Self::DenseArray(array) => length(array),
            Self::Symbol(names) => names.len(),
            Self::Opaque { text, .. } => text.len() / 8,
            _ => 0,
        }
    }

    fn of_text(text: &str) -> Result<Self, text::SyntaxError> {
        text::attribute(text)
    }

    fn of_dialect(entries: &mut Entries<'_>, dialect: &str, cursor: &mut Cursor<'_>) -> Read<Self> {
        match dialect {
            "builtin" => builtin::attribute(entries, cursor),
            "stablehlo" => stablehlo::attribute(entries, cursor),
            "chlo" => stablehlo::chlo_attribute(cursor),
            "vhlo" => vhlo::attribute(entries, cursor),
            "sdy" => sdy::attribute(entries, cursor),
            _ => Err(unknown(Self::NAME, dialect, cursor)),
        }
    }
}

impl EntryKind for Type {
    const NAME: &'static str = "type";

    fn entries<'e, 'b>(file: &'e File<'b>) -> &'e [Entry<'b>] {
        &file.types
    }

    fn slots<'e>(entries: &'e mut Entries<'_>) -> &'e mut Vec<Slot<Self>> {
        &mut entries.types
    }

    fn weight(&self) -> usize {
        let all = |types: &[Self]| -> usize { types.iter().map(EntryKind::weight).sum() };
        1 + match self {
            Self::Tuple(types) | Self::Future(types) => all(types),
            Self::Function(function) => all(&function.inputs) + all(&function.results),
            Self::Tensor(tensor) => {
                let encoding = tensor.encoding.as_ref().map_or(0, |encoding| encoding.weight());
                tensor.dims.len() + encoding
            }
            _ => 0,
        }
    }

    fn of_text(text: &str) -> Result<Self, text::SyntaxError> {
        text::ty(text)
    }

    fn of_dialect(entries: &mut Entries<'_>, dialect: &str, cursor: &mut Cursor<'_>) -> Read<Self> {
        match dialect {
            "builtin" => builtin::ty(entries, cursor),
            "stablehlo" => stablehlo::ty(entries, cursor),
            "vhlo" => vhlo::ty(entries, cursor),
            _ => Err(unknown(Self::NAME, dialect, cursor)),
        }
    }
}

fn length(array: &DenseArray) -> usize {
    match array {
        DenseArray::Bool(values) => values.len(),
        DenseArray::Integer(_, values) | DenseArray::I64(values) => values.len(),
        DenseArray::F32(values) => values.len(),
        DenseArray::F64(values) => values.len(),
    }
}

fn unknown(kind: &str, dialect: &str, cursor: &Cursor<'_>) -> Box<BytecodeError> {
    let message = format!("the encoding of {kind}s of the dialect `{dialect}` is not known");
    cursor.error(message).help("write the program as text instead")
}
