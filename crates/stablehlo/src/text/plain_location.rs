//! Locations as MLIR prints them for people, without `loc(...)`: after the operation on its
//! last line.
//!
//! ```text
//! %0 = stablehlo.add %a, %b : tensor<f32> "jit(f)/add"(#loc7)
//! #loc7 = #loc5
//!  at #loc6
//! #loc5 = /folder/file.py:4:10 to :16
//! ```

use std::sync::Arc;

use super::{Parse, Parser};
use crate::mlir::Location;

const UNKNOWN: &str = "[unknown]";
/// The most bytes of a file's name and place.
const LONGEST: usize = 1000;

impl Parser<'_> {
    /// Takes a location of either kind if it is here.
    pub(super) fn any_location(&mut self) -> Parse<Option<Arc<Location>>> {
        if self.peek_word() == "loc" {
            return self.location().map(Some);
        }
        let start = self.position;
        // After the spaces and comments that were skipped, the line may be another.
        self.position = self.end_of_token(start);
        let location = self.plain_location()?;
        if location.is_none() {
            self.position = start;
        }
        Ok(location)
    }

    /// Returns the offset after the token before the spaces that were skipped.
    pub(super) fn end_of_token(&self, start: usize) -> usize {
        let before = self.source.as_bytes().get(..start).unwrap_or_default();
        before.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(0, |at| at + 1)
    }

    /// Takes a location without `loc` if it is on this line.
    pub(super) fn plain_location(&mut self) -> Parse<Option<Arc<Location>>> {
        while matches!(self.byte(0), b' ' | b'\t') {
            self.position += 1;
        }
        let callee = match self.byte(0) {
            b'[' if self.rest().starts_with(UNKNOWN) => {
                self.position += UNKNOWN.len();
                Arc::new(Location::Unknown)
            }
            b'#' => self.hash_location()?,
            b'"' if !self.at_generic() => self.plain_name()?,
            _ => match self.plain_file() {
                Some(file) => file,
                None => return Ok(None),
            },
        };
        if !self.rest().starts_with("\n at ") {
            return Ok(Some(callee));
        }
        self.position += "\n at ".len();
        let caller = self.nested(1, Self::plain_location)?;
        let caller = caller.ok_or_else(|| self.unexpected("a location"))?;
        Ok(Some(Arc::new(Location::Call { callee, caller })))
    }

    /// Checks whether the string here is the name of an operation.
    fn at_generic(&mut self) -> bool {
        let start = self.position;
        let is_string = self.string_end().is_ok();
        let is_call = self.accept("(") && matches!(self.peek(), b'%' | b')');
        self.position = start;
        !is_string || is_call
    }

    /// `"name"` or `"name"(child)`.
    fn plain_name(&mut self) -> Parse<Arc<Location>> {
        let name = self.string_text("")?;
        let mut child = None;
        if self.byte(0) == b'(' {
            self.position += 1;
            child = self.nested(1, Self::plain_location)?;
            self.expect(")")?;
        }
        let child = child.unwrap_or_else(|| Arc::new(Location::Unknown));
        Ok(Arc::new(Location::Name { name, child }))
    }

    /// `/folder/file.py:1:2`, `... to :3` or `... to 3:4`.
    fn plain_file(&mut self) -> Option<Arc<Location>> {
        let rest = self.rest();
        let ends = |b: &u8| matches!(b, b'\n' | b',' | b')' | b'%' | b'[' | b'"' | b'{' | b'}');
        let length = rest.bytes().take(LONGEST).take_while(|b| !ends(b)).count();
        // No operation has this form: one with ranges has operands or brackets.
        let text = rest.get(..length)?;
        let (begin, end) = text.split_once(" to ").unwrap_or((text, ""));
        let (file, column) = begin.rsplit_once(':')?;
        let (file, line) = file.rsplit_once(':')?;
        let start = (line.parse().ok()?, column.parse().ok()?);
        let end = match end.split_once(':') {
            Some(("", column)) => (start.0, column.parse().ok()?),
            Some((line, column)) => (line.parse().ok()?, column.parse().ok()?),
            None => start,
        };
        self.position += length;
        Some(Arc::new(Location::File { file: file.into(), start, end }))
    }

    /// Checks whether the value of an alias is a location without `loc`.
    pub(super) fn is_plain_location(&mut self, name: &str) -> bool {
        let is_location = name
            .strip_prefix("#loc")
            .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
        is_location && self.peek_word() != "loc"
    }
}
