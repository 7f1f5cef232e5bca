//! Constants whose bytes stand at the end of the file.
//!
//! ```text
//! {-#
//!   dialect_resources: { builtin: { weights: "0x040000000000803F" } }
//! #-}
//! ```

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use super::{Parse, Parser};
use crate::mlir::Attribute;

/// MLIR writes the alignment of the bytes before them, in this many bytes.
const ALIGNMENT: usize = 4;

/// The bytes by their names.
#[derive(Default)]
pub(super) struct Resources<'s> {
    known: FxHashMap<SmolStr, Arc<[u8]>>,
    /// The section with its brackets.
    section: &'s str,
}

impl<'s> Parser<'s> {
    /// Finds and reads the section of resources.
    pub(super) fn read_resources(&mut self) -> Parse<()> {
        // The section has strings of hexadecimal digits only, so that its last beginning in the
        // text is the true one.
        let Some(start) = self.source.rfind("{-#") else { return Ok(()) };
        let line = self.source.get(..start).and_then(|before| before.lines().last());
        let is_section = self.source.get(..start).is_some_and(|before| before.ends_with('\n'))
            || line.is_none_or(|line| line.trim().is_empty());
        if !is_section {
            return Ok(());
        }
        self.position = start;
        self.expect("{-#")?;
        while !self.accept("#-}") {
            let kind = self.word("`dialect_resources` or `#-}`")?;
            self.expect(":")?;
            self.list(("{", "}"), |parser| parser.resource_group(kind))?;
            self.accept(",");
        }
        self.resources.section = self.text(start, self.position);
        Ok(())
    }

    /// `builtin: { name: "0x..", ... }`
    fn resource_group(&mut self, kind: &str) -> Parse<()> {
        self.resource_name()?;
        self.expect(":")?;
        self.list(("{", "}"), |parser| {
            let name = parser.resource_name()?;
            parser.expect(":")?;
            if kind != "dialect_resources" || parser.peek() != b'"' {
                return parser.other_resource();
            }
            let bytes = parser.blob()?;
            let bytes = bytes.get(ALIGNMENT..).unwrap_or_default().into();
            parser.resources.known.insert(name, bytes);
            Ok(())
        })
    }

    /// A value of `external_resources`: a string, a truth value or an integer.
    fn other_resource(&mut self) -> Parse<()> {
        match self.peek() {
            b'"' => self.string_end().map(|_| ()),
            _ => self.attribute().map(|_| ()),
        }
    }

    fn resource_name(&mut self) -> Parse<SmolStr> {
        match self.peek() {
            b'"' => self.string_text(""),
            _ => self.name("the name of a resource").map(SmolStr::new),
        }
    }

    /// Skips the section of resources if it is here.
    pub(super) fn skip_resources(&mut self) -> bool {
        let section = self.resources.section;
        !section.is_empty() && self.accept(section)
    }

    /// `dense_resource<name> : type`.
    pub(super) fn dense_resource(&mut self) -> Parse<Attribute> {
        self.expect_word("dense_resource")?;
        self.expect("<")?;
        let name = self.resource_name()?;
        self.expect(">")?;
        self.expect(":")?;
        let ty = Box::new(self.ty()?);
        let bytes = self.resources.known.get(&name).cloned();
        Ok(Attribute::Resource { name, bytes, ty })
    }
}
