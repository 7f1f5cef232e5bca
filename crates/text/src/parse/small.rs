//! Decimal numbers to floats of 4 to 8 bits.
//!
//! There are so few numbers that the nearest one is searched among all.

use std::cmp::Ordering;

use tilewright_ir::ElementType;

use super::decimal::compare;
use tilewright_ir::small_float::{Format, Value};

/// The greatest number of magnitudes: `f8e8m0fnu` has no sign.
const MAGNITUDES: u16 = 256;

/// Returns the bits of the number nearest to a decimal, ties to even; `None` if it is not a
/// number or out of range.
pub(super) fn round(element_type: ElementType, text: &str) -> Option<u8> {
    let format = Format::of(element_type)?;
    let value: f64 = text.parse().ok()?;
    let sign = sign_bit(element_type);
    let magnitude = value.abs();
    if !value.is_finite() || (sign == 0 && (value.is_sign_negative() || magnitude == 0.0)) {
        return None;
    }
    let bits = nearest(format, if sign == 0 { MAGNITUDES } else { sign }, magnitude, text)?;
    // Types without a minus zero have a NaN in its place.
    let signed = bits | if value.is_sign_negative() { sign } else { 0 };
    let is_number = matches!(format.decode(signed), Value::Real(_));
    u8::try_from(if is_number { signed } else { bits }).ok()
}

/// Returns the bits of an infinity or NaN by its sign and, for NaNs, its mantissa, `None` for
/// the usual one; `None` if the type does not have it.
pub(super) fn special(
    element_type: ElementType,
    negative: bool,
    nan: Option<Option<u64>>,
) -> Option<u8> {
    let format = Format::of(element_type)?;
    // The one NaN of some types has no sign; XLA prints that where minus zero
    // would be as `-nan`.
    let signed = format.has_signed_nans();
    let patterns = 0..1u16 << element_type.bits();
    let is_wanted = |bits: &u16| match (format.decode(*bits), nan) {
        (Value::Real(x), None) => x.is_infinite() && x.is_sign_negative() == negative,
        (Value::Nan { negative: sign, payload, quiet }, Some(wanted)) => {
            (sign == negative || !signed) && payload == wanted.unwrap_or(quiet)
        }
        (Value::Real(_), Some(_)) | (Value::Nan { .. }, None) => false,
    };
    patterns.into_iter().find(is_wanted).and_then(|bits| u8::try_from(bits).ok())
}

/// Returns the greatest finite number of a type.
pub(super) fn largest(element_type: ElementType) -> f64 {
    let magnitudes = 0..MAGNITUDES;
    let real = |bits| Format::of(element_type).and_then(|format| finite(format, bits));
    magnitudes.filter_map(real).fold(0.0, f64::max)
}

fn sign_bit(element_type: ElementType) -> u16 {
    match element_type {
        ElementType::F8E8M0FNU => 0,
        _ => 1 << (element_type.bits() - 1),
    }
}

fn finite(format: Format, bits: u16) -> Option<f64> {
    match format.decode(bits) {
        Value::Real(x) if x.is_finite() => Some(x),
        Value::Real(_) | Value::Nan { .. } => None,
    }
}

/// Returns the pattern below `count` whose value is nearest. Values grow with the patterns up
/// to the first that is no finite number.
fn nearest(format: Format, count: u16, magnitude: f64, text: &str) -> Option<u16> {
    // `low` is at most the magnitude, `high` is more or no number.
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = u16::midpoint(low, high);
        match finite(format, middle) {
            Some(value) if value <= magnitude => low = middle,
            _ => high = middle,
        }
    }
    let below = finite(format, low)?;
    let next = if high < count { finite(format, high) } else { None };
    // Past the greatest number, the distance to its predecessor repeats.
    let above = next.or_else(|| Some(2.0 * below - finite(format, low.checked_sub(1)?)?))?;
    let middle = f64::midpoint(below, above);
    let up = match magnitude.partial_cmp(&middle)? {
        Ordering::Equal => match compare(text, middle) {
            Ordering::Equal => low % 2 == 1,
            decided => decided == Ordering::Greater,
        },
        decided => decided == Ordering::Greater,
    };
    match (up, next) {
        (false, _) => Some(low),
        (true, Some(_)) => Some(high),
        (true, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{finite, largest, nearest, round, sign_bit, special};
    use tilewright_ir::ElementType;
    use tilewright_ir::small_float::Format;

    fn small() -> impl Iterator<Item = ElementType> {
        ElementType::ALL.iter().copied().filter(|t| t.is_float() && t.bits() <= 8)
    }

    #[test]
    fn every_number_is_read_back() {
        for element_type in small() {
            let format = Format::of(element_type).unwrap();
            for bits in 0..1u16 << element_type.bits() {
                if let Some(value) = finite(format, bits) {
                    let read = round(element_type, &format!("{value:?}")).map(u16::from);
                    assert_eq!(read, Some(bits), "{element_type} {value:?}");
                }
            }
        }
    }

    #[test]
    fn middles_go_to_even_and_digits_beyond_f64_decide() {
        for element_type in small() {
            let format = Format::of(element_type).unwrap();
            let count = if sign_bit(element_type) == 0 { 256 } else { sign_bit(element_type) };
            for low in 0..count - 1 {
                let (Some(a), Some(b)) = (finite(format, low), finite(format, low + 1)) else {
                    continue;
                };
                let middle = f64::midpoint(a, b);
                let text = format!("{middle:.200}");
                let even = low + low % 2;
                assert_eq!(nearest(format, count, middle, &text), Some(even), "{element_type}");
                let more = format!("{text}1");
                assert_eq!(nearest(format, count, middle, &more), Some(low + 1), "{element_type}");
            }
        }
    }

    #[test]
    fn ranges_and_specials() {
        use ElementType::{F4E2M1FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E8M0FNU};
        assert_eq!(largest(F8E4M3FN), 448.0);
        assert_eq!(round(F8E4M3FN, "464"), Some(0x7e), "a tie to the even 448");
        assert_eq!(round(F8E4M3FN, "464.1"), None);
        assert_eq!(round(F4E2M1FN, "7"), None);
        assert_eq!(round(F4E2M1FN, "-6.4"), Some(0xf));
        assert_eq!(round(F8E4M3FNUZ, "-0"), Some(0));
        assert_eq!(round(F8E5M2, "-0"), Some(0x80));
        assert_eq!(round(F8E8M0FNU, "0"), None);
        assert_eq!(round(F8E8M0FNU, "-1"), None);
        assert_eq!(special(F8E5M2, true, None), Some(0xfc));
        assert_eq!(special(F8E5M2, false, Some(None)), Some(0x7e));
        assert_eq!(special(F8E5M2, true, Some(Some(1))), Some(0xfd));
        assert_eq!(special(F8E4M3FN, true, Some(None)), Some(0xff));
        assert_eq!(special(F8E4M3FN, false, None), None);
        // XLA prints or reads these bits for the only NaN of these types.
        for (element_type, nan) in [(F8E4M3FNUZ, 0x80), (F8E8M0FNU, 0xff)] {
            assert_eq!(special(element_type, true, Some(None)), Some(nan));
            assert_eq!(special(element_type, false, Some(None)), Some(nan));
            assert_eq!(special(element_type, true, Some(Some(1))), None);
        }
        assert_eq!(special(F4E2M1FN, false, Some(None)), None);
    }
}
