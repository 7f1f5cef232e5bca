//! The logarithm of the gamma function and its derivative, by Lanczos' approximation.

use std::f64::consts::PI;

use super::expr::Expr;

/// The parameter of Lanczos' approximation.
const GAMMA: f64 = 7.0;
const BASE: f64 = 0.999_999_999_999_809_9;

#[rustfmt::skip]
const LANCZOS: [f64; 8] = [
    676.520_368_121_885_1, -1_259.139_216_722_402_8, 771.323_428_777_653_1,
    -176.615_029_162_140_6, 12.507_343_278_686_905, -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6, 1.505_632_735_149_311_6e-7,
];

/// The derivative of the logarithm of the gamma function, by Lanczos' approximation; by reflection
/// below 1/2.
pub(super) fn digamma(x: Expr<'_>) -> Expr<'_> {
    let reflects = x.is_less(0.5);
    let direct = lanczos(reflects.select(-x, x - 1.0));
    let value = direct.but(reflects, reflection(x, direct));
    let is_pole = x.is_less(0.0).and(x.is_equal(x.floor()));
    value.but(is_pole, f64::NAN).but(x.is_equal(0.0), f64::NEG_INFINITY)
}

fn lanczos(z: Expr<'_>) -> Expr<'_> {
    let (mut derivative, mut sum) = (z.number(0.0), z.number(BASE));
    for (coefficient, number) in LANCZOS.into_iter().zip(1u32..) {
        let term = z + f64::from(number);
        derivative = derivative - coefficient / (term * term);
        sum = sum + coefficient / term;
    }
    let (t, log_t) = shifted(z);
    log_t + derivative / sum - GAMMA / t
}

/// `t = z + 15/2` and `log(t) = log(15/2) + log1p(z / (15/2))`.
fn shifted(z: Expr<'_>) -> (Expr<'_>, Expr<'_>) {
    let shift = GAMMA + 0.5;
    (z + shift, (z / shift).log1p() + shift.ln())
}

/// `digamma(1 - x) - pi cot(pi x)`, where `x` is reduced by whole numbers.
fn reflection<'f>(x: Expr<'f>, direct: Expr<'f>) -> Expr<'f> {
    let angle = (x + (x + 0.5).floor().abs()) * PI;
    direct - angle.cos() * PI / angle.sin()
}

/// The logarithm of the absolute value of the gamma function: infinite at the infinities, and by
/// reflection below 1/2.
pub(super) fn lgamma(x: Expr<'_>) -> Expr<'_> {
    let reflects = x.is_less(0.5);
    let direct = log_lanczos(reflects.select(-x, x - 1.0));
    let value = direct.but(reflects, log_reflection(x, direct));
    value.but(super::is_infinite(x), f64::INFINITY)
}

/// `log(2 pi) / 2 + (z + 1/2 - t / log(t)) log(t) + log(a)` for the sum of fractions `a` and
/// `t = z + 15/2`, whose product with its logarithm would overflow first.
fn log_lanczos(z: Expr<'_>) -> Expr<'_> {
    let terms = LANCZOS.into_iter().zip(1u32..);
    let sum = terms.fold(z.number(BASE), |sum, (coefficient, number)| {
        sum + coefficient / (z + f64::from(number))
    });
    let (t, log_t) = shifted(z);
    let power = (z + 0.5 - t / log_t) * log_t;
    power + (2.0f64.ln() + PI.ln()) / 2.0 + sum.log()
}

/// `log(pi) - log(|sin(pi x)|) - lgamma(1 - x)`, with the sine of the distance to the next whole
/// number, which is exact.
fn log_reflection<'f>(x: Expr<'f>, direct: Expr<'f>) -> Expr<'f> {
    let size = x.abs();
    let fraction = size - size.floor();
    let distance = fraction.but(fraction.is_greater(0.5), 1.0 - fraction);
    let log = (distance * PI).sin().log();
    let reflected = PI.ln() - log - direct;
    // At a pole both logarithms are infinite, and that of the sine wins.
    log.is_finite().select(reflected, -log)
}
