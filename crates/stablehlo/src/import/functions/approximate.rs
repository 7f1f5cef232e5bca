//! `erf` and its kin in single precision, approximated by polynomials.

use tilewright_ir::ElementType;

use super::erf_double;
use super::expr::Expr;

/// Evaluates a polynomial by Horner's rule; the coefficient of the highest power comes first.
pub(super) fn polynomial<'f>(x: Expr<'f>, coefficients: &[f64]) -> Expr<'f> {
    let (first, rest) = coefficients.split_first().unwrap_or((&0.0, &[]));
    rest.iter().fold(x.number(*first), |sum, &coefficient| sum * x + coefficient)
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
pub(super) fn erf_inv(x: Expr<'_>) -> Expr<'_> {
    if x.ty() == ElementType::F64 {
        return erf_double::erf_inv(x);
    }
    let w = -(x * -x).log1p();
    let is_near = w.is_less(5.0);
    let w = is_near.select(w - 2.5, w.sqrt() - 3.0);
    let mut coefficients =
        NEAR.into_iter().zip(FAR).map(|(near, far)| is_near.select(x.number(near), x.number(far)));
    let first = coefficients.next().unwrap_or(x);
    let sum = coefficients.fold(first, |sum, coefficient| coefficient + sum * w);
    with_infinite_ends(x, sum * x)
}

/// The inverse of `erf` is infinite at -1 and 1.
pub(super) fn with_infinite_ends<'f>(x: Expr<'f>, inside: Expr<'f>) -> Expr<'f> {
    inside.but(x.abs().is_equal(1.0), x * f64::INFINITY)
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
pub(super) fn erfc(x: Expr<'_>) -> Expr<'_> {
    if x.ty() == ElementType::F64 {
        return erf_double::erfc(x);
    }
    let within = 1.0 - x * polynomial(x * x, &ERF_T);
    x.abs().is_less(1.0).select(within, erfc_beyond_one(x))
}

fn erfc_beyond_one(x: Expr<'_>) -> Expr<'_> {
    let (squared, size) = (x * x, x.abs());
    let (z, inverse) = (-squared, 1.0 / squared);
    let (near, far) = (polynomial(inverse, &ERFC_P), polynomial(inverse, &ERFC_R));
    let value = z.exp() * (1.0 / size) * size.is_less(2.0).select(near, far);
    let positive = value.but(z.is_less(-MAX_LOG), 0.0);
    positive.but(x.is_less(0.0), 2.0 - positive)
}
