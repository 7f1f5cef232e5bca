//! Strings and symbols.

use std::sync::Arc;

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::cursor::span;
use super::error::SyntaxError;
use super::{Parse, Parser};

/// Returns the value of a hexadecimal digit.
pub(super) fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl<'s> Parser<'s> {
    /// Takes a string in quotes, which begins right here, and returns the text between them.
    pub(super) fn string_end(&mut self) -> Parse<&'s str> {
        let start = self.position;
        if self.byte(0) != b'"' {
            return Err(self.unexpected("a string in quotes"));
        }
        self.position += 1;
        loop {
            let rest = self.rest().as_bytes();
            let Some(at) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b'\n')) else {
                return Err(SyntaxError::new(span(start, start + 1), "this string has no end"));
            };
            self.position += at + 1;
            match rest.get(at) {
                Some(b'"') => return Ok(self.text(start + 1, self.position - 1)),
                // The escaped character is ASCII, or the string is invalid.
                Some(b'\\') if self.byte(0).is_ascii() => self.position += 1,
                _ => {
                    let help = "write `\\0A` for a new line, `\\5C` for a backslash";
                    let message = "this string has no end on its line";
                    return Err(SyntaxError::new(span(start, start + 1), message).help(help));
                }
            }
            self.position = self.position.min(self.source.len());
        }
    }

    /// Takes a string in quotes and returns its bytes.
    pub(super) fn string(&mut self, expected: &str) -> Parse<Arc<[u8]>> {
        if self.peek() != b'"' {
            return Err(self.unexpected(expected));
        }
        let start = self.position;
        let text = self.string_end()?;
        if !text.contains('\\') {
            return Ok(text.as_bytes().into());
        }
        self.unescaped(text, start + 1).map(Arc::from)
    }

    /// Takes a string in quotes that is text.
    pub(super) fn string_text(&mut self, expected: &str) -> Parse<SmolStr> {
        self.skip();
        let start = self.position;
        let bytes = self.string(expected)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(SyntaxError::new(self.span_since(start), "this is no UTF-8")),
        }
    }

    /// Replaces the escapes of a string that begins at `start`.
    fn unescaped(&self, text: &str, start: usize) -> Parse<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes().enumerate();
        while let Some((at, byte)) = rest.next() {
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            let escape = rest.next().map_or(0, |(_, escape)| escape);
            let decoded = match escape {
                b'n' => Some(b'\n'),
                b't' => Some(b'\t'),
                b'"' | b'\\' => Some(escape),
                _ => nibble(escape).and_then(|high| {
                    let low = rest.next().and_then(|(_, low)| nibble(low))?;
                    Some(high << 4 | low)
                }),
            };
            let Some(decoded) = decoded else {
                let place = span(start + at, start + at + 2);
                let help = "the escapes are `\\n`, `\\t`, `\\\"`, `\\\\` and two hex digits";
                return Err(SyntaxError::new(place, "this escape is not known").help(help));
            };
            bytes.push(decoded);
        }
        Ok(bytes)
    }

    /// Takes `@name` or `@"name"`.
    pub(super) fn symbol_name(&mut self) -> Parse<SmolStr> {
        if !self.accept("@") {
            return Err(self.unexpected("a symbol, as `@main`"));
        }
        if self.byte(0) == b'"' {
            return self.string_text("");
        }
        self.name("the name of a symbol, as `@main`").map(SmolStr::new)
    }

    /// Takes `@a::@b`.
    pub(super) fn symbol(&mut self) -> Parse<SmallVec<[SmolStr; 1]>> {
        let mut path = SmallVec::new();
        path.push(self.symbol_name()?);
        while self.accept("::") {
            path.push(self.symbol_name()?);
        }
        Ok(path)
    }
}
