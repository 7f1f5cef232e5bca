//! Builds the instructions that a rule puts in the place of a matched expression.

use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::{BroadcastAttrs, TransposeAttrs};
use tilewright_ir::{
    ArrayShape, CompId, Dims, ElementType, InstId, Literal, Module, Op, Opcode, Patch, Shape,
    Value, infer_shape,
};

use super::matcher::Match;
use super::refused::Refused;
use super::rule::reads;
use crate::analysis::reduce::reshape_op;

/// The instructions that replace a matched expression, under construction.
///
/// The instructions are inserted before the instruction that the whole pattern matches (the *root*)
/// and take its metadata. Their shapes are inferred. Each method that adds an instruction returns
/// its value, or `None` if the operands do not fit the op; a rule that returns this `None` is not
/// applied.
#[derive(Debug)]
pub struct Replacement<'m> {
    module: &'m Module,
    root: InstId,
    patch: Patch,
}

impl<'m> Replacement<'m> {
    pub(super) fn of(found: &Match<'m>) -> Self {
        Self { module: found.module(), root: found.root(), patch: Patch::new() }
    }

    /// The edits that put a value in the place of the matched expression.
    ///
    /// # Errors
    /// If the value is none of the patch, is the expression itself or has another shape, or if the
    /// extras of a matched instruction would be lost.
    pub(super) fn replaced_by(mut self, value: Value, found: &Match<'_>) -> Result<Patch, Refused> {
        if value == Value::Old(self.root) {
            return Err(Refused::Itself);
        }
        let (old, new) =
            (self.module.shape(self.root), self.shape(value).ok_or(Refused::NotPlanned)?);
        if !(old == new || (old.compatible(new) && same_layouts(old, new))) {
            return Err(Refused::OtherShape);
        }
        self.patch.replace(self.root, value);
        match self.loses(value, found) {
            Some(id) => Err(Refused::Lost(id)),
            None => Ok(self.patch),
        }
    }

    /// A matched instruction whose extras would be lost: the root, unless the new value has them, or
    /// one below it that nothing new reads.
    fn loses(&self, value: Value, found: &Match<'_>) -> Option<InstId> {
        let carries = |id: InstId| self.module.extras(id).is_some();
        let kept = match value {
            Value::New(place) => self.patch.planned().get(place)?.extras.is_some(),
            Value::Old(_) => false,
        };
        if carries(self.root) && !kept {
            return Some(self.root);
        }
        let is_constant = |id: InstId| self.module.opcode(id) == Opcode::Constant;
        let mut below = found.ops().iter().copied();
        below.find(|&id| carries(id) && !is_constant(id) && !reads(&self.patch, id))
    }

    /// Gives a new value the extras of the matched expression: its sharding, its frontend
    /// attributes and the values of the original program that it computes. Returns `None` if it has
    /// any others, such as control dependencies, or if the value is not new.
    pub fn keep_extras(&mut self, value: Value) -> Option<Value> {
        let Value::New(_) = value else { return None };
        let Some(extras) = self.module.extras(self.root) else { return Some(value) };
        let mut others = extras.clone();
        (others.sharding, others.origin) = (None, None);
        others.frontend_attributes.clear();
        (others.is_empty() && self.patch.set_extras(value, extras.clone())).then_some(value)
    }

    /// The shape of a value; `None` if the value was not planned here.
    pub fn shape(&self, value: Value) -> Option<&Shape> {
        match value {
            Value::Old(id) => Some(self.module.shape(id)),
            Value::New(place) => self.patch.planned().get(place).map(|planned| &planned.shape),
        }
    }

    /// The shape of a value, if it is an array.
    pub fn array(&self, value: Value) -> Option<&ArrayShape> {
        self.shape(value)?.as_array()
    }

    /// Adds an instruction whose shape follows from its operands. An elementwise op has the layout
    /// of its operands, which must have one; `None` if another op reads an array that does not lie
    /// in row-major order.
    pub fn op<V: Into<Value>>(
        &mut self,
        op: Op,
        operands: impl IntoIterator<Item = V>,
    ) -> Option<Value> {
        let operands: Vec<Value> = operands.into_iter().map(Into::into).collect();
        let shapes = self.shapes(&operands)?;
        let shape = infer_shape(self.module, &op, &shapes, None).ok()?;
        let shape = match shape {
            Shape::Array(array) if op.opcode().is_elementwise() => {
                elementwise_layout(array, &shapes)?
            }
            other if shapes.iter().all(|shape| lies_row_major(shape)) => other,
            _ => return None,
        };
        let shape = self.laid_out(shape);
        Some(self.patch.add(self.root, op, shape, operands))
    }

    fn shapes(&self, values: &[Value]) -> Option<Vec<&Shape>> {
        values.iter().map(|&value| self.shape(value)).collect()
    }

    /// A shape as the module writes it: with its row-major layout, if the matched expression
    /// has one.
    fn laid_out(&self, shape: Shape) -> Shape {
        let says_layouts = self.module.array_shape(self.root).is_some_and(|a| a.layout.is_some());
        match shape {
            Shape::Array(array) if says_layouts && array.layout.is_none() => {
                let layout = array.layout_or_default();
                Shape::Array(array.with_layout(Some(layout)))
            }
            other => other,
        }
    }

    /// Adds an instruction with the shape of the root, layout included.
    pub fn op_like_root<V: Into<Value>>(
        &mut self,
        op: Op,
        operands: impl IntoIterator<Item = V>,
    ) -> Option<Value> {
        let shape = self.module.shape(self.root).clone();
        self.op_with_shape(op, shape, operands)
    }

    /// Adds an instruction with this shape.
    pub fn op_with_shape<V: Into<Value>>(
        &mut self,
        op: Op,
        shape: Shape,
        operands: impl IntoIterator<Item = V>,
    ) -> Option<Value> {
        let operands: Vec<Value> = operands.into_iter().map(Into::into).collect();
        infer_shape(self.module, &op, &self.shapes(&operands)?, Some(&shape)).ok()?;
        Some(self.patch.add(self.root, op, shape, operands))
    }

    /// Adds an op without attributes, such as `add` or `exponential`.
    pub fn plain<V: Into<Value>>(
        &mut self,
        opcode: Opcode,
        operands: impl IntoIterator<Item = V>,
    ) -> Option<Value> {
        let op = Op::from_attrs(opcode, &mut AttrValues::default()).ok()?;
        self.op(op, operands)
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: Literal) -> Option<Value> {
        self.op(Op::Constant(Box::new(value)), [] as [Value; 0])
    }

    /// Adds a reshape to these dims; `None` if the value does not lie in row-major order.
    pub fn reshape(&mut self, value: impl Into<Value>, dims: &[i64]) -> Option<Value> {
        let value = value.into();
        let array = self.array(value).filter(|array| array.has_default_layout())?;
        let element_type = array.element_type;
        let shape = ArrayShape::new(element_type, dims.iter().copied()).into();
        let shape = self.laid_out(shape);
        self.op_with_shape(reshape_op(), shape, [value])
    }

    /// Adds a transpose. Dim `d` of its result is dim `order[d]` of the value.
    pub fn transpose(&mut self, value: impl Into<Value>, order: &[i64]) -> Option<Value> {
        let attrs = TransposeAttrs { dimensions: Dims::from_slice(order) };
        self.op(Op::Transpose(Box::new(attrs)), [value])
    }

    /// Adds a broadcast to these dims, in row-major order. Dim `d` of the value becomes dim `places[d]` of
    /// the result.
    pub fn broadcast(
        &mut self,
        value: impl Into<Value>,
        dims: &[i64],
        places: &[i64],
    ) -> Option<Value> {
        let value = value.into();
        let element_type = self.array(value)?.element_type;
        let shape = self.laid_out(ArrayShape::new(element_type, dims.iter().copied()).into());
        let attrs = BroadcastAttrs { dimensions: Dims::from_slice(places) };
        self.op_with_shape(Op::Broadcast(Box::new(attrs)), shape, [value])
    }

    /// Adds a conversion to an element type.
    pub fn convert(&mut self, value: impl Into<Value>, element_type: ElementType) -> Option<Value> {
        let value = value.into();
        let mut array = self.array(value)?.clone();
        array.element_type = element_type;
        self.op_with_shape(Op::Convert, Shape::from(array), [value])
    }

    /// Adds a reduce of an array along these dims that starts from `init`. The computation `by` of
    /// the module combines the elements.
    pub fn reduce(
        &mut self,
        array: impl Into<Value>,
        init: impl Into<Value>,
        dims: &[i64],
        by: CompId,
    ) -> Option<Value> {
        let mut dimensions = Dims::from_slice(dims);
        dimensions.sort_unstable();
        let attrs = ReduceAttrs { dimensions, to_apply: by };
        self.op(Op::Reduce(Box::new(attrs)), [array.into(), init.into()])
    }
}

/// The result of an elementwise op in the layout of those operands that have its rank; `None` if
/// these differ.
fn elementwise_layout(result: ArrayShape, operands: &[&Shape]) -> Option<Shape> {
    let arrays = operands.iter().filter_map(|shape| shape.as_array());
    let mut alike = arrays.filter(|array| array.rank() == result.rank());
    let Some(first) = alike.next() else { return Some(result.into()) };
    let layout = first.layout_or_default();
    let same = alike.all(|array| array.layout_or_default() == layout);
    same.then(|| result.with_layout(first.layout.clone()).into())
}

/// Whether the arrays of a value lie in row-major order.
fn lies_row_major(shape: &Shape) -> bool {
    let mut arrays = shape.leaves().into_iter().filter_map(Shape::as_array);
    arrays.all(ArrayShape::has_default_layout)
}

/// Whether arrays of one shape lie in memory in one order.
fn same_layouts(one: &Shape, other: &Shape) -> bool {
    match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => one.layout_or_default() == other.layout_or_default(),
        _ => one == other,
    }
}
