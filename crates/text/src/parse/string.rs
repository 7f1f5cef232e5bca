//! Strings with C escapes.

use smol_str::SmolStr;

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
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            first @ b'0'..=b'7' => number(&mut rest, 8, 2, u32::from(first - b'0'))?,
            b'x' | b'X' => {
                let first = char::from(rest.next()?).to_digit(16)?;
                number(&mut rest, 16, 1, first)?
            }
            other @ (b'\\' | b'"' | b'\'' | b'?') => other,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The rest of an octal or hexadecimal escape, up to `digits` more digits.
fn number(
    rest: &mut std::iter::Peekable<std::str::Bytes<'_>>,
    radix: u32,
    digits: usize,
    first: u32,
) -> Option<u8> {
    let mut value = first;
    for _ in 0..digits {
        let Some(digit) = rest.peek().and_then(|&b| char::from(b).to_digit(radix)) else { break };
        value = value * radix + digit;
        rest.next();
    }
    u8::try_from(value).ok()
}
