//! Makes programs that compute along some dims of an array: norms, softmax, maxima, and the
//! ways in which their rounding is corrected or used.

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{InstId, Opcode};

use super::draft::{Draft, Made};
use crate::generate::rng::Rng;

/// An array and along which of its dims statistics run.
pub(super) struct Along<'a> {
    pub(super) x: InstId,
    pub(super) reduced: &'a [i64],
}

/// Something to compute along dims.
type Statistic = fn(&mut Draft, &mut Rng, &Along<'_>) -> Made<InstId>;

/// Those of floats, with their names.
pub(super) const OF_FLOATS: &[(&str, Statistic)] = &[
    ("norm", norm),
    ("norm", norm),
    ("one-pass norm", one_pass_norm),
    ("rms norm", rms_norm),
    ("softmax", softmax),
    ("log-sum-exp", log_sum_exp),
    ("log-softmax", log_softmax),
    ("maximum", maximum),
    ("maximum", maximum),
    ("distance to maximum", distance_to_maximum),
    ("count of equals", count_of_equals),
    ("share of maximum", share_of_maximum),
    ("re-centred", recentred),
    ("re-centred", recentred),
    ("corrected variance", corrected_variance),
    ("refined mean", refined_mean),
    ("refined root", refined_root),
    ("scaled by range", scaled_by_range),
    ("small quotient", small_quotient),
    ("weighted mean", weighted_mean),
    ("variance by products", variance_by_products),
    ("sum", sum),
    ("sum of sums", sum_of_sums),
    ("maximum of maxima", maximum_of_maxima),
    ("sum of scaled products", sum_of_scaled_products),
    ("sum of scaled products", sum_of_scaled_products),
    ("root mean square of scaled", root_of_scaled_squares),
];

/// Those of integers.
pub(super) const OF_INTEGERS: &[(&str, Statistic)] = &[
    ("maximum", maximum),
    ("sum", sum),
    ("distance to maximum", distance_to_maximum),
    ("count of equals", count_of_equals),
    ("re-centred", recentred),
];

impl Along<'_> {
    fn sum(&self, d: &mut Draft, value: InstId) -> Made<InstId> {
        d.sum(value, self.reduced)
    }

    /// Broadcasts the reduced array back.
    fn spread(&self, d: &mut Draft, small: InstId) -> Made<InstId> {
        d.spread(small, self.x, self.reduced)
    }

    pub(super) fn mean(&self, d: &mut Draft, rng: &mut Rng, value: InstId) -> Made<InstId> {
        let sum = self.sum(d, value)?;
        let terms = d.terms(value, self.reduced)?;
        if rng.chance(50) || !d.is_float(value) {
            let terms = d.splat(sum, terms)?;
            d.div(sum, terms)
        } else {
            d.times(sum, 1.0 / terms)
        }
    }

    /// `value` less its mean.
    fn centred(&self, d: &mut Draft, rng: &mut Rng, value: InstId) -> Made<InstId> {
        let mean = self.mean(d, rng, value)?;
        let mean = self.spread(d, mean)?;
        d.sub(value, mean)
    }

    /// `x * p`, p an input that is constant along what is reduced.
    fn scaled_by_input(&self, d: &mut Draft) -> Made<InstId> {
        let dims = (0i64..).zip(d.dims(self.x)?);
        let kept: Vec<i64> =
            dims.filter(|(dim, _)| !self.reduced.contains(dim)).map(|(_, size)| size).collect();
        let small = d.parameter("small", d.element(self.x)?, &kept)?;
        let small = self.spread(d, small)?;
        d.mul(self.x, small)
    }

    /// `x - max x`
    fn below_maximum(&self, d: &mut Draft) -> Made<InstId> {
        let max = d.max(self.x, self.reduced)?;
        let max = self.spread(d, max)?;
        d.sub(self.x, max)
    }

    /// `value / sqrt(variance + epsilon)`
    fn scaled(
        &self,
        d: &mut Draft,
        rng: &mut Rng,
        value: InstId,
        variance: InstId,
    ) -> Made<InstId> {
        let epsilon = [1e-5, 1e-6, 1e-3][rng.below(3)];
        let shifted = d.plus(variance, epsilon)?;
        match rng.below(3) {
            0 => {
                let root = d.un(Opcode::Sqrt, shifted)?;
                let root = self.spread(d, root)?;
                d.div(value, root)
            }
            1 => {
                let shifted = self.spread(d, shifted)?;
                let inverse = d.un(Opcode::Rsqrt, shifted)?;
                d.mul(value, inverse)
            }
            _ => {
                let inverse = d.un(Opcode::Rsqrt, shifted)?;
                let inverse = self.spread(d, inverse)?;
                d.mul(value, inverse)
            }
        }
    }
}

fn norm(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let centred = a.centred(d, rng, a.x)?;
    let squares = d.mul(centred, centred)?;
    let variance = a.mean(d, rng, squares)?;
    a.scaled(d, rng, centred, variance)
}

fn one_pass_norm(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let squares = d.mul(a.x, a.x)?;
    let squares = a.mean(d, rng, squares)?;
    let mean = a.mean(d, rng, a.x)?;
    let square = d.mul(mean, mean)?;
    let variance = d.sub(squares, square)?;
    let zero = d.splat(variance, 0.0)?;
    let variance = d.bin(Opcode::Maximum, variance, zero)?;
    let mean = a.spread(d, mean)?;
    let centred = d.sub(a.x, mean)?;
    a.scaled(d, rng, centred, variance)
}

fn rms_norm(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let squares = d.mul(a.x, a.x)?;
    let mean = a.mean(d, rng, squares)?;
    a.scaled(d, rng, a.x, mean)
}

fn softmax(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let below = a.below_maximum(d)?;
    let powers = d.un(Opcode::Exp, below)?;
    let sum = a.sum(d, powers)?;
    let sum = a.spread(d, sum)?;
    d.div(powers, sum)
}

fn log_sum_exp(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let max = d.max(a.x, a.reduced)?;
    let spread = a.spread(d, max)?;
    let below = d.sub(a.x, spread)?;
    let powers = d.un(Opcode::Exp, below)?;
    let sum = a.sum(d, powers)?;
    let log = d.un(Opcode::Log, sum)?;
    d.add(log, max)
}

fn log_softmax(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let below = a.below_maximum(d)?;
    let powers = d.un(Opcode::Exp, below)?;
    let sum = a.sum(d, powers)?;
    let log = d.un(Opcode::Log, sum)?;
    let log = a.spread(d, log)?;
    d.sub(below, log)
}

fn maximum(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let opcode = if rng.chance(80) { Opcode::Maximum } else { Opcode::Minimum };
    d.reduce(opcode, a.x, a.reduced)
}

fn sum(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    a.sum(d, a.x)
}

/// Returns a sum of sums, from zeros of both signs.
fn sum_of_sums(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let zeros = [0.0, -0.0];
    let sum = d.reduce_from(zeros[rng.below(2)], Opcode::Add, a.x, a.reduced)?;
    let rank = d.dims(sum)?.len();
    let dims = i64::try_from(rng.below(rank.max(1))).unwrap_or_default();
    d.reduce_from(zeros[rng.below(2)], Opcode::Add, sum, &[dims][..rank.min(1)])
}

fn maximum_of_maxima(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let max = d.max(a.x, a.reduced)?;
    let rank = d.dims(max)?.len();
    let dims = i64::try_from(rng.below(rank.max(1))).unwrap_or_default();
    d.max(max, &[dims][..rank.min(1)])
}

/// `sum((x * p) * q)`, p constant along what is summed.
fn sum_of_scaled_products(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let scaled = a.scaled_by_input(d)?;
    let (element, dims) = (d.element(a.x)?, d.dims(a.x)?);
    let other = d.parameter("other", element, &dims)?;
    let products = if rng.chance(50) { d.mul(scaled, other)? } else { d.mul(other, scaled)? };
    a.sum(d, products)
}

/// `sqrt(mean (x * p)^2)`
fn root_of_scaled_squares(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let scaled = a.scaled_by_input(d)?;
    let squares = d.mul(scaled, scaled)?;
    let mean = a.mean(d, rng, squares)?;
    d.un(Opcode::Sqrt, mean)
}

fn distance_to_maximum(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    a.below_maximum(d)
}

/// Returns how many elements equal the maximum; 0 if rounding moved it away from all.
fn count_of_equals(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let max = d.max(a.x, a.reduced)?;
    let max = a.spread(d, max)?;
    let equals = d.equals(a.x, max)?;
    a.sum(d, equals)
}

/// One divided among the elements that equal the maximum.
fn share_of_maximum(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let count = count_of_equals(d, rng, a)?;
    let one = d.splat(count, 1.0)?;
    d.div(one, count)
}

/// Less the mean, and less the mean of that: the error of the first mean goes.
fn recentred(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let centred = a.centred(d, rng, a.x)?;
    a.centred(d, rng, centred)
}

/// `(sum d*d - (sum d)^2 / n) / n`, d what the mean leaves.
fn corrected_variance(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let centred = a.centred(d, rng, a.x)?;
    let squares = d.mul(centred, centred)?;
    let squares = a.sum(d, squares)?;
    let rest = a.sum(d, centred)?;
    let rest = d.mul(rest, rest)?;
    let terms = d.terms(a.x, a.reduced)?;
    let correction = d.times(rest, 1.0 / terms)?;
    let variance = d.sub(squares, correction)?;
    d.times(variance, 1.0 / terms)
}

/// Returns the mean, and what the mean of the rest adds to it.
fn refined_mean(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let mean = a.mean(d, rng, a.x)?;
    let spread = a.spread(d, mean)?;
    let rest = d.sub(a.x, spread)?;
    let rest = a.mean(d, rng, rest)?;
    let refined = d.add(mean, rest)?;
    let refined = a.spread(d, refined)?;
    d.sub(a.x, refined)
}

/// Returns a reciprocal root and a step of Newton's method.
fn refined_root(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let centred = a.centred(d, rng, a.x)?;
    let squares = d.mul(centred, centred)?;
    let variance = a.mean(d, rng, squares)?;
    let variance = d.plus(variance, 1e-6)?;
    let root = d.un(Opcode::Rsqrt, variance)?;
    let square = d.mul(root, root)?;
    let near_one = d.mul(square, variance)?;
    let near_half = d.times(near_one, -0.5)?;
    let step = d.plus(near_half, 1.5)?;
    let root = d.mul(root, step)?;
    let root = a.spread(d, root)?;
    d.mul(centred, root)
}

fn scaled_by_range(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let max = d.max(a.x, a.reduced)?;
    let min = d.reduce(Opcode::Minimum, a.x, a.reduced)?;
    let range = d.sub(max, min)?;
    let range = d.plus(range, 1e-3)?;
    let (min, range) = (a.spread(d, min)?, a.spread(d, range)?);
    let above = d.sub(a.x, min)?;
    d.div(above, range)
}

/// `1 / (max x - x)` where that is not zero, and 1 there.
fn small_quotient(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let below = a.below_maximum(d)?;
    let (one, zero) = (d.splat(below, 1.0)?, d.splat(below, 0.0)?);
    let is_zero = d.b.compare(Direction::Eq, below, zero)?;
    let safe = d.select(is_zero, one, below)?;
    d.div(one, safe)
}

fn weighted_mean(d: &mut Draft, _: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let weights = d.un(Opcode::Abs, a.x)?;
    let weights = d.plus(weights, 1.0)?;
    let products = d.mul(weights, a.x)?;
    let (sum, weight) = (a.sum(d, products)?, a.sum(d, weights)?);
    let mean = d.div(sum, weight)?;
    let mean = a.spread(d, mean)?;
    d.sub(a.x, mean)
}

/// `mean((x - mean x) * x)`, which is the variance.
fn variance_by_products(d: &mut Draft, rng: &mut Rng, a: &Along<'_>) -> Made<InstId> {
    let centred = a.centred(d, rng, a.x)?;
    let products = d.mul(centred, a.x)?;
    a.mean(d, rng, products)
}
