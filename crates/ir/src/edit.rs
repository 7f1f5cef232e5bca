//! The only way to change a module.
//!
//! Use lists, instruction order, parameters and names stay exact through every
//! edit. A rewrite inserts the new form of a subtree before the old one,
//! re-points the users ([`Module::replace_uses`]) and leaves the old to dead
//! code elimination.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use smol_str::SmolStr;

use crate::computation::Computation;
use crate::entity::{CompId, Entity as _, InstId, Packed, ShapeId, UseId};
use crate::instruction::{Instruction, OperandRange, UseLink};
use crate::metadata::{Extras, OpMetadata, Residue};
use crate::module::Module;
use crate::ops::{Op, Opcode};
use crate::types::shape::Shape;

/// The position of a new instruction in its computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// After all others of this computation.
    End(CompId),
    /// Directly before this instruction.
    Before(InstId),
}

/// Why an edit was refused. The module is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The instruction was removed before.
    #[error("instruction {0:?} was removed")]
    Removed(InstId),
    /// An operand belongs to another computation than its user.
    #[error("operand `{0}` lies in another computation")]
    ForeignOperand(SmolStr),
    /// The instruction has fewer operands.
    #[error("`{0}` has no operand {1}")]
    NoOperand(SmolStr, usize),
    /// The instruction still has users, is the root, or has control successors.
    #[error("`{0}` is still used")]
    InUse(SmolStr),
    /// Old and new value differ in type or dims.
    #[error("`{old}` is {old_shape}, but its replacement is {new_shape}")]
    ShapeChange {
        /// The instruction to replace.
        old: SmolStr,
        /// Its shape.
        old_shape: Box<Shape>,
        /// The shape of the replacement.
        new_shape: Box<Shape>,
    },
    /// An order does not list every instruction of the computation exactly once.
    #[error("`{0}` must be in the order of its computation once, and in no other")]
    Order(SmolStr),
    /// The new attributes belong to another op.
    #[error("`{name}` is `{old}` and cannot become `{new}`; insert that and replace its uses")]
    OpcodeChange {
        /// The instruction.
        name: SmolStr,
        /// Its op.
        old: Opcode,
        /// The op of the attributes.
        new: Opcode,
    },
    /// Only a parameter's shape can be changed.
    #[error("`{0}` is no parameter; insert an instruction of the new shape and replace its uses")]
    NoParameter(SmolStr),
    /// Parameter numbers are not consecutive from 0.
    #[error("parameter {number} of `{computation}` is defined twice or leaves a gap")]
    ParameterNumber {
        /// The computation.
        computation: SmolStr,
        /// The number.
        number: i64,
    },
    /// A patch refers to an instruction that it has not planned yet.
    #[error("the patch has planned no instruction {0} yet")]
    Unplanned(usize),
    /// The module has no ids left for instructions or operands.
    #[error("the module is too large: at most 2^32 - 2 instructions and operands")]
    TooLarge,
}

impl Module {
    /// Adds an empty computation at the end of the order.
    pub fn add_computation(&mut self, name: impl Into<SmolStr>) -> CompId {
        let id = self.computations.push(Computation::new(name.into()));
        self.order.push(id);
        id
    }

    /// Adds an empty computation just before one that will call it.
    pub fn add_computation_before(&mut self, name: impl Into<SmolStr>, caller: CompId) -> CompId {
        let id = self.computations.push(Computation::new(name.into()));
        let at = self.order.iter().rposition(|&c| c == caller).unwrap_or(self.order.len());
        self.order.insert(at, id);
        id
    }

    /// Renames a computation.
    pub fn set_computation_name(&mut self, id: CompId, name: impl Into<SmolStr>) {
        self.computations[id].name = name.into();
    }

    /// Makes a computation the entry.
    pub fn set_entry(&mut self, computation: CompId) {
        self.entry = computation.into();
    }

    /// Sets the thread that executes a computation.
    pub fn set_execution_thread(&mut self, computation: CompId, thread: Option<SmolStr>) {
        self.computations[computation].execution_thread = thread;
    }

    /// Removes computations, with their instructions, from the order. The caller must ensure
    /// that no instruction calls them.
    pub fn retain_computations(&mut self, mut keep: impl FnMut(CompId) -> bool) {
        self.order.retain(|&id| keep(id));
    }

    /// Sorts the parameters of a computation by number. Required after parameters were inserted
    /// in another order.
    ///
    /// # Errors
    /// Returns an error if the numbers are not 0, 1, 2 ... without gap or repetition.
    pub fn order_parameters(&mut self, computation: CompId) -> Result<(), EditError> {
        let mut parameters = self.computations[computation].parameters.clone();
        parameters.sort_by_key(|&id| self.parameter_number(id));
        let wrong = parameters
            .iter()
            .enumerate()
            .map(|(i, &id)| (i, self.parameter_number(id)))
            .find(|&(i, number)| usize::try_from(number) != Ok(i));
        let computation = &mut self.computations[computation];
        if let Some((_, number)) = wrong {
            let computation = computation.name.clone();
            return Err(EditError::ParameterNumber { computation, number });
        }
        computation.parameters = parameters;
        Ok(())
    }

    /// Changes the order of a computation's instructions. The verifier checks that operands
    /// precede their users.
    ///
    /// # Errors
    /// Returns an error if `order` does not list all of its instructions, each once.
    pub fn order_instructions(
        &mut self,
        computation: CompId,
        order: &[InstId],
    ) -> Result<(), EditError> {
        let mut left: FxHashSet<InstId> = self.instructions(computation).collect();
        if let Some(&other) = order.iter().find(|id| !left.remove(id)) {
            return Err(EditError::Order(self.name_of(other).into()));
        }
        if let Some(&other) = left.iter().min() {
            return Err(EditError::Order(self.name_of(other).into()));
        }
        // Without an explicit root, the root is the last instruction.
        let root = self.computations[computation].root();
        for &id in order {
            self.unlink(id, computation);
            self.edited(id).parent = computation.into();
            self.link(id, computation, Position::End(computation));
        }
        self.computations[computation].root = root.map_or(Packed::NONE, Packed::from);
        Ok(())
    }

    /// Reserves memory for about this many more instructions, to avoid reallocation.
    pub fn reserve(&mut self, instructions: usize) {
        // Most instructions have one or two operands.
        let operands = instructions.saturating_add(instructions / 2);
        self.instructions.reserve(instructions);
        self.names.reserve(instructions);
        self.metadata_of.reserve(instructions);
        self.operands.reserve(operands);
        self.uses.reserve(operands);
    }

    /// Interns a shape.
    pub fn intern_shape(&mut self, shape: Shape) -> ShapeId {
        ShapeId::from_index(self.shapes.insert_full(shape).0)
    }

    /// Inserts an instruction.
    ///
    /// `name` is used as given; [`Module::fresh_name`] returns a unique one.
    ///
    /// # Errors
    /// Returns an error if an operand or the position belongs to another computation or was
    /// removed, or there are no ids left. The verifier checks shapes.
    pub fn insert(
        &mut self,
        position: Position,
        op: Op,
        shape: Shape,
        operands: &[InstId],
        name: impl Into<SmolStr>,
    ) -> Result<InstId, EditError> {
        let shape = self.intern_shape(shape);
        self.insert_interned(position, op, shape, operands, name)
    }

    /// As [`Module::insert`], with an interned shape.
    ///
    /// # Errors
    /// As [`Module::insert`].
    pub fn insert_interned(
        &mut self,
        position: Position,
        op: Op,
        shape: ShapeId,
        operands: &[InstId],
        name: impl Into<SmolStr>,
    ) -> Result<InstId, EditError> {
        let parent = match position {
            Position::End(parent) => parent,
            Position::Before(next) => self.parent_of(next)?,
        };
        self.check_operands(parent, operands)?;
        let is_parameter = matches!(op, Op::Parameter(_));
        let id = self.instructions.push(Instruction {
            op,
            shape,
            operands: OperandRange::default(),
            parent: parent.into(),
            previous: Packed::NONE,
            next: Packed::NONE,
            first_use: Packed::NONE,
            last_use: Packed::NONE,
            use_count: 0,
        });
        self.history.note(id);
        self.names.set(id, name.into());
        self.append_operands(id, operands);
        self.link(id, parent, position);
        if is_parameter {
            self.computations[parent].parameters.push(id);
        }
        Ok(id)
    }

    /// Copies an instruction with its metadata and extras to another position. `map` maps
    /// operands and control predecessors; those that it does not map stay the same.
    ///
    /// # Errors
    /// As [`Module::insert`].
    pub fn copy_instruction(
        &mut self,
        id: InstId,
        position: Position,
        map: impl Fn(InstId) -> Option<InstId>,
    ) -> Result<InstId, EditError> {
        let to = |old: &InstId| map(*old).unwrap_or(*old);
        let operands: SmallVec<[InstId; 4]> = self.operands(id).iter().map(to).collect();
        let name = self.name_of(id).to_owned();
        let name = self.fresh_name(&name);
        let Instruction { op, shape, .. } = &self.instructions[id];
        let copy = self.insert_interned(position, op.clone(), *shape, &operands, name)?;
        self.copy_metadata(id, copy);
        if let Some(extras) = self.extras(id) {
            let mut extras = extras.clone();
            extras.control_predecessors = extras.control_predecessors.iter().map(to).collect();
            self.set_extras(copy, extras);
        }
        Ok(copy)
    }

    /// Sets the id of an instruction in the binary form.
    pub fn set_unique_id(&mut self, id: InstId, unique_id: i64) {
        self.record_unique_id(id);
        self.unique_ids.set(id, Some(unique_id));
    }

    /// Sets the id of a computation in the binary form, and its residue.
    pub fn set_binary_form(&mut self, id: CompId, unique_id: i64, residue: Residue) {
        self.computations[id].unique_id = Some(unique_id);
        self.computations[id].residue = residue;
    }

    /// Makes an instruction the root of its computation.
    ///
    /// # Errors
    /// Returns an error if the instruction was removed.
    pub fn set_root(&mut self, id: InstId) -> Result<(), EditError> {
        let parent = self.parent_of(id)?;
        self.record_root(parent, id);
        self.computations[parent].root = id.into();
        Ok(())
    }

    /// Sets an operand to another value.
    ///
    /// # Errors
    /// Returns an error if the value belongs to another computation or the operand is missing.
    pub fn set_operand(
        &mut self,
        user: InstId,
        operand: usize,
        value: InstId,
    ) -> Result<(), EditError> {
        let parent = self.parent_of(user)?;
        self.check_operands(parent, &[value])?;
        let slot = (self.instructions[user].operands.indices().nth(operand))
            .ok_or_else(|| EditError::NoOperand(self.name_of(user).into(), operand))?;
        let use_id = UseId::from_index(slot);
        self.unlink_use(use_id, self.operands[use_id]);
        self.operands[use_id] = value;
        self.link_use(use_id, value);
        self.edited(user);
        Ok(())
    }

    /// Makes every user of `old` use `new`, and `new` the root if `old` is the root. `old`
    /// remains, without users. Layouts may differ.
    ///
    /// # Errors
    /// Returns an error if the two differ in type, dims or computation.
    pub fn replace_uses(&mut self, old: InstId, new: InstId) -> Result<(), EditError> {
        if old == new {
            return Ok(());
        }
        let parent = self.check_replacement(old, new)?;
        while let Some(use_id) = self.instructions[old].first_use.get() {
            self.unlink_use(use_id, old);
            self.operands[use_id] = new;
            self.link_use(use_id, new);
            self.edited(self.uses[use_id].user);
        }
        if self.computations[parent].root() == Some(old) {
            self.record_root(parent, new);
            self.computations[parent].root = new.into();
        }
        Ok(())
    }

    /// Removes an instruction without users.
    ///
    /// # Errors
    /// Returns an error if it has users, is the root or a parameter, or has control successors.
    pub fn remove(&mut self, id: InstId) -> Result<(), EditError> {
        let parent = self.parent_of(id)?;
        if !self.is_removable(id) {
            return Err(EditError::InUse(self.name_of(id).into()));
        }
        self.set_control_predecessors(id, Vec::new());
        self.extras.remove(&id);
        for slot in self.instructions[id].operands.indices() {
            let use_id = UseId::from_index(slot);
            self.unlink_use(use_id, self.operands[use_id]);
        }
        self.edited(id).operands = OperandRange::default();
        self.unlink(id, parent);
        Ok(())
    }

    /// Checks whether [`Module::remove`] would accept the instruction. The caller must check
    /// for side effects of the instruction itself.
    pub fn is_removable(&self, id: InstId) -> bool {
        let instruction = &self.instructions[id];
        instruction.use_count == 0
            && !instruction.parent.is_none()
            && !self.is_root(id)
            && !matches!(instruction.op, Op::Parameter(_))
            && self.extras(id).is_none_or(|extras| extras.control_successors.is_empty())
    }

    /// Replaces the attributes of an instruction by those of `op`, which has the same opcode.
    /// The verifier checks that operands and shape agree with them.
    ///
    /// # Errors
    /// Returns an error if `op` has another opcode.
    pub fn set_attributes(&mut self, id: InstId, op: Op) -> Result<(), EditError> {
        let (old, new) = (self.opcode(id), op.opcode());
        if old != new {
            return Err(EditError::OpcodeChange { name: self.name_of(id).into(), old, new });
        }
        self.edited(id).op = op;
        Ok(())
    }

    /// Replaces the shape of a parameter. The caller must then update its users and the callers
    /// of its computation; the verifier checks that they agree.
    ///
    /// # Errors
    /// Returns an error if the instruction is not a parameter.
    pub fn set_parameter_shape(&mut self, id: InstId, shape: Shape) -> Result<(), EditError> {
        if !matches!(self.op(id), Op::Parameter(_)) {
            return Err(EditError::NoParameter(self.name_of(id).into()));
        }
        let shape = self.intern_shape(shape);
        self.edited(id).shape = shape;
        // The rules of their ops have another operand now.
        for user in self.users(id) {
            self.edited(user);
        }
        Ok(())
    }

    /// Sets the metadata of an instruction. It is stored once if it equals the metadata set
    /// before; [`Module::copy_metadata`] shares it with any other instruction.
    pub fn set_metadata(&mut self, id: InstId, metadata: OpMetadata) {
        let last = self.metadata.iter().next_back().filter(|(_, last)| **last == metadata);
        let metadata = match last {
            Some((same, _)) => same,
            None => self.metadata.push(metadata),
        };
        self.record_metadata(id);
        self.metadata_of.set(id, metadata.into());
    }

    /// Copies the metadata of an instruction to another.
    pub fn copy_metadata(&mut self, from: InstId, to: InstId) {
        let metadata = self.metadata_of[from];
        if !metadata.is_none() {
            self.record_metadata(to);
            self.metadata_of.set(to, metadata);
        }
    }

    /// Sets the extras of an instruction, control predecessors included.
    pub fn set_extras(&mut self, id: InstId, mut extras: Extras) {
        self.record_extras(id);
        let predecessors = std::mem::take(&mut extras.control_predecessors);
        extras.control_successors = self
            .extras
            .get_mut(&id)
            .map(|old| std::mem::take(&mut old.control_successors))
            .unwrap_or_default();
        let unchanged =
            self.extras.get_mut(&id).map(|old| std::mem::take(&mut old.control_predecessors));
        extras.control_predecessors = unchanged.unwrap_or_default();
        self.extras.insert(id, Box::new(extras));
        self.set_control_predecessors(id, predecessors);
    }

    /// Sets the instructions that must run before `id`.
    pub fn set_control_predecessors(&mut self, id: InstId, predecessors: Vec<InstId>) {
        self.record_extras(id);
        let old = match self.extras.get_mut(&id) {
            Some(extras) => std::mem::take(&mut extras.control_predecessors),
            None if predecessors.is_empty() => return,
            None => Vec::new(),
        };
        for predecessor in old {
            self.record_extras(predecessor);
            if let Some(extras) = self.extras.get_mut(&predecessor) {
                extras.control_successors.retain(|&successor| successor != id);
            }
            self.drop_empty_extras(predecessor);
        }
        for &predecessor in &predecessors {
            self.record_extras(predecessor);
            self.extras.entry(predecessor).or_default().control_successors.push(id);
        }
        if !predecessors.is_empty() {
            self.extras.entry(id).or_default().control_predecessors = predecessors;
        }
        self.drop_empty_extras(id);
    }

    /// Removes empty extras, because passes treat an instruction without extras as a plain one.
    fn drop_empty_extras(&mut self, id: InstId) {
        if self.extras.get(&id).is_some_and(|extras| extras.is_empty()) {
            self.extras.remove(&id);
        }
    }

    /// Checks that `new` may replace `old`, and returns their computation.
    pub(crate) fn check_replacement(&self, old: InstId, new: InstId) -> Result<CompId, EditError> {
        let parent = self.parent_of(old)?;
        self.check_operands(parent, &[new])?;
        self.check_same_shape(old, self.shape(new))?;
        Ok(parent)
    }

    /// Checks that a value of this shape may replace `old`.
    pub(crate) fn check_same_shape(&self, old: InstId, new: &Shape) -> Result<(), EditError> {
        if self.shape(old).compatible(new) {
            return Ok(());
        }
        Err(EditError::ShapeChange {
            old: self.name_of(old).into(),
            old_shape: Box::new(self.shape(old).clone()),
            new_shape: Box::new(new.clone()),
        })
    }

    /// Returns an instruction that is about to change.
    pub(crate) fn edited(&mut self, id: InstId) -> &mut Instruction {
        self.history.note(id);
        &mut self.instructions[id]
    }

    pub(crate) fn parent_of(&self, id: InstId) -> Result<CompId, EditError> {
        self.instructions[id].parent.get().ok_or(EditError::Removed(id))
    }

    /// Checks that enough ids are left for this many more instructions and operands.
    pub(crate) fn check_room(&self, instructions: usize, operands: usize) -> Result<(), EditError> {
        let room = u32::MAX as usize - 1;
        let fits = self.instructions.len() + instructions <= room
            && self.operands.len() + operands <= room;
        if fits { Ok(()) } else { Err(EditError::TooLarge) }
    }

    pub(crate) fn check_operands(
        &self,
        parent: CompId,
        operands: &[InstId],
    ) -> Result<(), EditError> {
        for &operand in operands {
            match self.instructions[operand].parent.get() {
                Some(other) if other == parent => {}
                Some(_) => return Err(EditError::ForeignOperand(self.name_of(operand).into())),
                None => return Err(EditError::Removed(operand)),
            }
        }
        self.check_room(1, operands.len())
    }

    fn append_operands(&mut self, id: InstId, operands: &[InstId]) {
        let first = self.operands.len();
        for &value in operands {
            self.operands.push(value);
            let use_id =
                self.uses.push(UseLink { user: id, previous: Packed::NONE, next: Packed::NONE });
            self.link_use(use_id, value);
        }
        // The conversion cannot fail: `check_operands` leaves room for all operands.
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        let count = u32::try_from(operands.len()).unwrap_or(u32::MAX);
        self.edited(id).operands = OperandRange { first, count };
    }

    fn link(&mut self, id: InstId, parent: CompId, position: Position) {
        let (previous, next) = match position {
            Position::End(_) => (self.computations[parent].last, Packed::NONE),
            Position::Before(next) => (self.instructions[next].previous, next.into()),
        };
        self.edited(id).previous = previous;
        self.edited(id).next = next;
        match previous.get() {
            Some(previous) => self.edited(previous).next = id.into(),
            None => self.computations[parent].first = id.into(),
        }
        match next.get() {
            Some(next) => self.edited(next).previous = id.into(),
            None => self.computations[parent].last = id.into(),
        }
        self.computations[parent].len += 1;
    }

    fn unlink(&mut self, id: InstId, parent: CompId) {
        let Instruction { previous, next, .. } = self.instructions[id];
        match previous.get() {
            Some(previous) => self.edited(previous).next = next,
            None => self.computations[parent].first = next,
        }
        match next.get() {
            Some(next) => self.edited(next).previous = previous,
            None => self.computations[parent].last = previous,
        }
        self.computations[parent].len -= 1;
        let instruction = self.edited(id);
        instruction.parent = Packed::NONE;
        instruction.previous = Packed::NONE;
        instruction.next = Packed::NONE;
    }

    fn link_use(&mut self, use_id: UseId, value: InstId) {
        let last = self.instructions[value].last_use;
        let link = &mut self.uses[use_id];
        link.previous = last;
        link.next = Packed::NONE;
        match last.get() {
            Some(last) => self.uses[last].next = use_id.into(),
            None => self.edited(value).first_use = use_id.into(),
        }
        self.edited(value).last_use = use_id.into();
        self.edited(value).use_count += 1;
    }

    fn unlink_use(&mut self, use_id: UseId, value: InstId) {
        let UseLink { previous, next, .. } = self.uses[use_id];
        match previous.get() {
            Some(previous) => self.uses[previous].next = next,
            None => self.edited(value).first_use = next,
        }
        match next.get() {
            Some(next) => self.uses[next].previous = previous,
            None => self.edited(value).last_use = previous,
        }
        self.edited(value).use_count -= 1;
    }
}
