//! The logarithm of the gamma function and its derivative, by Lanczos' approximation.

use super::maker::Maker;
use crate::mlir::Value;

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
pub(super) fn digamma(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let half = m.number(x, 0.5)?;
    let reflects = m.predicate("compare", &[x, half], Some("LT"))?;
    let negative = m.op("negate", &[x])?;
    let one = m.number(x, 1.0)?;
    let less = m.op("subtract", &[x, one])?;
    let z = m.select(reflects, negative, less)?;
    let direct = lanczos(m, x, z)?;
    let reflected = reflection(m, x, direct)?;
    let value = m.select(reflects, reflected, direct)?;
    let zero = m.number(x, 0.0)?;
    let is_zero = m.predicate("compare", &[x, zero], Some("EQ"))?;
    let infinity = m.number(x, f64::NEG_INFINITY)?;
    let is_low = m.predicate("compare", &[x, zero], Some("LT"))?;
    let floor = m.op("floor", &[x])?;
    let is_whole = m.predicate("compare", &[x, floor], Some("EQ"))?;
    let is_pole = m.op("and", &[is_low, is_whole])?;
    let nan = m.number(x, f64::NAN)?;
    let other = m.select(is_pole, nan, value)?;
    m.select(is_zero, infinity, other)
}

fn lanczos(m: &mut Maker<'_>, x: Value, z: Value) -> Option<Value> {
    let mut derivative = m.number(x, 0.0)?;
    let mut sum = m.number(x, BASE)?;
    for (coefficient, number) in LANCZOS.into_iter().zip(1u32..) {
        let coefficient = m.number(x, coefficient)?;
        let number = m.number(x, number.into())?;
        let term = m.op("add", &[z, number])?;
        let squared = m.op("multiply", &[term, term])?;
        let ratio = m.op("divide", &[coefficient, squared])?;
        derivative = m.op("subtract", &[derivative, ratio])?;
        let ratio = m.op("divide", &[coefficient, term])?;
        sum = m.op("add", &[sum, ratio])?;
    }
    let (t, log_t) = shifted(m, x, z)?;
    let ratio = m.op("divide", &[derivative, sum])?;
    let gamma = m.number(x, GAMMA)?;
    let correction = m.op("divide", &[gamma, t])?;
    let sum = m.op("add", &[log_t, ratio])?;
    m.op("subtract", &[sum, correction])
}

/// `t = z + 15/2` and `log(t) = log(15/2) + log1p(z / (15/2))`.
fn shifted(m: &mut Maker<'_>, x: Value, z: Value) -> Option<(Value, Value)> {
    let shift = m.number(x, GAMMA + 0.5)?;
    let t = m.op("add", &[shift, z])?;
    let log_shift = m.number(x, (GAMMA + 0.5).ln())?;
    let ratio = m.op("divide", &[z, shift])?;
    let log = m.op("log_plus_one", &[ratio])?;
    Some((t, m.op("add", &[log_shift, log])?))
}

/// `digamma(1 - x) - pi cot(pi x)`, where `x` is reduced by whole numbers.
fn reflection(m: &mut Maker<'_>, x: Value, direct: Value) -> Option<Value> {
    let half = m.number(x, 0.5)?;
    let shifted = m.op("add", &[x, half])?;
    let floor = m.op("floor", &[shifted])?;
    let size = m.op("abs", &[floor])?;
    let reduced = m.op("add", &[x, size])?;
    let pi = m.number(x, std::f64::consts::PI)?;
    let angle = m.op("multiply", &[pi, reduced])?;
    let (cosine, sine) = (m.op("cosine", &[angle])?, m.op("sine", &[angle])?);
    let product = m.op("multiply", &[pi, cosine])?;
    let cotangent = m.op("divide", &[product, sine])?;
    m.op("subtract", &[direct, cotangent])
}

/// The logarithm of the absolute value of the gamma function: infinite at the infinities, and by
/// reflection below 1/2.
pub(super) fn lgamma(m: &mut Maker<'_>, x: Value) -> Option<Value> {
    m.real(x)?;
    let half = m.number(x, 0.5)?;
    let reflects = m.compare(x, "LT", half)?;
    let negative = m.op("negate", &[x])?;
    let one = m.number(x, 1.0)?;
    let less = m.op("subtract", &[x, one])?;
    let z = m.select(reflects, negative, less)?;
    let direct = log_lanczos(m, x, z)?;
    let reflected = log_reflection(m, x, direct)?;
    let value = m.select(reflects, reflected, direct)?;
    let is_infinite = super::is_infinite(m, x)?;
    let infinity = m.number(x, f64::INFINITY)?;
    m.select(is_infinite, infinity, value)
}

/// `log(2 pi) / 2 + (z + 1/2 - t / log(t)) log(t) + log(a)` for the sum of fractions `a` and
/// `t = z + 15/2`, whose product with its logarithm would overflow first.
fn log_lanczos(m: &mut Maker<'_>, x: Value, z: Value) -> Option<Value> {
    let mut sum = m.number(x, BASE)?;
    for (coefficient, number) in LANCZOS.into_iter().zip(1u32..) {
        let coefficient = m.number(x, coefficient)?;
        let number = m.number(x, number.into())?;
        let term = m.op("add", &[z, number])?;
        let ratio = m.op("divide", &[coefficient, term])?;
        sum = m.op("add", &[sum, ratio])?;
    }
    let (t, log_t) = shifted(m, x, z)?;
    let ratio = m.op("divide", &[t, log_t])?;
    let half = m.number(x, 0.5)?;
    let raised = m.op("add", &[z, half])?;
    let factor = m.op("subtract", &[raised, ratio])?;
    let power = m.op("multiply", &[factor, log_t])?;
    let log_sum = m.op("log", &[sum])?;
    let constant = m.number(x, (2.0f64.ln() + std::f64::consts::PI.ln()) / 2.0)?;
    let value = m.op("add", &[constant, power])?;
    m.op("add", &[value, log_sum])
}

/// `log(pi) - log(|sin(pi x)|) - lgamma(1 - x)`, with the sine of the distance to the next whole
/// number, which is exact.
fn log_reflection(m: &mut Maker<'_>, x: Value, direct: Value) -> Option<Value> {
    let (half, one) = (m.number(x, 0.5)?, m.number(x, 1.0)?);
    let size = m.op("abs", &[x])?;
    let floor = m.op("floor", &[size])?;
    let fraction = m.op("subtract", &[size, floor])?;
    let is_more = m.compare(half, "LT", fraction)?;
    let rest = m.op("subtract", &[one, fraction])?;
    let distance = m.select(is_more, rest, fraction)?;
    let pi = m.number(x, std::f64::consts::PI)?;
    let angle = m.op("multiply", &[pi, distance])?;
    let sine = m.op("sine", &[angle])?;
    let log = m.op("log", &[sine])?;
    let log_pi = m.number(x, std::f64::consts::PI.ln())?;
    let difference = m.op("subtract", &[log_pi, log])?;
    let reflected = m.op("subtract", &[difference, direct])?;
    // At a pole both logarithms are infinite, and that of the sine wins.
    let is_finite = m.predicate("is_finite", &[log], None)?;
    let pole = m.op("negate", &[log])?;
    m.select(is_finite, reflected, pole)
}
