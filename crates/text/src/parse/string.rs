//! Strings with C escapes.

use smol_str::SmolStr;
use tilewright_ir::escape;

use super::{Parse, Parser, SyntaxError};
use crate::span::Span;

impl Parser<'_> {
    /// `string := '"' ... '"' | "'" ... "'"`, without quotes and escapes.
    pub(super) fn string(&mut self, what: &str) -> Parse<SmolStr> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        if !matches!(self.cursor.peek(), b'"' | b'\'') {
            return self.unexpected(what);
        }
        let Some((raw, escapes)) = self.cursor.quoted() else { return self.open_string() };
        if !escapes {
            return Ok(SmolStr::new(raw));
        }
        match unescape(raw) {
            Some(text) => Ok(SmolStr::new(text)),
            None => {
                let span = self.span_since(start);
                let message = "the escapes in this string are malformed or not UTF-8";
                self.fail(SyntaxError::new(span, message))
            }
        }
    }

    /// Reports a quote here that nothing ends.
    pub(super) fn open_string<T>(&mut self) -> Parse<T> {
        let start = self.cursor.pos();
        self.cursor.bump();
        let span = Span::new(start, start + 1);
        self.fail(SyntaxError::new(span, "this string is never closed"))
    }
}

/// What a string with C escapes stands for.
pub(super) fn unescape(raw: &str) -> Option<String> {
    String::from_utf8(escape::unescape(raw)?).ok()
}
