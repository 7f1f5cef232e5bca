//! A cursor over the bytes of the source: the words of HLO text.
//!
//! HLO is sensitive to context (`{` opens a body, a layout, a literal or an attribute, `a=` is
//! not `a =`), so there are no tokens: the parser asks the cursor for the text that the grammar
//! allows at a place. Every step moves over ASCII or to a quote, so the position is always on a
//! character boundary.

use memchr::{memchr2, memmem};

/// The byte that ends every source: no byte of a source is zero.
pub(crate) const END: u8 = 0;

const SPACE: u8 = 1;
const NAME_START: u8 = 2;
const NAME: u8 = 4;
const NUMBER: u8 = 8;

const CLASSES: [u8; 256] = {
    let mut classes = [0u8; 256];
    let mut byte = 0usize;
    while byte < 256 {
        // This is in range: the loop ends at 256.
        let b = byte as u8;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
            classes[byte] |= SPACE;
        }
        if b.is_ascii_alphabetic() || b == b'_' {
            classes[byte] |= NAME_START;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-') {
            classes[byte] |= NAME;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+') {
            classes[byte] |= NUMBER;
        }
        byte += 1;
    }
    classes
};

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Checks whether a name may begin with this byte.
pub(crate) fn starts_name(byte: u8) -> bool {
    is(byte, NAME_START)
}

/// Checks whether this byte separates words.
pub(crate) fn is_space(byte: u8) -> bool {
    is(byte, SPACE)
}

/// A position in a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'s> {
    source: &'s str,
    pos: usize,
    /// The start of a comment that is never closed; everything after it is comment.
    open_comment: Option<usize>,
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self { source, pos: 0, open_comment: None }
    }

    pub(crate) fn source(&self) -> &'s str {
        self.source
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    /// Moves to an earlier position of the cursor, or to a position that it returned.
    pub(crate) fn set_pos(&mut self, pos: usize) {
        self.pos = pos;
    }

    pub(crate) fn open_comment(&self) -> Option<usize> {
        self.open_comment
    }

    /// Returns the text between two positions.
    pub(crate) fn text(&self, start: usize, end: usize) -> &'s str {
        self.source.get(start..end).unwrap_or("")
    }

    /// Returns the text from a position to here.
    pub(crate) fn since(&self, start: usize) -> &'s str {
        self.text(start, self.pos)
    }

    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.source.as_bytes().get(at).copied().unwrap_or(END)
    }

    /// Returns the byte here; [`END`] past the last.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.byte(self.pos)
    }

    /// Returns the byte after the one here.
    #[inline]
    pub(crate) fn peek_second(&self) -> u8 {
        self.byte(self.pos + 1)
    }

    /// Moves over the byte here, which must be ASCII.
    #[inline]
    pub(crate) fn bump(&mut self) {
        if self.pos < self.source.len() {
            self.pos += 1;
        }
    }

    /// Moves over one character of any kind.
    pub(crate) fn bump_char(&mut self) {
        let rest = self.source.get(self.pos..).unwrap_or("");
        self.pos += rest.chars().next().map_or(0, char::len_utf8);
    }

    /// Moves over bytes of a class.
    #[inline]
    fn skip(&mut self, class: u8) {
        let rest = self.source.as_bytes().get(self.pos..).unwrap_or_default();
        self.pos += rest.iter().position(|&b| !is(b, class)).unwrap_or(rest.len());
    }

    /// Moves over whitespace and comments.
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        // There is usually one space or none.
        if self.peek() == b' ' {
            self.pos += 1;
        }
        if self.peek() <= b' ' || self.peek() == b'/' {
            self.skip_some_space();
        }
    }

    fn skip_some_space(&mut self) {
        loop {
            while is(self.peek(), SPACE) {
                self.pos += 1;
            }
            if self.peek() != b'/' || !self.skip_comment() {
                return;
            }
        }
    }

    /// `/* ... */` and `// ...`; `false` if none is here.
    fn skip_comment(&mut self) -> bool {
        let rest = |from: usize| self.source.as_bytes().get(from..).unwrap_or_default();
        match self.peek_second() {
            b'/' => {
                let line = memchr2(b'\n', b'\r', rest(self.pos));
                self.pos = line.map_or(self.source.len(), |at| self.pos + at);
                true
            }
            b'*' => {
                let inside = self.pos + 2;
                let length = memmem::find(rest(inside), b"*/");
                if length.is_none() {
                    self.open_comment.get_or_insert(self.pos);
                }
                self.pos = length.map_or(self.source.len(), |length| inside + length + 2);
                true
            }
            _ => false,
        }
    }

    /// Moves over a byte if it is here.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let here = self.peek() == byte;
        if here {
            self.pos += 1;
        }
        here
    }

    /// Moves over whitespace and then a byte if it is there.
    #[inline]
    pub(crate) fn accept_after_space(&mut self, byte: u8) -> bool {
        if self.eat(byte) {
            return true;
        }
        self.skip_space();
        self.eat(byte)
    }

    /// Moves over a text if it is here.
    #[inline]
    pub(crate) fn eat_text(&mut self, text: &str) -> bool {
        let rest = self.source.as_bytes().get(self.pos..).unwrap_or_default();
        let here = rest.starts_with(text.as_bytes());
        if here {
            self.pos += text.len();
        }
        here
    }

    /// Moves over a word if it stands here as a whole.
    #[inline]
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let rest = self.source.as_bytes().get(self.pos..).unwrap_or_default();
        let here = rest.starts_with(word.as_bytes())
            && rest.get(word.len()).is_none_or(|&next| !is(next, NAME));
        if here {
            self.pos += word.len();
        }
        here
    }

    /// Reads `[A-Za-z_][A-Za-z0-9_.-]*`, or returns `None`.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<&'s str> {
        if !is(self.peek(), NAME_START) {
            return None;
        }
        let start = self.pos;
        self.pos += 1;
        self.skip(NAME);
        // `f32[]->` and `a->b`: the arrow is no part of the name.
        if self.peek() == b'>' && self.byte(self.pos - 1) == b'-' {
            self.pos -= 1;
        }
        Some(self.since(start))
    }

    /// Returns a word where the cursor will be after whitespace, without moving.
    pub(crate) fn peek_word(&self) -> Option<&'s str> {
        let mut ahead = *self;
        ahead.word()
    }

    /// Returns the text of a number, `inf` or `nan`, with its sign: `[A-Za-z0-9.+-]*`.
    #[inline]
    pub(crate) fn number(&mut self) -> &'s str {
        let start = self.pos;
        self.skip(NUMBER);
        self.since(start)
    }

    /// Reads `[0-9_x-]*`: the text of `3x3`, `1_1x0_1` and similar sizes.
    pub(crate) fn sizes(&mut self) -> &'s str {
        let start = self.pos;
        while matches!(self.peek(), b'0'..=b'9' | b'_' | b'x' | b'-') {
            self.pos += 1;
        }
        self.since(start)
    }

    /// Reads a string in single or double quotes. Returns the text between the quotes and
    /// whether it has escapes, or `None`, without moving, if the string has no end.
    pub(crate) fn quoted(&mut self) -> Option<(&'s str, bool)> {
        let quote = self.peek();
        let start = self.pos + 1;
        let bytes = self.source.as_bytes();
        let mut at = start;
        let mut escapes = false;
        loop {
            at += memchr2(quote, b'\\', bytes.get(at..)?)?;
            if bytes.get(at) == Some(&quote) {
                break;
            }
            escapes = true;
            at += 2;
        }
        self.pos = at + 1;
        Some((self.text(start, at), escapes))
    }
}
