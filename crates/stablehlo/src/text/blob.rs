//! Bytes as hexadecimal strings: `"0x0000803F"`.

use super::error::SyntaxError;
use super::literal::nibble;
use super::{Parse, Parser};

impl Parser<'_> {
    /// Takes a string of hexadecimal digits and returns its bytes.
    pub(super) fn blob(&mut self) -> Parse<Vec<u8>> {
        self.skip();
        let start = self.position;
        let text = self.string_end()?;
        let bytes = text.strip_prefix("0x").and_then(decode);
        bytes.ok_or_else(|| {
            let mut place = self.span_since(start);
            // The digits may be a megabyte.
            place.end = place.end.min(place.start + 1);
            let help = "write `\"0x\"` and two digits for each byte";
            SyntaxError::new(place, "this string holds no hexadecimal bytes").help(help)
        })
    }
}

fn decode(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect()
}
