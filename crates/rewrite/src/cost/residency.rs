//! Finds where each value lives ([`Residency`]), and the other facts about an instruction that
//! costs need. The ledger stores these facts and updates them after edits.

use std::ops::Index;

use smallvec::SmallVec;
use tilewright_ir::{InstId, Module, Op, SecondaryMap, ShapeId};
use tilewright_target::Footprint;

use super::contraction::{copies_of_images, is_contraction, moves_space};
use super::roles::Role;
use super::{Cost, CostModel, Operand, SizedShape, changes_minor};
use crate::guards::{calls_guard, is_guard};

/// Where the result of an instruction lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residency {
    /// Nowhere: the result is computed again wherever it is used.
    Inlined,
    /// In the memory of its operand: the result is another name for the operand, with other dims.
    Alias,
    /// In memory of its own.
    #[default]
    Stored,
}

/// The facts about an instruction that costs need, found from the instruction and the facts about
/// its operands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) residency: Residency,
    /// Whether its users must split the index of each element: see [`Operand::changes_minor`].
    pub(super) changes_minor: bool,
    /// Whether the result is an array too large for vector memory.
    pub(super) is_large: bool,
    /// Whether the instruction is a contraction whose operands and result stay in vector memory,
    /// which is a kernel by itself.
    pub(super) is_small_contraction: bool,
    /// Whether the result has space in its batch: it is the result of a convolution for which the
    /// compiler [moves it there](moves_space), or is computed from such a result by inlined ops,
    /// aliases and transposes. An optimization barrier ends this form.
    pub(super) moves_space: bool,
    /// The shape for which `footprint` was computed.
    shape: Option<ShapeId>,
    /// The memory that the result occupies.
    pub(super) footprint: Footprint,
    /// The cost of the instruction, without the computations that it calls.
    pub(super) cost: Cost,
}

impl Facts {
    pub(super) fn is_inlined(&self) -> bool {
        self.residency == Residency::Inlined
    }

    /// Checks whether the users of an instruction cost the same with these facts as with `other`.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let seen = |facts: &Self| {
            let Self { residency, changes_minor, moves_space, shape, footprint, .. } = *facts;
            (residency, changes_minor, moves_space, shape, footprint)
        };
        seen(self) == seen(other)
    }
}

/// The facts about all instructions, and their roles in memory sweeps.
#[derive(Clone, Debug, Default)]
pub(super) struct AllFacts {
    facts: SecondaryMap<InstId, Facts>,
    roles: SecondaryMap<InstId, Role>,
}

impl AllFacts {
    /// Returns default facts for all instructions of a module, which are set later.
    pub(super) fn for_all(module: &Module) -> Self {
        let mut all = Self::default();
        all.facts.fill(module.instruction_bound());
        all.roles.fill(module.instruction_bound());
        all
    }

    pub(super) fn role(&self, id: InstId) -> Role {
        self.roles[id]
    }

    pub(super) fn set(&mut self, id: InstId, facts: Facts, role: Role) {
        self.facts.set(id, facts);
        self.roles.set(id, role);
    }

    /// Checks whether any user of an inlined value has it stored, to read it from memory.
    pub(super) fn is_stored(&self, module: &Module, id: InstId) -> bool {
        module.uses(id).any(|one| self.roles[one.user].stores_operands)
    }
}

impl Index<InstId> for AllFacts {
    type Output = Facts;

    fn index(&self, id: InstId) -> &Facts {
        &self.facts[id]
    }
}

impl CostModel<'_> {
    /// Computes the facts about an instruction from those about its operands.
    pub(super) fn facts(&self, module: &Module, id: InstId, known: &AllFacts) -> Facts {
        let operands: SmallVec<[Operand<'_>; 4]> = module
            .operands(id)
            .iter()
            .map(|&operand| {
                let Facts { footprint, changes_minor, .. } = known[operand];
                let value = SizedShape { shape: module.shape(operand), footprint };
                Operand { value, fused: known[operand].is_inlined(), changes_minor }
            })
            .collect();
        let shape_id = module.instruction(id).shape_id();
        let (op, shape) = (module.op(id), module.shape(id));
        let result = match known[id] {
            Facts { shape: Some(known), footprint, .. } if known == shape_id => {
                SizedShape { shape, footprint }
            }
            _ => self.with_footprint(shape),
        };
        let is_inlined = self.fuses(op, result.shape, &operands);
        let residency = if is_inlined {
            Residency::Inlined
        } else if self.is_alias(module, id) {
            Residency::Alias
        } else {
            Residency::Stored
        };
        let begins = moves_space(module, id, self.target);
        let comes_moved = module.operands(id).iter().any(|&operand| known[operand].moves_space);
        let hands_on = match op {
            Op::OptimizationBarrier => false,
            Op::Transpose(_) => true,
            _ => residency != Residency::Stored,
        };
        let source = operands.first().map(|operand| operand.value.shape);
        let is_small = |value| self.stays_on_chip(value);
        let all_small = is_small(result) && operands.iter().all(|o| is_small(o.value));
        Facts {
            residency,
            changes_minor: is_inlined && changes_minor(op, source, result.shape),
            is_large: result.shape.as_array().is_some() && !is_small(result),
            is_small_contraction: all_small && is_contraction(module, id),
            shape: Some(shape_id),
            footprint: result.footprint,
            cost: if is_guard(module, id) {
                // A guard reads no array: its first branch returns its argument.
                Cost { cycles: self.target.guard_cycles, ..Cost::default() }
            } else if calls_guard(module, id) {
                Cost::default()
            } else {
                let mut cost = self.in_module(module, op, result, &operands);
                let copies = copies_of_images(module, id, begins, comes_moved);
                if let (Some(images), true) = (operands.first(), copies > 0.0) {
                    let copy = self.instruction(&Op::Copy, images.value, &operands[..1]);
                    cost.cycles += copies * copy.cycles;
                }
                cost
            },
            moves_space: begins || comes_moved && hands_on,
        }
    }

    /// Checks whether an instruction that is not inlined moves nothing, and only gives its operand
    /// another name.
    fn is_alias(&self, module: &Module, id: InstId) -> bool {
        let &[operand] = module.operands(id) else { return false };
        match module.op(id) {
            Op::Bitcast => true,
            Op::OptimizationBarrier => module.array_shape(id).is_some(),
            Op::Reshape(_) => !self.realigns(module.shape(operand), module.shape(id)),
            _ => false,
        }
    }
}
