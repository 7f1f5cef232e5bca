//! `stochastic-convert`: floats to signed integers, rounded up with the
//! probability that the digits behind the point say.

use tilewright_ir::ElementType;
use tilewright_ir::element::NumberClass;

use super::kernel::{Kernel, map2};
use super::narrow::{By, around};

/// Returns the kernel of a float, random bits and a signed integer; `None` for other types, for
/// which XLA does not define the op.
pub(super) fn kernel(operands: &[ElementType], result: ElementType) -> Option<Kernel> {
    let &[operand, random] = operands else { return None };
    let fits = operand.is_float()
        && random.class() == NumberClass::Unsigned
        && result.class() == NumberClass::Signed;
    if !fits {
        return None;
    }
    let rounding = Rounding { random_bits: random.bits(), result_bits: result.bits() };
    let kernel = map2(move |value: f64, random: u64| rounding.round(value, random));
    let by = |element_type, wide| By { element_type, wide };
    let operands = [by(operand, ElementType::F64), by(random, ElementType::U64)];
    around(kernel, &operands, by(result, ElementType::S64))
}

#[derive(Clone, Copy)]
struct Rounding {
    random_bits: u32,
    result_bits: u32,
}

impl Rounding {
    /// The magnitude grows to the next integer where the random bits, read as
    /// digits behind the point, are less than its own digits there.
    fn round(self, value: f64, random: u64) -> i64 {
        let greatest = i64::MAX >> (i64::BITS - self.result_bits);
        let least = -greatest - 1;
        if value.is_nan() {
            return 0;
        }
        if value >= greatest as f64 {
            return greatest;
        }
        if value <= least as f64 {
            return least;
        }
        let magnitude = value.abs();
        let digits = magnitude.fract() * f64::from(self.random_bits).exp2();
        let whole = magnitude as i64 + i64::from(random < digits as u64);
        if value < 0.0 { -whole } else { whole }
    }
}
