//! Finds the numbers next to given ones, to measure how much a program magnifies rounding.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::{ArrayLiteral, Data, Literal};

/// A float that may move: finite, and not zero.
#[derive(Clone, Copy, Debug)]
pub struct Movable {
    /// Its place in its array, row-major; twice that for the parts of complex numbers, and
    /// one more for imaginary ones.
    pub place: usize,
    /// Its bits.
    pub bits: u64,
    /// Whether half its digits or more are zeros at the end, or it is an integer that is
    /// exact in its type: it hardly is the result of rounding.
    pub is_short: bool,
}

/// The direction in which a float moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It stays.
    Stay,
    /// To the next number away from zero, unless that is infinite.
    Away,
    /// To the next number towards zero.
    Towards,
}

impl Move {
    /// Chooses a random direction, away or towards: the same for the same key and seed.
    pub fn by_chance(key: u64, seed: u64) -> Self {
        // splitmix64
        let mut z = key ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        if (z ^ (z >> 31)) & 1 == 1 { Self::Away } else { Self::Towards }
    }
}

/// Returns the value with each of its floats of 16 bits and more where `of` moves it; zeros,
/// infinities and NaN stay.
pub fn nudged(value: &Literal, of: &dyn Fn(Movable) -> Move) -> Literal {
    match value {
        Literal::Array(array) => {
            let mut data = array.data().clone();
            nudge(&mut data, of);
            let dims = array.dims().iter().copied();
            // The same elements in number and type.
            ArrayLiteral::new(array.element_type(), dims, data)
                .map_or_else(|_| value.clone(), Literal::Array)
        }
        Literal::Tuple(elements) => {
            Literal::Tuple(elements.iter().map(|element| nudged(element, of)).collect())
        }
        Literal::Token | Literal::Elided(_) => value.clone(),
    }
}

/// Moves the floats of an array.
pub(crate) fn nudge(data: &mut Data, of: &dyn Fn(Movable) -> Move) {
    match data {
        Data::F16(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = x.moved(i, of)),
        Data::BF16(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = x.moved(i, of)),
        Data::F32(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = x.moved(i, of)),
        Data::F64(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = x.moved(i, of)),
        Data::C64(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = both(*x, i, of)),
        Data::C128(v) => v.iter_mut().enumerate().for_each(|(i, x)| *x = both(*x, i, of)),
        Data::Pred(_)
        | Data::S8(_)
        | Data::S16(_)
        | Data::S32(_)
        | Data::S64(_)
        | Data::U8(_)
        | Data::U16(_)
        | Data::U32(_)
        | Data::U64(_) => {}
    }
}

fn both<T: Float>(x: Complex<T>, place: usize, of: &dyn Fn(Movable) -> Move) -> Complex<T> {
    let place = place.wrapping_mul(2);
    Complex::new(x.re.moved(place, of), x.im.moved(place.wrapping_add(1), of))
}

trait Float: Copy {
    fn moved(self, place: usize, of: &dyn Fn(Movable) -> Move) -> Self;
}

macro_rules! floats {
    ($($type:ident $number:expr;)*) => {$(
        impl Float for $type {
            fn moved(self, place: usize, of: &dyn Fn(Movable) -> Move) -> Self {
                let (bits, number): (_, f64) = (self.to_bits(), $number(self));
                if !self.is_finite() || number == 0.0 {
                    return self;
                }
                let digits = $type::MANTISSA_DIGITS;
                let is_integer = number.fract() == 0.0
                    && number.abs() < 2f64.powi(digits.cast_signed());
                let is_short = is_integer || bits.trailing_zeros() >= digits / 2;
                // Numbers of one sign are in the order of their bits.
                let next = match of(Movable { place, bits: bits.into(), is_short }) {
                    Move::Stay => return self,
                    Move::Away => Self::from_bits(bits.wrapping_add(1)),
                    Move::Towards => Self::from_bits(bits.wrapping_sub(1)),
                };
                if next.is_finite() { next } else { self }
            }
        }
    )*};
}

floats! {
    f16 f16::to_f64;
    bf16 bf16::to_f64;
    f32 f64::from;
    f64 f64::from;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ElementType;

    fn moved(numbers: &[f32], of: &dyn Fn(Movable) -> Move) -> Vec<f32> {
        let count = i64::try_from(numbers.len()).unwrap();
        let data = Data::F32(numbers.to_vec());
        let array = ArrayLiteral::new(ElementType::F32, [count], data).unwrap();
        let moved = nudged(&Literal::Tuple(vec![array.into()]), of);
        moved.leaves()[0].as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn numbers_move_to_a_neighbour() {
        let unit = f32::EPSILON;
        let before = [1.0, -2.0, f32::from_bits(1), f32::MAX, f32::INFINITY, -0.0];
        let away = [1.0 + unit, -2.0 - 2.0 * unit, f32::from_bits(2), f32::MAX, before[4], -0.0];
        assert_eq!(moved(&before, &|_| Move::Away), away);
        let towards = [1.0 - unit / 2.0, -2.0 + unit, 0.0];
        assert_eq!(moved(&before[..3], &|_| Move::Towards), towards);
        assert_eq!(moved(&before, &|_| Move::Stay), before);
    }

    #[test]
    fn short_numbers_are_told_apart() {
        let short = |x: Movable| if x.is_short { Move::Away } else { Move::Stay };
        let before = [3.0, 5001.0, 0.375, 0.1, 1.5e9, 16_777_215.0];
        let after = moved(&before, &short);
        let which: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a != b).collect();
        assert_eq!(which, [true, true, true, false, false, true]);
    }

    #[test]
    fn chance_is_fair_and_repeats() {
        let aways = (0..1000).filter(|&key| Move::by_chance(key, 7) == Move::Away).count();
        assert!((400..600).contains(&aways), "{aways} of 1000");
        assert_eq!(Move::by_chance(5, 7), Move::by_chance(5, 7));
    }
}
