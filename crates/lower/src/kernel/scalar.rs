//! The text form of scalars in kernels.
//!
//! The shortest text that parses to the same bits: `7`, `true`, `0.1`, `-0.0`, `inf`. The bits
//! of a NaN are written in hexadecimal, `0x7fc00001`, and a complex number as its two parts,
//! `0.5 -1.0`.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::element::NumberClass;
use tilewright_ir::small_float::Format;
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};

/// Returns a scalar as text; `None` for arrays, tuples and tokens.
pub(super) fn print(literal: &Literal) -> Option<String> {
    let array = literal.as_array().filter(|array| array.len() == 1)?;
    Some(match array.data() {
        Data::Pred(v) => v[0].to_string(),
        Data::S8(v) => v[0].to_string(),
        Data::S16(v) => v[0].to_string(),
        Data::S32(v) => v[0].to_string(),
        Data::S64(v) => v[0].to_string(),
        Data::U8(v) if array.element_type().is_float() => format!("{:#x}", v[0]),
        Data::U8(v) => v[0].to_string(),
        Data::U16(v) => v[0].to_string(),
        Data::U32(v) => v[0].to_string(),
        Data::U64(v) => v[0].to_string(),
        Data::F16(v) => float(f64::from(v[0]), v[0].to_f32(), v[0].to_bits().into()),
        Data::BF16(v) => float(f64::from(v[0]), v[0].to_f32(), v[0].to_bits().into()),
        Data::F32(v) => float(f64::from(v[0]), v[0], v[0].to_bits().into()),
        Data::F64(v) => float(v[0], v[0], v[0].to_bits()),
        Data::C64(v) => format!("{} {}", part32(v[0].re), part32(v[0].im)),
        Data::C128(v) => format!("{} {}", part64(v[0].re), part64(v[0].im)),
    })
}

fn float(value: f64, shown: impl std::fmt::Debug, bits: u64) -> String {
    if value.is_nan() { format!("{bits:#x}") } else { format!("{shown:?}") }
}

fn part32(value: f32) -> String {
    float(value.into(), value, value.to_bits().into())
}

fn part64(value: f64) -> String {
    float(value, value, value.to_bits())
}

/// Returns the number of words that a scalar of a type takes.
pub(super) fn words(element_type: ElementType) -> usize {
    if element_type.class() == NumberClass::Complex { 2 } else { 1 }
}

/// Parses the words of a scalar of a type.
pub(super) fn parse(element_type: ElementType, words: &[&str]) -> Option<Literal> {
    let data = match (element_type, words) {
        (ElementType::C64, [re, im]) => Data::C64(vec![Complex::new(f32_of(re)?, f32_of(im)?)]),
        (ElementType::C128, [re, im]) => Data::C128(vec![Complex::new(f64_of(re)?, f64_of(im)?)]),
        (_, [word]) => real(element_type, word)?,
        _ => return None,
    };
    ArrayLiteral::new(element_type, [], data).ok().map(Literal::Array)
}

fn real(element_type: ElementType, word: &str) -> Option<Data> {
    let one = Data::zeros(element_type, 1);
    Some(match one {
        Data::Pred(_) => Data::Pred(vec![word.parse().ok()?]),
        Data::S8(_) => Data::S8(vec![word.parse().ok()?]),
        Data::S16(_) => Data::S16(vec![word.parse().ok()?]),
        Data::S32(_) => Data::S32(vec![word.parse().ok()?]),
        Data::S64(_) => Data::S64(vec![word.parse().ok()?]),
        Data::U8(_) if Format::of(element_type).is_some() => {
            Data::U8(vec![u8::try_from(bits(word)?).ok()?])
        }
        Data::U8(_) => Data::U8(vec![word.parse().ok()?]),
        Data::U16(_) => Data::U16(vec![word.parse().ok()?]),
        Data::U32(_) => Data::U32(vec![word.parse().ok()?]),
        Data::U64(_) => Data::U64(vec![word.parse().ok()?]),
        Data::F16(_) => Data::F16(vec![match bits(word) {
            Some(bits) => f16::from_bits(bits.try_into().ok()?),
            None => f16::from_f32(word.parse().ok()?),
        }]),
        Data::BF16(_) => Data::BF16(vec![match bits(word) {
            Some(bits) => bf16::from_bits(bits.try_into().ok()?),
            None => bf16::from_f32(word.parse().ok()?),
        }]),
        Data::F32(_) => Data::F32(vec![f32_of(word)?]),
        Data::F64(_) => Data::F64(vec![f64_of(word)?]),
        Data::C64(_) | Data::C128(_) => return None,
    })
}

fn bits(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn f32_of(word: &str) -> Option<f32> {
    match bits(word) {
        Some(bits) => Some(f32::from_bits(bits.try_into().ok()?)),
        None => word.parse().ok(),
    }
}

fn f64_of(word: &str) -> Option<f64> {
    bits(word).map_or_else(|| word.parse().ok(), |bits| Some(f64::from_bits(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bits are written by hand from the definitions of the formats.
    #[test]
    fn scalars_read_back() {
        for (element_type, text) in [
            (ElementType::Pred, "true"),
            (ElementType::S4, "-8"),
            (ElementType::U64, "18446744073709551615"),
            (ElementType::F32, "0.1"),
            (ElementType::F32, "-0.0"),
            (ElementType::F32, "-inf"),
            (ElementType::F32, "0x7fc00001"),
            (ElementType::F64, "1e-320"),
            (ElementType::BF16, "3.140625"),
            (ElementType::F16, "0xfe00"),
            (ElementType::F8E4M3FN, "0x7e"),
            (ElementType::C64, "0.5 -1.0"),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(words.len(), super::words(element_type));
            let literal = parse(element_type, &words);
            assert_eq!(literal.as_ref().and_then(print).as_deref(), Some(text));
        }
        assert_eq!(parse(ElementType::F32, &["0x7fc000011"]), None);
        assert_eq!(parse(ElementType::S8, &["128"]), None);
        let zero = parse(ElementType::F32, &["-0.0"]).and_then(|l| l.as_array()?.scalar_as_f64());
        assert_eq!(zero.map(f64::to_bits), Some((-0.0f64).to_bits()));
    }
}
