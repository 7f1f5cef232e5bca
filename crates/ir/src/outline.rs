//! Makes instructions of a computation a computation of their own.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::edit::{EditError, Position};
use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::Op;
use crate::ops::shaping::ParameterAttrs;
use crate::types::shape::Shape;

/// A part of a computation.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    /// The values that the members read and that are no members.
    pub inputs: &'a [InstId],
    /// The instructions, operands first.
    pub members: &'a [InstId],
    /// The members that others read.
    pub outputs: &'a [InstId],
}

impl Outline<'_> {
    /// Returns the shape of the results: a tuple if there is not one output alone.
    pub fn shape(&self, module: &Module) -> Shape {
        match self.outputs {
            &[output] => module.shape(output).clone(),
            outputs => Shape::Tuple(outputs.iter().map(|&id| module.shape(id).clone()).collect()),
        }
    }
}

impl Module {
    /// Copies a part of the computation `parent` to a new one before it, whose parameters are the
    /// inputs, and whose root is the output, or a tuple of several ones. The part itself stays.
    ///
    /// # Errors
    /// As [`Module::insert`]; also if there is no output.
    pub fn outline(
        &mut self,
        parent: CompId,
        name: String,
        part: &Outline<'_>,
    ) -> Result<CompId, EditError> {
        let computation = self.add_computation_before(name, parent);
        let thread = self.computation(parent).execution_thread().map(Into::into);
        self.set_execution_thread(computation, thread);
        let end = Position::End(computation);
        let mut copies: FxHashMap<InstId, InstId> = FxHashMap::default();
        for (place, &input) in part.inputs.iter().enumerate() {
            let shape = self.shape(input).clone();
            let number = i64::try_from(place).unwrap_or(i64::MAX);
            let name = self.fresh_name("param");
            let op = Op::Parameter(Box::new(ParameterAttrs { number }));
            copies.insert(input, self.insert(end, op, shape, &[], name)?);
        }
        for &member in part.members {
            let copy = self.copy_instruction(member, end, |id| copies.get(&id).copied())?;
            copies.insert(member, copy);
        }
        let results = part.outputs.iter().filter_map(|id| copies.get(id).copied());
        let results: Vec<InstId> = results.collect();
        let root = match results.as_slice() {
            &[result] => result,
            _ => {
                let name = self.fresh_name("tuple");
                let shape = part.shape(self);
                self.insert(end, Op::Tuple, shape, &results, name)?
            }
        };
        self.set_root(root)?;
        Ok(computation)
    }

    /// Returns the position after the last of some instructions of a computation; its beginning if
    /// there are none.
    pub fn after_all(&self, parent: CompId, instructions: &[InstId]) -> Position {
        let wanted: FxHashSet<InstId> = instructions.iter().copied().collect();
        let mut next = self.instructions(parent).next();
        let mut rest = self.instructions(parent).peekable();
        while let Some(id) = rest.next() {
            if wanted.contains(&id) {
                next = rest.peek().copied();
            }
        }
        next.map_or(Position::End(parent), Position::Before)
    }

    /// Returns a name for a computation that no other one has: `base`, or it with a number.
    pub fn fresh_computation_name(&self, base: &str) -> String {
        let taken =
            |name: &str| self.computations().iter().any(|&id| self.computation(id).name() == name);
        let numbered = (1u64..).map(|number| format!("{base}.{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_else(|| base.to_owned())
    }
}
