//! `reduce-precision`: as if through a float type of fewer bits.

use half::{bf16, f16};
use tilewright_ir::ElementType;

use super::kernel::{Kernel, map1};

/// A float format: its bits of mantissa and exponent.
#[derive(Clone, Copy)]
struct Format {
    mantissa: u32,
    exponent: u32,
}

impl Format {
    fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// Returns the bias of an exponent of this many bits.
    fn bias(exponent: u32) -> u64 {
        (1 << (exponent - 1)) - 1
    }
}

const F16: Format = Format { mantissa: 10, exponent: 5 };
const BF16: Format = Format { mantissa: 7, exponent: 8 };
const F32: Format = Format { mantissa: 23, exponent: 8 };
const F64: Format = Format { mantissa: 52, exponent: 11 };

/// Returns the kernel for a type.
pub(super) fn reduce(element_type: ElementType, exponent: i64, mantissa: i64) -> Option<Kernel> {
    let exponent = u32::try_from(exponent).ok()?;
    let mantissa = u32::try_from(mantissa).ok()?;
    let to = Format { mantissa, exponent: exponent.max(1) };
    match element_type {
        ElementType::F16 => {
            Some(map1(
                move |x: f16| f16::from_bits(rounded(u64::from(x.to_bits()), F16, to) as u16),
            ))
        }
        ElementType::BF16 => Some(map1(move |x: bf16| {
            bf16::from_bits(rounded(u64::from(x.to_bits()), BF16, to) as u16)
        })),
        ElementType::F32 => {
            Some(map1(
                move |x: f32| f32::from_bits(rounded(u64::from(x.to_bits()), F32, to) as u32),
            ))
        }
        ElementType::F64 => Some(map1(move |x: f64| f64::from_bits(rounded(x.to_bits(), F64, to)))),
        _ => None,
    }
}

/// Rounds the bits of a number to nearest even. Too large numbers become infinite, denormal
/// ones zero, NaN stays.
fn rounded(bits: u64, from: Format, to: Format) -> u64 {
    let size = bits & (from.sign() - 1);
    if size > from.infinity() {
        return bits;
    }
    limit_exponent(round_mantissa(bits, from, to), from, to)
}

fn round_mantissa(bits: u64, from: Format, to: Format) -> u64 {
    if to.mantissa >= from.mantissa {
        return bits;
    }
    let dropped = from.mantissa - to.mantissa;
    let last_kept = (bits >> dropped) & 1;
    let half = (1u64 << (dropped - 1)) - 1;
    // A carry into the exponent is just the next larger number.
    (bits.wrapping_add(half + last_kept) >> dropped) << dropped
}

fn limit_exponent(bits: u64, from: Format, to: Format) -> u64 {
    if to.exponent >= from.exponent {
        return bits;
    }
    let (bias, reduced_bias) = (Format::bias(from.exponent), Format::bias(to.exponent));
    let (sign, exponent) = (bits & from.sign(), bits & from.infinity());
    if exponent > (bias + reduced_bias) << from.mantissa {
        sign | from.infinity()
    } else if exponent <= (bias - reduced_bias) << from.mantissa {
        sign
    } else {
        bits
    }
}
