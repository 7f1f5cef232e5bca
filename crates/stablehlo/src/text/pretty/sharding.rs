//! Shardy's attributes in pretty forms, where the name is left out, and its regions.

use std::sync::Arc;

use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::Attribute;

/// An attribute of Shardy.
fn shardy(text: String) -> Attribute {
    Attribute::Opaque { dialect: "sdy".into(), text: Arc::from(text) }
}

impl Parser<'_> {
    /// The part of an attribute after its name.
    pub(super) fn sharding(&mut self, name: &str) -> Parse<Attribute> {
        if matches!(self.peek(), b'<' | b'[' | b'{') {
            let text = self.balanced()?;
            return Ok(shardy(format!("{name}{text}")));
        }
        let word = self.word("a part of a sharding in brackets")?;
        Ok(shardy(format!("{name} {word}")))
    }

    /// `[<@mesh, [{}]>, ...]`: a sharding for each value.
    pub(super) fn shardings(&mut self) -> Parse<Attribute> {
        if self.peek() != b'[' {
            return Err(self.unexpected("`[`"));
        }
        let text = self.balanced()?;
        Ok(shardy(format!("sharding_per_value<{text}>")))
    }

    /// `sum` or another reduction, or nothing.
    pub(super) fn reduction_kind(&mut self, draft: &mut Draft) -> Parse<()> {
        let word = self.peek_word();
        if !word.is_empty() {
            self.position += word.len();
            draft.set("reduction_op", shardy(format!("reduction_op {word}")));
        }
        Ok(())
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
