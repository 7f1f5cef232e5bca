//! What a rule puts in the place of a match: instructions that Python asks for.

use std::ptr::{from_mut, from_ref};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright::ir::ops::shaping::ParameterAttrs;
use tilewright::ir::{InstId, Module as Graph, Op, Position, Value as Planned};
use tilewright::pattern::{Match as Found, Replacement as Library};

use crate::error::{ExceptionKind, plain, usage};
use crate::expression::{Request, opcode};
use crate::instruction::Instruction;
use crate::module::Module;
use crate::shape::{Shape, ShapeLike};
use crate::state::At;
use crate::value::{named, taken};

/// A matched expression.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Match {
    module: Py<Module>,
    root: InstId,
    values: Vec<(&'static str, InstId)>,
}

impl Match {
    pub(crate) fn new(
        py: Python<'_>,
        module: &Py<Module>,
        found: &Found<'_>,
        names: &[&'static str],
    ) -> Self {
        let values = names.iter().filter_map(|&name| Some((name, found.get(name)?)));
        Self { module: module.clone_ref(py), root: found.root(), values: values.collect() }
    }
}

#[pymethods]
impl Match {
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<Module> {
        self.module.clone_ref(py)
    }

    /// The instruction that the whole pattern matched.
    #[getter]
    fn root(&self, py: Python<'_>) -> Instruction {
        Instruction::new(py, &self.module, self.root)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Instruction> {
        let found = self.values.iter().find(|(other, _)| *other == name);
        let none = || {
            let names: Vec<&str> = self.values.iter().map(|(name, _)| *name).collect();
            let text = format!("the pattern has no `{name}`; it has: {}", names.join(", "));
            pyo3::exceptions::PyKeyError::new_err(text)
        };
        let &(_, id) = found.ok_or_else(none)?;
        Ok(Instruction::new(py, &self.module, id))
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.values.iter().map(|(name, _)| *name))
    }
}

/// A replacement under construction, lent by the optimiser for the time of a call: shorter than the
/// types say. So neither reference leaves its lock but for the time of `Replacement::with`.
#[derive(Debug)]
struct Lent {
    new: &'static mut Library<'static>,
    graph: &'static Graph,
}

/// The instructions that replace a match.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Replacement {
    lent: Mutex<Option<Lent>>,
    module: Py<Module>,
}

/// An instruction that a replacement will have.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct NewValue {
    pub(crate) value: Planned,
    replacement: Py<Replacement>,
}

/// A value that a new instruction can read.
#[derive(FromPyObject)]
pub(crate) enum Operand<'py> {
    #[pyo3(transparent)]
    Old(PyRef<'py, Instruction>),
    #[pyo3(transparent)]
    New(PyRef<'py, NewValue>),
}

impl Replacement {
    /// Lends a replacement to `call`.
    pub(crate) fn lend<T>(
        py: Python<'_>,
        module: &Py<Module>,
        (graph, new): (&Graph, &mut Library<'_>),
        call: impl FnOnce(&Py<Self>) -> PyResult<T>,
    ) -> PyResult<T> {
        /// Ends the loan, also if the call panics.
        struct Loan<'a>(&'a Replacement);
        impl Drop for Loan<'_> {
            fn drop(&mut self) {
                *self.0.lock() = None;
            }
        }
        let made = Py::new(py, Self { lent: Mutex::new(None), module: module.clone_ref(py) })?;
        let loan = Loan(made.get());
        // SAFETY: `graph` and `new` are borrowed until this function returns, which uses neither
        // from here on, so each new reference is the only user of its borrow. On each way out,
        // `loan` is dropped before; it waits for the lock, and so for every `with`, and takes both
        // references away. `with` alone uses them, under the lock, for an `f` that accepts any
        // lifetimes, so that it can neither keep them nor put another `Library` in place of this.
        // Nothing can forget `loan`, since nothing else has it, whatever Python does in `call`.
        let (new, graph) = unsafe {
            let new: &'static mut _ = &mut *from_mut(new).cast::<Library<'static>>();
            let graph: &'static _ = &*from_ref(graph);
            (new, graph)
        };
        *loan.0.lock() = Some(Lent { new, graph });
        call(&made)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lent>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the replacement. Nothing in `f` runs Python code, since the lock is held.
    fn with<T>(&self, f: impl FnOnce(&Graph, &mut Library<'_>) -> T) -> PyResult<T> {
        let mut lent = self.lock();
        let done = lent.as_mut().map(|Lent { new, graph }| f(graph, new));
        drop(lent);
        done.ok_or_else(|| plain(ExceptionKind::Removed, "the call of the rule has ended"))
    }

    /// The value of an operand of this replacement.
    pub(crate) fn value(slf: &Py<Self>, operand: &Operand<'_>) -> PyResult<Planned> {
        match operand {
            Operand::Old(old) if old.module.as_ptr() == slf.get().module.as_ptr() => {
                let At { id, .. } = old.at;
                Ok(Planned::Old(id))
            }
            Operand::New(new) if new.replacement.as_ptr() == slf.as_ptr() => Ok(new.value),
            _ => Err(usage("the value does not belong to this match")),
        }
    }

    /// Plans an instruction.
    fn plan(
        slf: &Bound<'_, Self>,
        f: impl FnOnce(&Graph, &mut Library<'_>) -> Option<Planned>,
    ) -> PyResult<NewValue> {
        let value = slf.get().with(f)?;
        let unfit = || plain(ExceptionKind::Unfit, "the operands do not fit the op");
        let value = value.ok_or_else(unfit)?;
        Ok(NewValue { value, replacement: slf.clone().unbind() })
    }

    fn own(slf: &Bound<'_, Self>, operand: &Operand<'_>) -> PyResult<Planned> {
        Self::value(&slf.clone().unbind(), operand)
    }
}

/// Reads an op whose operands may be planned: in a copy of the module, where parameters stand for
/// those.
fn read(
    graph: &Graph,
    new: &Library<'_>,
    request: Request<'_>,
    operands: &[Planned],
) -> Result<Op, String> {
    let mut scratch = graph.clone();
    let entry = scratch.entry().ok_or("the module has no entry")?;
    let first = scratch.instructions(entry).next().ok_or("the entry is empty")?;
    let mut ids = Vec::new();
    for &operand in operands {
        let shape = new.shape(operand).ok_or("an operand is not planned")?.clone();
        let op = Op::Parameter(Box::new(ParameterAttrs { number: 0 }));
        let id = scratch.insert(Position::Before(first), op, shape, &[], "");
        ids.push(id.map_err(|error| error.to_string())?);
    }
    Ok(request.read(&mut scratch, entry, &ids)?.op)
}

#[pymethods]
impl Replacement {
    /// Adds any op. With attributes the module is copied to read them.
    #[pyo3(signature = (opcode, operands, attributes="", *, shape=None))]
    fn op(
        slf: &Bound<'_, Self>,
        opcode: &str,
        operands: Vec<Operand<'_>>,
        attributes: &str,
        shape: Option<ShapeLike<'_>>,
    ) -> PyResult<NewValue> {
        let operands = operands.iter().map(|operand| Self::own(slf, operand));
        let operands = operands.collect::<PyResult<Vec<_>>>()?;
        let shape = shape.map(|shape| shape.shape()).transpose()?;
        let opcode = self::opcode(opcode)?;
        if attributes.is_empty() && shape.is_none() {
            return Self::plan(slf, |_, new| new.plain(opcode, operands));
        }
        let request = Request { opcode, attributes, shape: shape.as_ref() };
        let made = slf.get().with(|graph, new| read(graph, new, request, &operands))?;
        let op = made.map_err(|why| plain(ExceptionKind::Parse, why))?;
        Self::plan(slf, |_, new| match shape {
            Some(shape) => new.op_with_shape(op, shape, operands),
            None => new.op(op, operands),
        })
    }

    #[pyo3(signature = (value, element_type=None))]
    fn constant(
        slf: &Bound<'_, Self>,
        value: &Bound<'_, PyAny>,
        element_type: Option<&str>,
    ) -> PyResult<NewValue> {
        let value = taken(value, element_type)?;
        Self::plan(slf, |_, new| new.constant(value))
    }

    fn reshape(slf: &Bound<'_, Self>, value: Operand<'_>, dims: Vec<i64>) -> PyResult<NewValue> {
        let value = Self::own(slf, &value)?;
        Self::plan(slf, |_, new| new.reshape(value, &dims))
    }

    fn transpose(
        slf: &Bound<'_, Self>,
        value: Operand<'_>,
        permutation: Vec<i64>,
    ) -> PyResult<NewValue> {
        let value = Self::own(slf, &value)?;
        Self::plan(slf, |_, new| new.transpose(value, &permutation))
    }

    /// Adds a broadcast to `dims`: dim `i` of the value becomes dim `dimensions[i]`.
    #[pyo3(signature = (value, dims, dimensions = Vec::new()))]
    fn broadcast(
        slf: &Bound<'_, Self>,
        value: Operand<'_>,
        dims: Vec<i64>,
        dimensions: Vec<i64>,
    ) -> PyResult<NewValue> {
        let value = Self::own(slf, &value)?;
        Self::plan(slf, |_, new| new.broadcast(value, &dims, &dimensions))
    }

    fn convert(
        slf: &Bound<'_, Self>,
        value: Operand<'_>,
        element_type: &str,
    ) -> PyResult<NewValue> {
        let (value, element_type) = (Self::own(slf, &value)?, named(element_type)?);
        Self::plan(slf, |_, new| new.convert(value, element_type))
    }

    /// Gives a new instruction the sharding, frontend attributes and origin of the match.
    fn keep_extras(slf: &Bound<'_, Self>, value: Operand<'_>) -> PyResult<NewValue> {
        let value = Self::own(slf, &value)?;
        Self::plan(slf, |_, new| new.keep_extras(value))
    }

    fn shape(slf: &Bound<'_, Self>, value: Operand<'_>) -> PyResult<Shape> {
        let value = Self::own(slf, &value)?;
        let shape = slf.get().with(|_, new| new.shape(value).cloned())?;
        shape.map(Shape).ok_or_else(|| usage("the value is not planned"))
    }
}

#[pymethods]
impl NewValue {
    #[getter]
    fn shape(&self) -> PyResult<Shape> {
        let shape = self.replacement.get().with(|_, new| new.shape(self.value).cloned())?;
        shape.map(Shape).ok_or_else(|| usage("the value is not planned"))
    }

    fn __repr__(&self) -> String {
        let shape = self.shape();
        shape.map_or("<NewValue>".to_owned(), |shape| format!("<NewValue {:#}>", shape.0))
    }
}
