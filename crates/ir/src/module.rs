//! A module: the owner of computations, instructions and their side tables.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::computation::Computation;
use crate::entity::{CompId, InstId, MetadataId, Packed, PrimaryMap, SecondaryMap, ShapeId};
use crate::entity::{Entity as _, UseId};
use crate::history::History;
use crate::instruction::{Instruction, Use, UseLink};
use crate::metadata::{Extras, Header, OpMetadata};
use crate::names::Names;
use crate::ops::{Op, Opcode};
use crate::trial::Trial;
use crate::types::shape::{ArrayShape, Shape};

/// An HLO module.
///
/// Read it through the methods here and the walks of [`crate::walk`]; change
/// it only through the methods of [`crate::edit`].
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The name, as in `HloModule name`.
    pub name: SmolStr,
    /// The attributes of the header.
    pub header: Header,
    pub(crate) computations: PrimaryMap<CompId, Computation>,
    /// The computations in use, callees before callers.
    pub(crate) order: Vec<CompId>,
    pub(crate) entry: Packed<CompId>,
    pub(crate) instructions: PrimaryMap<InstId, Instruction>,
    /// The operands of all instructions; `Instruction::operands` is a range.
    pub(crate) operands: PrimaryMap<UseId, InstId>,
    /// The use-list links of the operand slots, index for index.
    pub(crate) uses: PrimaryMap<UseId, UseLink>,
    pub(crate) shapes: IndexSet<Shape, FxBuildHasher>,
    pub(crate) names: Names,
    /// Empty unless the module was read from its binary form.
    pub(crate) unique_ids: SecondaryMap<InstId, Option<i64>>,
    /// Not interned: most instructions have metadata that few others have.
    pub(crate) metadata: PrimaryMap<MetadataId, OpMetadata>,
    pub(crate) metadata_of: SecondaryMap<InstId, Packed<MetadataId>>,
    /// Only looked up by id and never iterated, so the map's order is not observable.
    pub(crate) extras: FxHashMap<InstId, Box<Extras>>,
    pub(crate) history: History,
    /// The record of the trial under way, for its rollback.
    pub(crate) trial: Option<Box<Trial>>,
}

impl Module {
    /// An empty module.
    pub fn new(name: impl Into<SmolStr>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the computation where execution begins.
    pub fn entry(&self) -> Option<CompId> {
        self.entry.get()
    }

    /// Returns the computations, callees before callers.
    pub fn computations(&self) -> &[CompId] {
        &self.order
    }

    /// Returns a computation.
    pub fn computation(&self, id: CompId) -> &Computation {
        &self.computations[id]
    }

    /// Returns an instruction.
    pub fn instruction(&self, id: InstId) -> &Instruction {
        &self.instructions[id]
    }

    /// Returns an upper bound of the indices of instruction ids, removed ones included.
    pub fn instruction_bound(&self) -> usize {
        self.instructions.len()
    }

    /// Returns the number of instructions in all computations.
    pub fn instruction_count(&self) -> usize {
        self.order.iter().map(|&c| self.computations[c].len).sum()
    }

    /// Returns the instructions of a computation in order, operands before users.
    pub fn instructions(&self, computation: CompId) -> Instructions<'_> {
        let computation = &self.computations[computation];
        Instructions {
            module: self,
            front: computation.first.get(),
            back: computation.last.get(),
            remaining: computation.len,
        }
    }

    /// Returns the op of an instruction.
    pub fn op(&self, id: InstId) -> &Op {
        &self.instructions[id].op
    }

    /// Returns the opcode of an instruction.
    pub fn opcode(&self, id: InstId) -> Opcode {
        self.instructions[id].op.opcode()
    }

    /// Returns the result shape of an instruction.
    pub fn shape(&self, id: InstId) -> &Shape {
        self.shape_of(self.instructions[id].shape)
    }

    /// Returns an interned shape.
    pub fn shape_of(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.index()]
    }

    /// Returns the result shape of an instruction, if it is an array.
    pub fn array_shape(&self, id: InstId) -> Option<&ArrayShape> {
        self.shape(id).as_array()
    }

    /// Returns the operands of an instruction.
    pub fn operands(&self, id: InstId) -> &[InstId] {
        self.operands.range(self.instructions[id].operands.indices())
    }

    /// Returns the uses of an instruction's value by operand slots, in order of creation; a
    /// user with the value in two slots appears twice.
    pub fn uses(&self, id: InstId) -> impl Iterator<Item = Use> + '_ {
        let mut next = self.instructions[id].first_use.get();
        std::iter::from_fn(move || {
            let use_id = next?;
            let link = &self.uses[use_id];
            next = link.next.get();
            let first = self.instructions[link.user].operands.first as usize;
            Some(Use { user: link.user, operand: use_id.index() - first })
        })
    }

    /// Returns the instructions that use a value, each once, in order of first use.
    pub fn users(&self, id: InstId) -> SmallVec<[InstId; 4]> {
        let mut users = SmallVec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for Use { user, .. } in self.uses(id) {
            if seen.insert(user) {
                users.push(user);
            }
        }
        users
    }

    /// Checks whether an instruction is the root of its computation.
    pub fn is_root(&self, id: InstId) -> bool {
        self.instructions[id]
            .parent
            .get()
            .is_some_and(|parent| self.computations[parent].root() == Some(id))
    }

    /// Checks whether a value is used or is the root of its computation. Dead code elimination
    /// may remove other instructions if [`Module::is_removable`] holds.
    pub fn is_live(&self, id: InstId) -> bool {
        self.instructions[id].use_count() > 0 || self.is_root(id)
    }

    /// Returns the instruction after this one in its computation.
    pub fn next_instruction(&self, id: InstId) -> Option<InstId> {
        self.instructions[id].next.get()
    }

    /// Returns the name of an instruction, without `%`.
    pub fn name_of(&self, id: InstId) -> &str {
        self.names.get(id)
    }

    /// Returns the id of an instruction in the binary form; `None` for instructions created
    /// after reading.
    pub fn unique_id(&self, id: InstId) -> Option<i64> {
        self.unique_ids[id]
    }

    /// Returns the metadata of an instruction, if it has any.
    pub fn metadata(&self, id: InstId) -> Option<&OpMetadata> {
        let metadata = self.metadata_of[id].get()?;
        self.metadata.get(metadata)
    }

    /// Returns the extras of an instruction, if it has any.
    pub fn extras(&self, id: InstId) -> Option<&Extras> {
        self.extras.get(&id).map(Box::as_ref)
    }

    /// Returns the value of a constant instruction.
    pub fn constant(&self, id: InstId) -> Option<&crate::types::literal::Literal> {
        match self.op(id) {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the number of a parameter; -1 for any other instruction.
    pub(crate) fn parameter_number(&self, id: InstId) -> i64 {
        match self.op(id) {
            Op::Parameter(parameter) => parameter.number,
            _ => -1,
        }
    }

    /// Returns the computations that an instruction calls, in order.
    pub fn called(&self, id: InstId) -> SmallVec<[CompId; 2]> {
        let mut called = SmallVec::new();
        self.op(id).for_each_computation(&mut |c| called.push(c));
        called
    }
}

/// The instructions of a computation; see [`Module::instructions`].
#[derive(Clone)]
pub struct Instructions<'a> {
    module: &'a Module,
    front: Option<InstId>,
    back: Option<InstId>,
    remaining: usize,
}

impl Iterator for Instructions<'_> {
    type Item = InstId;

    fn next(&mut self) -> Option<InstId> {
        self.remaining = self.remaining.checked_sub(1)?;
        let id = self.front?;
        self.front = self.module.instructions[id].next.get();
        Some(id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl DoubleEndedIterator for Instructions<'_> {
    fn next_back(&mut self) -> Option<InstId> {
        self.remaining = self.remaining.checked_sub(1)?;
        let id = self.back?;
        self.back = self.module.instructions[id].previous.get();
        Some(id)
    }
}

impl ExactSizeIterator for Instructions<'_> {}
