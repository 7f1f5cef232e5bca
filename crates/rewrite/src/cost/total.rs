//! Sums costs so that adding a cost and subtracting it again restores the sum exactly, in any
//! order. The ledger keeps such a sum for each computation.

use super::Cost;

/// A sum of costs. The cycles of each cost are rounded to a multiple of 2^-20; the counts are
/// exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    cycles: i128,
    vectors: i128,
    realigned_vectors: i128,
    bytes: i128,
    padded_bytes: i128,
    flops: i128,
}

/// The number of parts into which a cycle is divided: 2^20.
const PARTS: f64 = 1_048_576.0;

/// The most cycles that one cost adds to a sum. With this bound, the costs of all instructions that
/// a module can hold do not overflow the sum.
const MOST_CYCLES: f64 = 1e24;

impl Total {
    pub(super) fn add(&mut self, cost: Cost) {
        self.add_times(cost, 1);
    }

    pub(super) fn subtract(&mut self, cost: Cost) {
        self.add_times(cost, -1);
    }

    fn add_times(&mut self, cost: Cost, times: i128) {
        let add = |sum: &mut i128, part: i128| {
            *sum = sum.saturating_add(part.saturating_mul(times));
        };
        add(&mut self.cycles, in_parts(cost.cycles));
        add(&mut self.vectors, cost.vectors.into());
        add(&mut self.realigned_vectors, cost.realigned_vectors.into());
        add(&mut self.bytes, cost.bytes.into());
        add(&mut self.padded_bytes, cost.padded_bytes.into());
        add(&mut self.flops, cost.flops.into());
    }

    /// Returns the sum.
    pub(super) fn cost(&self) -> Cost {
        let count = |sum: i128| u64::try_from(sum.max(0)).unwrap_or(u64::MAX);
        Cost {
            cycles: in_cycles(self.cycles),
            vectors: count(self.vectors),
            realigned_vectors: count(self.realigned_vectors),
            bytes: count(self.bytes),
            padded_bytes: count(self.padded_bytes),
            flops: count(self.flops),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to what the type holds")]
fn in_parts(cycles: f64) -> i128 {
    (cycles.clamp(-MOST_CYCLES, MOST_CYCLES) * PARTS).round() as i128
}

#[expect(clippy::cast_precision_loss, reason = "costs are estimates")]
fn in_cycles(parts: i128) -> f64 {
    parts as f64 / PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(cycles: f64, bytes: u64) -> Cost {
        Cost { cycles, bytes, ..Cost::default() }
    }

    #[test]
    fn what_is_taken_away_leaves_no_trace() {
        let mut total = Total::default();
        total.add(cost(0.25, 7));
        let before = total;
        for large in [1e18, 1e300, f64::INFINITY, 1.0 / 3.0] {
            total.add(cost(large, u64::MAX));
        }
        for large in [f64::INFINITY, 1.0 / 3.0, 1e18, 1e300] {
            total.subtract(cost(large, u64::MAX));
        }
        assert_eq!(total, before);
        assert_eq!(total.cost(), cost(0.25, 7));
    }

    #[test]
    fn counts_end_at_the_largest() {
        let mut total = Total::default();
        total.add(cost(1.0, u64::MAX));
        total.add(cost(2.0, 1));
        assert_eq!(total.cost(), cost(3.0, u64::MAX));
    }
}
