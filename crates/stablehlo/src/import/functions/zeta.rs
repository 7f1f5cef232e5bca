//! The zeta function of Hurwitz and what is made of it.

use super::gamma;
use super::maker::Maker;
use crate::mlir::Value;

/// The terms of the sum before the rest of it is estimated.
const TERMS: usize = 9;

/// `(2 n)! / B(2 n)` for the numbers of Bernoulli, from `n = 12` down to 1.
#[rustfmt::skip]
const BERNOULLI: [f64; 12] = [
    -7.166_165_256_175_667e18, 1.815_210_540_194_354_6e17, -4.597_978_722_407_473e15,
    1.164_678_281_435_006_7e14, -2.950_130_727_918_164e12, 7.472_424_96e10,
    -1.892_437_580_318_379_2e9, 4.790_016e7, -1.209_6e6, 3.024e4, -720.0, 12.0,
];

/// The sum of `(q + k)^-x` over all `k`: nine terms and the formula of Euler and Maclaurin for the
/// rest.
pub(super) fn zeta(m: &mut Maker<'_>, x: Value, q: Value) -> Option<Value> {
    m.real(x)?;
    let one = m.number(q, 1.0)?;
    let negative = m.op("negate", &[x])?;
    let mut last = q;
    let mut sum = m.op("power", &[q, negative])?;
    for _ in 0..TERMS {
        last = m.op("add", &[last, one])?;
        let power = m.op("power", &[last, negative])?;
        sum = m.op("add", &[sum, power])?;
    }
    let last = m.op("add", &[last, one])?;
    let power = m.op("power", &[last, negative])?;
    let accurate = with_rest(m, x, (last, power), sum)?;
    // Where the last power no longer counts, the sum is better than the estimate.
    let (size, size_of_sum) = (m.op("abs", &[power])?, m.op("abs", &[sum])?);
    let epsilon = m.least(last)?;
    let limit = m.op("multiply", &[size_of_sum, epsilon])?;
    let is_enough = m.compare(size, "LT", limit)?;
    let value = m.select(is_enough, sum, accurate)?;
    in_domain(m, x, q, value)
}

/// Adds the rest of the sum from the number after the last one, whose power is given.
fn with_rest(
    m: &mut Maker<'_>,
    x: Value,
    (last, power): (Value, Value),
    sum: Value,
) -> Option<Value> {
    let one = m.number(x, 1.0)?;
    let product = m.op("multiply", &[power, last])?;
    let less = m.op("subtract", &[x, one])?;
    let integral = m.op("divide", &[product, less])?;
    let squared = m.op("multiply", &[last, last])?;
    let inverse = m.op("divide", &[one, squared])?;
    let mut series = m.number(x, 0.0)?;
    let (&end, coefficients) = BERNOULLI.split_last()?;
    for (&coefficient, number) in coefficients.iter().zip((1..=11u32).rev()) {
        let even = m.number(x, (2 * number).into())?;
        let first = m.op("add", &[x, even])?;
        let odd = m.number(x, (2 * number - 1).into())?;
        let second = m.op("add", &[x, odd])?;
        let factor = m.op("multiply", &[first, second])?;
        let coefficient = m.number(x, 1.0 / coefficient)?;
        let more = m.op("add", &[series, coefficient])?;
        let scaled = m.op("multiply", &[inverse, more])?;
        series = m.op("multiply", &[factor, scaled])?;
    }
    let half = m.number(x, 0.5)?;
    let ratio = m.op("divide", &[x, last])?;
    let end = m.number(x, 1.0 / end)?;
    let series = m.op("add", &[end, series])?;
    let series = m.op("multiply", &[ratio, series])?;
    let series = m.op("add", &[half, series])?;
    let tail = m.op("multiply", &[power, series])?;
    let value = m.op("add", &[sum, integral])?;
    m.op("add", &[value, tail])
}

/// Not a number where `x < 1`, or where `q <= 0` and `x` is not whole; infinite or not a number at
/// the poles.
fn in_domain(m: &mut Maker<'_>, x: Value, q: Value, value: Value) -> Option<Value> {
    let (zero, one) = (m.number(x, 0.0)?, m.number(x, 1.0)?);
    let (nan, infinity) = (m.number(x, f64::NAN)?, m.number(x, f64::INFINITY)?);
    let is_low = m.compare(x, "LT", one)?;
    let value = m.select(is_low, nan, value)?;
    let is_left = m.compare(q, "LE", zero)?;
    let floor = m.op("floor", &[x])?;
    let is_broken = m.compare(x, "NE", floor)?;
    let is_outside = m.op("and", &[is_left, is_broken])?;
    let value = m.select(is_outside, nan, value)?;
    let floor_of_q = m.op("floor", &[q])?;
    let is_whole = m.compare(q, "EQ", floor_of_q)?;
    let is_pole = m.op("and", &[is_left, is_whole])?;
    // XLA makes this floor a second time.
    let floor = m.op("floor", &[x])?;
    let x_is_whole = m.compare(x, "EQ", floor)?;
    let two = m.number(x, 2.0)?;
    let rest = m.op("remainder", &[x, two])?;
    let is_even = m.compare(rest, "EQ", zero)?;
    let is_even = m.op("and", &[x_is_whole, is_even])?;
    let pole = m.select(is_even, infinity, nan)?;
    let value = m.select(is_pole, pole, value)?;
    let is_harmonic = m.compare(x, "EQ", one)?;
    m.select(is_harmonic, infinity, value)
}

/// The derivative of order `n` of `digamma`: `(-1)^(n + 1) n! zeta(n + 1, x)`.
pub(super) fn polygamma(m: &mut Maker<'_>, n: Value, x: Value) -> Option<Value> {
    m.real(x)?;
    let (one, two) = (m.number(x, 1.0)?, m.number(x, 2.0)?);
    let rest = m.op("remainder", &[n, two])?;
    let doubled = m.op("multiply", &[two, rest])?;
    let sign = m.op("subtract", &[doubled, one])?;
    let next = m.op("add", &[n, one])?;
    let log_factorial = gamma::lgamma(m, next)?;
    let factorial = m.op("exponential", &[log_factorial])?;
    let series = zeta(m, next, x)?;
    let signed = m.op("multiply", &[sign, factorial])?;
    let value = m.op("multiply", &[signed, series])?;
    let zero = m.number(x, 0.0)?;
    let is_zero = m.compare(n, "EQ", zero)?;
    let digamma = gamma::digamma(m, x)?;
    let value = m.select(is_zero, digamma, value)?;
    let floor = m.op("floor", &[n])?;
    let is_broken = m.compare(n, "NE", floor)?;
    let is_negative = m.compare(n, "LT", zero)?;
    let is_outside = m.op("or", &[is_broken, is_negative])?;
    let nan = m.number(x, f64::NAN)?;
    m.select(is_outside, nan, value)
}
