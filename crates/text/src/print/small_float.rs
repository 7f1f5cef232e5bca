//! What the bits of floats of 16 bits and fewer mean.

use tilewright_ir::ElementType;

/// Which bit patterns are no numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The greatest exponent holds infinities and NaNs, as IEEE 754 has it.
    Ieee,
    /// Only the pattern of all ones, of either sign, is a NaN.
    AllOnes,
    /// The pattern of minus zero is the only NaN.
    MinusZero,
    /// Every pattern is a number.
    None,
    /// An exponent without sign and mantissa; all ones is the NaN.
    ExponentOnly,
}

/// A binary floating-point format of at most 16 bits.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

/// What a bit pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, zero or infinity.
    Real(f64),
    /// Not a number.
    Nan {
        /// Whether the sign bit is set.
        negative: bool,
        /// The mantissa.
        payload: u64,
        /// The mantissa of the usual NaN.
        quiet: u64,
    },
}

impl Format {
    pub(crate) const F16: Self = Self::new(5, 10, 15, Specials::Ieee);
    pub(crate) const BF16: Self = Self::new(8, 7, 127, Specials::Ieee);

    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Self {
        Self { exponent_bits, mantissa_bits, bias, specials }
    }

    /// The format of a float type of at most 16 bits.
    pub(crate) const fn of(element_type: ElementType) -> Option<Self> {
        Some(match element_type {
            ElementType::F4E2M1FN => Self::new(2, 1, 1, Specials::None),
            ElementType::F6E2M3FN => Self::new(2, 3, 1, Specials::None),
            ElementType::F6E3M2FN => Self::new(3, 2, 3, Specials::None),
            ElementType::F8E3M4 => Self::new(3, 4, 3, Specials::Ieee),
            ElementType::F8E4M3 => Self::new(4, 3, 7, Specials::Ieee),
            ElementType::F8E4M3FN => Self::new(4, 3, 7, Specials::AllOnes),
            ElementType::F8E4M3B11FNUZ => Self::new(4, 3, 11, Specials::MinusZero),
            ElementType::F8E4M3FNUZ => Self::new(4, 3, 8, Specials::MinusZero),
            ElementType::F8E5M2 => Self::new(5, 2, 15, Specials::Ieee),
            ElementType::F8E5M2FNUZ => Self::new(5, 2, 16, Specials::MinusZero),
            ElementType::F8E8M0FNU => Self::new(8, 0, 127, Specials::ExponentOnly),
            ElementType::F16 => Self::F16,
            ElementType::BF16 => Self::BF16,
            _ => return None,
        })
    }

    /// Whether there are NaNs of either sign.
    pub(crate) const fn has_signed_nans(self) -> bool {
        matches!(self.specials, Specials::Ieee | Specials::AllOnes)
    }

    /// The value of a bit pattern; bits above the format's width are ignored.
    pub(crate) fn decode(self, bits: u16) -> Value {
        let exponent_mask = (1u32 << self.exponent_bits) - 1;
        let mantissa_mask = (1u32 << self.mantissa_bits) - 1;
        let bits = u32::from(bits);
        let exponent = bits >> self.mantissa_bits & exponent_mask;
        let mantissa = bits & mantissa_mask;
        let negative = self.specials != Specials::ExponentOnly
            && bits >> (self.mantissa_bits + self.exponent_bits) & 1 == 1;
        let special = exponent == exponent_mask;
        let usual_nan = Value::Nan { negative, payload: 0, quiet: 0 };
        let magnitude = match self.specials {
            Specials::Ieee if special && mantissa == 0 => f64::INFINITY,
            Specials::Ieee if special => {
                let quiet = 1 << (self.mantissa_bits - 1);
                return Value::Nan { negative, payload: u64::from(mantissa), quiet };
            }
            Specials::AllOnes if special && mantissa == mantissa_mask => return usual_nan,
            Specials::MinusZero if negative && exponent == 0 && mantissa == 0 => {
                // The sign bit is part of the pattern, not of the value.
                return Value::Nan { negative: false, payload: 0, quiet: 0 };
            }
            Specials::ExponentOnly if special => return usual_nan,
            Specials::ExponentOnly => power_of_two(exponent as i32 - self.bias),
            Specials::Ieee | Specials::AllOnes | Specials::MinusZero | Specials::None => {
                self.finite(exponent, mantissa)
            }
        };
        Value::Real(if negative { -magnitude } else { magnitude })
    }

    fn finite(self, exponent: u32, mantissa: u32) -> f64 {
        // Exponent 0 means that of 1 without the leading one.
        let leading = if exponent == 0 { 0 } else { 1 << self.mantissa_bits };
        let scale = exponent.max(1) as i32 - self.bias - self.mantissa_bits as i32;
        f64::from(mantissa + leading) * power_of_two(scale)
    }

    /// The ends of the range of magnitudes that round to that of a finite,
    /// nonzero value; the ends themselves may round to a neighbour.
    pub(crate) fn rounding_range(self, bits: u16) -> (f64, f64) {
        let magnitude = bits & ((1 << (self.exponent_bits + self.mantissa_bits)) - 1);
        let real = |bits| match self.decode(bits) {
            Value::Real(x) if x.is_finite() => Some(x),
            Value::Real(_) | Value::Nan { .. } => None,
        };
        let value = real(magnitude).unwrap_or_default();
        let below = real(magnitude.wrapping_sub(1)).unwrap_or_default();
        // Past the greatest value the same distance again would follow.
        let above = real(magnitude + 1).unwrap_or(2.0 * value - below);
        (f64::midpoint(below, value), f64::midpoint(value, above))
    }
}

/// Two to the power of a small number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(element_type: ElementType, bits: u16) -> Option<f64> {
        match Format::of(element_type)?.decode(bits) {
            Value::Real(x) => Some(x),
            Value::Nan { .. } => None,
        }
    }

    /// Extremes as the formats' definitions list them.
    #[test]
    fn greatest_least_and_special_values() {
        assert_eq!(real(ElementType::F16, 0x7bff), Some(65504.0));
        assert_eq!(real(ElementType::F16, 1), Some(2.0f64.powi(-24)));
        assert_eq!(real(ElementType::BF16, 0x3f80), Some(1.0));
        assert_eq!(real(ElementType::F8E4M3FN, 0x7e), Some(448.0));
        assert_eq!(real(ElementType::F8E4M3FN, 0x7f), None);
        assert_eq!(real(ElementType::F8E4M3, 0x77), Some(240.0));
        assert_eq!(real(ElementType::F8E4M3, 0x78), Some(f64::INFINITY));
        assert_eq!(real(ElementType::F8E5M2, 0x7b), Some(57344.0));
        assert_eq!(real(ElementType::F8E5M2FNUZ, 0x7f), Some(57344.0));
        assert_eq!(real(ElementType::F8E5M2FNUZ, 0x80), None);
        assert_eq!(real(ElementType::F8E4M3FNUZ, 0x7f), Some(240.0));
        assert_eq!(real(ElementType::F8E4M3B11FNUZ, 0x7f), Some(30.0));
        assert_eq!(real(ElementType::F8E3M4, 0x6f), Some(15.5));
        assert_eq!(real(ElementType::F4E2M1FN, 0x7), Some(6.0));
        assert_eq!(real(ElementType::F4E2M1FN, 0xf), Some(-6.0));
        assert_eq!(real(ElementType::F6E2M3FN, 0x1f), Some(7.5));
        assert_eq!(real(ElementType::F6E3M2FN, 0x1f), Some(28.0));
        assert_eq!(real(ElementType::F8E8M0FNU, 0x7f), Some(1.0));
        assert_eq!(real(ElementType::F8E8M0FNU, 0x00), Some(2.0f64.powi(-127)));
        assert_eq!(real(ElementType::F8E8M0FNU, 0xff), None);
    }
}
