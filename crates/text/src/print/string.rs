//! Quoted strings with C's escapes, spelt as XLA spells them.

use super::number::push_ascii;

const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b' ' as usize;
    while byte < 0x7f {
        plain[byte] = !matches!(byte as u8, b'"' | b'\'' | b'\\');
        byte += 1;
    }
    plain
};

/// Appends `text` in double quotes. Bytes outside ASCII become octal escapes.
pub(super) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    if text.bytes().all(|byte| PLAIN[usize::from(byte)]) {
        out.push_str(text);
    } else {
        text.bytes().for_each(|byte| push_byte(out, byte));
    }
    out.push('"');
}

/// Appends `text` in single quotes.
pub(super) fn push_in_single_quotes(out: &mut String, text: &str) {
    out.push('\'');
    text.bytes().for_each(|byte| push_byte(out, byte));
    out.push('\'');
}

fn push_byte(out: &mut String, byte: u8) {
    match byte {
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        b'"' | b'\'' | b'\\' => {
            out.push('\\');
            out.push(char::from(byte));
        }
        _ if PLAIN[usize::from(byte)] => out.push(char::from(byte)),
        _ => {
            let digit = |shift: u8| b'0' + (byte >> shift & 7);
            push_ascii(out, &[b'\\', digit(6), digit(3), digit(0)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As XLA prints the same strings.
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
