//! Attributes of instructions as Python values: numbers, texts and tuples where their syntax has
//! such a form, and their HLO text otherwise.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::ir::ops::attr::AttrValue;
use tilewright::ir::{InstId, Module as Graph};
use tilewright::text::print_attribute;

/// The value of an attribute, apart from its module.
#[derive(Debug)]
pub(crate) enum Attribute {
    Int(i64),
    Bool(bool),
    Float(f64),
    Text(String),
    Words(Vec<String>),
    Ints(Vec<i64>),
    Lists(Vec<Vec<i64>>),
}

impl Attribute {
    fn of(graph: &Graph, value: &AttrValue) -> Self {
        let computation = |id| graph.computation(id).name().to_owned();
        match value {
            AttrValue::Int(value) => Self::Int(*value),
            AttrValue::Bool(value) => Self::Bool(*value),
            AttrValue::Float(value) => Self::Float(value.0.into()),
            AttrValue::Str(text) | AttrValue::Word(text) => Self::Text(text.to_string()),
            AttrValue::Words(words) => Self::Words(words.iter().map(ToString::to_string).collect()),
            AttrValue::Dims(dims) => Self::Ints(dims.to_vec()),
            AttrValue::DimsLists(lists) => {
                Self::Lists(lists.iter().map(|list| list.to_vec()).collect())
            }
            AttrValue::Pairs(pairs) => {
                Self::Lists(pairs.iter().map(|&(a, b)| vec![a, b]).collect())
            }
            AttrValue::Computation(id) => Self::Text(computation(*id)),
            AttrValue::Computations(ids) => {
                Self::Words(ids.iter().map(|&id| computation(id)).collect())
            }
            other => Self::Text(print_attribute(graph, other)),
        }
    }

    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Int(value) => value.into_bound_py_any(py),
            Self::Bool(value) => value.into_bound_py_any(py),
            Self::Float(value) => value.into_bound_py_any(py),
            Self::Text(text) => text.into_bound_py_any(py),
            Self::Words(words) => Ok(PyTuple::new(py, words)?.into_any()),
            Self::Ints(ints) => Ok(PyTuple::new(py, ints)?.into_any()),
            Self::Lists(lists) => {
                let lists = lists.iter().map(|list| PyTuple::new(py, list));
                Ok(PyTuple::new(py, lists.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }
}

/// Returns the attributes of an instruction's op, in the order of its text.
pub(crate) fn of(graph: &Graph, id: InstId) -> Vec<(&'static str, Attribute)> {
    let mut all = Vec::new();
    graph.op(id).for_each_attr(&mut |name, value| all.push((name, Attribute::of(graph, &value))));
    all
}

/// Returns the attributes as a dict.
pub(crate) fn dict<'py>(
    py: Python<'py>,
    attributes: &[(&'static str, Attribute)],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in attributes {
        dict.set_item(name, value.shown(py)?)?;
    }
    Ok(dict)
}
