//! Numbers, strings and blobs.

use super::Read;
use super::error::{BytecodeError, Section};

/// The byte that MLIR writes to align what follows.
pub(super) const PADDING: u8 = 0xCB;

/// A part of the file that is read from its beginning to its end.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'b> {
    /// The bytes up to the end of the part.
    bytes: &'b [u8],
    position: usize,
    section: Section,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, position: 0, section: Section::File }
    }

    /// The same part as one of another section.
    pub(super) fn within(self, section: Section) -> Self {
        Self { section, ..self }
    }

    pub(crate) fn offset(&self) -> usize {
        self.position
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.remaining() == 0
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Box<BytecodeError> {
        let (section, offset) = (self.section, self.position);
        Box::new(BytecodeError { section, offset, message: message.into(), help: None })
    }

    /// Takes this many bytes as a part of its own.
    pub(crate) fn take(&mut self, size: usize) -> Read<Self> {
        let end =
            self.position.checked_add(size).and_then(|end| Some((end, self.bytes.get(..end)?)));
        let Some((end, bytes)) = end else {
            let message = format!("{size} bytes should follow, but {} are left", self.remaining());
            return Err(self.error(message).help("the file may be cut off"));
        };
        let part = Self { bytes, ..*self };
        self.position = end;
        Ok(part)
    }

    /// Takes this many bytes.
    pub(crate) fn bytes(&mut self, size: usize) -> Read<&'b [u8]> {
        let part = self.take(size)?;
        Ok(part.rest())
    }

    /// The bytes that are left.
    pub(crate) fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    pub(crate) fn byte(&mut self) -> Read<u8> {
        Ok(self.bytes(1)?.first().copied().unwrap_or_default())
    }

    /// Takes a number: the zeros at the low end of its first byte count the bytes that follow.
    pub(crate) fn varint(&mut self) -> Read<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros();
        let mut bytes = [0; 8];
        if first == 0 {
            bytes.copy_from_slice(self.bytes(8)?);
            return Ok(u64::from_le_bytes(bytes));
        }
        let following = self.bytes(more as usize)?;
        for (to, from) in bytes.iter_mut().zip(std::iter::once(&first).chain(following)) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(bytes) >> (more + 1))
    }

    /// Takes a number whose lowest bit is its sign.
    pub(crate) fn signed(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Takes a number whose lowest bit is a flag.
    pub(crate) fn flagged(&mut self) -> Read<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// Takes the number of things that follow, each of at least one byte.
    pub(crate) fn count(&mut self, things: &str) -> Read<usize> {
        let count = self.varint()?;
        self.payable(count, things)
    }

    /// Checks that things of at least one byte each can follow.
    pub(crate) fn payable(&self, count: u64, things: &str) -> Read<usize> {
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => {
                let left = self.remaining();
                Err(self.error(format!("{count} {things} do not fit in the {left} bytes left")))
            }
        }
    }

    /// Takes a list of signed numbers.
    pub(crate) fn signed_list(&mut self) -> Read<Vec<i64>> {
        let count = self.count("numbers")?;
        (0..count).map(|_| self.signed()).collect()
    }

    /// Takes a size and this many bytes.
    pub(crate) fn blob(&mut self) -> Read<&'b [u8]> {
        let size = self.count("bytes")?;
        self.bytes(size)
    }

    /// Takes the text up to a byte of zero, and this byte.
    pub(crate) fn text(&mut self) -> Read<&'b str> {
        let rest = self.rest();
        let Some(size) = rest.iter().position(|&byte| byte == 0) else {
            return Err(self.error("a text does not end"));
        };
        let start = *self;
        let text = self.bytes(size)?;
        self.position += 1;
        std::str::from_utf8(text).map_err(|_| start.error("a text is not UTF-8"))
    }

    /// Takes padding up to a multiple of a power of two.
    pub(crate) fn align(&mut self, alignment: u64) -> Read<()> {
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("the alignment {alignment} is no power of two")));
        }
        while self.position as u64 & (alignment - 1) != 0 {
            let before = *self;
            if self.byte()? != PADDING {
                return Err(before.error(format!("a byte of padding is not {PADDING:#x}")));
            }
        }
        Ok(())
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(&self, of: &str) -> Read<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.error(format!("{left} bytes are left after {of}"))),
        }
    }
}
