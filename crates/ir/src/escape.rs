//! C's escapes, which stand in quoted text and in [`Verbatim`] attributes for
//! bytes.
//!
//! [`Verbatim`]: crate::ops::attr::Verbatim

/// Returns the bytes that a text with escapes represents; `None` if an escape is malformed.
pub fn unescape(raw: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes().peekable();
    while rest.peek().is_some() {
        push_next(&mut bytes, &mut rest)?;
    }
    Some(bytes)
}

/// Returns for each byte that a text with escapes represents its position in the text, as far
/// as the escapes are well formed.
pub fn places(raw: &str) -> Vec<usize> {
    let mut places = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes().peekable();
    let mut bytes = Vec::new();
    loop {
        let at = raw.len() - rest.len();
        bytes.clear();
        if rest.peek().is_none() || push_next(&mut bytes, &mut rest).is_none() {
            return places;
        }
        places.extend(bytes.iter().map(|_| at));
    }
}

/// Appends the bytes that a character or an escape represents.
fn push_next(
    bytes: &mut Vec<u8>,
    rest: &mut std::iter::Peekable<std::str::Bytes<'_>>,
) -> Option<()> {
    let byte = match rest.next()? {
        b'\\' => match rest.next()? {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0B,
            first @ b'0'..=b'7' => number(rest, 8, 2, u32::from(first - b'0'))?,
            b'x' | b'X' => {
                let first = char::from(rest.next()?).to_digit(16)?;
                number(rest, 16, 1, first)?
            }
            b'u' => return push_code_point(bytes, rest, 4),
            b'U' => return push_code_point(bytes, rest, 8),
            other @ (b'\\' | b'"' | b'\'' | b'?') => other,
            _ => return None,
        },
        byte => byte,
    };
    bytes.push(byte);
    Some(())
}

/// Appends the UTF-8 of a code point with this many hexadecimal digits.
fn push_code_point(
    bytes: &mut Vec<u8>,
    rest: &mut std::iter::Peekable<std::str::Bytes<'_>>,
    digits: usize,
) -> Option<()> {
    let mut value = 0u32;
    for _ in 0..digits {
        // Eight digits fit.
        value = value << 4 | char::from(rest.next()?).to_digit(16)?;
    }
    let code_point = char::from_u32(value)?;
    bytes.extend_from_slice(code_point.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

/// Returns the rest of an octal or hexadecimal escape, up to `digits` more digits.
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

/// Checks whether a byte represents itself.
pub const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte < 0x7f && !matches!(byte, b'"' | b'\'' | b'\\')
}

/// Appends bytes, those outside printable ASCII as escapes, spelt as XLA spells
/// them.
pub fn push_escaped(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            _ if is_plain(byte) => out.push(char::from(byte)),
            _ => {
                out.push('\\');
                for shift in [6, 3, 0] {
                    out.push(char::from(b'0' + (byte >> shift & 7)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The escaped text equals the output of absl's CEscape.
    #[test]
    fn bytes_there_and_back() {
        let mut out = String::new();
        push_escaped(&mut out, b"n\"q\\ \n\t\r'\xc3\xa9\x7f\x01");
        assert_eq!(out, r#"n\"q\\ \n\t\r\'\303\251\177\001"#);
        assert_eq!(unescape(&out).as_deref(), Some(&b"n\"q\\ \n\t\r'\xc3\xa9\x7f\x01"[..]));
        let all: Vec<u8> = (0..=255).collect();
        out.clear();
        push_escaped(&mut out, &all);
        assert_eq!(unescape(&out), Some(all));
    }

    #[test]
    fn malformed_escapes() {
        for raw in ["\\", "\\q", "\\x", "\\777", "\\u12", "\\ud800", "\\U00110000"] {
            assert_eq!(unescape(raw), None, "{raw}");
        }
        assert_eq!(unescape("\\x41\\1012").as_deref(), Some(&b"AA2"[..]));
        let accents = unescape("caf\\u00e9\\U0001f600").unwrap();
        assert_eq!(accents, "caf\u{e9}\u{1f600}".as_bytes());
    }

    #[test]
    fn places_of_bytes() {
        assert_eq!(places("ab"), [0, 1]);
        assert_eq!(places("a\\n\\\"\\101z"), [0, 1, 3, 5, 9]);
        // Two bytes of UTF-8.
        assert_eq!(places("\\u00e9z"), [0, 0, 6]);
        assert_eq!(places("a\\q b"), [0]);
    }
}
