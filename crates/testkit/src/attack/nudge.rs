//! Inputs next to given ones, most of which keep ties: equal numbers stay equal.

use half::{bf16, f16};
use tilewright_ir::{ArrayLiteral, Data, Literal};

/// In one of so many turns equal numbers move apart. A program that gives zero because all
/// its numbers are equal shows only then how inexact it is next to them.
const APART: u64 = 4;

/// The value with every float moved to the next number, up or down as its bits and
/// `turn` decide, and in some turns its place. Zeros, infinities, NaN and what is no real
/// float stay.
pub(super) fn nudged(value: &Literal, turn: u64) -> Literal {
    let Literal::Array(array) = value else { return value.clone() };
    let apart = turn.is_multiple_of(APART);
    let key = |place: usize, bits: u64| {
        let place = if apart { u64::try_from(place).unwrap_or(0) << 32 } else { 0 };
        up(bits ^ place, turn)
    };
    let data = match array.data() {
        Data::F16(v) => Data::F16(moved(v, key)),
        Data::BF16(v) => Data::BF16(moved(v, key)),
        Data::F32(v) => Data::F32(moved(v, key)),
        _ => return value.clone(),
    };
    match ArrayLiteral::new(array.element_type(), array.dims().iter().copied(), data) {
        Ok(array) => Literal::Array(array),
        Err(_) => value.clone(),
    }
}

/// Each number's neighbour above or below, as `up` says of its place and its bits.
fn moved<T: Float>(values: &[T], up: impl Fn(usize, u64) -> bool) -> Vec<T> {
    let values = values.iter().enumerate();
    values.map(|(place, &x)| x.neighbour(up(place, x.bits()))).collect()
}

trait Float: Copy {
    fn bits(self) -> u64;
    /// The next number, up or down in size: numbers of one sign are ordered as their bits.
    fn neighbour(self, up: bool) -> Self;
}

macro_rules! floats {
    ($($type:ident $zero:expr;)*) => {$(
        impl Float for $type {
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn neighbour(self, up: bool) -> Self {
                let bits = self.to_bits();
                let next = if up { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
                let next = Self::from_bits(next);
                let stays = self == $zero || !self.is_finite() || !next.is_finite();
                if stays { self } else { next }
            }
        }
    )*};
}

floats! {
    f16 f16::ZERO;
    bf16 bf16::ZERO;
    f32 0.0;
}

/// A fair coin for a number (splitmix64).
fn up(bits: u64, turn: u64) -> bool {
    let mut z = bits ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) & 1 == 1
}
