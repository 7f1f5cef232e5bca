//! Defines costs: cycles, and the counts that they come from.

use super::as_f64;

/// The cost of an instruction, a computation or a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cycles by the target's numbers.
    pub cycles: f64,
    /// Vectors loaded and stored.
    pub vectors: u64,
    /// Vectors taken apart and put together by reshapes and transposes.
    pub realigned_vectors: u64,
    /// Bytes loaded and stored, without padding.
    pub bytes: u64,
    /// Bytes loaded and stored, padding included.
    pub padded_bytes: u64,
    /// Arithmetic operations on elements.
    pub flops: u64,
}

impl Cost {
    /// Returns the cost of doing the same so many times.
    pub(super) fn times(self, count: u64) -> Self {
        Self {
            cycles: self.cycles * as_f64(count),
            vectors: self.vectors.saturating_mul(count),
            realigned_vectors: self.realigned_vectors.saturating_mul(count),
            bytes: self.bytes.saturating_mul(count),
            padded_bytes: self.padded_bytes.saturating_mul(count),
            flops: self.flops.saturating_mul(count),
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.cycles += other.cycles;
        self.vectors = self.vectors.saturating_add(other.vectors);
        self.realigned_vectors = self.realigned_vectors.saturating_add(other.realigned_vectors);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.padded_bytes = self.padded_bytes.saturating_add(other.padded_bytes);
        self.flops = self.flops.saturating_add(other.flops);
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |mut total, cost| {
            total += cost;
            total
        })
    }
}
