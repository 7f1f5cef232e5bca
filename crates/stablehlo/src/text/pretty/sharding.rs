//! Shardy's attributes in pretty forms, where the name is left out, and its regions.

use super::super::attribute::integer_type;
use super::super::dialect::opaque_text;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::Attribute;

/// An attribute of Shardy.
fn shardy(text: String) -> Attribute {
    Attribute::Opaque { dialect: "sdy".into(), text: opaque_text("sdy", text) }
}

fn numbered(number: i128) -> Attribute {
    Attribute::Integer(number, integer_type(32))
}

impl Parser<'_> {
    /// The part of an attribute after its name.
    pub(super) fn sharding(&mut self, name: &str) -> Parse<Attribute> {
        // Its full name is `#sdy.mesh<...>`.
        self.accept(&format!("#sdy.{name}"));
        if !matches!(self.peek(), b'<' | b'[' | b'{') {
            return Err(self.unexpected(format!("the brackets of `{name}`")));
        }
        let text = self.balanced()?;
        Ok(shardy(format!("{name}{text}")))
    }

    /// `[<@mesh, [{}]>, ...]`: a sharding for each value.
    pub(super) fn shardings(&mut self) -> Parse<Attribute> {
        if self.peek() != b'[' {
            return Err(self.unexpected("`[`"));
        }
        let text = self.balanced()?;
        Ok(shardy(format!("sharding_per_value<{text}>")))
    }

    /// `sum`, `max` or `min`, or nothing, which is `sum`.
    pub(super) fn reduction_kind(&mut self, draft: &mut Draft) -> Parse<()> {
        let value = match self.peek_word() {
            "" => numbered(0),
            _ => self.numbered_word(&["sum", "max", "min"])?,
        };
        draft.set("reduction_op", value);
        Ok(())
    }

    /// A word that the generic form has as its number.
    pub(super) fn numbered_word(&mut self, words: &[&str]) -> Parse<Attribute> {
        let word = self.peek_word();
        let Some(number) = (0..).zip(words).find(|(_, known)| **known == word) else {
            return Err(self.unexpected(format!("one of `{}`", words.join("`, `"))));
        };
        self.position += word.len();
        Ok(numbered(number.0))
    }

    /// `(%a: type, ...) {...}`: a region with its arguments before it.
    pub(super) fn labelled_region(&mut self, draft: &mut Draft) -> Parse<()> {
        let mut arguments = Vec::new();
        self.list(("(", ")"), |parser| {
            arguments.push(parser.argument()?);
            Ok(())
        })?;
        let region = self.region(&arguments)?;
        draft.regions.push(region);
        Ok(())
    }
}
