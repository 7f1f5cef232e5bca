//! Modules built op by op.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use tilewright::ir::ops::attr::Word as _;
use tilewright::ir::ops::contract::DotAttrs;
use tilewright::ir::ops::elementwise::Direction;
use tilewright::ir::reducer::Monoid;
use tilewright::ir::{BuildError, Builder as Inner, CompId, InstId, Opcode};

use crate::error::{unbuilt, usage};
use crate::expression::{Request, misread, opcode};
use crate::module::Module;
use crate::shape::{Shape, ShapeLike};
use crate::value::{named, taken};

/// Builds a module op by op.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Builder {
    /// `None` once the module is finished.
    inner: Mutex<Option<Inner>>,
}

/// A value of a module that is being built.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Value {
    builder: Py<Builder>,
    id: InstId,
}

/// A computation of a module that is being built, which other computations can call.
#[pyclass(frozen, module = "tilewright")]
#[derive(Debug)]
pub(crate) struct Subcomputation {
    builder: Py<Builder>,
    id: CompId,
}

/// How a reduction combines two elements.
#[derive(FromPyObject)]
enum By<'py> {
    #[pyo3(transparent)]
    Monoid(String),
    #[pyo3(transparent)]
    Computation(PyRef<'py, Subcomputation>),
}

impl Builder {
    fn lock(&self) -> MutexGuard<'_, Option<Inner>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the builder. Nothing in `f` runs Python code, since the lock is held.
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> Result<T, BuildError>) -> PyResult<T> {
        let done = self.lock().as_mut().map(f);
        done.ok_or_else(|| usage("the module is finished; begin another `Builder`"))?
            .map_err(unbuilt)
    }

    /// The id of a value of this builder.
    fn own(slf: &Bound<'_, Self>, value: &Value) -> PyResult<InstId> {
        if value.builder.as_ptr() == slf.as_ptr() {
            return Ok(value.id);
        }
        Err(usage("the value belongs to another builder"))
    }

    /// The id of a computation of this builder.
    fn callee(slf: &Bound<'_, Self>, computation: &Subcomputation) -> PyResult<CompId> {
        if computation.builder.as_ptr() == slf.as_ptr() {
            return Ok(computation.id);
        }
        Err(usage("the computation belongs to another builder"))
    }

    fn all_own(slf: &Bound<'_, Self>, values: &[PyRef<'_, Value>]) -> PyResult<Vec<InstId>> {
        values.iter().map(|value| Self::own(slf, value)).collect()
    }

    /// Adds an instruction.
    fn add(
        slf: &Bound<'_, Self>,
        f: impl FnOnce(&mut Inner) -> Result<InstId, BuildError>,
    ) -> PyResult<Value> {
        let id = slf.get().with(f)?;
        Ok(Value { builder: slf.clone().unbind(), id })
    }

    /// Adds an op with attributes as text.
    fn written(
        slf: &Bound<'_, Self>,
        request: Request<'_>,
        operands: &[InstId],
    ) -> PyResult<Value> {
        let read = |inner: &mut Inner| {
            // The instruction is not removed by itself: the only one of a computation is its root.
            Ok(inner.trial(|graph, computation| request.added(graph, computation, operands)))
        };
        let (_, made) = slf.get().with(read)?.map_err(misread)?;
        Self::add(slf, |b| b.op_with_shape(made.op, made.shape, operands))
    }

    /// A computation that combines two elements, and the value that it begins with.
    fn monoid(
        slf: &Bound<'_, Self>,
        monoid: &str,
        array: InstId,
    ) -> PyResult<(CompId, Option<tilewright::ir::Literal>)> {
        const NAMES: [&str; 7] = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"];
        if !NAMES.contains(&monoid) {
            let names = NAMES.join(", ");
            return Err(usage(format!("there is no monoid `{monoid}`; there are: {names}")));
        }
        let opcode = opcode(monoid)?;
        slf.get().with(|b| {
            let element_type = b.array_shape(array)?.element_type;
            let identity = Monoid { opcode, element_type }.identity();
            Ok((b.reducer(opcode, element_type)?, identity))
        })
    }
}

#[pymethods]
impl Builder {
    #[new]
    #[pyo3(signature = (name="module"))]
    fn new(name: &str) -> Self {
        Self { inner: Mutex::new(Some(Inner::new(name))) }
    }

    /// Adds the next parameter.
    fn parameter(slf: &Bound<'_, Self>, name: &str, shape: ShapeLike<'_>) -> PyResult<Value> {
        let shape = shape.shape()?;
        Self::add(slf, |b| b.parameter(name, shape))
    }

    /// Adds a constant from an array, or from a number or list with an element type.
    #[pyo3(signature = (value, element_type=None))]
    fn constant(
        slf: &Bound<'_, Self>,
        value: &Bound<'_, PyAny>,
        element_type: Option<&str>,
    ) -> PyResult<Value> {
        let value = taken(value, element_type)?;
        Self::add(slf, |b| b.constant(value))
    }

    /// Adds any op, with attributes as in text.
    #[pyo3(signature = (opcode, operands=vec![], attributes="", *, shape=None))]
    fn op(
        slf: &Bound<'_, Self>,
        opcode: &str,
        operands: Vec<PyRef<'_, Value>>,
        attributes: &str,
        shape: Option<ShapeLike<'_>>,
    ) -> PyResult<Value> {
        let operands = Self::all_own(slf, &operands)?;
        let shape = shape.map(|shape| shape.shape()).transpose()?;
        let opcode = self::opcode(opcode)?;
        Self::written(slf, Request { opcode, attributes, shape: shape.as_ref() }, &operands)
    }

    /// Adds a computation that others can call: `build` gets the builder, adds the instructions and
    /// returns the root.
    fn computation(
        slf: &Bound<'_, Self>,
        name: &str,
        build: &Bound<'_, PyAny>,
    ) -> PyResult<Subcomputation> {
        let begun = slf.get().with(|b| b.begin_computation(name))?;
        let built = build.call1((slf,)).and_then(|root| {
            let root: PyRef<'_, Value> = root.extract().map_err(|_| {
                usage(format!("`build` returns the root of `{name}`, a value of this builder"))
            })?;
            Self::own(slf, &root)
        });
        let id = slf.get().with(|b| match built {
            Ok(root) => b.end_computation(begun, root).map(Ok),
            Err(raised) => b.abandon_computation(begun).map(|()| Err(raised)),
        })??;
        Ok(Subcomputation { builder: slf.clone().unbind(), id })
    }

    /// Adds a call of a computation.
    fn call(
        slf: &Bound<'_, Self>,
        to_apply: &Subcomputation,
        operands: Vec<PyRef<'_, Value>>,
    ) -> PyResult<Value> {
        let (to_apply, operands) = (Self::callee(slf, to_apply)?, Self::all_own(slf, &operands)?);
        Self::add(slf, |b| b.call(to_apply, &operands))
    }

    /// Adds a loop: while `condition` yields true of the state, `body` makes the next one. The state
    /// is one value, for several a tuple.
    fn while_loop(
        slf: &Bound<'_, Self>,
        condition: &Subcomputation,
        body: &Subcomputation,
        init: &Value,
    ) -> PyResult<Value> {
        let (condition, body) = (Self::callee(slf, condition)?, Self::callee(slf, body)?);
        let init = Self::own(slf, init)?;
        Self::add(slf, |b| b.while_loop(condition, body, init))
    }

    /// Adds a branch: `on_true` of `true_operand` if the scalar `pred` is true, `on_false` of
    /// `false_operand` otherwise. Both take one parameter and return the same shape.
    fn conditional(
        slf: &Bound<'_, Self>,
        pred: &Value,
        on_true: &Subcomputation,
        true_operand: &Value,
        on_false: &Subcomputation,
        false_operand: &Value,
    ) -> PyResult<Value> {
        let pred = Self::own(slf, pred)?;
        let (on_true, on_false) = (Self::callee(slf, on_true)?, Self::callee(slf, on_false)?);
        let (yes, no) = (Self::own(slf, true_operand)?, Self::own(slf, false_operand)?);
        Self::add(slf, |b| b.conditional(pred, yes, on_true, no, on_false))
    }

    /// Adds a choice of branches, each with its operand, by a scalar of `s32`. An index out of range
    /// chooses the last branch.
    fn conditional_by_index(
        slf: &Bound<'_, Self>,
        index: &Value,
        branches: Vec<(PyRef<'_, Subcomputation>, PyRef<'_, Value>)>,
    ) -> PyResult<Value> {
        let index = Self::own(slf, index)?;
        let branches = branches.iter().map(|(computation, operand)| {
            Ok((Self::callee(slf, computation)?, Self::own(slf, operand)?))
        });
        let branches = branches.collect::<PyResult<Vec<_>>>()?;
        Self::add(slf, |b| b.conditional_by_index(index, branches))
    }

    /// Adds a sort along a dim. `comparator` takes two elements of each operand and yields whether
    /// the first stands before the second; several operands are sorted together, into a tuple.
    #[pyo3(signature = (operands, dimension, comparator, *, is_stable=false))]
    fn sort(
        slf: &Bound<'_, Self>,
        operands: Vec<PyRef<'_, Value>>,
        dimension: i64,
        comparator: &Subcomputation,
        is_stable: bool,
    ) -> PyResult<Value> {
        let operands = Self::all_own(slf, &operands)?;
        let comparator = Self::callee(slf, comparator)?;
        Self::add(slf, |b| b.sort(&operands, dimension, comparator, is_stable))
    }

    /// Adds an elementwise op of one operand: `negate`, `exponential`.
    fn unary(slf: &Bound<'_, Self>, opcode: &str, operand: &Value) -> PyResult<Value> {
        let (opcode, operand) = (self::opcode(opcode)?, Self::own(slf, operand)?);
        Self::add(slf, |b| b.unary(opcode, operand))
    }

    /// Adds an elementwise op of two operands of one shape: `add`, `maximum`.
    fn binary(slf: &Bound<'_, Self>, opcode: &str, lhs: &Value, rhs: &Value) -> PyResult<Value> {
        let opcode = self::opcode(opcode)?;
        let (lhs, rhs) = (Self::own(slf, lhs)?, Self::own(slf, rhs)?);
        Self::add(slf, |b| b.binary(opcode, lhs, rhs))
    }

    /// Adds a comparison: `EQ`, `NE`, `LT`, `LE`, `GT` or `GE`. The result is `pred`.
    fn compare(
        slf: &Bound<'_, Self>,
        direction: &str,
        lhs: &Value,
        rhs: &Value,
    ) -> PyResult<Value> {
        let none =
            || usage(format!("there is no direction `{direction}`: {}", Direction::EXPECTED));
        let direction = Direction::from_name(direction).ok_or_else(none)?;
        let (lhs, rhs) = (Self::own(slf, lhs)?, Self::own(slf, rhs)?);
        Self::add(slf, |b| b.compare(direction, lhs, rhs))
    }

    /// Adds a choice between two values by truth values.
    fn select(
        slf: &Bound<'_, Self>,
        which: &Value,
        on_true: &Value,
        on_false: &Value,
    ) -> PyResult<Value> {
        let which = Self::own(slf, which)?;
        let (on_true, on_false) = (Self::own(slf, on_true)?, Self::own(slf, on_false)?);
        Self::add(slf, |b| b.select(which, on_true, on_false))
    }

    /// Adds a conversion to another element type.
    fn convert(slf: &Bound<'_, Self>, operand: &Value, element_type: &str) -> PyResult<Value> {
        let (operand, element_type) = (Self::own(slf, operand)?, named(element_type)?);
        Self::add(slf, |b| b.convert(operand, element_type))
    }

    /// Adds a reshape: the same elements in row-major order.
    fn reshape(slf: &Bound<'_, Self>, operand: &Value, dims: Vec<i64>) -> PyResult<Value> {
        let operand = Self::own(slf, operand)?;
        Self::add(slf, |b| b.reshape(operand, dims))
    }

    /// Adds a broadcast to `dims`: operand dim `i` becomes result dim `dimensions[i]`.
    #[pyo3(signature = (operand, dims, dimensions=vec![]))]
    fn broadcast(
        slf: &Bound<'_, Self>,
        operand: &Value,
        dims: Vec<i64>,
        dimensions: Vec<i64>,
    ) -> PyResult<Value> {
        let operand = Self::own(slf, operand)?;
        Self::add(slf, |b| b.broadcast(operand, dims, dimensions))
    }

    /// Adds a transpose: result dim `i` is operand dim `permutation[i]`.
    fn transpose(slf: &Bound<'_, Self>, operand: &Value, permutation: Vec<i64>) -> PyResult<Value> {
        let operand = Self::own(slf, operand)?;
        Self::add(slf, |b| b.transpose(operand, permutation))
    }

    /// Adds a reduction along `dimensions` by `add`, `multiply`, `maximum`, `minimum`, `and`, `or`
    /// or `xor`, or by a computation. It begins with the identity unless `init` is given; with a
    /// computation, `init` must be given.
    #[pyo3(signature = (operand, by, dimensions, init=None))]
    fn reduce(
        slf: &Bound<'_, Self>,
        operand: &Value,
        by: By<'_>,
        dimensions: Vec<i64>,
        init: Option<&Value>,
    ) -> PyResult<Value> {
        let operand = Self::own(slf, operand)?;
        let init = init.map(|init| Self::own(slf, init)).transpose()?;
        let (by, identity, name) = match by {
            By::Computation(by) => (Self::callee(slf, &by)?, None, "a computation".to_owned()),
            By::Monoid(monoid) => {
                let (by, identity) = Self::monoid(slf, &monoid, operand)?;
                (by, identity, format!("`{monoid}` of this type"))
            }
        };
        let init = match (init, identity) {
            (Some(init), _) => init,
            (None, Some(identity)) => slf.get().with(|b| b.constant(identity))?,
            (None, None) => return Err(usage(format!("{name} needs an `init`"))),
        };
        Self::add(slf, |b| b.reduce(operand, init, dimensions, by))
    }

    /// Adds a product. By default the last dim of `lhs` is summed with the first of `rhs`. The
    /// result has the batch dims, then the other dims of `lhs`, then those of `rhs`.
    #[pyo3(signature = (
        lhs, rhs, *, lhs_contracting=None, rhs_contracting=None, lhs_batch=vec![],
        rhs_batch=vec![], element_type=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "most have defaults in Python")]
    fn dot(
        slf: &Bound<'_, Self>,
        lhs: &Value,
        rhs: &Value,
        lhs_contracting: Option<Vec<i64>>,
        rhs_contracting: Option<Vec<i64>>,
        lhs_batch: Vec<i64>,
        rhs_batch: Vec<i64>,
        element_type: Option<&str>,
    ) -> PyResult<Value> {
        let (lhs, rhs) = (Self::own(slf, lhs)?, Self::own(slf, rhs)?);
        let element_type = element_type.map(named).transpose()?;
        let (left, right) = match (lhs_contracting, rhs_contracting) {
            (None, None) if lhs_batch.is_empty() && rhs_batch.is_empty() => {
                let rank = slf.get().with(|b| Ok(b.array_shape(lhs)?.rank()))?;
                let last = i64::try_from(rank)?.checked_sub(1).filter(|&last| last >= 0);
                let last = last.ok_or_else(|| usage("a scalar has no dim to sum"))?;
                (vec![last], vec![0])
            }
            (Some(left), Some(right)) => (left, right),
            _ => return Err(usage("give `lhs_contracting` and `rhs_contracting`, or no dims")),
        };
        let attrs = DotAttrs {
            lhs_batch_dims: lhs_batch.into(),
            rhs_batch_dims: rhs_batch.into(),
            lhs_contracting_dims: left.into(),
            rhs_contracting_dims: right.into(),
            ..DotAttrs::default()
        };
        Self::add(slf, |b| b.dot_general(lhs, rhs, attrs, element_type))
    }

    /// Adds a tuple.
    fn tuple(slf: &Bound<'_, Self>, elements: Vec<PyRef<'_, Value>>) -> PyResult<Value> {
        let elements = Self::all_own(slf, &elements)?;
        Self::add(slf, |b| b.tuple(elements))
    }

    /// Adds the element of a tuple with this number, from 0.
    fn get_tuple_element(slf: &Bound<'_, Self>, tuple: &Value, index: i64) -> PyResult<Value> {
        let tuple = Self::own(slf, tuple)?;
        Self::add(slf, |b| b.get_tuple_element(tuple, index))
    }

    /// Returns the module with this result. The builder cannot be used any more.
    fn finish(slf: &Bound<'_, Self>, root: &Value) -> PyResult<Module> {
        let root = Self::own(slf, root)?;
        slf.get().with(|_| Ok(()))?;
        let inner = slf.get().lock().take();
        let inner = inner.ok_or_else(|| usage("the module is finished"))?;
        Ok(inner.finish(root).map_err(unbuilt)?.into())
    }
}

#[pymethods]
impl Subcomputation {
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.builder.get().with(|b| Ok(b.module().computation(self.id).name().to_owned()))
    }

    fn __repr__(&self) -> String {
        self.name().map_or_else(
            |_| "<Subcomputation of a finished module>".to_owned(),
            |name| format!("<Subcomputation {name}>"),
        )
    }
}

#[pymethods]
impl Value {
    #[getter]
    fn shape(&self) -> PyResult<Shape> {
        Ok(Shape(self.builder.get().with(|b| Ok(b.module().shape(self.id).clone()))?))
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        self.builder.get().with(|b| Ok(b.module().name_of(self.id).to_owned()))
    }

    #[getter]
    fn opcode(&self) -> PyResult<&'static str> {
        self.builder.get().with(|b| Ok(Opcode::name(b.module().opcode(self.id))))
    }

    fn __repr__(&self) -> String {
        let text = self.builder.get().with(|b| {
            let module = b.module();
            Ok(format!("<Value {}: {:#}>", module.name_of(self.id), module.shape(self.id)))
        });
        text.unwrap_or_else(|_| "<Value of a finished module>".to_owned())
    }
}
