//! Integers, without the detour through `fmt`.

pub(super) fn push_u64(out: &mut String, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        // This is in range: it is a remainder of 10.
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    push_ascii(out, &digits[at..]);
}

pub(super) fn push_i64(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    push_u64(out, value.unsigned_abs());
}

/// Appends `sep`-separated integers.
pub(super) fn push_list(out: &mut String, values: &[i64], sep: char) {
    for (i, &value) in values.iter().enumerate() {
        if i > 0 {
            out.push(sep);
        }
        push_i64(out, value);
    }
}

/// Appends bytes that are known to be ASCII.
pub(super) fn push_ascii(out: &mut String, bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_at_the_ends_of_their_range() {
        for value in [0, 1, -1, 9, 10, 99, 100, i64::MAX, i64::MIN] {
            let mut out = String::new();
            push_i64(&mut out, value);
            assert_eq!(out, value.to_string());
        }
        let mut out = String::new();
        push_u64(&mut out, u64::MAX);
        assert_eq!(out, u64::MAX.to_string());
    }
}
