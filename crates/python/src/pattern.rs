//! Patterns of expressions. `python/tilewright/pattern.py` has a function for each op.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tilewright::ir::{InstId, Module as Graph};
use tilewright::pattern as library;

use crate::callback::{call, catching, kept};
use crate::error::usage;
use crate::expression::opcode;
use crate::function::Function;
use crate::instruction::Instruction;
use crate::module::Module;
use crate::state::Cell;
use crate::value::named;

/// A description of expressions, with names for their parts.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) pattern: library::Pattern,
    /// The names in it.
    pub(crate) names: Vec<&'static str>,
    /// The functions in it.
    pub(crate) functions: Vec<Py<Function>>,
}

impl Pattern {
    /// The same names and functions with another pattern.
    fn with(&self, py: Python<'_>, pattern: library::Pattern) -> Self {
        let mut functions = Vec::new();
        Function::extend(&mut functions, py, &self.functions);
        Self { pattern, names: self.names.clone(), functions }
    }
}

/// Lends a module to a Python function together with one of its instructions.
pub(crate) fn lent<T>(
    py: Python<'_>,
    graph: &Graph,
    call: impl FnOnce(&Py<Module>) -> PyResult<T>,
) -> PyResult<T> {
    let module = |cell| Py::new(py, Module { cell });
    Cell::lend(graph, module, |module| &module.get().cell, call)
}

#[pymethods]
impl Pattern {
    /// Matches any value, and names it.
    #[staticmethod]
    fn any(name: &str) -> Self {
        let name = kept(name);
        Self { pattern: library::any(name), names: vec![name], functions: Vec::new() }
    }

    /// Matches a constant, with a name, or whose elements are all `value`.
    #[staticmethod]
    #[pyo3(signature = (name=None, value=None))]
    fn constant(name: Option<&str>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        // A name that no pattern of Python can ask for, since the library names every constant.
        let shown = kept(name.unwrap_or("constant"));
        let pattern = library::any_of([tilewright::ir::Opcode::Constant]);
        let pattern = if name.is_some() { pattern.named(shown) } else { pattern };
        let pattern = match value {
            None => pattern,
            Some(value) => {
                let wanted = value.extract::<f64>()?;
                // The text completes the sentence "it must ..." in messages.
                let says = kept(&format!("be {}", value.str()?));
                pattern.when(says, move |graph, id| is_number(graph, id, wanted))
            }
        };
        let names = name.map(kept).into_iter().collect();
        Ok(Self { pattern, names, functions: Vec::new() })
    }

    /// Matches an instruction of this op whose operands match.
    #[staticmethod]
    fn op(py: Python<'_>, opcode: &str, operands: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let opcode = self::opcode(opcode)?;
        let patterns: Vec<_> = operands.iter().map(|operand| operand.pattern.clone()).collect();
        let mut names: Vec<&'static str> = Vec::new();
        for name in operands.iter().flat_map(|operand| &operand.names) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let mut functions = Vec::new();
        for operand in &operands {
            Function::extend(&mut functions, py, &operand.functions);
        }
        Ok(Self { pattern: library::op(opcode, patterns), names, functions })
    }

    /// The same pattern, with a name for the value.
    fn named(&self, py: Python<'_>, name: &str) -> Self {
        let name = kept(name);
        let mut named = self.with(py, self.pattern.clone().named(name));
        if !named.names.contains(&name) {
            named.names.push(name);
        }
        named
    }

    /// Nothing else may read the value.
    fn used_once(&self, py: Python<'_>) -> Self {
        self.with(py, self.pattern.clone().used_once())
    }

    /// It must be an array with static dims in row-major order.
    fn row_major(&self, py: Python<'_>) -> Self {
        self.with(py, self.pattern.clone().row_major())
    }

    /// It must be an array with static dims, in any layout.
    fn static_dims(&self, py: Python<'_>) -> Self {
        self.with(py, self.pattern.clone().static_dims())
    }

    /// It must be an array without dims.
    fn scalar(&self, py: Python<'_>) -> Self {
        self.with(py, self.pattern.clone().scalar())
    }

    /// It must be an array of this type.
    fn element_type(&self, py: Python<'_>, element_type: &str) -> PyResult<Self> {
        Ok(self.with(py, self.pattern.clone().element_type(named(element_type)?)))
    }

    /// It may carry a sharding, control dependencies or frontend attributes, which the replacement
    /// then has to keep.
    fn with_extras(&self, py: Python<'_>) -> Self {
        self.with(py, self.pattern.clone().with_extras())
    }

    /// A condition on the instruction. `says` completes the sentence "it must ...".
    fn when(&self, py: Python<'_>, says: &str, holds: Py<PyAny>) -> PyResult<Self> {
        let mut functions = Vec::new();
        let holds = Function::hold(holds, py, &mut functions)?;
        let pattern = self.pattern.clone().when(kept(says), move |graph, id| {
            let asked = call(|py| {
                lent(py, graph, |module| {
                    let instruction = Instruction::new(py, module, id);
                    holds.call(py, (instruction,))?.is_truthy()
                })
            });
            asked.unwrap_or(false)
        });
        let mut when = self.with(py, pattern);
        when.functions.append(&mut functions);
        Ok(when)
    }

    #[getter]
    fn names(&self) -> Vec<&'static str> {
        self.names.clone()
    }

    /// Whether an instruction with its operands matches.
    fn matches(&self, instruction: &Instruction) -> PyResult<bool> {
        let cell = &instruction.module.get().cell;
        let module =
            cell.settled().ok_or_else(|| usage("match within a module that is not under edit"))?;
        cell.at(instruction.at, |_, _| ())?;
        let id = instruction.at.id;
        catching(&Arc::default(), || self.pattern.matches(&module, id).is_some())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Function::visit(&self.functions, &visit)
    }

    fn __str__(&self) -> String {
        self.pattern.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Pattern {}>", self.pattern)
    }
}

/// Checks whether all elements of a constant are this number.
fn is_number(graph: &Graph, id: InstId, wanted: f64) -> bool {
    let array = graph.constant(id).and_then(|value| value.as_array());
    let splat = array.and_then(tilewright::ir::ArrayLiteral::splat);
    splat.and_then(|splat| splat.scalar_as_f64()) == Some(wanted)
}
