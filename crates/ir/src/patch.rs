//! A set of edits that is applied completely or not at all.
//!
//! A rewrite plans its new instructions in a [`Patch`] and estimates their cost before it
//! changes the module.

use smallvec::SmallVec;

use crate::edit::{EditError, Position};
use crate::entity::{CompId, InstId};
use crate::metadata::Extras;
use crate::module::Module;
use crate::ops::Op;
use crate::types::shape::Shape;

/// A value that a patch can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An instruction of the module.
    Old(InstId),
    /// An instruction that the patch will create: its index in [`Patch::planned`].
    New(usize),
}

impl From<InstId> for Value {
    fn from(id: InstId) -> Self {
        Self::Old(id)
    }
}

/// An instruction that a patch will create.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The op.
    pub op: Op,
    /// The shape of the result.
    pub shape: Shape,
    /// The operands.
    pub operands: SmallVec<[Value; 3]>,
    /// The instruction before which it is inserted.
    pub before: InstId,
    /// The instruction whose metadata it copies.
    pub like: InstId,
    /// The extras that it carries.
    pub extras: Option<Box<Extras>>,
}

/// Instructions to create, and instructions whose users are then redirected.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    planned: Vec<Planned>,
    replaced: Vec<(InstId, Value)>,
}

impl Patch {
    /// A patch that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans an instruction before `before`, which must not precede any of the operands; copies
    /// the metadata of `before`.
    pub fn add(
        &mut self,
        before: InstId,
        op: Op,
        shape: Shape,
        operands: impl IntoIterator<Item = Value>,
    ) -> Value {
        self.add_like(before, before, op, shape, operands)
    }

    /// Plans an instruction before `before` with the metadata of `like`.
    pub fn add_like(
        &mut self,
        like: InstId,
        before: InstId,
        op: Op,
        shape: Shape,
        operands: impl IntoIterator<Item = Value>,
    ) -> Value {
        let operands = operands.into_iter().collect();
        self.planned.push(Planned { op, shape, operands, before, like, extras: None });
        Value::New(self.planned.len() - 1)
    }

    /// Plans that a new instruction carries these extras; `false` if it is not planned.
    pub fn set_extras(&mut self, value: Value, extras: Extras) -> bool {
        let Value::New(index) = value else { return false };
        let planned = self.planned.get_mut(index);
        planned.map(|planned| planned.extras = Some(Box::new(extras))).is_some()
    }

    /// Plans to redirect all users of `old` to `new`.
    pub fn replace(&mut self, old: InstId, new: Value) {
        self.replaced.push((old, new));
    }

    /// Returns the instructions planned so far.
    pub fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// Returns the instructions whose users will be redirected, with their replacements.
    pub fn replaced(&self) -> &[(InstId, Value)] {
        &self.replaced
    }

    /// Checks whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.replaced.is_empty()
    }

    /// Returns the shape of a value.
    pub fn shape<'a>(&'a self, module: &'a Module, value: Value) -> &'a Shape {
        match value {
            Value::Old(id) => module.shape(id),
            Value::New(index) => &self.planned[index].shape,
        }
    }

    /// Creates the instructions and redirects the users. The replaced instructions remain,
    /// without users.
    ///
    /// # Errors
    /// Returns an error if an operand, a position or a replacement is not valid; the module is
    /// then unchanged.
    pub fn apply(&self, module: &mut Module) -> Result<Vec<InstId>, EditError> {
        self.check(module)?;
        let mut made: Vec<InstId> = Vec::with_capacity(self.planned.len());
        let made_of = |value: Value, made: &[InstId]| match value {
            Value::Old(id) => Ok(id),
            Value::New(index) => made.get(index).copied().ok_or(EditError::Unplanned(index)),
        };
        for planned in &self.planned {
            let operands: SmallVec<[InstId; 3]> = planned
                .operands
                .iter()
                .map(|&value| made_of(value, &made))
                .collect::<Result<_, _>>()?;
            let name = module.fresh_name(planned.op.opcode().name());
            let position = Position::Before(planned.before);
            let op = planned.op.clone();
            let id = module.insert(position, op, planned.shape.clone(), &operands, name)?;
            module.copy_metadata(planned.like, id);
            if let Some(extras) = &planned.extras {
                module.set_extras(id, (**extras).clone());
            }
            made.push(id);
        }
        for &(old, new) in &self.replaced {
            module.replace_uses(old, made_of(new, &made)?)?;
        }
        Ok(made)
    }

    /// Checks every precondition of [`Patch::apply`].
    fn check(&self, module: &Module) -> Result<(), EditError> {
        let mut parents = Vec::with_capacity(self.planned.len());
        for planned in &self.planned {
            let parent = module.parent_of(planned.before)?;
            for &operand in &planned.operands {
                self.check_value(module, operand, parent, &parents)?;
            }
            parents.push(parent);
        }
        for &(old, new) in &self.replaced {
            self.check_value(module, new, module.parent_of(old)?, &parents)?;
            module.check_same_shape(old, self.shape(module, new))?;
        }
        let operands = self.planned.iter().map(|planned| planned.operands.len()).sum();
        module.check_room(self.planned.len(), operands)
    }

    /// Checks that a value belongs to `user`, the computation of its user, given the
    /// computations of the instructions planned before.
    fn check_value(
        &self,
        module: &Module,
        value: Value,
        user: CompId,
        parents: &[CompId],
    ) -> Result<(), EditError> {
        match value {
            Value::Old(id) => module.check_operands(user, &[id]),
            Value::New(index) => match parents.get(index) {
                None => Err(EditError::Unplanned(index)),
                Some(&parent) if parent == user => Ok(()),
                Some(_) => {
                    let name = self.planned[index].op.opcode().name();
                    Err(EditError::ForeignOperand(name.into()))
                }
            },
        }
    }
}
