//! The role of each instruction in memory sweeps: the facts that the searches for readers
//! (`sweeps.rs`, `unshared_readers.rs`) need about it. The ledger stores the roles, so that these
//! searches, which run for every rewrite that is weighed, need not look at the instructions
//! themselves.

use tilewright_ir::{ArrayShape, InstId, Module, Op, Opcode};

use super::CostModel;
use super::calls::calls_whole;
use super::contraction::is_contraction;
use super::parts::takes_parts;
use super::residency::{Facts, Residency};
use super::sweeps::same_but_ones;
use crate::analysis::reduce::reduced_arrays;
use crate::guards::{calls_guard, is_guard};

/// The role of an instruction in memory sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) residency: Residency,
    pub(super) ready_rule: ReadyRule,
    /// Whether the result is an array too large for vector memory.
    pub(super) is_large: bool,
    /// Whether the instruction has its inlined operands stored first, to read them from memory.
    pub(super) stores_operands: bool,
    /// Whether the instruction makes a value, if it is not inlined. Tuples, slices, guards and other ops that only hand
    /// values on do not.
    pub(super) makes_value: bool,
    /// Whether the instruction makes a value from whole operands.
    pub(super) reads_operands: bool,
    /// Whether the instruction is a matrix product or a convolution.
    pub(super) is_contraction: bool,
    /// Whether the result has space in its batch: see [`Facts::moves_space`]. Each sum of such a
    /// result is a kernel of its own.
    pub(super) moves_space: bool,
}

/// When the result of an instruction is ready, given when its operands are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReadyRule {
    /// The result is ready at the same time as the operands.
    AsOperands,
    /// The result is ready when all rows of the operands are ready.
    WholeOperands,
    /// The result of a reduction is ready in the sweep after the one that reads its large operand.
    /// If the operand is small, the result is ready when all rows of the operand are ready.
    Reduce,
    /// The result of a reduction of adjacent elements that fit in vector memory is ready for its
    /// own row in the same sweep, if a kernel that goes from row to row needs it. Otherwise it is
    /// ready when it would be for [`Self::Reduce`].
    RowReduce,
    /// The result of a reshape that is not inlined is ready with a small operand, since rows keep
    /// their order. If the operand is large, an alias is ready when all rows of the operand are
    /// ready, and any other result in the next sweep.
    Reshape,
    /// The result is ready in the sweep after the one that reads a large operand. If all operands
    /// are small, it is ready when all of their rows are ready.
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

    /// Checks whether the result takes memory of its own; an inlined one does only if it is stored
    /// for a user or the caller (`is_stored`).
    pub(super) fn takes_memory(self, is_stored: bool) -> bool {
        match self.residency {
            Residency::Inlined => is_stored,
            Residency::Alias => false,
            Residency::Stored => self.makes_value,
        }
    }
}

impl CostModel<'_> {
    /// Returns the role of an instruction with these facts.
    pub(super) fn role(&self, module: &Module, id: InstId, facts: &Facts) -> Role {
        let opcode = module.opcode(id);
        let makes_value = !opcode.hands_on_its_operands()
            && !is_crossing(module, id)
            && opcode != Opcode::Slice
            && !is_guard(module, id)
            && !calls_guard(module, id);
        Role {
            residency: facts.residency,
            ready_rule: self.ready_rule(module, id, facts),
            is_large: facts.is_large,
            stores_operands: self.stores_operands(module, id, facts.residency),
            makes_value,
            reads_operands: makes_value && !takes_parts(opcode) && !calls_whole(opcode),
            is_contraction: is_contraction(module, id),
            moves_space: facts.moves_space,
        }
    }

    /// Checks whether an instruction has its inlined operands stored first. A reduction computes
    /// them itself, and so does a contraction on a target with `fuses_contractions`.
    fn stores_operands(&self, module: &Module, id: InstId, residency: Residency) -> bool {
        let computes_them = module.opcode(id) == Opcode::Reduce
            || self.target.fuses_contractions && is_contraction(module, id);
        residency != Residency::Inlined && !computes_them
    }

    fn ready_rule(&self, module: &Module, id: InstId, facts: &Facts) -> ReadyRule {
        match module.op(id) {
            Op::Reduce(attrs)
                if self.target.fuses_rows && self.holds_rows(module, id, &attrs.dimensions) =>
            {
                ReadyRule::RowReduce
            }
            Op::Reduce(_) => ReadyRule::Reduce,
            Op::GetTupleElement(_) | Op::Tuple | Op::OptimizationBarrier => ReadyRule::AsOperands,
            Op::CustomCall(attrs) if attrs.crossing().is_some() => ReadyRule::AsOperands,
            _ if is_guard(module, id) || calls_guard(module, id) => ReadyRule::WholeOperands,
            _ if same_but_ones(module, id) => ReadyRule::AsOperands,
            // The result has other rows than its operand, so a kernel that goes from row to row
            // must wait for all rows of the operand.
            Op::Reshape(_) if facts.is_inlined() && facts.is_large => ReadyRule::WholeOperands,
            Op::Broadcast(_) if !facts.is_large && repeats(module, id) => ReadyRule::WholeOperands,
            _ if facts.is_inlined() => ReadyRule::AsOperands,
            Op::Slice(_) => ReadyRule::WholeOperands,
            Op::Reshape(_) => ReadyRule::Reshape,
            _ if facts.residency == Residency::Alias => ReadyRule::WholeOperands,
            _ => ReadyRule::AfterLarge,
        }
    }

    /// Checks whether the elements that one result of a reduction is reduced from are adjacent and
    /// fit in vector memory.
    fn holds_rows(&self, module: &Module, id: InstId, dims: &[i64]) -> bool {
        let holds = |array: &ArrayShape| {
            let first = array.rank().saturating_sub(dims.len());
            let is_within = |&dim: &i64| usize::try_from(dim).is_ok_and(|dim| dim >= first);
            let row = array.dims().iter().enumerate();
            let row = row.map(|(dim, &size)| if dim < first { 1 } else { size });
            let row = ArrayShape::new(array.element_type, row).into();
            array.has_default_layout()
                && dims.iter().all(is_within)
                && self.stays_on_chip(self.with_footprint(&row))
        };
        reduced_arrays(module, id).iter().all(|&array| module.array_shape(array).is_some_and(holds))
    }
}

fn is_crossing(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::CustomCall(attrs) if attrs.crossing().is_some())
}

/// Checks whether a broadcast repeats the elements of an operand that has several.
fn repeats(module: &Module, id: InstId) -> bool {
    let elements = |id: InstId| module.array_shape(id).and_then(ArrayShape::num_elements);
    let Some(operand) = module.operands(id).first().and_then(|&operand| elements(operand)) else {
        return false;
    };
    operand > 1 && elements(id).is_some_and(|result| result > operand)
}
