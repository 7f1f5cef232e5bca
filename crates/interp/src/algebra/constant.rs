//! Represents the floats of a program as elements of the field.
//!
//! A float represents the number that its program means: `0.1` is 1/10 whether it is written in
//! `f32` or in `bf16`, and a constant that another compiler computed for `1/3` is 1/3. So a
//! float is, in this order,
//!
//! 1. itself, if it has few digits in base two;
//! 2. the simplest fraction that rounds to it, if it is so simple that it is hardly there by
//!    chance;
//! 3. the shortest decimal number that rounds to it, if it is a short one;
//! 4. itself, marked [`ROUNDED`].
//!
//! Each float is one element and no two floats of a type are the same.

use tilewright_ir::{Data, ElementType};

use super::field::{
    INFINITY, NAN, ROUNDED, UNSURE, complex, divide, integer, multiply, negate, power,
    power_of_two, unsigned,
};
use crate::error::{Outcome, WRONG_STORAGE};
use crate::eval::elementwise::convert_kernel;

/// Returns the elements that an array represents; integers and truth values stay as they are.
pub(super) fn elements(data: &Data, element_type: ElementType) -> Outcome<Data> {
    if element_type.is_complex() {
        return complex_elements(data, element_type);
    }
    if !element_type.is_float() {
        return Ok(data.clone());
    }
    let values = wide(data, element_type)?;
    let mut last = (f64::NAN, 0);
    let element = |value: f64| {
        if value.to_bits() != last.0.to_bits() || last.1 == 0 {
            last = (value, of_float(value, digits(element_type)));
        }
        f64::from_bits(last.1)
    };
    Ok(Data::F64(values.into_iter().map(element).collect()))
}

fn complex_elements(data: &Data, element_type: ElementType) -> Outcome<Data> {
    let digits = digits(element_type.complex_part().unwrap_or(ElementType::F64));
    let element =
        |re: f64, im: f64| f64::from_bits(complex(of_float(re, digits), of_float(im, digits)));
    match data {
        Data::C64(v) => {
            Ok(Data::F64(v.iter().map(|z| element(z.re.into(), z.im.into())).collect()))
        }
        Data::C128(v) => Ok(Data::F64(v.iter().map(|z| element(z.re, z.im)).collect())),
        _ => Err(WRONG_STORAGE),
    }
}

fn wide(data: &Data, element_type: ElementType) -> Outcome<Vec<f64>> {
    let mut out = Data::F64(Vec::new());
    convert_kernel(element_type, ElementType::F64)?(&[data], data.len(), &mut out)?;
    match out {
        Data::F64(values) => Ok(values),
        _ => Err(WRONG_STORAGE),
    }
}

/// Digits of a float's significand in base two, the leading one included.
const fn digits(element_type: ElementType) -> u32 {
    match element_type {
        ElementType::F64 => 53,
        ElementType::F32 => 24,
        ElementType::F16 => 11,
        ElementType::BF16 => 8,
        _ => 4,
    }
}

fn of_float(value: f64, digits: u32) -> u64 {
    if value.is_nan() {
        return NAN | UNSURE;
    }
    if value.is_infinite() {
        let infinity = if value > 0.0 { INFINITY } else { negate(INFINITY) };
        return infinity | UNSURE;
    }
    let size = of_size(value.abs(), digits);
    if value < 0.0 { negate(size) } else { size }
}

fn of_size(size: f64, digits: u32) -> u64 {
    if size == 0.0 {
        return 0;
    }
    let (odd, exponent) = odd_part(size);
    let exact = multiply(unsigned(odd), power_of_two(exponent));
    if odd >> (digits / 2) == 0 {
        return exact;
    }
    if let Some((over, under)) = simplest_fraction(odd, exponent, digits) {
        return divide(unsigned(over), unsigned(under));
    }
    short_decimal(size, digits).unwrap_or(exact | ROUNDED)
}

/// Returns a positive number as an odd number times a power of two.
fn odd_part(size: f64) -> (u64, i64) {
    let bits = size.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i64);
    let (significand, exponent) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let zeros = significand.trailing_zeros();
    (significand >> zeros, exponent + i64::from(zeros))
}

/// Returns the fraction of the smallest parts that rounds to `odd * 2^exponent` in a type with
/// this many digits, if its parts are small for that.
fn simplest_fraction(odd: u64, exponent: i64, digits: u32) -> Option<(u64, u64)> {
    // Half a unit in the last place below and above, over a power of two.
    let spare = digits.checked_sub(u64::BITS - odd.leading_zeros())?;
    let middle = u128::from(odd) << (spare + 1);
    let shift = u32::try_from(i64::from(spare) + 1 - exponent).ok().filter(|&s| s < 100)?;
    let (over, under) = between((middle - 1, 1 << shift), (middle + 1, 1 << shift))?;
    // Most numbers have a fraction of parts whose product has about as many digits.
    let small = over.checked_mul(under)? >> (digits - digits / 4) == 0;
    small.then_some((u64::try_from(over).ok()?, u64::try_from(under).ok()?))
}

/// Returns the simplest fraction between two, by continued fractions.
fn between(low: (u128, u128), high: (u128, u128)) -> Option<(u128, u128)> {
    let whole = low.0.checked_div(low.1)?;
    if low.0 == whole * low.1 {
        return Some((whole, 1));
    }
    if whole < high.0.checked_div(high.1)? {
        return Some((whole + 1, 1));
    }
    let rest = |(over, under): (u128, u128)| (under, over - whole * under);
    let (under, over) = between(rest(high), rest(low))?;
    Some((whole.checked_mul(under)?.checked_add(over)?, under))
}

/// Returns the shortest decimal number that rounds to a float, if it is short.
fn short_decimal(size: f64, digits: u32) -> Option<u64> {
    let (text, most) = match digits {
        53 => (format!("{size:e}"), 12),
        24 => (format!("{:e}", size as f32), 5),
        _ => return None,
    };
    let (figures, exponent) = text.split_once('e')?;
    let (whole, fraction) = figures.split_once('.').unwrap_or((figures, ""));
    if whole.len() + fraction.len() > most {
        return None;
    }
    let value: u64 = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent.parse::<i64>().ok()? - i64::try_from(fraction.len()).ok()?;
    let tens = power(integer(10), exponent.unsigned_abs());
    let value = unsigned(value);
    Some(if exponent < 0 { divide(value, tens) } else { multiply(value, tens) })
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::algebra::field::marks;

    fn f32(value: f32) -> u64 {
        of_float(value.into(), 24)
    }

    #[test]
    fn floats_are_what_they_stand_for() {
        assert_eq!(f32(0.75), divide(3, 4));
        assert_eq!(f32(-3.0), integer(-3));
        assert_eq!(f32(1.0 / 3.0), divide(1, 3));
        assert_eq!(f32(1.0 / 768.0), divide(1, 768));
        assert_eq!(f32(1e-5), divide(1, 100_000));
        assert_eq!(f32(1e-12), divide(1, 1_000_000_000_000));
        assert_eq!(f32(0.044715), divide(44715, 1_000_000));
        assert_eq!(of_float(bf16::from_f32(0.1).into(), 8), divide(1, 10));
        assert_eq!(of_float(0.1, 53), divide(1, 10));
        assert_eq!(f32(-0.0), 0);
        assert_eq!(f32(1_073_741_824.0), 1 << 30);
        assert_eq!(f32(16_777_215.0) & super::super::field::P, 16_777_215);
    }

    #[test]
    fn neighbours_are_not_the_same() {
        for value in [0.1f32, 1.0 / 3.0, 0.75, 1e-5, 1e-12, 0.797_884_6, 1e30, 3.0] {
            let next = f32::from_bits(value.to_bits() + 1);
            assert_ne!(f32(value), f32(next), "{value}");
        }
    }

    #[test]
    fn others_are_marked() {
        assert_eq!(marks(f32(0.797_884_6)), ROUNDED);
        assert_eq!(marks(f32(f32::INFINITY)), UNSURE);
        assert_eq!(f32(f32::NEG_INFINITY), negate(INFINITY) | UNSURE);
    }
}
