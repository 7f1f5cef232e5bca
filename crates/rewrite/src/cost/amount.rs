//! Costs: cycles, and the counts that they come from.

/// The cost of an instruction, a computation or a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The cycles, as the target's numbers give them.
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
