//! Strings, dialects, names, attributes and types by their numbers.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use super::emitter::Emitter;

/// Numbers in the order in which things were first seen.
pub(super) struct Numbers<T> {
    numbers: FxHashMap<T, u64>,
    pub(super) order: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), order: Vec::new() }
    }
}

impl<T: Hash + Eq + Clone> Numbers<T> {
    pub(super) fn of(&mut self, thing: &T) -> u64 {
        if let Some(number) = self.numbers.get(thing) {
            return *number;
        }
        let number = self.order.len() as u64;
        self.numbers.insert(thing.clone(), number);
        self.order.push(thing.clone());
        number
    }
}

/// The encoding of an attribute or a type.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Encoding {
    pub(super) dialect: SmolStr,
    pub(super) bytes: Arc<[u8]>,
    /// Whether it is the dialect's own, and no text.
    pub(super) custom: bool,
}

/// The tables that the sections of a file refer to.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) strings: Numbers<Arc<[u8]>>,
    pub(super) dialects: Numbers<SmolStr>,
    pub(super) names: Numbers<SmolStr>,
    pub(super) attributes: Numbers<Encoding>,
    pub(super) types: Numbers<Encoding>,
    pub(super) resources: Numbers<SmolStr>,
    pub(super) resource_bytes: Vec<Option<Arc<[u8]>>>,
}

impl Tables {
    pub(super) fn string(&mut self, string: &[u8]) -> u64 {
        self.strings.of(&Arc::from(string))
    }

    /// The sizes of attributes and types, and their encodings.
    pub(super) fn entries(&mut self) -> (Emitter, Emitter) {
        let (mut sizes, mut encodings) = (Emitter::default(), Emitter::default());
        sizes.count(self.attributes.order.len());
        sizes.count(self.types.order.len());
        for table in [&self.attributes.order, &self.types.order] {
            for group in table.chunk_by(|a, b| a.dialect == b.dialect) {
                let dialect = group.first().map_or("", |entry| entry.dialect.as_str());
                sizes.varint(self.dialects.of(&dialect.into()));
                sizes.count(group.len());
                for entry in group {
                    sizes.flagged(entry.bytes.len() as u64, entry.custom);
                    encodings.bytes.extend_from_slice(&entry.bytes);
                }
            }
        }
        (sizes, encodings)
    }

    /// The dialects and the names of operations.
    pub(super) fn dialects(&mut self) -> Emitter {
        let mut groups = Emitter::default();
        let names = std::mem::take(&mut self.names.order);
        let split = |name: &SmolStr| -> (SmolStr, SmolStr) {
            let (dialect, name) = name.split_once('.').unwrap_or(("builtin", name));
            (dialect.into(), name.into())
        };
        let names: Vec<_> = names.iter().map(split).collect();
        for group in names.chunk_by(|a, b| a.0 == b.0) {
            let Some((dialect, _)) = group.first() else { continue };
            groups.varint(self.dialects.of(dialect));
            groups.count(group.len());
            for (_, name) in group {
                groups.flagged(self.string(name.as_bytes()), true);
            }
        }
        let mut emitter = Emitter::default();
        emitter.count(self.dialects.order.len());
        for dialect in std::mem::take(&mut self.dialects.order) {
            emitter.flagged(self.string(dialect.as_bytes()), false);
        }
        emitter.count(names.len());
        emitter.bytes.append(&mut groups.bytes);
        emitter
    }

    /// The sizes of resources and their contents.
    pub(super) fn resources(&mut self) -> (Emitter, Emitter) {
        /// The alignment of a resource, which a reader may rely on.
        const ALIGNMENT: u64 = 1;
        let (mut sizes, mut contents) = (Emitter::default(), Emitter::default());
        sizes.count(0);
        let names = std::mem::take(&mut self.resources.order);
        if names.is_empty() {
            return (sizes, contents);
        }
        sizes.varint(self.dialects.of(&"builtin".into()));
        sizes.count(names.len());
        for (name, bytes) in names.iter().zip(std::mem::take(&mut self.resource_bytes)) {
            let before = contents.bytes.len();
            if let Some(bytes) = bytes {
                contents.varint(ALIGNMENT);
                contents.blob(&bytes);
            }
            sizes.varint(self.string(name.as_bytes()));
            sizes.count(contents.bytes.len() - before);
            sizes.byte(0);
        }
        (sizes, contents)
    }

    /// The strings, each with a byte of zero after it.
    pub(super) fn strings(&self) -> Emitter {
        let mut emitter = Emitter::default();
        emitter.count(self.strings.order.len());
        for string in self.strings.order.iter().rev() {
            emitter.count(string.len() + 1);
        }
        for string in &self.strings.order {
            emitter.bytes.extend_from_slice(string);
            emitter.byte(0);
        }
        emitter
    }
}
