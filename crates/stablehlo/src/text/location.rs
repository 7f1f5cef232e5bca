//! Locations: `loc("file.py":1:2)`.

use std::sync::Arc;

use smol_str::SmolStr;

use super::{Parse, Parser};
use crate::mlir::Location;

impl<'s> Parser<'s> {
    /// Takes `loc(...)`.
    pub(super) fn location(&mut self) -> Parse<Arc<Location>> {
        self.expect_word("loc")?;
        self.expect("(")?;
        let location = self.bare_location()?;
        self.expect(")")?;
        Ok(location)
    }

    /// Takes a location without `loc` around it.
    fn bare_location(&mut self) -> Parse<Arc<Location>> {
        self.nested(1, |parser| match parser.peek() {
            b'#' => parser.hash_location(),
            b'"' => parser.file_or_name(),
            _ => match parser.peek_word() {
                "unknown" => {
                    parser.word("")?;
                    Ok(Arc::new(Location::Unknown))
                }
                "callsite" => parser.call(),
                "fused" => parser.fused(),
                // An alias may stand for `loc(...)` with `loc` inside.
                "loc" => parser.location(),
                _ => Err(parser.unexpected("a location, as `\"file.py\":1:2`")),
            },
        })
    }

    pub(super) fn hash_location(&mut self) -> Parse<Arc<Location>> {
        let start = self.position;
        self.position += 1;
        let name = self.name("the name of an alias")?;
        if name.contains('.') || self.byte(0) == b'<' {
            // Locations of dialects say nothing that is known.
            if self.byte(0) == b'<' {
                self.balanced()?;
            }
            return Ok(Arc::new(Location::Unknown));
        }
        self.location_alias(start)
    }

    /// `"file":1:2`, `"file":1:2 to 3:4`, `"name"` or `"name"(child)`.
    fn file_or_name(&mut self) -> Parse<Arc<Location>> {
        let name = self.string_text("")?;
        if self.accept(":") {
            return self.file(name);
        }
        let child = if self.accept("(") {
            let child = self.bare_location()?;
            self.expect(")")?;
            child
        } else {
            Arc::new(Location::Unknown)
        };
        Ok(Arc::new(Location::Name { name, child }))
    }

    fn file(&mut self, file: SmolStr) -> Parse<Arc<Location>> {
        let start = self.line_and_column()?;
        let mut end = start;
        if self.accept_word("to") {
            if self.accept(":") {
                end.1 = self.small_number("a column")?;
            } else {
                end = self.line_and_column()?;
            }
        }
        Ok(Arc::new(Location::File { file, start, end }))
    }

    fn line_and_column(&mut self) -> Parse<(u32, u32)> {
        let line = self.small_number("a line")?;
        let column = if self.accept(":") { self.small_number("a column")? } else { 0 };
        Ok((line, column))
    }

    /// `callsite(callee at caller)`.
    fn call(&mut self) -> Parse<Arc<Location>> {
        self.expect_word("callsite")?;
        self.expect("(")?;
        let callee = self.bare_location()?;
        self.expect_word("at")?;
        let caller = self.bare_location()?;
        self.expect(")")?;
        Ok(Arc::new(Location::Call { callee, caller }))
    }

    /// `fused<metadata>[a, b]`.
    fn fused(&mut self) -> Parse<Arc<Location>> {
        self.expect_word("fused")?;
        let mut metadata = None;
        if self.accept("<") {
            metadata = Some(Box::new(self.attribute()?));
            self.expect(">")?;
        }
        let mut parts = Vec::new();
        self.list(("[", "]"), |parser| {
            parts.push(parser.bare_location()?);
            Ok(())
        })?;
        Ok(Arc::new(Location::Fused { metadata, parts }))
    }
}
