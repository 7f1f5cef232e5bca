//! Floating-point numbers: the shortest decimal that reads back to the same
//! value, spelt as C's `%g` spells it, as XLA does.

use std::fmt::{self, Write as _};

use super::number::{push_ascii, push_i64};
use tilewright_ir::small_float::{Format, Value};

/// The least digits that C's `%g` is given for a type, and the most: from the
/// number of digits it follows when an exponent is written.
#[derive(Clone, Copy)]
struct Precision {
    least: i32,
    most: i32,
}

const F64: Precision = Precision { least: 15, most: 17 };
const F32: Precision = Precision { least: 6, most: 9 };
const F16: Precision = Precision { least: 5, most: 5 };
const BF16: Precision = Precision { least: 4, most: 4 };

pub(super) fn push_f64(out: &mut String, x: f64) {
    const MANTISSA: u64 = (1 << 52) - 1;
    if x.is_nan() {
        push_nan(out, x.is_sign_negative(), x.to_bits() & MANTISSA, 1 << 51);
    } else if x.fract() == 0.0 && x.abs() < 1e15 {
        push_whole(out, x);
    } else {
        push_decimal(out, x, F64, format_args!("{x:e}"));
    }
}

pub(super) fn push_f32(out: &mut String, x: f32) {
    const MANTISSA: u32 = (1 << 23) - 1;
    if x.is_nan() {
        push_nan(out, x.is_sign_negative(), u64::from(x.to_bits() & MANTISSA), 1 << 22);
    } else if x.fract() == 0.0 && x.abs() < 1e6 {
        push_whole(out, f64::from(x));
    } else {
        push_decimal(out, f64::from(x), F32, format_args!("{x:e}"));
    }
}

pub(super) fn push_f16(out: &mut String, bits: u16) {
    push_half(out, Format::F16, bits, F16);
}

pub(super) fn push_bf16(out: &mut String, bits: u16) {
    push_half(out, Format::BF16, bits, BF16);
}

/// Types of 4 to 8 bits: their values have few digits, so they are written
/// exactly, which is easier on the eye than the 450 that would do for 448.
pub(super) fn push_small(out: &mut String, format: Format, bits: u8) {
    match format.decode(u16::from(bits)) {
        Value::Nan { negative, payload, quiet } => push_nan(out, negative, payload, quiet),
        Value::Real(x) => push_f64(out, x),
    }
}

fn push_half(out: &mut String, format: Format, bits: u16, precision: Precision) {
    match format.decode(bits) {
        Value::Nan { negative, payload, quiet } => push_nan(out, negative, payload, quiet),
        // Whole numbers up to 128 need all their digits in either type.
        Value::Real(x) if x.fract() == 0.0 && x.abs() <= 128.0 => push_whole(out, x),
        Value::Real(x) if x.is_infinite() => push_decimal(out, x, precision, format_args!("")),
        Value::Real(x) => {
            let (low, high) = format.rounding_range(bits);
            let reads_back = |&digits: &usize| {
                let mut text = Text::default();
                write!(text, "{:.digits$e}", x.abs()).is_ok()
                    && text.as_str().parse().is_ok_and(|read| low < read && read < high)
            };
            // Six digits tell all values of 16-bit types apart.
            let digits = (0..5).find(reads_back).unwrap_or(5);
            push_decimal(out, x, precision, format_args!("{x:.digits$e}"));
        }
    }
}

/// A NaN; that with only the quiet bit set is the usual one.
fn push_nan(out: &mut String, negative: bool, payload: u64, quiet: u64) {
    out.push_str(if negative { "-nan" } else { "nan" });
    if payload != quiet {
        // Writing to a string cannot fail.
        let _ = write!(out, "(0x{payload:x})");
    }
}

/// A number without fraction that fits `i64`. Minus zero keeps a point:
/// XLA reads `-0` as an integer, without sign.
fn push_whole(out: &mut String, x: f64) {
    if x == 0.0 && x.is_sign_negative() {
        out.push_str("-0.0");
    } else {
        push_i64(out, x as i64);
    }
}

/// Writes `x` with the digits of `scientific`, which has the form `1.25e-7`.
fn push_decimal(out: &mut String, x: f64, precision: Precision, scientific: fmt::Arguments<'_>) {
    if x.is_sign_negative() {
        out.push('-');
    }
    if x.is_infinite() {
        out.push_str("inf");
        return;
    }
    let mut text = Text::default();
    // It has room for every number.
    let _ = text.write_fmt(scientific);
    let (digits, exponent) = text.digits_and_exponent();
    push_general(out, digits, exponent, precision);
}

/// `digits` with the point after the first, times ten to the `exponent`.
fn push_general(out: &mut String, digits: &[u8], exponent: i32, precision: Precision) {
    let count = digits.len();
    let threshold = if count as i32 <= precision.least { precision.least } else { precision.most };
    if exponent < -4 || exponent >= threshold {
        push_with_point(out, digits, 1);
        out.push_str(if exponent < 0 { "e-" } else { "e+" });
        if exponent.abs() < 10 {
            out.push('0');
        }
        push_i64(out, i64::from(exponent.abs()));
    } else if exponent < 0 {
        out.push_str("0.");
        (exponent + 1..0).for_each(|_| out.push('0'));
        push_ascii(out, digits);
    } else {
        let whole = exponent as usize + 1;
        push_with_point(out, digits, whole);
        (count..whole).for_each(|_| out.push('0'));
    }
}

/// Appends the digits with a point after the first `whole`, if any follow.
fn push_with_point(out: &mut String, digits: &[u8], whole: usize) {
    let (before, after) = digits.split_at(whole.min(digits.len()));
    push_ascii(out, before);
    if !after.is_empty() {
        out.push('.');
        push_ascii(out, after);
    }
}

/// A short text on the stack.
#[derive(Default)]
struct Text {
    bytes: [u8; 32],
    len: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Takes `-1.25e-7` apart into `125` and -7, without trailing zeros.
    fn digits_and_exponent(&mut self) -> (&[u8], i32) {
        let (mut count, mut exponent) = (0, 0);
        for at in 0..self.len {
            match self.bytes[at] {
                b'e' => {
                    let rest = std::str::from_utf8(&self.bytes[at + 1..self.len]);
                    exponent = rest.ok().and_then(|r| r.parse().ok()).unwrap_or(0);
                    break;
                }
                digit @ b'0'..=b'9' => {
                    self.bytes[count] = digit;
                    count += 1;
                }
                _ => {}
            }
        }
        while count > 1 && self.bytes[count - 1] == b'0' {
            count -= 1;
        }
        (&self.bytes[..count], exponent)
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + s.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ElementType;

    fn f32(x: f32) -> String {
        let mut out = String::new();
        push_f32(&mut out, x);
        out
    }

    fn f64(x: f64) -> String {
        let mut out = String::new();
        push_f64(&mut out, x);
        out
    }

    fn f16(bits: u16) -> String {
        let mut out = String::new();
        push_f16(&mut out, bits);
        out
    }

    fn bf16(bits: u16) -> String {
        let mut out = String::new();
        push_bf16(&mut out, bits);
        out
    }

    /// The text that XLA prints for the same values, except for digits beyond the shortest form.
    #[test]
    fn spelt_as_xla_spells_them() {
        assert_eq!(f32(1.0), "1");
        assert_eq!(f32(0.5), "0.5");
        assert_eq!(f32(1e-5), "1e-05");
        assert_eq!(f32(1.5e-5), "1.5e-05");
        assert_eq!(f32(0.0001), "0.0001");
        assert_eq!(f32(123.25), "123.25");
        assert_eq!(f32(1e6), "1e+06");
        assert_eq!(f32(999_999.0), "999999");
        assert_eq!(f32(1e10), "1e+10");
        assert_eq!(f32(1_234_567.0), "1234567");
        assert_eq!(f32(123_456_792.0), "123456790");
        assert_eq!(f32(1.5e30), "1.5e+30");
        assert_eq!(f32(f32::MAX), "3.4028235e+38");
        assert_eq!(f32(f32::from_bits(1)), "1e-45");
        assert_eq!(f64(1e10), "10000000000");
        assert_eq!(f64(1e15), "1e+15");
        assert_eq!(f64(1e-320), "1e-320");
        assert_eq!(f64(0.1), "0.1");
        assert_eq!(f64(-1.0 / 3.0), "-0.3333333333333333");
        assert_eq!(f64(12_345_678_901_234_568.0), "12345678901234568");
    }

    #[test]
    fn sixteen_bits() {
        assert_eq!(f16(0x2e66), "0.1");
        assert_eq!(f16(0x7bff), "65500");
        assert_eq!(f16(0x0001), "6e-08");
        assert_eq!(f16(0xfc00), "-inf");
        assert_eq!(f16(0x8000), "-0.0");
        assert_eq!(bf16(0x3dcd), "0.1");
        assert_eq!(bf16(0x7f7f), "3.39e+38");
        assert_eq!(bf16(0x4380), "256");
        assert_eq!(bf16(0x3f80), "1");
    }

    #[test]
    fn small_floats_are_exact() {
        let small = |element_type, bits| {
            let mut out = String::new();
            push_small(&mut out, Format::of(element_type).unwrap(), bits);
            out
        };
        assert_eq!(small(ElementType::F8E4M3FN, 0x7e), "448");
        assert_eq!(small(ElementType::F8E4M3FN, 0x01), "0.001953125");
        assert_eq!(small(ElementType::F8E4M3FN, 0xff), "-nan");
        assert_eq!(small(ElementType::F8E5M2, 0x7d), "nan(0x1)");
        assert_eq!(small(ElementType::F8E5M2, 0x01), "1.52587890625e-05");
        assert_eq!(small(ElementType::F8E5M2FNUZ, 0x80), "nan");
        assert_eq!(small(ElementType::F4E2M1FN, 0x8), "-0.0");
        // XLA reads a decimal that is above the least value as the next one.
        assert_eq!(small(ElementType::F8E8M0FNU, 0x00), "5.877471754111438e-39");
    }

    #[test]
    fn zeros_infinities_and_nans() {
        assert_eq!(f32(0.0), "0");
        assert_eq!(f32(-0.0), "-0.0");
        assert_eq!(f64(-0.0), "-0.0");
        assert_eq!(f32(f32::INFINITY), "inf");
        assert_eq!(f64(f64::NEG_INFINITY), "-inf");
        assert_eq!(f32(f32::from_bits(0x7fc0_0000)), "nan");
        assert_eq!(f32(f32::from_bits(0xffc0_0000)), "-nan");
        assert_eq!(f32(f32::from_bits(0x7f80_0001)), "nan(0x1)");
        assert_eq!(f32(f32::from_bits(0xffc0_0001)), "-nan(0x400001)");
        assert_eq!(f64(f64::from_bits(0x7fff_ffff_ffff_ffff)), "nan(0xfffffffffffff)");
        assert_eq!(f16(0x7c01), "nan(0x1)");
        assert_eq!(bf16(0xffc0), "-nan");
    }
}
