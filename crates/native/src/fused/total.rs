//! The totals of reductions: accumulators in `f64`, to which the results of tiles are added. Folds
//! of tiles write here.

use super::fold::MOST_ROWS;
use super::program::Reduction;
use super::real::Real;
use super::walk::Loops;
use crate::folds::{Accumulate, Max, Min};

/// The accumulators of a reduction, one for each result, in `f64`.
#[derive(Clone, Debug)]
pub(super) struct TotalAccumulators {
    reduction: Reduction,
    /// Sums, products, extrema or means.
    values: Vec<f64>,
    /// The rounding errors of sums, or the squared deviations of moments.
    others: Vec<f64>,
    /// The number of elements of each mean, for moments.
    counts: Vec<f64>,
}

impl TotalAccumulators {
    pub(super) fn new(reduction: Reduction, len: usize) -> Self {
        let mut all =
            Self { reduction, values: vec![0.0; len], others: Vec::new(), counts: Vec::new() };
        if matches!(reduction, Reduction::Sum | Reduction::Moments) {
            all.others = vec![0.0; len];
        }
        if reduction == Reduction::Moments {
            all.counts = vec![0.0; len];
        }
        all.clear();
        all
    }

    pub(super) fn clear(&mut self) {
        self.values.fill(match self.reduction {
            Reduction::Sum | Reduction::Moments => 0.0,
            Reduction::Product => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        });
        self.others.fill(0.0);
        self.counts.fill(0.0);
    }

    /// Adds one result of a tile: a value, its squared deviations, and the number of its elements.
    #[inline(always)]
    fn add(&mut self, at: usize, value: f64, other: f64, count: f64) {
        let held = self.values[at];
        self.values[at] = match self.reduction {
            Reduction::Sum => {
                let (sum, lost) = summed(held, value);
                self.others[at] += lost + other;
                sum
            }
            Reduction::Product => held * value,
            Reduction::Max => Max.merged(held, value),
            Reduction::Min => Min.merged(held, value),
            Reduction::Moments => {
                let before = self.counts[at];
                let (mean, more) = both_moments((held, before), (value, count));
                self.others[at] += other + more;
                self.counts[at] = before + count;
                mean
            }
        };
    }

    /// Adds sums to neighbouring accumulators, by a loop that the compiler vectorises.
    #[inline(always)]
    fn add_sums<R: Real>(&mut self, at: usize, parts: &[R]) {
        let values = &mut self.values[at..at + parts.len()];
        let others = &mut self.others[at..at + parts.len()];
        for ((held, other), part) in values.iter_mut().zip(others).zip(parts) {
            let (sum, lost) = summed(*held, part.to_f64());
            *held = sum;
            *other += lost;
        }
    }

    /// Adds means and squared deviations of `count` elements each to neighbouring accumulators, by
    /// a loop that the compiler vectorises.
    #[inline(always)]
    fn add_moments<R: Real>(&mut self, at: usize, means: &[R], squares: &[R], count: f64) {
        let len = means.len();
        let values = &mut self.values[at..at + len];
        let others = &mut self.others[at..at + len];
        let counts = &mut self.counts[at..at + len];
        for i in 0..len {
            let (mean, more) = both_moments((values[i], counts[i]), (means[i].to_f64(), count));
            others[i] += squares[i].to_f64() + more;
            values[i] = mean;
            counts[i] += count;
        }
    }

    /// Adds the results of a tile: see [`Total::add`].
    #[inline(always)]
    fn add_all<R: Real>(
        &mut self,
        kind: Reduction,
        (at, loops): (isize, &Loops),
        values: &[R],
        squares: Option<&[R]>,
        count: f64,
    ) {
        for (from, offset) in loops.runs() {
            let at = at.wrapping_add(offset);
            let range = from..from + loops.len;
            let (values, squares) = (&values[range.clone()], squares.map(|all| &all[range]));
            match (kind, squares) {
                (Reduction::Sum, _) if loops.stride == 1 => {
                    self.add_sums(at.cast_unsigned(), values);
                }
                (Reduction::Moments, Some(squares)) if loops.stride == 1 => {
                    self.add_moments(at.cast_unsigned(), values, squares, count);
                }
                _ => {
                    for (i, value) in values.iter().enumerate() {
                        let at = at.wrapping_add(i.cast_signed() * loops.stride);
                        let squared = squares.map_or(0.0, |all| all[i].to_f64());
                        self.add(at.cast_unsigned(), value.to_f64(), squared, count);
                    }
                }
            }
        }
    }

    /// Adds the accumulators of another task.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.reduction == Reduction::Sum {
            let (held, more) = (self.values.iter_mut(), other.values.iter());
            let (lost, more_lost) = (self.others.iter_mut(), other.others.iter());
            for ((held, more), (lost, more_lost)) in held.zip(more).zip(lost.zip(more_lost)) {
                let (sum, rest) = summed(*held, *more);
                *held = sum;
                *lost += rest + more_lost;
            }
            return;
        }
        for at in 0..self.values.len() {
            let [second, count] =
                [&other.others, &other.counts].map(|part| part.get(at).copied().unwrap_or(0.0));
            if self.reduction != Reduction::Moments || count > 0.0 {
                self.add(at, other.values[at], second, count);
            }
        }
    }

    /// Writes the results to `to`, and for moments the squared deviations to `deviations`.
    pub(super) fn finish<R: Real>(&self, to: &mut [R], deviations: &mut [R]) {
        for (at, to) in to.iter_mut().enumerate() {
            let value = self.values[at];
            // The rounding error of an infinite sum is NaN, so it is not added.
            let is_sum = self.reduction == Reduction::Sum && value.is_finite();
            *to = R::from_f64(if is_sum { value + self.others[at] } else { value });
        }
        for (to, &deviations) in deviations.iter_mut().zip(&self.others) {
            *to = R::from_f64(deviations);
        }
    }
}

/// Returns the mean of two sets, given the mean and the count of each, and what is added to their
/// squared deviations (Chan, Golub and LeVeque): `mean + d others / both` and
/// `d^2 count others / both`, where `d = other - mean` and `both = count + others`.
#[inline(always)]
fn both_moments((mean, count): (f64, f64), (other, others): (f64, f64)) -> (f64, f64) {
    let both = count + others;
    let share = if both == 0.0 { 0.0 } else { others / both };
    let apart = other - mean;
    // The mean of an empty first set is not used. An infinite mean stays: a difference from it
    // would be NaN.
    let is_first = count == 0.0;
    let more = if is_first { 0.0 } else { apart * apart * count * share };
    let moved = if mean.is_infinite() { mean + other } else { mean + apart * share };
    (if is_first { other } else { moved }, more)
}

/// Returns `a + b`, rounded, and the rounding error, after Knuth, The Art of Computer Programming,
/// 4.2.2.
#[inline(always)]
fn summed(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

trait Merged {
    fn merged(self, a: f64, b: f64) -> f64;
}

impl<F: Accumulate<f64, First = f64, Second = ()>> Merged for F {
    #[inline(always)]
    fn merged(self, mut a: f64, b: f64) -> f64 {
        self.merge(&mut a, &mut (), (b, ()));
        a
    }
}

/// Sums of a few rows that wait to be added to accumulators together.
#[derive(Debug)]
pub(super) struct Pending<R> {
    sums: Vec<R>,
    /// The index of the first accumulator.
    at: usize,
    /// The number of rows that were added up.
    rows: usize,
}

impl<R: Real> Pending<R> {
    pub(super) const fn new() -> Self {
        Self { sums: Vec::new(), at: 0, rows: 0 }
    }

    /// Adds the sums to the accumulators, and begins anew.
    #[inline(always)]
    pub(super) fn flush(&mut self, to: &mut TotalAccumulators) {
        if self.rows > 0 {
            to.add_sums(self.at, &self.sums);
            self.rows = 0;
        }
    }

    /// Has `add` add `count` rows to the sums; each row has an element for each of the `len`
    /// accumulators from index `at` on. Sums for other accumulators, or of too many rows, are first
    /// added to theirs.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        (count, len): (usize, usize),
        at: usize,
        to: &mut TotalAccumulators,
        add: impl FnOnce(&mut [R]),
    ) {
        if self.rows + count > MOST_ROWS || self.at != at || self.sums.len() != len {
            self.flush(to);
        }
        if self.rows == 0 {
            self.at = at;
            self.sums.clear();
            self.sums.resize(len, R::ZERO);
        }
        self.rows += count;
        add(&mut self.sums);
    }
}

/// Where the results of a tile go.
pub(super) enum Total<'a, R> {
    /// They are added to those of other tiles; sums may wait.
    Accumulators(&'a mut TotalAccumulators, &'a mut Pending<R>),
    /// They are the results of the slab: the values, and the squared deviations.
    Results([&'a mut [R]; 2]),
}

impl<R: Real> Total<'_, R> {
    /// Adds values, and for moments their squared deviations; each value is made of `count`
    /// elements.
    #[inline(always)]
    pub(super) fn add(
        self,
        kind: Reduction,
        (at, loops): (isize, &Loops),
        values: &[R],
        squares: Option<&[R]>,
        count: f64,
    ) {
        match self {
            Self::Accumulators(to, _) => to.add_all(kind, (at, loops), values, squares, count),
            Self::Results([first, second]) => {
                // A sum begins with 0.0, so the sum of one -0.0 is 0.0.
                let start = if kind == Reduction::Sum { R::ZERO } else { -R::ZERO };
                for (values, to) in [(Some(values), first), (squares, second)] {
                    let Some(values) = values else { continue };
                    for (from, offset) in loops.runs() {
                        let mut at = at.wrapping_add(offset);
                        for &value in &values[from..from + loops.len] {
                            to[at.cast_unsigned()] = start + value;
                            at = at.wrapping_add(loops.stride);
                        }
                    }
                }
            }
        }
    }
}
