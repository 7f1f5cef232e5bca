//! The zeta function of Hurwitz and what is made of it.

use super::expr::Expr;
use super::gamma;

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
pub(super) fn zeta<'f>(x: Expr<'f>, q: Expr<'f>) -> Expr<'f> {
    let negative = -x;
    let mut last = q;
    let mut sum = q.power(negative);
    for _ in 0..TERMS {
        last = last + 1.0;
        sum = sum + last.power(negative);
    }
    let last = last + 1.0;
    let power = last.power(negative);
    let accurate = with_rest(x, last, power, sum);
    // Where the last power no longer counts, the sum is better than the estimate.
    let is_enough = power.abs().is_less(sum.abs() * last.least());
    in_domain(x, q, is_enough.select(sum, accurate))
}

/// Adds the rest of the sum from the number after the last one, whose power is given.
fn with_rest<'f>(x: Expr<'f>, last: Expr<'f>, power: Expr<'f>, sum: Expr<'f>) -> Expr<'f> {
    let integral = power * last / (x - 1.0);
    let inverse = 1.0 / (last * last);
    let (end, coefficients) = BERNOULLI.split_last().unwrap_or((&1.0, &[]));
    let numbered = coefficients.iter().zip((1..=11u32).rev());
    let series = numbered.fold(x.number(0.0), |series, (coefficient, number)| {
        let factor = (x + f64::from(2 * number)) * (x + f64::from(2 * number - 1));
        factor * (inverse * (series + 1.0 / coefficient))
    });
    let series = x / last * (series + 1.0 / end) + 0.5;
    sum + integral + power * series
}

/// Not a number where `x < 1`, or where `q <= 0` and `x` is not whole; infinite or not a number at
/// the poles.
fn in_domain<'f>(x: Expr<'f>, q: Expr<'f>, value: Expr<'f>) -> Expr<'f> {
    let is_left = q.is_at_most(0.0);
    let is_outside = is_left.and(x.differs(x.floor()));
    let is_pole = is_left.and(q.is_equal(q.floor()));
    let is_even = x.is_equal(x.floor()).and((x % 2.0).is_equal(0.0));
    let pole = is_even.select(x.number(f64::INFINITY), x.number(f64::NAN));
    let value = value.but(x.is_less(1.0), f64::NAN).but(is_outside, f64::NAN);
    value.but(is_pole, pole).but(x.is_equal(1.0), f64::INFINITY)
}

/// The derivative of order `n` of `digamma`: `(-1)^(n + 1) n! zeta(n + 1, x)`.
pub(super) fn polygamma<'f>(n: Expr<'f>, x: Expr<'f>) -> Expr<'f> {
    let sign = (n % 2.0) * 2.0 - 1.0;
    let next = n + 1.0;
    let value = sign * gamma::lgamma(next).exp() * zeta(next, x);
    let is_outside = n.differs(n.floor()).or(n.is_less(0.0));
    value.but(n.is_equal(0.0), gamma::digamma(x)).but(is_outside, f64::NAN)
}
