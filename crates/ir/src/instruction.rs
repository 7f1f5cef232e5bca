//! An instruction: op, shape, operands. Other data is in side tables.

use crate::entity::{CompId, InstId, Packed, ShapeId, UseId};
use crate::ops::{Op, Opcode};

/// An instruction. Kept small: names, metadata, sharding and other data are looked up in the
/// [`Module`](crate::Module).
#[derive(Clone, Debug)]
pub struct Instruction {
    pub(crate) op: Op,
    pub(crate) shape: ShapeId,
    /// The operand slots `first..first + count` of the module.
    pub(crate) operands: OperandRange,
    /// The computation that contains it; `None` after its removal.
    pub(crate) parent: Packed<CompId>,
    /// Its neighbours in the computation's order.
    pub(crate) previous: Packed<InstId>,
    pub(crate) next: Packed<InstId>,
    /// The list of the slots that refer to it, in order of creation.
    pub(crate) first_use: Packed<UseId>,
    pub(crate) last_use: Packed<UseId>,
    pub(crate) use_count: u32,
}

/// A run of operand slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OperandRange {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl OperandRange {
    pub(crate) fn indices(self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

impl Instruction {
    /// Returns the op with its attributes.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Returns the op without its attributes.
    pub fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    /// Returns the shape of the result, as an id of
    /// [`Module::shape_of`](crate::Module::shape_of).
    pub fn shape_id(&self) -> ShapeId {
        self.shape
    }

    /// Returns the computation that contains it; `None` after its removal.
    pub fn parent(&self) -> Option<CompId> {
        self.parent.get()
    }

    /// Returns the number of operand slots that refer to it. Being the root of a computation is
    /// not a use.
    pub fn use_count(&self) -> usize {
        self.use_count as usize
    }
}

/// An operand slot's place in the use list of the value it refers to.
#[derive(Clone, Debug)]
pub(crate) struct UseLink {
    pub(crate) user: InstId,
    pub(crate) previous: Packed<UseId>,
    pub(crate) next: Packed<UseId>,
}

/// One use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The instruction that has the operand.
    pub user: InstId,
    /// The number of the operand.
    pub operand: usize,
}
