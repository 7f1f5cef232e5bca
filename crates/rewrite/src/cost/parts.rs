//! The cost of ops that read or write a part of an array. XLA leaves the rest of the array alone: it updates an array
//! in place where nothing else reads it, as in loops.

use tilewright_ir::{Op, Opcode};

use super::{Cost, CostModel, Operand, SizedShape};

/// Checks whether an op reads or writes a part of its large operands.
pub(super) fn takes_parts(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Slice | Opcode::DynamicSlice | Opcode::Gather) || writes_part(opcode)
}

/// Checks whether an op writes a part of an array in place.
pub(super) fn writes_part(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::DynamicUpdateSlice | Opcode::Scatter)
}

impl CostModel<'_> {
    /// Computes the cost of an op that [takes parts](takes_parts).
    pub(super) fn parts(&self, op: &Op, result: SizedShape<'_>, operands: &[Operand<'_>]) -> Cost {
        if let Op::Slice(_) = op
            && self.fuses(op, result.shape, operands)
        {
            let is_stored = operands.iter().any(|operand| !operand.fused);
            return if is_stored { self.load(result) } else { Cost::default() };
        }
        let mut cost = self.store_fused_cost(operands);
        let Some((array, rest)) = operands.split_first() else { return cost };
        // The parts of an array in main memory cross from there, and back if they are written.
        let crosses = |cost: &mut Cost, part: SizedShape<'_>| {
            if !self.stays_on_chip(array.value) {
                *cost += self.main_memory_read(part);
            }
        };
        match op {
            Op::DynamicUpdateSlice => {
                if let Some(update) = rest.first() {
                    cost += self.load(update.value);
                    cost += self.store_vectors(update.value);
                    crosses(&mut cost, update.value);
                }
            }
            Op::Scatter(_) => {
                let arrays = operands.len().saturating_sub(1) / 2;
                operands.get(arrays).into_iter().for_each(|o| cost += self.load(o.value));
                for update in operands.iter().skip(arrays + 1) {
                    for _ in 0..2 {
                        cost += self.load(update.value);
                        crosses(&mut cost, update.value);
                    }
                    cost += self.store_vectors(update.value);
                }
            }
            _ => {
                if let Op::Gather(_) = op {
                    rest.iter().for_each(|indices| cost += self.load(indices.value));
                }
                cost += self.load(result);
                // The ledger charges the parts that slices read.
                if !matches!(op, Op::Slice(_)) {
                    crosses(&mut cost, result);
                }
                cost += self.store_cost(result);
            }
        }
        cost
    }
}
