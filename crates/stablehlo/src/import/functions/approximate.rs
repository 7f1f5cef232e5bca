//! `erf` and its kin in single precision, approximated by polynomials.

use super::erf_double;
use super::maker::Maker;
use crate::mlir::Value;

/// Evaluates a polynomial by Horner's rule; the coefficient of the highest power comes first.
pub(super) fn polynomial(m: &mut Maker<'_>, x: Value, coefficients: &[f64]) -> Option<Value> {
    let (&first, rest) = coefficients.split_first()?;
    let mut sum = m.number(x, first)?;
    for &coefficient in rest {
        let product = m.op("multiply", &[sum, x])?;
        let next = m.number(x, coefficient)?;
        sum = m.op("add", &[product, next])?;
    }
    Some(sum)
}

/// Coefficients of the inverse of `erf` where `w = -log(1 - x^2)` is less than 5.
#[rustfmt::skip]
const NEAR: [f64; 9] = [
    2.810_226_36e-8, 3.432_739_39e-7, -3.523_387_7e-6, -4.391_506_54e-6, 0.000_218_580_87,
    -0.001_253_725_03, -0.004_177_681_64, 0.246_640_727, 1.501_409_41,
];

/// The same for larger ones.
#[rustfmt::skip]
const FAR: [f64; 9] = [
    -0.000_200_214_257, 0.000_100_950_558, 0.001_349_343_22, -0.003_673_428_44, 0.005_739_507_73,
    -0.007_622_461_3, 0.009_438_870_47, 1.001_674_06, 2.832_976_82,
];

/// The inverse of `erf`, by the approximation of Giles.
pub(super) fn erf_inv(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    if m.is_double(x)? {
        return erf_double::erf_inv(m, x);
    }
    let negative = m.op("negate", &[x])?;
    let squared = m.op("multiply", &[x, negative])?;
    let log = m.op("log_plus_one", &[squared])?;
    let w = m.op("negate", &[log])?;
    let five = m.number(x, 5.0)?;
    let is_near = m.predicate("compare", &[w, five], Some("LT"))?;
    let (shift, three) = (m.number(x, 2.5)?, m.number(x, 3.0)?);
    let near = m.op("subtract", &[w, shift])?;
    let root = m.op("sqrt", &[w])?;
    let far = m.op("subtract", &[root, three])?;
    let w = m.select(is_near, near, far)?;
    let mut sum: Option<Value> = None;
    for (near, far) in NEAR.into_iter().zip(FAR) {
        let (near, far) = (m.number(x, near)?, m.number(x, far)?);
        let coefficient = m.select(is_near, near, far)?;
        sum = Some(match sum {
            None => coefficient,
            Some(sum) => {
                let product = m.op("multiply", &[sum, w])?;
                m.op("add", &[coefficient, product])?
            }
        });
    }
    let inside = m.op("multiply", &[sum?, x])?;
    with_infinite_ends(m, x, inside)
}

/// The inverse of `erf` is infinite at -1 and 1.
pub(super) fn with_infinite_ends(m: &mut Maker<'_>, x: Value, inside: Value) -> Option<Value> {
    let (size, one) = (m.op("abs", &[x])?, m.number(x, 1.0)?);
    let is_end = m.compare(size, "EQ", one)?;
    let infinity = m.number(x, f64::INFINITY)?;
    let end = m.op("multiply", &[x, infinity])?;
    m.select(is_end, end, inside)
}

#[rustfmt::skip]
const ERFC_P: [f64; 9] = [
    2.326_819_970_068_386e-2, -1.387_039_388_740_657e-1, 3.687_424_674_597_105e-1,
    -5.824_733_027_278_666e-1, 6.210_004_621_745_983e-1, -4.944_515_323_274_145e-1,
    3.404_879_937_665_872e-1, -2.741_127_028_184_656e-1, 5.638_259_427_386_472e-1,
];

#[rustfmt::skip]
const ERFC_R: [f64; 8] = [
    -1.047_766_399_936_249e1, 1.297_719_955_372_516e1, -7.495_518_717_768_503,
    2.921_019_019_210_786, -1.015_265_279_202_7, 4.218_463_358_204_948e-1,
    -2.820_767_439_740_514e-1, 5.641_895_067_754_075e-1,
];

#[rustfmt::skip]
const ERF_T: [f64; 7] = [
    7.853_861_353_153_693e-5, -8.010_193_625_184_903e-4, 5.188_327_685_732_524e-3,
    -2.685_381_193_529_856e-2, 1.128_358_514_861_418e-1, -3.761_262_582_423_3e-1,
    1.128_379_165_726_71,
];

/// The largest number whose exponential is finite in 32 bits.
const MAX_LOG: f64 = 88.722_839_052_068_35;

/// `erfc`, as in the Cephes library.
pub(super) fn erfc(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    if m.is_double(x)? {
        return erf_double::erfc(m, x);
    }
    let beyond = erfc_beyond_one(m, x)?;
    let one = m.number(x, 1.0)?;
    let squared = m.op("multiply", &[x, x])?;
    let sum = polynomial(m, squared, &ERF_T)?;
    let erf = m.op("multiply", &[x, sum])?;
    let within = m.op("subtract", &[one, erf])?;
    let size = m.op("abs", &[x])?;
    let is_within = m.predicate("compare", &[size, one], Some("LT"))?;
    m.select(is_within, within, beyond)
}

fn erfc_beyond_one(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    let squared = m.op("multiply", &[x, x])?;
    let z = m.op("negate", &[squared])?;
    let size = m.op("abs", &[x])?;
    let one = m.number(x, 1.0)?;
    let inverse = m.op("divide", &[one, squared])?;
    let exponential = m.op("exponential", &[z])?;
    let over_size = m.op("divide", &[one, size])?;
    let factor = m.op("multiply", &[exponential, over_size])?;
    let two = m.number(x, 2.0)?;
    let is_near = m.predicate("compare", &[size, two], Some("LT"))?;
    let near = polynomial(m, inverse, &ERFC_P)?;
    let far = polynomial(m, inverse, &ERFC_R)?;
    let sum = m.select(is_near, near, far)?;
    let product = m.op("multiply", &[factor, sum])?;
    let least = m.number(x, -MAX_LOG)?;
    let vanishes = m.predicate("compare", &[z, least], Some("LT"))?;
    let zero = m.number(x, 0.0)?;
    let positive = m.select(vanishes, zero, product)?;
    let is_negative = m.predicate("compare", &[x, zero], Some("LT"))?;
    let negative = m.op("subtract", &[two, positive])?;
    m.select(is_negative, negative, positive)
}
