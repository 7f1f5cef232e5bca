//! Stores the facts that the search for readers needs about each instruction, so that it need not
//! look at the instruction itself: it visits the whole computation for every rewrite that is
//! weighed.

use tilewright_ir::{ArrayShape, InstId, Module, Op, Opcode};

use super::CostModel;
use super::contraction::is_contraction;
use super::residency::{Facts, Residency};
use super::sweeps::same_but_ones;
use crate::analysis::reduce::reduced_arrays;
use crate::guards::{calls_guard, is_guard};

/// The part of an instruction in memory sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) residency: Residency,
    pub(super) timing: Timing,
    /// Whether the result is an array too large for vector memory.
    pub(super) is_large: bool,
    /// Whether inlined operands are stored first, to be read from memory.
    pub(super) stores_operands: bool,
    /// Whether it reads all of its operands if it is not inlined.
    pub(super) reads: bool,
    /// Whether it is a product of matrices or a convolution.
    pub(super) is_contraction: bool,
    /// Whether it has space in its batch: each sum of it is a kernel of its own.
    pub(super) moves_space: bool,
}

/// The time at which the result of an instruction is ready, given the time of its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Timing {
    /// As soon as the operands are ready.
    AsOperands,
    /// When all rows of the operands are ready.
    WholeOperands,
    /// A reduction: if its operand is small, when all rows of that are ready.
    Reduce,
    /// A reduction of adjacent elements that vector memory holds: it may be ready with its row.
    RowReduce,
    /// A reshape that is not inlined: if its operand is small, rows keep their order.
    Reshape,
    /// After the sweep in which a large operand is read.
    #[default]
    AfterLarge,
}

impl Role {
    pub(super) fn is_inlined(self) -> bool {
        self.residency == Residency::Inlined
    }

    pub(super) fn is_alias(self) -> bool {
        self.residency == Residency::Alias
    }

    /// Checks whether memory is taken for the result; an inlined one needs memory only if stored.
    pub(super) fn is_made(self, is_stored: bool) -> bool {
        match self.residency {
            Residency::Inlined => is_stored,
            Residency::Alias => false,
            Residency::Stored => self.reads,
        }
    }
}

impl CostModel<'_> {
    /// Returns the role of an instruction with these facts.
    pub(super) fn role(&self, module: &Module, id: InstId, facts: &Facts) -> Role {
        let opcode = module.opcode(id);
        Role {
            residency: facts.residency,
            timing: self.timing(module, id, facts),
            is_large: facts.is_large,
            stores_operands: self.stores_operands(module, id, facts.residency),
            reads: !opcode.hands_on_its_operands()
                && !is_crossing(module, id)
                && opcode != Opcode::Slice
                && !is_guard(module, id)
                && !calls_guard(module, id),
            is_contraction: is_contraction(module, id),
            moves_space: facts.moves_space,
        }
    }

    /// Checks whether an instruction has inlined operands stored first, to read them from memory.
    fn stores_operands(&self, module: &Module, id: InstId, residency: Residency) -> bool {
        let computes_them = module.opcode(id) == Opcode::Reduce
            || self.target.fuses_contractions && is_contraction(module, id);
        residency != Residency::Inlined && !computes_them
    }

    fn timing(&self, module: &Module, id: InstId, facts: &Facts) -> Timing {
        match module.op(id) {
            Op::Reduce(attrs)
                if self.target.fuses_rows && self.holds_rows(module, id, &attrs.dimensions) =>
            {
                Timing::RowReduce
            }
            Op::Reduce(_) => Timing::Reduce,
            Op::GetTupleElement(_) | Op::Tuple | Op::OptimizationBarrier => Timing::AsOperands,
            Op::CustomCall(attrs) if attrs.crossing().is_some() => Timing::AsOperands,
            _ if is_guard(module, id) || calls_guard(module, id) => Timing::WholeOperands,
            _ if same_but_ones(module, id) => Timing::AsOperands,
            // The rows of the result are others, so a kernel that goes from row to row does not
            // have them at hand.
            Op::Reshape(_) if facts.is_inlined() && facts.is_large => Timing::WholeOperands,
            Op::Broadcast(_) if !facts.is_large && repeats(module, id) => Timing::WholeOperands,
            _ if facts.is_inlined() => Timing::AsOperands,
            Op::Slice(_) => Timing::WholeOperands,
            Op::Reshape(_) => Timing::Reshape,
            _ if facts.residency == Residency::Alias => Timing::WholeOperands,
            _ => Timing::AfterLarge,
        }
    }

    /// Checks whether vector memory holds the elements that one result of a reduction is reduced
    /// from, and these are adjacent.
    fn holds_rows(&self, module: &Module, id: InstId, dims: &[i64]) -> bool {
        let holds = |array: &ArrayShape| {
            let first = array.rank().saturating_sub(dims.len());
            let is_within = |&dim: &i64| usize::try_from(dim).is_ok_and(|dim| dim >= first);
            let row = array.dims().iter().enumerate();
            let row = row.map(|(dim, &size)| if dim < first { 1 } else { size });
            let row = ArrayShape::new(array.element_type, row).into();
            array.has_default_layout()
                && dims.iter().all(is_within)
                && self.stays_on_chip(self.weigh(&row))
        };
        reduced_arrays(module, id).iter().all(|&array| module.array_shape(array).is_some_and(holds))
    }
}

fn is_crossing(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::CustomCall(attrs) if attrs.crossing().is_some())
}

/// Checks whether a broadcast repeats each of several elements.
fn repeats(module: &Module, id: InstId) -> bool {
    let elements = |id: InstId| module.array_shape(id).and_then(ArrayShape::num_elements);
    let Some(operand) = module.operands(id).first().and_then(|&operand| elements(operand)) else {
        return false;
    };
    operand > 1 && elements(id).is_some_and(|result| result > operand)
}
