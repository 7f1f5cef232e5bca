//! The sections of a file and the tables in them.

use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use super::Read;
use super::cursor::Cursor;
use super::error::Section;

/// The first version whose dialects may have versions.
const DIALECT_VERSIONS: u64 = 1;
/// The first version that counts the names of operations.
const COUNTED_NAMES: u64 = 4;
/// The first version with properties.
const PROPERTIES: u64 = 5;
/// The newest version.
const NEWEST: u64 = 6;

/// Names of dialects, operations and resources have at most this many bytes. A file may use one
/// name many times, and each use is stored.
const MAX_NAME: usize = 256;

/// The sections in the order of their numbers.
const SECTIONS: [Option<Section>; 9] = [
    Some(Section::Strings),
    Some(Section::Dialects),
    Some(Section::Attributes),
    Some(Section::AttributeOffsets),
    Some(Section::Operations),
    Some(Section::Resources),
    Some(Section::ResourceOffsets),
    None,
    Some(Section::Properties),
];

/// The name of an operation.
pub(super) struct OpName {
    pub(super) name: SmolStr,
    /// Whether MLIR knew the operation when it wrote the file.
    pub(super) registered: bool,
}

/// An attribute or a type whose encoding is not read yet.
#[derive(Clone, Copy)]
pub(super) struct Entry<'b> {
    pub(super) dialect: usize,
    pub(super) encoding: Cursor<'b>,
    /// Whether the encoding is that of the dialect, and no text.
    pub(super) custom: bool,
}

/// The tables of a file.
pub(super) struct File<'b> {
    pub(super) version: u64,
    strings: Vec<Arc<[u8]>>,
    dialects: Vec<SmolStr>,
    pub(super) names: Vec<OpName>,
    pub(super) attributes: Vec<Entry<'b>>,
    pub(super) types: Vec<Entry<'b>>,
    /// The names of the resources of dialects, and their contents.
    pub(super) resources: Vec<(SmolStr, Option<Arc<[u8]>>)>,
    pub(super) properties: Vec<Cursor<'b>>,
    pub(super) operations: Cursor<'b>,
}

/// Takes the header of a section and its bytes: the number of the section and a part.
pub(super) fn section<'b>(cursor: &mut Cursor<'b>) -> Read<(usize, Cursor<'b>)> {
    let before = *cursor;
    let id = cursor.byte()?;
    let size = cursor.varint()?;
    if id & 0x80 != 0 {
        let alignment = cursor.varint()?;
        cursor.align(alignment)?;
    }
    let size = cursor.payable(size, "bytes of a section")?;
    let number = usize::from(id & 0x7F);
    if number >= SECTIONS.len() {
        return Err(before.error(format!("there is no section of the kind {number}")));
    }
    Ok((number, cursor.take(size)?))
}

impl<'b> File<'b> {
    pub(super) fn read(bytes: &'b [u8]) -> Read<Self> {
        let mut cursor = Cursor::new(bytes);
        let version = header(&mut cursor)?;
        let mut parts = [None; SECTIONS.len()];
        while !cursor.at_end() {
            let before = cursor;
            let (number, part) = section(&mut cursor)?;
            let Some(slot) = parts.get_mut(number) else { continue };
            let section = SECTIONS.get(number).copied().flatten().unwrap_or(Section::File);
            if slot.replace(part.within(section)).is_some() {
                return Err(before.error(format!("{section} is here twice")));
            }
        }
        let [strings, dialects, attributes, offsets, operations, resources, sizes, _, properties] =
            parts;
        let require = |part: Option<Cursor<'b>>, section: Section| {
            part.ok_or_else(|| cursor.error(format!("{section} is missing")))
        };
        let mut file = Self {
            version,
            strings: read_strings(require(strings, Section::Strings)?)?,
            dialects: Vec::new(),
            names: Vec::new(),
            attributes: Vec::new(),
            types: Vec::new(),
            resources: Vec::new(),
            properties: Vec::new(),
            operations: require(operations, Section::Operations)?,
        };
        file.read_dialects(require(dialects, Section::Dialects)?)?;
        let attributes = require(attributes, Section::Attributes)?;
        file.read_entries(require(offsets, Section::AttributeOffsets)?, attributes)?;
        if let Some(sizes) = sizes {
            file.read_resources(sizes, require(resources, Section::Resources)?)?;
        }
        if let Some(properties) = properties {
            file.properties = read_properties(properties)?;
        }
        Ok(file)
    }

    pub(super) fn string_at(&self, index: u64) -> Option<&Arc<[u8]>> {
        usize::try_from(index).ok().and_then(|index| self.strings.get(index))
    }

    /// Takes the number of a string that is a name.
    fn name(&self, cursor: &mut Cursor<'b>) -> Read<&str> {
        let before = *cursor;
        let index = cursor.varint()?;
        self.name_at(index, &before)
    }

    fn name_at(&self, index: u64, at: &Cursor<'b>) -> Read<&str> {
        let string = self.string_at(index);
        let string = string.ok_or_else(|| at.error(format!("there is no string {index}")))?;
        if string.len() > MAX_NAME {
            return Err(at.error(format!("a name has {} bytes", string.len())));
        }
        std::str::from_utf8(string).map_err(|_| at.error(format!("string {index} is not UTF-8")))
    }

    pub(super) fn dialect(&self, index: usize) -> &str {
        self.dialects.get(index).map_or("", SmolStr::as_str)
    }

    fn read_dialects(&mut self, mut cursor: Cursor<'b>) -> Read<()> {
        let count = cursor.count("dialects")?;
        for _ in 0..count {
            let before = cursor;
            let (name, versioned) = match self.version < DIALECT_VERSIONS {
                true => (cursor.varint()?, false),
                false => cursor.flagged()?,
            };
            let name = SmolStr::new(self.name_at(name, &before)?);
            self.dialects.push(name);
            if versioned {
                section(&mut cursor)?;
            }
        }
        if self.version >= COUNTED_NAMES {
            cursor.count("names of operations")?;
        }
        while !cursor.at_end() {
            let dialect = self.dialect_index(&mut cursor)?;
            let count = cursor.count("names of operations")?;
            for _ in 0..count {
                let before = cursor;
                let (name, registered) = match self.version < PROPERTIES {
                    true => (cursor.varint()?, true),
                    false => cursor.flagged()?,
                };
                let name = self.name_at(name, &before)?;
                let name = format_smolstr!("{}.{name}", self.dialect(dialect));
                self.names.push(OpName { name, registered });
            }
        }
        Ok(())
    }

    /// Takes the number of a dialect.
    fn dialect_index(&self, cursor: &mut Cursor<'b>) -> Read<usize> {
        let before = *cursor;
        let index = cursor.varint()?;
        match usize::try_from(index) {
            Ok(index) if index < self.dialects.len() => Ok(index),
            _ => Err(before.error(format!("there is no dialect {index}"))),
        }
    }

    fn read_entries(&mut self, mut cursor: Cursor<'b>, mut encodings: Cursor<'b>) -> Read<()> {
        let attributes = cursor.count("attributes")?;
        let types = cursor.count("types")?;
        let total = cursor.payable((attributes as u64).saturating_add(types as u64), "entries")?;
        let mut entries = Vec::with_capacity(total);
        while entries.len() < total {
            let dialect = self.dialect_index(&mut cursor)?;
            let before = cursor;
            let count = cursor.count("entries")?;
            if count > total - entries.len() {
                return Err(before.error("there are more attributes and types than were announced"));
            }
            for _ in 0..count {
                let (size, custom) = cursor.flagged()?;
                let size = encodings.payable(size, "bytes of an attribute or type")?;
                entries.push(Entry { dialect, encoding: encodings.take(size)?, custom });
            }
        }
        cursor.finish("the sizes of attributes and types")?;
        self.types = entries.split_off(attributes.min(entries.len()));
        self.attributes = entries;
        Ok(())
    }

    fn read_resources(&mut self, mut cursor: Cursor<'b>, mut contents: Cursor<'b>) -> Read<()> {
        let external = cursor.count("groups of resources")?;
        let mut group = 0;
        while !cursor.at_end() {
            match group < external {
                true => {
                    self.name(&mut cursor)?;
                }
                false => {
                    self.dialect_index(&mut cursor)?;
                }
            }
            let count = cursor.count("resources")?;
            for _ in 0..count {
                let key = SmolStr::new(self.name(&mut cursor)?);
                let size = cursor.varint()?;
                let kind = cursor.byte()?;
                let size = contents.payable(size, "bytes of a resource")?;
                let content = contents.take(size)?;
                if group >= external {
                    let bytes = resource(content, kind)?.map(Arc::from);
                    self.resources.push((key, bytes));
                }
            }
            group += 1;
        }
        Ok(())
    }
}

/// Takes the magic bytes, the version and the producer, and returns the version.
fn header(cursor: &mut Cursor<'_>) -> Read<u64> {
    let before = *cursor;
    if cursor.rest().get(..4) != Some(super::MAGIC.as_slice()) {
        let error = before.error("this is no MLIR bytecode: it does not begin with `ML\\xEFR`");
        return Err(error);
    }
    cursor.bytes(super::MAGIC.len())?;
    let before = *cursor;
    let version = cursor.varint()?;
    if version > NEWEST {
        let message = format!("version {version} of MLIR bytecode is not known");
        return Err(before.error(message).help(format!("versions up to {NEWEST} can be read")));
    }
    cursor.text()?;
    Ok(version)
}

fn read_strings(mut cursor: Cursor<'_>) -> Read<Vec<Arc<[u8]>>> {
    let count = cursor.count("strings")?;
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        let size = cursor.count("bytes of a string")?;
        if size == 0 {
            return Err(cursor.error("a string has no byte of zero at its end"));
        }
        sizes.push(size);
    }
    let mut strings = Vec::with_capacity(count);
    // The sizes stand in the opposite order.
    for size in sizes.into_iter().rev() {
        let string = cursor.bytes(size)?;
        strings.push(Arc::from(string.get(..size - 1).unwrap_or_default()));
    }
    cursor.finish("the strings")?;
    Ok(strings)
}

fn read_properties(mut cursor: Cursor<'_>) -> Read<Vec<Cursor<'_>>> {
    let count = cursor.count("properties")?;
    let mut properties = Vec::with_capacity(count);
    for _ in 0..count {
        let size = cursor.count("bytes of properties")?;
        properties.push(cursor.take(size)?);
    }
    cursor.finish("the properties")?;
    Ok(properties)
}

/// Returns the bytes of a resource: none if it is a declaration or no blob.
fn resource(mut content: Cursor<'_>, kind: u8) -> Read<Option<&[u8]>> {
    /// The number of a resource of bytes.
    const BLOB: u8 = 0;
    if kind != BLOB || content.at_end() {
        return Ok(None);
    }
    let alignment = content.varint()?;
    let size = content.varint()?;
    content.align(alignment.max(1))?;
    let size = content.payable(size, "bytes of a resource")?;
    content.bytes(size).map(Some)
}
