//! Decimal numbers to floats of 16 bits, rounded once.
//!
//! The standard library rounds a decimal to `f64` correctly. Rounding that again is right
//! unless the `f64` lies exactly in the middle between two neighbours of the narrow format.
//! Only then may the decimal lie on either side of it, and the two are compared digit by digit.

use std::cmp::Ordering;

use tilewright_ir::ElementType;

/// A binary float format with infinities and NaNs as IEEE 754 has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) element_type: ElementType,
    exponent_bits: u32,
    mantissa_bits: u32,
}

pub(super) const F16: Format =
    Format { element_type: ElementType::F16, exponent_bits: 5, mantissa_bits: 10 };
pub(super) const BF16: Format =
    Format { element_type: ElementType::BF16, exponent_bits: 8, mantissa_bits: 7 };
pub(super) const F32: Format =
    Format { element_type: ElementType::F32, exponent_bits: 8, mantissa_bits: 23 };
pub(super) const F64: Format =
    Format { element_type: ElementType::F64, exponent_bits: 11, mantissa_bits: 52 };

impl Format {
    /// Returns the bits of an infinity (mantissa 0) or NaN.
    pub(super) fn special(self, negative: bool, mantissa: u64) -> u64 {
        let exponent = (1 << self.exponent_bits) - 1;
        let sign = u64::from(negative) << self.exponent_bits;
        ((sign | exponent) << self.mantissa_bits) | mantissa
    }

    /// Returns the mantissa of the usual NaN.
    pub(super) fn quiet(self) -> u64 {
        1 << (self.mantissa_bits - 1)
    }

    /// Checks whether a NaN may have this mantissa.
    pub(super) fn is_payload(self, mantissa: u64) -> bool {
        mantissa > 0 && mantissa >> self.mantissa_bits == 0
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Returns the greatest finite number, of formats up to 16 bits.
    pub(super) fn largest(self) -> f64 {
        (2.0 - 2f64.powi(-self.mantissa_digits())) * 2f64.powi(self.bias())
    }

    fn mantissa_digits(self) -> i32 {
        // This is in range: it is at most 52.
        i32::try_from(self.mantissa_bits).unwrap_or_default()
    }

    /// Returns the bits of the number nearest to a decimal, ties to even, in a format of 16
    /// bits; `None` if it is not a number or out of range.
    pub(super) fn round(self, text: &str) -> Option<u16> {
        let value: f64 = text.parse().ok()?;
        if !value.is_finite() {
            return None;
        }
        let sign = u64::from(value.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        let magnitude = value.abs();
        let exponent = exponent_of(magnitude).max(1 - self.bias());
        // The number in units of the last place. Both steps are exact: the unit is a power of
        // two, and the number is far from the ends of f64's range.
        let units = magnitude * 2f64.powi(self.mantissa_digits() - exponent);
        let whole = units.trunc();
        let up = match (units - whole).partial_cmp(&0.5)? {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => match compare(text, magnitude) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => whole % 2.0 == 1.0,
            },
        };
        // At most 2^(mantissa_bits + 1): a carry continues into the exponent.
        let units = whole as u64 + u64::from(up);
        let above_least = u64::try_from(exponent - (1 - self.bias())).ok()?;
        let bits = (above_least << self.mantissa_bits) + units;
        if bits >= self.special(false, 0) {
            return None;
        }
        u16::try_from(sign | bits).ok()
    }
}

/// Returns the exponent of a positive `f64`: `2^exponent <= value < 2^(exponent + 1)`; of zero
/// and subnormal numbers, something less than any narrow format has.
fn exponent_of(value: f64) -> i32 {
    // This is in range: it has 11 bits.
    i32::try_from(value.to_bits() >> 52 & 0x7FF).unwrap_or_default() - 1023
}

/// Compares the magnitude of a decimal with a positive number of few bits.
pub(super) fn compare(text: &str, value: f64) -> Ordering {
    // The middle between two 16-bit floats has under 150 digits.
    let exact = format!("{value:.200e}");
    let (a, b) = (digits(text), digits(&exact));
    a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0))
}

/// Returns the digits of a decimal without zeros at either end, and the power of ten of the
/// first.
fn digits(text: &str) -> (Vec<u8>, i64) {
    let text = text.trim_start_matches(['-', '+']);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().unwrap_or(0i64)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = || whole.bytes().chain(fraction.bytes());
    let zeros = all().take_while(|&b| b == b'0').count();
    let mut digits: Vec<u8> = all().skip(zeros).collect();
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let power = exponent.saturating_add(count(whole.len())).saturating_sub(count(zeros));
    (digits, power)
}

#[cfg(test)]
mod tests {
    use super::{BF16, F16, Format};
    use half::{bf16, f16};

    /// Returns all finite numbers of a format, by their bits.
    fn finite(format: Format) -> impl Iterator<Item = (u16, f64)> {
        let value = move |bits: u16| match format.exponent_bits {
            5 => f16::from_bits(bits).to_f64(),
            _ => bf16::from_bits(bits).to_f64(),
        };
        (0..=u16::MAX).map(move |bits| (bits, value(bits))).filter(|(_, v)| v.is_finite())
    }

    #[test]
    fn every_number_is_read_back() {
        for format in [F16, BF16] {
            for (bits, value) in finite(format) {
                assert_eq!(format.round(&format!("{value:?}")), Some(bits), "{value:?}");
                assert_eq!(format.round(&format!("{value:.200}")), Some(bits), "{value:?}");
            }
        }
    }

    #[test]
    fn middles_go_to_even_and_digits_beyond_f64_decide() {
        for format in [F16, BF16] {
            let positive: Vec<(u16, f64)> =
                finite(format).filter(|(bits, _)| bits >> 15 == 0).collect();
            for pair in positive.windows(2) {
                let [(low, a), (high, b)] = [pair[0], pair[1]];
                let middle = format!("{:.200}", f64::midpoint(a, b));
                let even = if low % 2 == 0 { low } else { high };
                assert_eq!(format.round(&middle), Some(even), "{middle}");
                assert_eq!(format.round(&format!("{middle}1")), Some(high), "{middle}1");
                let just_less = less(&middle);
                assert_eq!(format.round(&just_less), Some(low), "{just_less}");
            }
        }
    }

    /// Returns a decimal with a fraction, made less by one in a digit after its last.
    fn less(decimal: &str) -> String {
        let mut digits = format!("{decimal}0").into_bytes();
        for digit in digits.iter_mut().rev().filter(|b| **b != b'.') {
            if *digit == b'0' {
                *digit = b'9';
            } else {
                *digit -= 1;
                break;
            }
        }
        String::from_utf8(digits).unwrap()
    }

    #[test]
    fn range_signs_and_nonsense() {
        assert_eq!(F16.round("65519.999"), Some(0x7BFF));
        assert_eq!(F16.round("65520"), None);
        assert_eq!(BF16.round("3.4e38"), None);
        assert_eq!(F16.round("-0"), Some(0x8000));
        assert_eq!(F16.round("-1e-30"), Some(0x8000));
        assert_eq!(BF16.round("1e-400"), Some(0));
        assert_eq!(F16.round("x"), None);
        assert_eq!(F16.largest(), 65504.0);
    }
}
