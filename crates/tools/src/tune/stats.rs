//! The median of samples, and between which values it lies.

/// How often an interval of [`median_interval`] misses the median of what the samples are drawn from.
const MISSES: f64 = 0.001;
/// With fewer samples than this, no interval between samples misses it so seldom.
const FEW: usize = 11;
/// The fewest samples that an interval can be given for.
pub(super) const FEWEST: usize = 3;
/// The least factor by which the interval of few samples is wider than they are, on either side.
const MARGIN: f64 = 1.05;

/// Returns the median of samples; `None` if there are none.
pub(super) fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// Returns half of what the middle half of samples spans, as a fraction of the median; 0 for fewer than
/// two.
pub(super) fn spread(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let quarter = sorted.len() / 4;
    let ends = sorted.get(quarter).zip(sorted.get(sorted.len().saturating_sub(quarter + 1)));
    ends.zip(median(samples)).map_or(0.0, |((low, high), median)| (high - low) / (2.0 * median))
}

/// Returns between which values the median of the distribution lies that ratios were drawn from, whatever
/// this distribution is: the k-th smallest and the k-th largest ratio, for the largest k for which
/// `2 P(X < k) <= MISSES` with X binomial of `n` and 1/2. Fewer than [`FEW`] ratios say less: on either
/// side they are given what they span, and [`MARGIN`] at least. `None` for fewer than [`FEWEST`].
pub(super) fn median_interval(ratios: &[f64]) -> Option<(f64, f64)> {
    let sorted = sorted(ratios);
    if sorted.len() < FEWEST {
        return None;
    }
    if sorted.len() < FEW {
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let margin = (high / low).max(MARGIN);
        return Some((low / margin, high * margin));
    }
    let outside = misses_below(sorted.len());
    Some((*sorted.get(outside - 1)?, *sorted.get(sorted.len() - outside)?))
}

/// Returns the largest `k` from 1 on for which `2 P(X < k) <= MISSES`, with X binomial of `n` and 1/2.
fn misses_below(n: usize) -> usize {
    let mut probability = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut below, mut k) = (probability, 1);
    while k < n / 2 {
        // P(X = k) from P(X = k - 1).
        probability *= ratio(n - k + 1, k);
        below += probability;
        if 2.0 * below > MISSES {
            break;
        }
        k += 1;
    }
    k
}

#[expect(clippy::cast_precision_loss, reason = "rounds of a race are few")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::{median, median_interval, misses_below, spread};

    #[test]
    fn medians_and_spreads() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(spread(&[1.0]), 0.0);
        // Quartiles 2 and 4 about 3.
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1.0 / 3.0);
    }

    /// As the binomial distribution has it, by Python's `math.comb`.
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        let known =
            [(11, 1), (12, 1), (14, 1), (16, 2), (20, 3), (25, 5), (30, 6), (50, 14), (100, 34)];
        for (n, k) in known {
            assert_eq!(misses_below(n), k, "{n}");
        }
        let ratios: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(median_interval(&ratios), Some((3.0, 18.0)));
        assert_eq!(median_interval(&[1.05, 1.05, 1.05]), Some((1.0, 1.05 * 1.05)));
        assert_eq!(median_interval(&[2.0, 1.0, 4.0]), Some((0.25, 16.0)));
        assert_eq!(median_interval(&[1.0, 1.0]), None);
    }
}
