//! Values of HLO as values of StableHLO.

use crate::mlir::Value;

/// The result of an instruction: a value, or the parts of a tuple.
#[derive(Clone, Debug)]
pub(super) enum Yield {
    /// One value.
    One(Value),
    /// The elements of a tuple.
    Tuple(Vec<Yield>),
}

impl Yield {
    /// Returns the values in order.
    pub(super) fn leaves(&self) -> Vec<Value> {
        let mut leaves = Vec::new();
        let mut rest = vec![self];
        while let Some(part) = rest.pop() {
            match part {
                Self::One(value) => leaves.push(*value),
                Self::Tuple(parts) => rest.extend(parts.iter().rev()),
            }
        }
        leaves
    }
}
