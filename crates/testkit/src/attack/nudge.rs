//! Inputs next to given ones that keep ties: equal numbers stay equal.

use half::{bf16, f16};
use tilewright_ir::{ArrayLiteral, Data, Literal};

/// The value with every float moved to the next number, up or down as its bits and
/// `turn` decide. Zeros, infinities, NaN and what is no real float stay.
pub(super) fn nudged(value: &Literal, turn: u64) -> Literal {
    let Literal::Array(array) = value else { return value.clone() };
    let data = match array.data() {
        Data::F16(v) => Data::F16(v.iter().map(|x| f16::from_bits(near16(*x, turn))).collect()),
        Data::BF16(v) => Data::BF16(v.iter().map(|x| bf16::from_bits(near16(*x, turn))).collect()),
        Data::F32(v) => Data::F32(
            v.iter()
                .map(|&x| {
                    let next = f32::from_bits(if up(x.to_bits().into(), turn) {
                        x.to_bits().wrapping_add(1)
                    } else {
                        x.to_bits().wrapping_sub(1)
                    });
                    if x == 0.0 || !x.is_finite() || !next.is_finite() { x } else { next }
                })
                .collect(),
        ),
        _ => return value.clone(),
    };
    match ArrayLiteral::new(array.element_type(), array.dims().iter().copied(), data) {
        Ok(array) => Literal::Array(array),
        Err(_) => value.clone(),
    }
}

trait Short: Copy {
    fn bits(self) -> u16;
    fn of(bits: u16) -> Self;
    fn size(self) -> f64;
}

macro_rules! short {
    ($($type:ident)*) => {$(
        impl Short for $type {
            fn bits(self) -> u16 {
                self.to_bits()
            }
            fn of(bits: u16) -> Self {
                Self::from_bits(bits)
            }
            fn size(self) -> f64 {
                self.to_f64()
            }
        }
    )*};
}

short!(f16 bf16);

/// The bits of a neighbour.
fn near16<T: Short>(x: T, turn: u64) -> u16 {
    let bits = x.bits();
    let next = if up(bits.into(), turn) { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let stays = x.size() == 0.0 || !x.size().is_finite() || !T::of(next).size().is_finite();
    if stays { bits } else { next }
}

/// A fair coin for a number (splitmix64).
fn up(bits: u64, turn: u64) -> bool {
    let mut z = bits ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) & 1 == 1
}
