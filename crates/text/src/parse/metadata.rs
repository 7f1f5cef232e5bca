//! Parses the metadata of instructions.

use smol_str::SmolStr;
use tilewright_ir::{InstId, OpMetadata};

use super::header::MAX_ATTRIBUTES;
use super::verbatim::Extent;
use super::{Parse, Parser, SyntaxError};
use crate::span::Span;

/// The value of a `metadata` attribute.
pub(super) enum Metadata<'s> {
    /// Word for word the metadata of another instruction.
    SameAs(InstId),
    /// Not met before, with its text.
    New { metadata: OpMetadata, text: &'s str },
}

/// The texts of the most recent metadata, each with an instruction that has it. Instructions
/// from one line of a program are mostly adjacent.
#[derive(Default)]
pub(super) struct Recent<'s> {
    texts: [Option<(&'s str, InstId)>; 8],
    next: usize,
}

impl<'s> Recent<'s> {
    /// Returns the metadata with which the rest of the source begins. Its text ends with the
    /// closing brace, so it is complete.
    fn find(&self, rest: &str) -> Option<(usize, InstId)> {
        let mut met = self.texts.iter().flatten();
        met.find(|(text, _)| begins_with(rest.as_bytes(), text.as_bytes()))
            .map(|&(text, id)| (text.len(), id))
    }

    pub(super) fn insert(&mut self, text: &'s str, id: InstId) {
        if let Some(slot) = self.texts.get_mut(self.next) {
            *slot = Some((text, id));
        }
        self.next = (self.next + 1) % self.texts.len();
    }
}

/// Most metadata begins as others do: their ends tell them apart sooner.
#[inline]
fn begins_with(rest: &[u8], text: &[u8]) -> bool {
    let same_end = |here: &[u8]| here.last_chunk::<8>() == text.last_chunk();
    rest.get(..text.len()).is_some_and(|here| same_end(here) && here == text)
}

/// A field with a place of its own.
#[derive(Clone, Copy)]
enum Field {
    OpType,
    OpName,
    SourceFile,
    SourceLine,
    StackFrame,
}

/// Their names, alone and as most write them.
const KNOWN: [(&str, &str, Field); 5] = [
    ("op_name", "op_name=", Field::OpName),
    ("stack_frame_id", "stack_frame_id=", Field::StackFrame),
    ("source_file", "source_file=", Field::SourceFile),
    ("source_line", "source_line=", Field::SourceLine),
    ("op_type", "op_type=", Field::OpType),
];

impl<'s> Parser<'s> {
    /// `metadata := "{" (field ","?)* "}"`
    pub(super) fn metadata(&mut self) -> Parse<Metadata<'s>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let rest = self.cursor.source().get(start..).unwrap_or("");
        if let Some((length, id)) = self.metadata.find(rest) {
            self.cursor.set_pos(start + length);
            return Ok(Metadata::SameAs(id));
        }
        let metadata = self.metadata_fields()?;
        Ok(Metadata::New { metadata, text: self.cursor.since(start) })
    }

    /// Reads `metadata`, regardless of the text before it.
    pub(super) fn metadata_fields(&mut self) -> Parse<OpMetadata> {
        self.expect(b'{', "`{`, as in `{op_name=\"add\"}`")?;
        let mut metadata = OpMetadata::default();
        // A bit for each field.
        let mut seen = 0u8;
        while !self.accept(b'}') {
            let start = self.cursor.pos();
            match self.known_field() {
                Some((name, field)) => {
                    let span = Span::new(start, start + name.len());
                    self.field(field, &mut metadata, &mut seen, name, span)?;
                }
                None => {
                    let (name, span) = self.attribute_word()?;
                    // With whitespace before its `=` it is the same field.
                    match KNOWN.iter().find(|(known, ..)| *known == name) {
                        Some(&(_, _, field)) => {
                            self.field(field, &mut metadata, &mut seen, name, span)?;
                        }
                        None => self.other_field(name, span, &mut metadata)?,
                    }
                }
            }
            self.accept(b',');
        }
        Ok(metadata)
    }

    /// Reads the name of a field and its `=`, if the field has a place of its own. Metadata is
    /// half of a dump, so this special case pays.
    #[inline]
    fn known_field(&mut self) -> Option<(&'static str, Field)> {
        for (name, text, field) in KNOWN {
            if self.cursor.eat_text(text) {
                return Some((name, field));
            }
        }
        None
    }

    /// `field := word "=" (string | integer | verbatim)`, after its `=`.
    fn field(
        &mut self,
        field: Field,
        metadata: &mut OpMetadata,
        seen: &mut u8,
        name: &str,
        span: Span,
    ) -> Parse<()> {
        let bit = 1 << field as u8;
        if *seen & bit != 0 {
            return self.repeated(name, span);
        }
        *seen |= bit;
        match field {
            Field::OpType => metadata.op_type = self.string_field()?,
            Field::OpName => metadata.op_name = self.string_field()?,
            Field::SourceFile => metadata.source_file = self.string_field()?,
            Field::SourceLine => metadata.source_line = self.integer("a line number")?,
            Field::StackFrame => {
                metadata.stack_frame_id = self.integer("the number of a stack frame")?;
            }
        }
        Ok(())
    }

    fn string_field(&mut self) -> Parse<SmolStr> {
        self.string("a string in quotes")
    }

    /// Returns a field that few instructions have.
    fn other_field(&mut self, name: &str, span: Span, metadata: &mut OpMetadata) -> Parse<()> {
        let rare = metadata.rare.get_or_insert_default();
        let is_set = match name {
            "source_end_line" => rare.source_end_line != 0,
            "source_column" => rare.source_column != 0,
            "source_end_column" => rare.source_end_column != 0,
            "profile_type" => !rare.profile_type.is_empty(),
            "deduplicated_name" => !rare.deduplicated_name.is_empty(),
            "scheduling_name" => !rare.scheduling_name.is_empty(),
            "metadata_payload" => !rare.metadata_payload.is_empty(),
            _ => rare.other.iter().any(|(other, _)| other == name),
        };
        if is_set {
            return self.repeated(name, span);
        }
        match name {
            "source_end_line" => rare.source_end_line = self.integer("a line number")?,
            "source_column" => rare.source_column = self.integer("a column")?,
            "source_end_column" => rare.source_end_column = self.integer("a column")?,
            "profile_type" => rare.profile_type = self.integers()?.to_vec(),
            "deduplicated_name" => rare.deduplicated_name = self.string_field()?,
            "scheduling_name" => rare.scheduling_name = self.string_field()?,
            "metadata_payload" => rare.metadata_payload = self.string_field()?,
            _ if rare.other.len() >= MAX_ATTRIBUTES => {
                return self.fail(SyntaxError::new(span, "too many fields"));
            }
            _ => rare.other.push((name.into(), self.verbatim(Extent::Field)?)),
        }
        Ok(())
    }
}
