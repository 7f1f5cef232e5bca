//! Text that is carried as it stands.

use smallvec::SmallVec;
use tilewright_ir::ops::attr::Verbatim;

use super::recover::begins_definition;
use super::{MAX_DEPTH, Parse, Parser, SyntaxError};
use crate::lexer::{END, is_space, starts_name};
use crate::span::Span;

/// The end of a value that is not understood, besides `,` and the bracket around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// At whitespace, unless a bracket or number follows it:
    /// `mesh['x'=2] {'x'}`, `f32[] 1.5`.
    Attribute,
    /// Like an attribute, but only braces and double quotes have a meaning, as in XLA's reading
    /// of JSON.
    Json,
    /// At whitespace: fields need no comma between them.
    Field,
}

/// The open brackets with their positions.
type Open = SmallVec<[(u8, usize); 16]>;

impl Parser<'_> {
    /// ```text
    /// verbatim := (word | number | string | "{" ... "}" | "[" ... "]" | "(" ... ")")+
    /// ```
    pub(super) fn verbatim(&mut self, extent: Extent) -> Parse<Verbatim> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let end = self.balanced(extent)?;
        let text = self.cursor.text(start, end);
        if text.is_empty() {
            return self.unexpected("a value");
        }
        Ok(Verbatim(text.into()))
    }

    /// Moves over a value whose brackets match; returns where it ends.
    fn balanced(&mut self, extent: Extent) -> Parse<usize> {
        let mut open = Open::new();
        loop {
            let at = self.cursor.pos();
            match self.cursor.peek() {
                END => return self.end_inside(open.last().copied()),
                // In JSON a single quote is no bracket, but a string may stand in its place.
                quote @ (b'"' | b'\'')
                    if quote == b'"' || extent != Extent::Json || open.is_empty() =>
                {
                    if self.cursor.quoted().is_none() {
                        return self.open_string();
                    }
                }
                b'[' | b'(' | b']' | b')' if extent == Extent::Json && !open.is_empty() => {
                    self.cursor.bump();
                }
                b'{' | b'[' | b'(' if open.len() >= MAX_DEPTH => return self.too_deep(),
                bracket @ (b'{' | b'[' | b'(') => {
                    open.push((bracket, at));
                    self.cursor.bump();
                }
                bracket @ (b'}' | b']' | b')') => {
                    if let Some(end) = self.close(bracket, &mut open, extent)? {
                        return Ok(end);
                    }
                }
                b',' if open.is_empty() => return Ok(at),
                // JSON has no comments.
                b'/' if extent != Extent::Json || open.is_empty() => {
                    if self.skip_comment() && open.is_empty() && !self.goes_on(extent) {
                        return Ok(at);
                    }
                }
                // A line that begins like an instruction: a bracket before it
                // was forgotten.
                b'\n' if extent == Extent::Attribute => {
                    // All lines at once: none is looked at twice.
                    self.cursor.skip_space();
                    if begins_definition(self.cursor) {
                        self.cursor.set_pos(at);
                        return self.end_inside(open.last().copied());
                    }
                    if open.is_empty() && !self.goes_on(extent) {
                        return Ok(at);
                    }
                }
                byte if open.is_empty() && is_space(byte) => {
                    self.cursor.skip_space();
                    if !self.goes_on(extent) {
                        return Ok(at);
                    }
                }
                _ => self.cursor.bump(),
            }
        }
    }

    /// Moves over a comment, or over a slash that begins none; returns whether it is a comment.
    fn skip_comment(&mut self) -> bool {
        let at = self.cursor.pos();
        self.cursor.skip_space();
        let is_comment = self.cursor.pos() != at;
        if !is_comment {
            self.cursor.bump();
        }
        is_comment
    }

    /// Moves over a closing bracket; returns where the value ends, if it ends there.
    fn close(&mut self, bracket: u8, open: &mut Open, extent: Extent) -> Parse<Option<usize>> {
        match open.pop() {
            None => return Ok(Some(self.cursor.pos())),
            Some((opened, from)) if !closes(bracket, opened) => {
                return self.mismatched(opened, from).map(Some);
            }
            Some(_) => self.cursor.bump(),
        }
        // In `{...}ROOT` the next word follows the bracket without a space.
        let ends = open.is_empty() && self.at_name() && !self.goes_on(extent);
        Ok(ends.then(|| self.cursor.pos()))
    }

    fn at_name(&self) -> bool {
        self.cursor.peek() == b'%' || starts_name(self.cursor.peek())
    }

    /// Checks whether the text after whitespace still belongs to the value.
    fn goes_on(&self, extent: Extent) -> bool {
        extent != Extent::Field
            && match self.cursor.peek() {
                b'{' | b'[' | b'(' | b'<' => true,
                b'T' => self.cursor.peek_second() == b'(',
                // `literal=f32[] 1.5`, which may also be one of these words.
                b'0'..=b'9' | b'-' => true,
                _ => {
                    matches!(self.cursor.peek_word(), Some("inf" | "nan" | "true" | "false"))
                        && !begins_definition(self.cursor)
                }
            }
    }

    fn end_inside(&mut self, open: Option<(u8, usize)>) -> Parse<usize> {
        match open {
            None => Ok(self.cursor.pos()),
            Some((bracket, at)) => {
                // Reading goes on after the bracket, as if it were not there.
                self.cursor.set_pos(at + 1);
                let message = format!("this `{}` is never closed", char::from(bracket));
                self.fail(SyntaxError::new(Span::new(at, at + 1), message))
            }
        }
    }

    fn mismatched(&mut self, opened: u8, from: usize) -> Parse<usize> {
        let found = char::from(self.cursor.peek());
        let opened = char::from(opened);
        let span = Span::new(self.cursor.pos(), self.cursor.pos() + 1);
        self.cursor.set_pos(from + 1);
        self.fail(SyntaxError::new(
            span,
            format!("`{found}` does not close the `{opened}` before it"),
        ))
    }
}

fn closes(close: u8, open: u8) -> bool {
    matches!((open, close), (b'{', b'}') | (b'[', b']') | (b'(', b')'))
}
