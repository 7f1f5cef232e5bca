//! A set of edits that is applied whole or not at all.
//!
//! A rewrite plans its new instructions in a [`Patch`], weighs them, and only
//! then touches the module.

use smallvec::SmallVec;

use crate::edit::{EditError, Position};
use crate::entity::InstId;
use crate::module::Module;
use crate::ops::Op;
use crate::types::shape::Shape;

/// A value that a patch can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An instruction of the module.
    Old(InstId),
    /// An instruction that the patch will make: its place in [`Patch::planned`].
    New(usize),
}

/// An instruction that a patch will make.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The op.
    pub op: Op,
    /// The shape of the result.
    pub shape: Shape,
    /// The operands.
    pub operands: SmallVec<[Value; 3]>,
    /// The instruction before which it goes.
    pub before: InstId,
    /// The instruction whose metadata it takes.
    pub like: InstId,
}

/// Instructions to make, and instructions whose users are then re-pointed.
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

    /// Plans an instruction before `before`, which must not precede any of
    /// the operands; it takes the metadata of `before` too.
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
        self.planned.push(Planned { op, shape, operands, before, like });
        Value::New(self.planned.len() - 1)
    }

    /// Plans to re-point all users of `old` to `new`.
    pub fn replace(&mut self, old: InstId, new: Value) {
        self.replaced.push((old, new));
    }

    /// The instructions planned so far.
    pub fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// The instructions whose users will be re-pointed, with their successors.
    pub fn replaced(&self) -> &[(InstId, Value)] {
        &self.replaced
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.replaced.is_empty()
    }

    /// The shape of a value.
    pub fn shape<'a>(&'a self, module: &'a Module, value: Value) -> &'a Shape {
        match value {
            Value::Old(id) => module.shape(id),
            Value::New(index) => &self.planned[index].shape,
        }
    }

    /// Makes the instructions and re-points the users. The replaced
    /// instructions stay, without users.
    ///
    /// # Errors
    /// If an operand, an anchor or a replacement does not fit; what was made
    /// until then is removed again.
    pub fn apply(&self, module: &mut Module) -> Result<Vec<InstId>, EditError> {
        let mut made = Vec::with_capacity(self.planned.len());
        match self.try_apply(module, &mut made) {
            Ok(()) => Ok(made),
            Err(error) => {
                for &id in made.iter().rev() {
                    // Nothing but later instructions of the patch uses it.
                    module.remove(id)?;
                }
                Err(error)
            }
        }
    }

    fn try_apply(&self, module: &mut Module, made: &mut Vec<InstId>) -> Result<(), EditError> {
        for planned in &self.planned {
            let operands: SmallVec<[InstId; 3]> =
                planned.operands.iter().map(|&value| resolve(value, made)).collect();
            let name = module.fresh_name(planned.op.opcode().name());
            let position = Position::Before(planned.before);
            let op = planned.op.clone();
            let id = module.insert(position, op, planned.shape.clone(), &operands, name)?;
            module.copy_metadata(planned.like, id);
            made.push(id);
        }
        for &(old, new) in &self.replaced {
            module.check_replacement(old, resolve(new, made))?;
        }
        for &(old, new) in &self.replaced {
            module.replace_uses(old, resolve(new, made))?;
        }
        Ok(())
    }
}

fn resolve(value: Value, made: &[InstId]) -> InstId {
    match value {
        Value::Old(id) => id,
        Value::New(index) => made[index],
    }
}
