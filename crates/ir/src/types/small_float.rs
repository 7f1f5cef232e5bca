//! Encodes and decodes floats of at most 16 bits.

use super::element::ElementType;

/// The bit patterns that are not numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The greatest exponent encodes infinities and NaNs, as in IEEE 754.
    Ieee,
    /// Only the pattern of all ones, of either sign, is a NaN.
    AllOnes,
    /// The pattern of negative zero is the only NaN.
    MinusZero,
    /// Every pattern is a number.
    None,
    /// An exponent without sign and mantissa; all ones encode NaN.
    ExponentOnly,
}

/// A binary floating-point format of at most 16 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

/// The class of a bit pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
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
    /// IEEE binary16.
    pub const F16: Self = Self::new(5, 10, 15, Specials::Ieee);
    /// The upper half of IEEE binary32.
    pub const BF16: Self = Self::new(8, 7, 127, Specials::Ieee);

    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, specials: Specials) -> Self {
        Self { exponent_bits, mantissa_bits, bias, specials }
    }

    /// Returns the number of mantissa bits after the leading one.
    pub const fn mantissa_bits(self) -> u32 {
        self.mantissa_bits
    }

    /// The format of a float type of at most 16 bits.
    pub const fn of(element_type: ElementType) -> Option<Self> {
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

    /// Checks whether both signs have NaNs.
    pub const fn has_signed_nans(self) -> bool {
        matches!(self.specials, Specials::Ieee | Specials::AllOnes)
    }

    /// Returns the value of a bit pattern; bits above the format's width are ignored.
    pub fn decode(self, bits: u16) -> Value {
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
        // Exponent 0 means the same as 1, without the leading one.
        let leading = if exponent == 0 { 0 } else { 1 << self.mantissa_bits };
        let scale = exponent.max(1) as i32 - self.bias - self.mantissa_bits as i32;
        f64::from(mantissa + leading) * power_of_two(scale)
    }

    /// Returns the bits of the nearest number; ties round to an even mantissa, or upwards
    /// without a mantissa.
    ///
    /// A number that is too large becomes infinite, or NaN without infinities, or the largest
    /// number if the format has neither. NaN keeps its sign if the format has a NaN with it. A
    /// format whose only NaN is negative zero encodes every NaN so; a format without NaN
    /// encodes a positive NaN as negative zero and a negative one as zero. A format without
    /// sign encodes zero and negative numbers as NaN, and smaller positive numbers as its least
    /// number.
    pub fn encode(self, value: f64) -> u16 {
        if self.specials == Specials::ExponentOnly {
            return self.encode_power(value);
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        if value.is_nan() {
            return self.nan(sign);
        }
        let magnitude = self.round_magnitude(value.abs());
        if magnitude > self.greatest() {
            return self.overflow(sign);
        }
        match self.specials {
            // Minus zero is the NaN.
            Specials::MinusZero if magnitude == 0 => 0,
            _ => sign | magnitude,
        }
    }

    /// Returns the bits of a magnitude as if the exponent had no end; at most a few more than
    /// the greatest.
    fn round_magnitude(self, magnitude: f64) -> u16 {
        if magnitude.is_infinite() {
            return u16::MAX;
        }
        let least = 1 - self.bias;
        let exponent = exponent_of(magnitude).clamp(least, least + (1 << self.exponent_bits));
        // In units of the last place; powers of two scale exactly.
        let units = magnitude * power_of_two(self.mantissa_bits as i32 - exponent);
        let bits = f64::from((exponent - least) << self.mantissa_bits) + units.round_ties_even();
        // Saturates.
        bits as u16
    }

    /// Encodes like [`Format::encode`], for a format without sign and mantissa.
    fn encode_power(self, value: f64) -> u16 {
        let nan = (1 << self.exponent_bits) - 1;
        if value.is_nan() || value <= 0.0 || value.is_infinite() {
            return nan;
        }
        let exponent = exponent_of(value);
        // Rounds up past the middle; a number below the least is not scaled up.
        let up = exponent >= -self.bias && value * power_of_two(-exponent) >= 1.5;
        let biased = exponent + i32::from(up) + self.bias;
        u16::try_from(biased.max(0)).map_or(nan, |biased| biased.min(nan))
    }

    /// Returns the sign bit, if there is a sign.
    const fn sign(self) -> u16 {
        match self.specials {
            Specials::ExponentOnly => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    /// Returns the bits of the greatest finite number.
    const fn greatest(self) -> u16 {
        let all = (1u16 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.specials {
            Specials::Ieee => all - (1 << self.mantissa_bits),
            Specials::AllOnes | Specials::ExponentOnly => all - 1,
            Specials::MinusZero | Specials::None => all,
        }
    }

    const fn nan(self, sign: u16) -> u16 {
        match self.specials {
            Specials::Ieee => sign | (self.greatest() + 1) | 1 << (self.mantissa_bits - 1),
            Specials::AllOnes | Specials::ExponentOnly => sign | (self.greatest() + 1),
            Specials::MinusZero => self.sign(),
            Specials::None => self.sign() ^ sign,
        }
    }

    const fn overflow(self, sign: u16) -> u16 {
        match self.specials {
            Specials::Ieee => sign | (self.greatest() + 1),
            Specials::AllOnes | Specials::MinusZero | Specials::ExponentOnly => self.nan(sign),
            Specials::None => sign | self.greatest(),
        }
    }

    /// Returns an integer that is ordered as `f32::total_cmp` orders numbers: negative NaN,
    /// numbers from the least to the greatest, NaN. The only NaN of a type without minus zero
    /// comes first.
    pub fn total_key(self, bits: u16) -> i32 {
        let sign = self.sign();
        match self.specials {
            Specials::MinusZero if bits == sign => -i32::from(sign) - 1,
            _ if bits & sign != 0 => -i32::from(bits & (sign - 1)) - 1,
            _ => i32::from(bits),
        }
    }

    /// Returns the ends of the range of magnitudes that round to that of a finite, nonzero
    /// value; the ends themselves may round to a neighbour.
    pub fn rounding_range(self, bits: u16) -> (f64, f64) {
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

/// Returns the exponent of a positive number's leading bit; of numbers too small for any of our
/// formats, some small one.
fn exponent_of(magnitude: f64) -> i32 {
    ((magnitude.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Returns two to the power of a small number.
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

    fn formats() -> impl Iterator<Item = (ElementType, Format)> {
        ElementType::ALL.iter().filter_map(|&t| Some((t, Format::of(t)?)))
    }

    #[test]
    fn every_number_encodes_to_its_bits_and_middles_to_even_ones() {
        for (element_type, format) in formats() {
            let real = |bits| real(element_type, bits).filter(|x| x.is_finite());
            let patterns = 0..=u16::try_from((1u32 << element_type.bits()) - 1).unwrap();
            for bits in patterns {
                let Some(value) = real(bits) else { continue };
                assert_eq!(format.encode(value), bits, "{element_type} {value}");
                let Some(next) = real(bits.wrapping_add(1)) else { continue };
                if value.is_sign_negative() != next.is_sign_negative() {
                    continue;
                }
                let middle = f64::midpoint(value, next);
                let has_mantissa = element_type != ElementType::F8E8M0FNU;
                let even = if has_mantissa { bits + bits % 2 } else { bits + 1 };
                assert_eq!(format.encode(middle), even, "{element_type} {middle}");
                let (down, up) = (middle.next_down(), middle.next_up());
                let (lower, upper) = if value < next { (bits, bits + 1) } else { (bits + 1, bits) };
                assert_eq!(format.encode(down), lower, "{element_type} {down}");
                assert_eq!(format.encode(up), upper, "{element_type} {up}");
            }
        }
    }

    /// The expected values are those of `ml_dtypes` 0.5.
    #[test]
    fn what_is_no_number_of_a_type_becomes_what_it_has_instead() {
        use ElementType::{F4E2M1FN, F8E3M4, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E8M0FNU};
        for (element_type, nan, infinity, large, tiny) in [
            (F4E2M1FN, [0x8, 0x0], [0x7, 0xf], [0x7, 0xf], 0x8),
            (F8E4M3FN, [0x7f, 0xff], [0x7f, 0xff], [0x7f, 0xff], 0x80),
            (F8E4M3FNUZ, [0x80, 0x80], [0x80, 0x80], [0x80, 0x80], 0),
            (F8E5M2, [0x7e, 0xfe], [0x7c, 0xfc], [0x7c, 0xfc], 0x80),
            (F8E3M4, [0x78, 0xf8], [0x70, 0xf0], [0x70, 0xf0], 0x80),
            (F8E8M0FNU, [0xff, 0xff], [0xff, 0xff], [0xff, 0xff], 0xff),
        ] {
            let format = Format::of(element_type).unwrap();
            for (value, [positive, negative]) in
                [(f64::NAN.abs(), nan), (f64::INFINITY, infinity), (1e300, large)]
            {
                assert_eq!(format.encode(value), positive, "{element_type} {value}");
                assert_eq!(format.encode(-value), negative, "{element_type} -{value}");
            }
            assert_eq!(format.encode(-1e-300), tiny, "{element_type}");
        }
        let powers = Format::of(F8E8M0FNU).unwrap();
        for (value, bits) in [(0.0, 0xff), (1.5, 0x80), (1.4999, 0x7f), (3.0, 0x81), (1e-300, 0)] {
            assert_eq!(powers.encode(value), bits, "{value}");
        }
        assert_eq!(powers.encode(1.5 * 2f64.powi(127)), 0xff);
        assert_eq!(powers.encode(0.75 * 2f64.powi(-127)), 0);
    }

    #[test]
    fn the_total_order_is_that_of_the_values() {
        for (element_type, format) in formats() {
            let all = 0..=u16::try_from((1u32 << element_type.bits()) - 1).unwrap();
            let mut ordered: Vec<u16> = all.collect();
            ordered.sort_by_key(|&bits| format.total_key(bits));
            let values: Vec<f64> =
                ordered.iter().filter_map(|&bits| real(element_type, bits)).collect();
            assert!(values.is_sorted_by(|a, b| a.total_cmp(b).is_lt()), "{element_type}");
        }
    }
}
