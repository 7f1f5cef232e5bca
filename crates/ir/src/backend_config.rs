//! `backend_config`: bytes in protos and MLIR, text with quotes or braces in HLO text.

use crate::escape::{push_escaped, unescape};
use crate::ops::attr::Verbatim;

/// Returns bytes as text: unchanged if they are a JSON dict, else in quotes.
pub fn to_text(bytes: &[u8]) -> Verbatim {
    Verbatim(text_of(bytes).into_boxed_str())
}

/// Returns the bytes that a text represents; `None` if an escape is malformed.
pub fn to_bytes(text: &Verbatim) -> Option<Vec<u8>> {
    let text = &*text.0;
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return unescape(inside);
        }
    }
    Some(text.as_bytes().to_vec())
}

fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_json_dict(text) => text.to_owned(),
        _ => {
            let mut text = String::with_capacity(bytes.len().saturating_add(2));
            text.push('"');
            push_escaped(&mut text, bytes);
            text.push('"');
            text
        }
    }
}

/// Checks whether braces, outside strings, close exactly at the end. XLA looks no closer
/// either.
fn is_json_dict(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
    let last = text.len().saturating_sub(1);
    if !text.starts_with('{') {
        return false;
    }
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth = depth.saturating_add(1),
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !in_string {
            return byte == b'}' && at == last;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dicts_stay_and_all_else_is_quoted() {
        for dict in [r#"{}"#, r#"{"a":{"b":"}"}}"#, r#"{"a":"\"{"}"#] {
            assert_eq!(&*to_text(dict.as_bytes()).0, dict);
        }
        for (bytes, text) in [
            (&b"a"[..], r#""a""#),
            (b"{", r#""{""#),
            (b"}", r#""}""#),
            (b"", r#""""#),
            (b"{}{}", r#""{}{}""#),
            (b"{}\n", r#""{}\n""#),
            (b"{\xff}", r#""{\377}""#),
            (b"\"{}\"", r#""\"{}\"""#),
        ] {
            let written = to_text(bytes);
            assert_eq!(&*written.0, text);
            assert_eq!(to_bytes(&written).as_deref(), Some(bytes));
        }
    }
}
