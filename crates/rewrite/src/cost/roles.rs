//! Records the properties of instructions that the search for readers needs. The search visits
//! a whole computation for every weighed rewrite, so it must not look at the instructions
//! themselves.

use tilewright_ir::{InstId, Module, Op, Opcode};

use super::CostModel;
use super::contraction::is_contraction;
use super::residency::{Facts, Residency};
use super::sweeps::same_but_ones;

/// How an instruction takes part in memory sweeps.
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
}

/// The rule for the time at which the result is ready, given the times of the operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Timing {
    /// As soon as the operands are.
    AsOperands,
    /// As soon as all rows of the operands are ready.
    WholeOperands,
    /// A reduction: the time depends on the rows that it reduces.
    Reduce,
    /// A reshape that is not inlined: rows of small operands keep their order.
    Reshape,
    /// After the sweep that reads a large operand.
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

    /// Checks whether the result takes memory; an inlined result takes memory only if it is
    /// stored.
    pub(super) fn is_made(self, is_stored: bool) -> bool {
        match self.residency {
            Residency::Inlined => is_stored,
            Residency::Alias => false,
            Residency::Stored => self.reads,
        }
    }
}

impl CostModel<'_> {
    /// Computes the role of an instruction with these facts.
    pub(super) fn role(&self, module: &Module, id: InstId, facts: &Facts) -> Role {
        let opcode = module.opcode(id);
        Role {
            residency: facts.residency,
            timing: timing(module, id, facts),
            is_large: facts.is_large,
            stores_operands: self.stores_operands(module, id, facts.residency),
            reads: !opcode.hands_on_its_operands() && opcode != Opcode::Slice,
            is_contraction: is_contraction(module, id),
        }
    }

    /// Checks whether an instruction stores its inlined operands first, to read them from
    /// memory.
    fn stores_operands(&self, module: &Module, id: InstId, residency: Residency) -> bool {
        let computes_them = module.opcode(id) == Opcode::Reduce
            || self.target.fuses_contractions && is_contraction(module, id);
        residency != Residency::Inlined && !computes_them
    }
}

fn timing(module: &Module, id: InstId, facts: &Facts) -> Timing {
    match module.op(id) {
        Op::Reduce(_) => Timing::Reduce,
        Op::GetTupleElement(_) | Op::Tuple | Op::OptimizationBarrier => Timing::AsOperands,
        _ if facts.is_inlined() || same_but_ones(module, id) => Timing::AsOperands,
        Op::Slice(_) => Timing::WholeOperands,
        Op::Reshape(_) => Timing::Reshape,
        _ if facts.residency == Residency::Alias => Timing::WholeOperands,
        _ => Timing::AfterLarge,
    }
}
