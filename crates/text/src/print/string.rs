//! Quoted strings with C's escapes, spelt as XLA spells them.

use tilewright_ir::escape::{is_plain, push_escaped};

/// Appends `text` in double quotes. Bytes outside ASCII become octal escapes.
pub(super) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    if text.bytes().all(is_plain) {
        out.push_str(text);
    } else {
        push_escaped(out, text.as_bytes());
    }
    out.push('"');
}

/// Appends `text` in single quotes.
pub(super) fn push_in_single_quotes(out: &mut String, text: &str) {
    out.push('\'');
    push_escaped(out, text.as_bytes());
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected strings are those that XLA prints.
    #[test]
    fn escapes() {
        let mut out = String::new();
        push_quoted(&mut out, "f(x)/a.b");
        assert_eq!(out, r#""f(x)/a.b""#);
        out.clear();
        push_quoted(&mut out, "n\"q\\ \n\t\r'\u{e9}\u{7f}\u{1}");
        assert_eq!(out, r#""n\"q\\ \n\t\r\'\303\251\177\001""#);
    }
}
