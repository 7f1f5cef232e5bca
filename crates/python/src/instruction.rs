//! Handles of instructions and computations.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::ir::{CompId, InstId, Literal, Module as Graph, Op};
use tilewright::text::{print_instruction, print_sharding};

use crate::attributes;
use crate::error::{ExceptionKind, plain};
use crate::module::Module;
use crate::shape::Shape;
use crate::state::{At, Gone};
use crate::value::shown;

/// An instruction of a module.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) module: Py<Module>,
    pub(crate) at: At,
}

/// A computation of a module.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Computation {
    pub(crate) module: Py<Module>,
    pub(crate) id: CompId,
}

/// Handles of instructions, in order.
pub(crate) fn handles<'py>(
    py: Python<'py>,
    module: &Py<Module>,
    ids: Vec<InstId>,
) -> PyResult<Bound<'py, PyTuple>> {
    let epoch = module.get().cell.epoch();
    let handle = |id| Instruction { module: module.clone_ref(py), at: At { id, epoch } };
    let handles = ids.into_iter().map(|id| Py::new(py, handle(id)));
    PyTuple::new(py, handles.collect::<PyResult<Vec<_>>>()?)
}

/// Handles of computations, in order.
pub(crate) fn computations<'py>(
    py: Python<'py>,
    module: &Py<Module>,
    ids: Vec<CompId>,
) -> PyResult<Bound<'py, PyTuple>> {
    let handle = |id| Computation { module: module.clone_ref(py), id };
    let handles = ids.into_iter().map(|id| Py::new(py, handle(id)));
    PyTuple::new(py, handles.collect::<PyResult<Vec<_>>>()?)
}

impl Instruction {
    /// A handle of an instruction of a module as it is now.
    pub(crate) fn new(py: Python<'_>, module: &Py<Module>, id: InstId) -> Self {
        let epoch = module.get().cell.epoch();
        Self { module: module.clone_ref(py), at: At { id, epoch } }
    }

    fn read<T>(&self, f: impl FnOnce(&Graph, InstId) -> T) -> Result<T, Gone> {
        self.module.get().cell.at(self.at, f)
    }

    fn handles<'py>(&self, py: Python<'py>, ids: Vec<InstId>) -> PyResult<Bound<'py, PyTuple>> {
        handles(py, &self.module, ids)
    }
}

#[pymethods]
impl Instruction {
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<Module> {
        self.module.clone_ref(py)
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.read(|graph, id| graph.name_of(id).to_owned())?)
    }

    /// The op, as in text: `add`, `get-tuple-element`.
    #[getter]
    fn opcode(&self) -> PyResult<&'static str> {
        Ok(self.read(|graph, id| graph.opcode(id).name())?)
    }

    #[getter]
    fn shape(&self) -> PyResult<Shape> {
        Ok(Shape(self.read(|graph, id| graph.shape(id).clone())?))
    }

    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(|graph, id| graph.operands(id).to_vec())?)
    }

    /// The instructions that read it, each once.
    #[getter]
    fn users<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(|graph, id| graph.users(id).to_vec())?)
    }

    #[getter]
    fn computation(&self, py: Python<'_>) -> PyResult<Computation> {
        let parent = self.read(|graph, id| graph.instruction(id).parent())?;
        let id = parent.ok_or(Gone::Instruction)?;
        Ok(Computation { module: self.module.clone_ref(py), id })
    }

    #[getter]
    fn called_computations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        computations(py, &self.module, self.read(|graph, id| graph.called(id).to_vec())?)
    }

    /// The attributes of the op: numbers, texts and tuples of them (`dimensions` is a tuple,
    /// `to_apply` a name), and the text of HLO for all others.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        attributes::dict(py, &self.read(attributes::of)?)
    }

    /// The number of a parameter; `None` for other instructions.
    #[getter]
    fn parameter_number(&self) -> PyResult<Option<i64>> {
        Ok(self.read(|graph, id| match graph.op(id) {
            Op::Parameter(parameter) => Some(parameter.number),
            _ => None,
        })?)
    }

    /// The value of a constant as a new NumPy array; `None` for other instructions.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value: Option<Literal> = self.read(|graph, id| graph.constant(id).cloned())?;
        value.map(|value| shown(py, value)).transpose()
    }

    /// `op_type`, `op_name`, `source_file` and `source_line`, those that are known.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = self.read(|graph, id| graph.metadata(id).cloned())?.unwrap_or_default();
        let dict = PyDict::new(py);
        let texts = [
            ("op_type", &metadata.op_type),
            ("op_name", &metadata.op_name),
            ("source_file", &metadata.source_file),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            dict.set_item(name, text.as_str())?;
        }
        if metadata.source_line != 0 {
            dict.set_item("source_line", metadata.source_line)?;
        }
        Ok(dict)
    }

    /// The sharding as in text: `{devices=[2,1]0,1}`.
    #[getter]
    fn sharding(&self) -> PyResult<Option<String>> {
        Ok(self.read(|graph, id| {
            let sharding = graph.extras(id).and_then(|extras| extras.sharding.as_deref());
            sharding.map(print_sharding)
        })?)
    }

    #[getter]
    fn frontend_attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = self.read(|graph, id| {
            graph.extras(id).map(|extras| extras.frontend_attributes.clone()).unwrap_or_default()
        })?;
        let dict = PyDict::new(py);
        for (name, value) in all {
            dict.set_item(name.as_str(), &*value)?;
        }
        Ok(dict)
    }

    #[getter]
    fn is_root(&self) -> PyResult<bool> {
        Ok(self.read(Graph::is_root)?)
    }

    /// Whether another instruction reads it, or it is the root.
    #[getter]
    fn is_live(&self) -> PyResult<bool> {
        Ok(self.read(Graph::is_live)?)
    }

    /// Whether the instruction still exists.
    #[getter]
    fn is_valid(&self) -> bool {
        self.read(|_, _| ()).is_ok()
    }

    /// All that it depends on, operands before users.
    fn transitive_operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = self.read(|graph, id| {
            let mut order = graph.post_order(id);
            order.pop();
            order
        })?;
        self.handles(py, ids)
    }

    /// All that depends on it, in the order of the computation.
    fn transitive_users<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(transitive_users)?)
    }

    fn __str__(&self) -> PyResult<String> {
        Ok(self.read(print_instruction)?)
    }

    fn __repr__(&self) -> String {
        let text = self.read(print_instruction);
        text.map_or("<Instruction removed>".to_owned(), |text| format!("<Instruction {text}>"))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>().map(Bound::get);
        other.is_ok_and(|other| {
            self.module.as_ptr() == other.module.as_ptr() && self.at.id == other.at.id
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.module.as_ptr().addr(), self.at.id).hash(&mut hasher);
        hasher.finish()
    }
}

/// The users of a value, their users and so on, in the order of the computation.
fn transitive_users(graph: &Graph, id: InstId) -> Vec<InstId> {
    let mut found = HashSet::new();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        next.extend(graph.users(id).into_iter().filter(|&user| found.insert(user)));
    }
    let parent = graph.instruction(id).parent();
    let all = parent.into_iter().flat_map(|parent| graph.instructions(parent));
    all.filter(|id| found.contains(id)).collect()
}

impl Computation {
    fn read<T>(&self, f: impl FnOnce(&Graph, CompId) -> T) -> Result<T, Gone> {
        self.module.get().cell.in_computation(self.id, f)
    }

    fn handles<'py>(&self, py: Python<'py>, ids: Vec<InstId>) -> PyResult<Bound<'py, PyTuple>> {
        handles(py, &self.module, ids)
    }
}

#[pymethods]
impl Computation {
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<Module> {
        self.module.clone_ref(py)
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.read(|graph, id| graph.computation(id).name().to_owned())?)
    }

    #[getter]
    fn instructions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(|graph, id| graph.instructions(id).collect())?)
    }

    /// The parameters, by number.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(|graph, id| graph.computation(id).parameters().to_vec())?)
    }

    /// The instruction whose value is the result.
    #[getter]
    fn root(&self, py: Python<'_>) -> PyResult<Instruction> {
        let root = self.read(|graph, id| graph.computation(id).root())?;
        let root = root.ok_or_else(|| plain(ExceptionKind::Removed, "the computation is empty"))?;
        Ok(Instruction::new(py, &self.module, root))
    }

    #[getter]
    fn is_entry(&self) -> PyResult<bool> {
        Ok(self.read(|graph, id| graph.entry() == Some(id))?)
    }

    /// The instructions that call it.
    #[getter]
    fn callers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.handles(py, self.read(callers)?)
    }

    /// The root and all that it depends on, operands before users.
    fn post_order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = self.read(|graph, id| {
            graph.computation(id).root().map(|root| graph.post_order(root)).unwrap_or_default()
        })?;
        self.handles(py, ids)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Instruction> {
        let found = self.read(|graph, id| {
            graph.instructions(id).find(|&instruction| graph.name_of(instruction) == name)
        })?;
        let none = || pyo3::exceptions::PyKeyError::new_err(name.to_owned());
        Ok(Instruction::new(py, &self.module, found.ok_or_else(none)?))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.read(|graph, id| graph.computation(id).len())?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.instructions(py)?.try_iter()?.into_any())
    }

    fn __repr__(&self) -> String {
        let text = self.read(|graph, id| {
            let computation = graph.computation(id);
            format!("<Computation {}: {} instructions>", computation.name(), computation.len())
        });
        text.unwrap_or_else(|_| "<Computation removed>".to_owned())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<Self>().map(Bound::get);
        other
            .is_ok_and(|other| self.module.as_ptr() == other.module.as_ptr() && self.id == other.id)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.module.as_ptr().addr(), self.id).hash(&mut hasher);
        hasher.finish()
    }
}

/// The instructions that call a computation, in the order of the module.
fn callers(graph: &Graph, callee: CompId) -> Vec<InstId> {
    let all = graph.computations().iter().flat_map(|&id| graph.instructions(id));
    all.filter(|&id| graph.called(id).contains(&callee)).collect()
}
