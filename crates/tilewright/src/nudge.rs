//! Inputs next to given ones, to learn how much a program magnifies rounding.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::{ArrayLiteral, Data, Literal};

use crate::check::Inputs;

/// The value with every float moved to the next number, up or down as `seed`
/// decides for each; zeros, infinities and NaN stay, and so does all that is
/// no float.
pub(crate) fn nudged(value: &Literal, seed: u64) -> Literal {
    match value {
        Literal::Array(array) => nudge_array(array, seed).map_or(value.clone(), Literal::Array),
        Literal::Tuple(elements) => {
            let seeds = (0u64..).map(|i| seed.wrapping_add(i).wrapping_mul(GOLDEN));
            Literal::Tuple(elements.iter().zip(seeds).map(|(e, seed)| nudged(e, seed)).collect())
        }
        Literal::Token | Literal::Elided(_) => value.clone(),
    }
}

/// Inputs next to the given ones; each moves on its own.
pub(crate) fn nudged_all(inputs: &Inputs, seed: u64) -> Inputs {
    let mut seeds = (0u64..).map(|i| i.wrapping_mul(NUDGES).wrapping_add(seed));
    let mut moved = |input: &Literal| nudged(input, seeds.next().unwrap_or(seed));
    inputs.iter().map(|inputs| inputs.iter().map(&mut moved).collect()).collect()
}

/// How many times a program is run on inputs next to the given ones, at most.
/// Each number moves up or down by chance: what two of them make of it shows
/// only where they move apart, which this often they all but surely do.
pub(crate) const NUDGES: u64 = 24;
/// How much further apart than those runs two programs may be: sums in another
/// order round at every step, inputs that move do so by chance in both ways.
pub(crate) const EXCUSED: f64 = 64.0;

/// An odd number whose multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn nudge_array(array: &ArrayLiteral, seed: u64) -> Option<ArrayLiteral> {
    let mut coin = Coin(seed.wrapping_add(1).wrapping_mul(GOLDEN));
    let data = match array.data() {
        Data::F16(v) => Data::F16(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::BF16(v) => Data::BF16(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::F32(v) => Data::F32(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::F64(v) => Data::F64(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::C64(v) => Data::C64(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::C128(v) => Data::C128(v.iter().map(|&x| x.nudge(&mut coin)).collect()),
        Data::Pred(_)
        | Data::S8(_)
        | Data::S16(_)
        | Data::S32(_)
        | Data::S64(_)
        | Data::U8(_)
        | Data::U16(_)
        | Data::U32(_)
        | Data::U64(_) => return None,
    };
    ArrayLiteral::new(array.element_type(), array.dims().iter().copied(), data).ok()
}

/// A fair coin (xorshift; nothing depends on its quality).
struct Coin(u64);

impl Coin {
    fn toss(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 63 == 1
    }
}

trait Nudge: Copy {
    fn nudge(self, coin: &mut Coin) -> Self;
}

macro_rules! floats {
    ($($type:ident $zero:expr;)*) => {$(
        impl Nudge for $type {
            fn nudge(self, coin: &mut Coin) -> Self {
                let up = coin.toss();
                if !self.is_finite() || self == $zero {
                    return self;
                }
                // Of the same sign, neighbours in size are neighbours in bits.
                let bits = self.to_bits();
                let next = $type::from_bits(if up { bits + 1 } else { bits - 1 });
                if next.is_finite() { next } else { self }
            }
        }
    )*};
}

floats! {
    f16 f16::ZERO;
    bf16 bf16::ZERO;
    f32 0.0;
    f64 0.0;
}

impl<T: Nudge> Nudge for Complex<T> {
    fn nudge(self, coin: &mut Coin) -> Self {
        Self::new(self.re.nudge(coin), self.im.nudge(coin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ElementType;

    #[test]
    fn numbers_move_to_a_neighbour() {
        let before = vec![0.0, -0.0, 1.0, -2.5, f32::MAX, f32::INFINITY, f32::from_bits(1)];
        let array = ArrayLiteral::new(ElementType::F32, [7], Data::F32(before.clone())).unwrap();
        let value = Literal::Tuple(vec![array.into()]);
        let moved = nudged(&value, 3);
        assert_eq!(moved, nudged(&value, 3));
        let leaves = moved.leaves();
        let after = leaves[0].as_array().unwrap().as_slice::<f32>().unwrap();
        for (x, y) in before.iter().zip(after) {
            assert!(x.to_bits().abs_diff(y.to_bits()) <= 1, "{x} became {y}");
            assert!(y.is_finite() || x.is_infinite());
        }
        assert_ne!(after[2].to_bits(), before[2].to_bits());
        assert_eq!(after[0].to_bits(), before[0].to_bits());
    }
}
