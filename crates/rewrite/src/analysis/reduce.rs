//! Plans a reduce of a reshape in another way: as a reduce, a reshape of its smaller result and a
//! second reduce, or as a window.

use smallvec::SmallVec;
use tilewright_ir::ops::control::GetTupleElementAttrs;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::ReshapeAttrs;
use tilewright_ir::ops::window::ReduceWindowAttrs;
use tilewright_ir::reducer::{Monoid, Reducer};
use tilewright_ir::{
    ArrayShape, CompId, Dims, ElementType, InstId, Layout, Literal, Module, Op, Patch, Shape, Value,
};

use super::digits::{Digits, ReducePlan, WindowPlan};
use crate::driver::Reason;
use crate::driver::numbers::{Class, FloatMode};

/// A reduce whose elements may be combined in another order.
#[derive(Clone, Debug)]
pub struct MonoidReduce {
    /// The reduce.
    pub id: InstId,
    /// The reducer of its computation: monoids side by side, or an extremum of pairs.
    pub reducer: Reducer,
}

impl MonoidReduce {
    /// The reduce `id`, if its computation is a [`Reducer`] and it has no attributes that a rewrite
    /// would lose. If floats must keep every bit, `None` unless another order keeps every bit.
    pub fn of(module: &Module, id: InstId, float_mode: FloatMode) -> Option<Self> {
        Self::or_why_not(module, id, float_mode).ok()
    }

    /// As [`Self::of`].
    ///
    /// # Errors
    /// If `id` is no such reduce.
    pub fn or_why_not(module: &Module, id: InstId, float_mode: FloatMode) -> Result<Self, Reason> {
        let Op::Reduce(attrs) = module.op(id) else { return Err(Reason::Reducer) };
        let operands = reduced_arrays(module, id).iter().map(|&array| module.shape(array));
        let mut shapes = operands.chain(module.shape(id).leaves());
        let is_other = |shape: &&Shape| !shape.as_array().is_some_and(is_plain);
        if let Some(other) = shapes.find(is_other) {
            let is_static = other.as_array().is_none_or(ArrayShape::is_static);
            return Err(if is_static { Reason::Layout } else { Reason::DynamicDims });
        }
        if module.extras(id).is_some() {
            return Err(Reason::Attached);
        }
        let reducer = Reducer::of(module, attrs.to_apply).ok_or(Reason::Reducer)?;
        if !float_mode.allow(Class::Regrouping) && !reducer.regroups_exactly() {
            return Err(match reducer {
                Reducer::Each(_) => Reason::Order,
                Reducer::ArgExtremum(_) => Reason::OrderOfNans,
            });
        }
        Ok(Self { id, reducer })
    }

    /// The reduced dims.
    pub fn dims<'a>(&self, module: &'a Module) -> &'a [i64] {
        match module.op(self.id) {
            Op::Reduce(attrs) => &attrs.dimensions,
            _ => &[],
        }
    }

    /// Adds to `patch` the same reduction of reshapes of `sources`, with as much of it before the
    /// reshapes as `digits` allow. `None`, and nothing added, if nothing can be reduced first or a
    /// monoid's identity has no literal.
    pub fn through(
        &self,
        module: &Module,
        digits: &Digits,
        sources: &[Value],
        patch: &mut Patch,
    ) -> Option<Value> {
        let plan = first_stage(digits, self.dims(module))?;
        let stages = self.stages(module)?;
        let firsts = self.first_inits(module, plan.remaining.is_empty(), patch)?;
        let first = stages.reduce(&plan.source_dims, &plan.source_result, sources, &firsts, patch);
        if plan.reshape_is_identity() {
            return Some(first);
        }
        let mut values = stages.apart(first, &plan.source_result, patch);
        stages.reshape(&mut values, &plan.reshape_to, patch);
        if plan.remaining.is_empty() {
            return stages.together(&values, patch);
        }
        let dims = stages.result.leaves().first()?.as_array()?.dims();
        Some(stages.reduce(&plan.remaining, dims, &values, &self.inits(module), patch))
    }

    /// Whether [`Self::through`] adds anything.
    pub fn goes_through(&self, module: &Module, digits: &Digits) -> bool {
        first_stage(digits, self.dims(module)).is_some_and(|plan| {
            self.first_inits(module, plan.remaining.is_empty(), &mut Patch::new()).is_some()
        })
    }

    /// As [`Self::through`], with a window in place of the reshape and the second reduce.
    pub fn windowed(
        &self,
        module: &Module,
        digits: &Digits,
        sources: &[Value],
        patch: &mut Patch,
    ) -> Option<Value> {
        let plan = window_plan(digits, self.dims(module))?;
        let stages = self.stages(module)?;
        let mut values: SmallVec<[Value; 2]> = sources.into();
        if !plan.source_dims.is_empty() {
            let firsts = self.first_inits(module, false, patch)?;
            let (dims, result) = (&plan.source_dims, &plan.source_result);
            let first = stages.reduce(dims, result, sources, &firsts, patch);
            values = stages.apart(first, result, patch);
        }
        let value = stages.window(&plan.window, &plan.result, &values, &self.inits(module), patch);
        if stages.shape(&plan.result) == *stages.result {
            return Some(value);
        }
        let mut values = stages.apart(value, &plan.result, patch);
        let dims = stages.result.leaves().first()?.as_array()?.dims();
        stages.reshape(&mut values, dims, patch);
        stages.together(&values, patch)
    }

    /// The stages that could replace the reduce, by its own computation.
    pub(crate) fn stages<'a>(&self, module: &'a Module) -> Option<Stages<'a>> {
        let Op::Reduce(attrs) = module.op(self.id) else { return None };
        Some(Stages { id: self.id, to_apply: attrs.to_apply, result: module.shape(self.id) })
    }

    /// The inits of the reduce.
    pub(crate) fn inits(&self, module: &Module) -> SmallVec<[Value; 2]> {
        let operands = module.operands(self.id);
        operands.split_at(operands.len() / 2).1.iter().map(|&init| Value::Old(init)).collect()
    }

    /// The inits of the first stage, added to `patch` if they are not the reduce's own. The own
    /// init is applied once, by the last stage, unless applying it twice changes nothing. `None`,
    /// and nothing added, if a monoid's identity has no literal.
    pub(crate) fn first_inits(
        &self,
        module: &Module,
        is_last: bool,
        patch: &mut Patch,
    ) -> Option<SmallVec<[Value; 2]>> {
        let operands = module.operands(self.id);
        let inits = operands.split_at(operands.len() / 2).1;
        let Reducer::Each(each) = &self.reducer else { return Some(self.inits(module)) };
        let first = |(monoid, &init): (&Monoid, &InstId)| {
            let is_neutral = |init| monoid.is_neutral(init);
            let own =
                is_last || monoid.is_idempotent() || module.constant(init).is_some_and(is_neutral);
            if own { Some(None) } else { monoid.identity().map(Some) }
        };
        let firsts: Option<SmallVec<[Option<Literal>; 2]>> =
            each.iter().zip(inits).map(first).collect();
        let firsts = firsts?.into_iter().zip(inits).map(|(identity, &init)| match identity {
            Some(identity) => {
                let shape = identity.shape();
                patch.add(self.id, Op::Constant(Box::new(identity)), shape, [])
            }
            None => Value::Old(init),
        });
        Some(firsts.collect())
    }
}

/// The plan of a reduce in stages, under construction.
pub(crate) struct Stages<'a> {
    /// The reduce that the stages replace.
    pub(crate) id: InstId,
    /// The computation that the stages reduce by.
    pub(crate) to_apply: CompId,
    /// The shape of the reduce: an array, or a tuple of arrays of the same dims.
    pub(crate) result: &'a Shape,
}

impl Stages<'_> {
    /// Adds a reduce of these dims of arrays; the result has the dims `result`.
    pub(crate) fn reduce(
        &self,
        dims: &[usize],
        result: &[i64],
        arrays: &[Value],
        inits: &[Value],
        patch: &mut Patch,
    ) -> Value {
        let dimensions: Dims = dims.iter().filter_map(|&d| i64::try_from(d).ok()).collect();
        let op = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: self.to_apply }));
        let arrays = arrays.iter().chain(inits).copied();
        patch.add(self.id, op, self.shape(result), arrays)
    }

    /// Adds a window that moves over arrays; the result has the dims `result`.
    pub(crate) fn window(
        &self,
        window: &[WindowDim],
        result: &[i64],
        arrays: &[Value],
        inits: &[Value],
        patch: &mut Patch,
    ) -> Value {
        let window = window.iter().copied().collect();
        let op = Op::ReduceWindow(Box::new(ReduceWindowAttrs { window, to_apply: self.to_apply }));
        let arrays = arrays.iter().chain(inits).copied();
        patch.add(self.id, op, self.shape(result), arrays)
    }

    /// Reshapes arrays that have the result's types to other dims.
    fn reshape(&self, values: &mut [Value], dims: &[i64], patch: &mut Patch) {
        for (value, shape) in values.iter_mut().zip(self.arrays(dims)) {
            *value = patch.add(self.id, reshape_op(), shape, [*value]);
        }
    }

    /// The arrays of a stage's value, each with these dims.
    pub(crate) fn apart(
        &self,
        value: Value,
        dims: &[i64],
        patch: &mut Patch,
    ) -> SmallVec<[Value; 2]> {
        if self.result.as_tuple().is_none() {
            return [value].into_iter().collect();
        }
        let element = |(index, shape)| {
            let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
            patch.add(self.id, op, shape, [value])
        };
        (0i64..).zip(self.arrays(dims)).map(element).collect()
    }

    /// The value of the reduce's shape that consists of these arrays.
    pub(crate) fn together(&self, values: &[Value], patch: &mut Patch) -> Option<Value> {
        match (self.result, values) {
            (Shape::Tuple(_), _) => {
                let values = values.iter().copied();
                Some(patch.add(self.id, Op::Tuple, self.result.clone(), values))
            }
            (_, &[only]) => Some(only),
            _ => None,
        }
    }

    /// The result's arrays with other dims.
    fn arrays(&self, dims: &[i64]) -> Vec<Shape> {
        let arrays = self.result.leaves().into_iter().filter_map(Shape::as_array);
        arrays.map(|like| shape_like(like, dims)).collect()
    }

    /// The result's shape with other dims.
    fn shape(&self, dims: &[i64]) -> Shape {
        match self.result {
            Shape::Tuple(_) => Shape::Tuple(self.arrays(dims)),
            Shape::Array(like) => shape_like(like, dims),
            other => other.clone(),
        }
    }
}

/// The arrays that a reduce reduces.
pub fn reduced_arrays(module: &Module, id: InstId) -> &[InstId] {
    let operands = module.operands(id);
    operands.split_at(operands.len() / 2).0
}

/// The plan that reduces as much as possible on the operand of a reshape, for a reduce of these
/// dims of the reshape; see [`Digits::reduce_first`].
pub fn first_stage(digits: &Digits, dims: &[i64]) -> Option<ReducePlan> {
    digits.reduce_first(&places(dims)?)
}

/// The plan that moves a window over the operand of a reshape, for a reduce of these dims of the
/// reshape; see [`Digits::windows`].
pub fn window_plan(digits: &Digits, dims: &[i64]) -> Option<WindowPlan> {
    digits.windows(&places(dims)?)
}

fn places(dims: &[i64]) -> Option<SmallVec<[usize; 6]>> {
    dims.iter().map(|&d| usize::try_from(d).ok()).collect()
}

/// Whether an array has static dims and is row-major, as the rewrites require.
pub fn is_plain(shape: &ArrayShape) -> bool {
    shape.is_static() && shape.has_default_layout()
}

/// A reshape without inferred dims.
pub fn reshape_op() -> Op {
    Op::Reshape(Box::new(ReshapeAttrs { inferred_dimension: None }))
}

/// A row-major array with the element type of `like` and other dims; its layout is explicit if that
/// of `like` is.
pub fn shape_like(like: &ArrayShape, dims: &[i64]) -> Shape {
    let layout = like.layout.as_ref().map(|_| Layout::descending(dims.len()));
    ArrayShape::new(like.element_type, dims.iter().copied()).with_layout(layout).into()
}

/// The same array with elements of another type.
pub fn of_type(array: &ArrayShape, element_type: ElementType) -> ArrayShape {
    let dims = array.dims().iter().copied();
    ArrayShape::new(element_type, dims).with_layout(array.layout.clone())
}
