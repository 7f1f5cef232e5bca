//! Strings with C escapes.

use std::borrow::Cow;

use smol_str::SmolStr;
use tilewright_ir::escape;

use super::{Parse, Parser, SyntaxError};
use crate::span::Span;

/// A string of the source.
pub(super) struct Quoted<'s> {
    /// The position of the byte after the opening quote.
    pub(super) start: usize,
    /// The text between the quotes.
    pub(super) raw: &'s str,
    /// The text with escapes replaced.
    pub(super) text: Cow<'s, str>,
}

impl<'s> Parser<'s> {
    /// `string := '"' ... '"' | "'" ... "'"`, without quotes and escapes.
    pub(super) fn string(&mut self, what: &str) -> Parse<SmolStr> {
        self.quoted(what).map(|quoted| SmolStr::new(quoted.text))
    }

    pub(super) fn quoted(&mut self, what: &str) -> Parse<Quoted<'s>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if !matches!(self.cursor.peek(), b'"' | b'\'') {
            return self.unexpected(what);
        }
        let Some((raw, escapes)) = self.cursor.quoted() else { return self.open_string() };
        if !escapes {
            return Ok(Quoted { start: start + 1, raw, text: Cow::Borrowed(raw) });
        }
        match unescape(raw) {
            Some(text) => Ok(Quoted { start: start + 1, raw, text: Cow::Owned(text) }),
            None => {
                let span = self.span_since(start);
                let message = "the escapes in this string are malformed or not UTF-8";
                self.fail(SyntaxError::new(span, message))
            }
        }
    }

    /// Reports a quote here without an end.
    pub(super) fn open_string<T>(&mut self) -> Parse<T> {
        let start = self.cursor.pos();
        self.cursor.bump();
        let span = Span::new(start, start + 1);
        self.fail(SyntaxError::new(span, "this string is never closed"))
    }
}

/// Returns the text of a string with C escapes.
pub(super) fn unescape(raw: &str) -> Option<String> {
    String::from_utf8(escape::unescape(raw)?).ok()
}
