//! Edits of a module: all of them are kept, or none.

use pyo3::prelude::*;
use tilewright::ir::ops::shaping::ParameterAttrs;
use tilewright::ir::{
    CompId, EditError, InstId, Literal, Module as Graph, Op, OpMetadata, Position, Shape, verify,
};

use crate::error::{refused, usage};
use crate::expression::{Expression, Request, misread, opcode};
use crate::instruction::{Computation, Instruction};
use crate::module::Module;
use crate::shape::ShapeLike;
use crate::state::At;
use crate::value::taken;

/// An edit of a module.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Edit {
    module: Py<Module>,
}

/// Why an edit was not made.
enum Why {
    Text(String),
    Edit(EditError),
}

impl From<EditError> for Why {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

impl From<Why> for PyErr {
    fn from(why: Why) -> Self {
        match why {
            Why::Text(text) => misread(text),
            Why::Edit(error) => refused(&error),
        }
    }
}

/// Where a new instruction goes, as Python says it.
#[derive(Clone, Copy)]
struct InsertionPlace {
    before: Option<InstId>,
    computation: Option<CompId>,
}

impl InsertionPlace {
    /// The computation, and the instruction that the new one goes before; by default, directly
    /// after the last of the operands, or at the beginning.
    fn find(self, graph: &Graph, operands: &[InstId]) -> Result<(CompId, Position), EditError> {
        let parent = |id: InstId| graph.instruction(id).parent().ok_or(EditError::Removed(id));
        if let Some(before) = self.before {
            return Ok((parent(before)?, Position::Before(before)));
        }
        let Some(&first) = operands.first() else {
            let computation = self.computation.or(graph.entry());
            let computation = computation.ok_or_else(|| EditError::Order("entry".into()))?;
            let begin = graph.instructions(computation).next();
            let position = begin.map_or(Position::End(computation), Position::Before);
            return Ok((computation, position));
        };
        let computation = parent(first)?;
        let last = graph.instructions(computation).rev().find(|id| operands.contains(id));
        let next = last.and_then(|last| graph.next_instruction(last));
        Ok((computation, next.map_or(Position::End(computation), Position::Before)))
    }
}

/// Puts an instruction into a module. The root stays the same.
fn insert(
    graph: &mut Graph,
    (computation, position): (CompId, Position),
    made: Expression,
    operands: &[InstId],
    name: Option<&str>,
) -> Result<InstId, EditError> {
    if let Some(root) = graph.computation(computation).root() {
        graph.set_root(root)?;
    }
    let Expression { op, shape, extras, metadata } = made;
    let name = graph.fresh_name(name.unwrap_or(op.opcode().name()));
    let id = graph.insert(position, op, shape, operands, name)?;
    if let Some(extras) = extras {
        graph.set_extras(id, extras);
    }
    if let Some(metadata) = metadata {
        graph.set_metadata(id, metadata);
    }
    Ok(id)
}

/// Adds the next parameter of a computation. If that is the entry, the layout of the program, where
/// the module declares one, gets the parameter, too: the verifier compares the two.
fn add_parameter(
    graph: &mut Graph,
    place: (CompId, Position),
    shape: Shape,
    name: &str,
) -> Result<InstId, EditError> {
    let number = graph.computation(place.0).parameters().len();
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let op = Op::Parameter(Box::new(ParameterAttrs { number }));
    let made = Expression { op, shape: shape.clone(), extras: None, metadata: None };
    let id = insert(graph, place, made, &[], Some(name))?;
    if graph.entry() == Some(place.0)
        && let Some(layout) = &mut graph.header.entry_layout
    {
        layout.parameters.push(shape);
    }
    Ok(id)
}

impl Edit {
    pub(crate) fn new(module: Py<Module>) -> Self {
        Self { module }
    }

    /// The handle of an instruction of this module.
    fn own(&self, instruction: &Instruction) -> PyResult<At> {
        if instruction.module.as_ptr() == self.module.as_ptr() {
            return Ok(instruction.at);
        }
        Err(usage("the instruction belongs to another module"))
    }

    fn all_own(&self, instructions: &[PyRef<'_, Instruction>]) -> PyResult<Vec<At>> {
        instructions.iter().map(|instruction| self.own(instruction)).collect()
    }

    fn place(
        &self,
        before: Option<&Instruction>,
        computation: Option<&Computation>,
    ) -> PyResult<(Option<At>, InsertionPlace)> {
        let before = before.map(|before| self.own(before)).transpose()?;
        if computation.is_some_and(|c| c.module.as_ptr() != self.module.as_ptr()) {
            return Err(usage("the computation belongs to another module"));
        }
        let place = InsertionPlace {
            before: before.map(|at| at.id),
            computation: computation.map(|c| c.id),
        };
        Ok((before, place))
    }

    /// Changes the module, given handles that are checked first.
    fn change<T>(
        &self,
        handles: &[At],
        f: impl FnOnce(&mut Graph) -> Result<T, Why>,
    ) -> PyResult<T> {
        Ok(self.module.get().cell.edit(handles, f)??)
    }
}

#[pymethods]
impl Edit {
    fn __enter__(slf: Py<Self>) -> PyResult<Py<Self>> {
        slf.get().module.get().cell.begin()?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let verify = |graph| py.detach(move || verify(graph));
        self.module.get().cell.end(kind.is_none(), verify)?;
        Ok(false)
    }

    #[getter]
    fn module(&self, py: Python<'_>) -> Py<Module> {
        self.module.clone_ref(py)
    }

    /// Checks the module as it is now.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.module.get().verified(py).map(|_| ())
    }

    /// Inserts an instruction. The root stays the same.
    #[pyo3(signature = (
        opcode, operands=vec![], attributes="", *,
        shape=None, name=None, before=None, computation=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
    fn insert(
        &self,
        py: Python<'_>,
        opcode: &str,
        operands: Vec<PyRef<'_, Instruction>>,
        attributes: &str,
        shape: Option<ShapeLike<'_>>,
        name: Option<&str>,
        before: Option<&Instruction>,
        computation: Option<&Computation>,
    ) -> PyResult<Instruction> {
        let mut used = self.all_own(&operands)?;
        let ids: Vec<InstId> = used.iter().map(|at| at.id).collect();
        let (before, place) = self.place(before, computation)?;
        used.extend(before);
        let shape = shape.map(|shape| shape.shape()).transpose()?;
        let opcode = self::opcode(opcode)?;
        let request = Request { opcode, attributes, shape: shape.as_ref() };
        let id = self.change(&used, |graph| {
            let place = place.find(graph, &ids)?;
            let made = request.read(graph, place.0, &ids).map_err(Why::Text)?;
            Ok(insert(graph, place, made, &ids, name)?)
        })?;
        Ok(Instruction::new(py, &self.module, id))
    }

    /// Adds the next parameter of a computation, by default of the entry.
    #[pyo3(signature = (name, shape, *, computation=None))]
    fn parameter(
        &self,
        py: Python<'_>,
        name: &str,
        shape: ShapeLike<'_>,
        computation: Option<&Computation>,
    ) -> PyResult<Instruction> {
        let (_, place) = self.place(None, computation)?;
        let shape = shape.shape()?;
        let id = self.change(&[], |graph| {
            let place = place.find(graph, &[])?;
            Ok(add_parameter(graph, place, shape, name)?)
        })?;
        Ok(Instruction::new(py, &self.module, id))
    }

    /// Inserts a constant from an array, or from a number or list with an element type.
    #[pyo3(signature = (
        value, element_type=None, *, name=None, before=None, computation=None
    ))]
    fn constant(
        &self,
        value: &Bound<'_, PyAny>,
        element_type: Option<&str>,
        name: Option<&str>,
        before: Option<&Instruction>,
        computation: Option<&Computation>,
    ) -> PyResult<Instruction> {
        let (py, value): (_, Literal) = (value.py(), taken(value, element_type)?);
        let (before, place) = self.place(before, computation)?;
        let used: Vec<At> = before.into_iter().collect();
        let id = self.change(&used, |graph| {
            let place = place.find(graph, &[])?;
            let shape: Shape = value.shape();
            let op = Op::Constant(Box::new(value));
            let made = Expression { op, shape, extras: None, metadata: None };
            Ok(insert(graph, place, made, &[], name)?)
        })?;
        Ok(Instruction::new(py, &self.module, id))
    }

    /// Makes every user of `old` read `new`, which has the same type and dims, and `new` the root
    /// if `old` was it. `old` stays, without users.
    fn replace_uses(&self, old: &Instruction, new: &Instruction) -> PyResult<()> {
        let (old, new) = (self.own(old)?, self.own(new)?);
        self.change(&[old, new], |graph| Ok(graph.replace_uses(old.id, new.id)?))
    }

    /// Sets the operand of this number, from 0.
    fn set_operand(&self, user: &Instruction, operand: usize, value: &Instruction) -> PyResult<()> {
        let (user, value) = (self.own(user)?, self.own(value)?);
        self.change(&[user, value], |graph| Ok(graph.set_operand(user.id, operand, value.id)?))
    }

    /// Makes an instruction the root of its computation.
    fn set_root(&self, instruction: &Instruction) -> PyResult<()> {
        let at = self.own(instruction)?;
        self.change(&[at], |graph| Ok(graph.set_root(at.id)?))
    }

    /// Removes an instruction that nothing reads.
    fn remove(&self, instruction: &Instruction) -> PyResult<()> {
        let at = self.own(instruction)?;
        self.change(&[at], |graph| Ok(graph.remove(at.id)?))
    }

    /// Renames an instruction. Returns the name, with a number if another one has it.
    fn rename(&self, instruction: &Instruction, name: &str) -> PyResult<String> {
        let at = self.own(instruction)?;
        self.change(&[at], |graph| {
            if graph.name_of(at.id) != name {
                let name = graph.fresh_name(name);
                graph.set_name(at.id, name);
            }
            Ok(graph.name_of(at.id).to_owned())
        })
    }

    /// Sets these parts of the metadata; the others stay.
    #[pyo3(signature = (
        instruction, *, op_name=None, op_type=None, source_file=None, source_line=None
    ))]
    fn set_metadata(
        &self,
        instruction: &Instruction,
        op_name: Option<&str>,
        op_type: Option<&str>,
        source_file: Option<&str>,
        source_line: Option<i64>,
    ) -> PyResult<()> {
        let at = self.own(instruction)?;
        self.change(&[at], |graph| {
            let old = graph.metadata(at.id).cloned().unwrap_or_default();
            let metadata = OpMetadata {
                op_name: op_name.map_or(old.op_name, Into::into),
                op_type: op_type.map_or(old.op_type, Into::into),
                source_file: source_file.map_or(old.source_file, Into::into),
                source_line: source_line.unwrap_or(old.source_line),
                ..old
            };
            graph.set_metadata(at.id, metadata);
            Ok(())
        })
    }
}
