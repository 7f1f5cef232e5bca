//! Shapes of values.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright::ir::{ArrayShape, Shape as Type};
use tilewright::text::parse_shape;

use crate::error::{ExceptionKind, plain};

/// The shape of a value: an array, a tuple or a token.
#[pyclass(frozen, eq, hash, module = "tilewright")]
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape(pub(crate) Type);

/// A shape, or its text.
#[derive(FromPyObject)]
pub(crate) enum ShapeLike<'py> {
    #[pyo3(transparent)]
    Shape(PyRef<'py, Shape>),
    #[pyo3(transparent)]
    Text(String),
}

impl ShapeLike<'_> {
    pub(crate) fn shape(&self) -> PyResult<Type> {
        match self {
            Self::Shape(shape) => Ok(shape.0.clone()),
            Self::Text(text) => parsed(text),
        }
    }
}

fn parsed(text: &str) -> PyResult<Type> {
    parse_shape(text)
        .map_err(|errors| plain(ExceptionKind::Parse, format!("shape `{text}`: {errors}")))
}

#[pymethods]
impl Shape {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Ok(Self(parsed(text)?))
    }

    /// The element type, as `f32`; `None` if it is not an array, as below.
    #[getter]
    fn element_type(&self) -> Option<&'static str> {
        self.0.as_array().map(|array| array.element_type.name())
    }

    /// The size of each dim.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.as_array().map(|array| PyTuple::new(py, array.dims())).transpose()
    }

    /// The number of dims.
    #[getter]
    fn rank(&self) -> Option<usize> {
        self.0.as_array().map(ArrayShape::rank)
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> Option<i64> {
        self.0.as_array().and_then(ArrayShape::num_elements)
    }

    /// The layout as in text, `{1,0}`; `None` if it is not written.
    #[getter]
    fn layout(&self) -> Option<String> {
        self.0.as_array()?.layout.as_ref().map(ToString::to_string)
    }

    /// Whether the size of each dim is known only at run time; `dims` has the most.
    #[getter]
    fn dynamic_dims<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let dynamic = |array: &ArrayShape| {
            PyTuple::new(py, (0..array.rank()).map(|dim| array.dim_is_dynamic(dim)))
        };
        self.0.as_array().map(dynamic).transpose()
    }

    #[getter]
    fn is_tuple(&self) -> bool {
        self.0.as_tuple().is_some()
    }

    /// The shapes of the elements of a tuple; empty for other shapes.
    #[getter]
    fn elements(&self) -> Vec<Self> {
        self.0.as_tuple().unwrap_or_default().iter().cloned().map(Self).collect()
    }

    fn __str__(&self) -> String {
        format!("{:#}", self.0)
    }

    fn __repr__(&self) -> String {
        format!("Shape(\"{:#}\")", self.0)
    }
}
