//! Numbers and sections.

/// The bytes of a part of a file.
#[derive(Default)]
pub(super) struct Emitter {
    pub(super) bytes: Vec<u8>,
}

impl Emitter {
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes a number; see the reader.
    pub(super) fn varint(&mut self, value: u64) {
        let bits = 64 - value.leading_zeros();
        let size = bits.div_ceil(7).max(1);
        if size > 8 {
            self.byte(0);
            self.bytes.extend_from_slice(&value.to_le_bytes());
            return;
        }
        let encoded = (value << 1 | 1) << (size - 1);
        self.bytes.extend(encoded.to_le_bytes().into_iter().take(size as usize));
    }

    pub(super) fn signed(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn flagged(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }

    pub(super) fn count(&mut self, count: usize) {
        self.varint(count as u64);
    }

    pub(super) fn signed_list(&mut self, values: &[i64]) {
        self.count(values.len());
        values.iter().for_each(|value| self.signed(*value));
    }

    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.byte(0);
    }

    pub(super) fn section(&mut self, number: u8, part: &Self) {
        self.byte(number);
        self.blob(&part.bytes);
    }
}
