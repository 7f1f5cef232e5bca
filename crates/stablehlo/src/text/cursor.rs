//! The text as bytes, words and brackets.

use super::error::SyntaxError;
use super::{Parse, Parser};
use crate::mlir::Span;

/// The most bytes of the text that an error repeats.
const SHOWN: usize = 40;

/// Returns the range between two offsets.
pub(super) fn span(start: usize, end: usize) -> Span {
    let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
    Span { start: narrow(start), end: narrow(end.max(start)) }
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

fn continues_name(byte: u8) -> bool {
    continues_word(byte) || byte == b'-'
}

impl<'s> Parser<'s> {
    /// Returns the byte at a distance from the current one; 0 after the end.
    pub(super) fn byte(&self, distance: usize) -> u8 {
        self.source.as_bytes().get(self.position + distance).copied().unwrap_or(0)
    }

    pub(super) fn text(&self, start: usize, end: usize) -> &'s str {
        self.source.get(start..end).unwrap_or("")
    }

    /// Returns the text after the current place.
    pub(super) fn rest(&self) -> &'s str {
        self.source.get(self.position..).unwrap_or("")
    }

    pub(super) fn span_since(&self, start: usize) -> Span {
        span(start, self.position)
    }

    /// Skips spaces and comments.
    pub(super) fn skip(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\n' | b'\t' | b'\r' => self.position += 1,
                b'/' if self.byte(1) == b'/' => {
                    let rest = self.rest();
                    self.position += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Returns the next byte after spaces; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        self.skip();
        self.byte(0)
    }

    pub(super) fn at_end(&mut self) -> bool {
        self.skip();
        self.position >= self.source.len()
    }

    /// Takes punctuation if it is next.
    pub(super) fn accept(&mut self, text: &str) -> bool {
        self.skip();
        let found = self
            .source
            .as_bytes()
            .get(self.position..)
            .is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if found {
            self.position += text.len();
        }
        found
    }

    /// Takes punctuation.
    pub(super) fn expect(&mut self, text: &str) -> Parse<()> {
        if self.accept(text) { Ok(()) } else { Err(self.unexpected(format!("`{text}`"))) }
    }

    /// Returns the next word without taking it; empty if there is none.
    pub(super) fn peek_word(&mut self) -> &'s str {
        self.skip();
        if !starts_word(self.byte(0)) {
            return "";
        }
        let rest = self.rest();
        let length = rest.bytes().take_while(|&b| continues_word(b)).count();
        rest.get(..length).unwrap_or("")
    }

    /// Takes this word if it is next.
    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.position += word.len();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(format!("`{word}`"))) }
    }

    /// Takes a word.
    pub(super) fn word(&mut self, expected: &str) -> Parse<&'s str> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.unexpected(expected));
        }
        self.position += word.len();
        Ok(word)
    }

    /// Takes the name after `%`, `#`, `!`, `@` or `^`, which stands right here.
    pub(super) fn name(&mut self, expected: &str) -> Parse<&'s str> {
        let rest = self.rest();
        let digits = self.byte(0).is_ascii_digit();
        let belongs = |&b: &u8| if digits { b.is_ascii_digit() } else { continues_name(b) };
        let length = rest.bytes().take_while(|b| belongs(b)).count();
        if length == 0 {
            return Err(self.unexpected(expected));
        }
        self.position += length;
        Ok(rest.get(..length).unwrap_or(""))
    }

    /// Takes items between brackets, with commas between them.
    pub(super) fn list(
        &mut self,
        brackets: (&str, &str),
        mut item: impl FnMut(&mut Self) -> Parse<()>,
    ) -> Parse<()> {
        self.expect(brackets.0)?;
        if self.accept(brackets.1) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(brackets.1) {
                return Ok(());
            }
            if !self.accept(",") {
                return Err(self.unexpected(format!("`,` or `{}`", brackets.1)));
            }
        }
    }

    /// Takes a text in brackets of any kind, which begins right here, with all brackets in it.
    pub(super) fn balanced(&mut self) -> Parse<&'s str> {
        let start = self.position;
        if !matches!(self.byte(0), b'<' | b'(' | b'[' | b'{') {
            return Err(self.unexpected("`<`"));
        }
        let mut open = Vec::new();
        loop {
            match self.byte(0) {
                b'"' => {
                    self.string_end()?;
                    continue;
                }
                b'-' if self.byte(1) == b'>' => self.position += 1,
                b'<' => open.push(b'>'),
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                close @ (b'>' | b')' | b']' | b'}') if open.pop() != Some(close) => {
                    return Err(self.unexpected("brackets in pairs"));
                }
                0 if self.position >= self.source.len() => {
                    return Err(SyntaxError::new(span(start, start + 1), "this is never closed"));
                }
                _ => {}
            }
            self.position += 1;
            if open.is_empty() {
                return Ok(self.text(start, self.position));
            }
        }
    }

    /// An error about the next token.
    pub(super) fn error_here(&mut self, message: impl Into<String>) -> Box<SyntaxError> {
        SyntaxError::new(self.token(), message)
    }

    /// An error: another token was expected here.
    pub(super) fn unexpected(&mut self, expected: impl Into<String>) -> Box<SyntaxError> {
        let token = self.token();
        let text = self.text(token.start as usize, token.end as usize);
        let message = match text {
            "" => "the text ends too early".to_owned(),
            _ => format!("unexpected `{text}`"),
        };
        SyntaxError::new(token, message).expected(expected)
    }

    /// The range of the next token: a word, a name or one character.
    fn token(&mut self) -> Span {
        self.skip();
        let rest = self.rest();
        let mut length = rest.chars().next().map_or(0, char::len_utf8);
        let named = matches!(self.byte(0), b'%' | b'#' | b'!' | b'@' | b'^');
        if named || continues_word(self.byte(0)) {
            let tail = rest.bytes().skip(1).take_while(|&b| continues_word(b));
            length += tail.take(SHOWN).count();
        }
        span(self.position, self.position + length)
    }
}
