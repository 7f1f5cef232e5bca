//! Defines [`Cost`]: the modelled cycles of an instruction, a computation or a module, and the
//! counts of memory traffic and arithmetic that reports show beside the cycles.

use super::as_f64;

/// The cost of an instruction, a computation or a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The number of cycles that the model estimates.
    pub cycles: f64,
    /// The number of vectors loaded and stored.
    pub vectors: u64,
    /// The number of vectors whose elements reshapes and transposes move within vectors.
    pub realigned_vectors: u64,
    /// The number of bytes loaded and stored, without padding.
    pub bytes: u64,
    /// The number of bytes loaded and stored, padding included.
    pub padded_bytes: u64,
    /// The number of arithmetic operations on elements.
    pub flops: u64,
}

impl Cost {
    /// Returns `count` times this cost.
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
