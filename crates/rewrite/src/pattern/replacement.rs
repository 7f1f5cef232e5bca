//! Builds the instructions that a rule puts in the place of a matched expression.

use tilewright_ir::ops::attr::AttrValues;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::{BroadcastAttrs, TransposeAttrs};
use tilewright_ir::{
    ArrayShape, CompId, Dims, ElementType, InstId, Literal, Module, Op, Opcode, Patch, Shape,
    Value, infer_shape,
};

use super::matcher::Match;
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

    /// The edits that put a value in the place of the matched expression; `None` if the value has
    /// another shape.
    pub(super) fn replaced_by(mut self, value: Value) -> Option<Patch> {
        let (old, new) = (self.module.shape(self.root), self.patch.shape(self.module, value));
        let fits = old == new || (old.compatible(new) && same_layouts(old, new));
        self.patch.replace(self.root, value);
        fits.then_some(self.patch)
    }

    /// The shape of a value.
    pub fn shape(&self, value: Value) -> &Shape {
        self.patch.shape(self.module, value)
    }

    /// The shape of a value, if it is an array.
    pub fn array(&self, value: Value) -> Option<&ArrayShape> {
        self.shape(value).as_array()
    }

    /// Adds an instruction whose shape follows from its operands.
    pub fn op<V: Into<Value>>(
        &mut self,
        op: Op,
        operands: impl IntoIterator<Item = V>,
    ) -> Option<Value> {
        let operands: Vec<Value> = operands.into_iter().map(Into::into).collect();
        let shapes: Vec<&Shape> = operands.iter().map(|&value| self.shape(value)).collect();
        let shape = infer_shape(self.module, &op, &shapes, None).ok()?;
        let shape = self.laid_out(shape);
        Some(self.patch.add(self.root, op, shape, operands))
    }

    /// The shape with an explicit row-major layout if the root has an explicit layout.
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
        let shapes: Vec<&Shape> = operands.iter().map(|&value| self.shape(value)).collect();
        infer_shape(self.module, &op, &shapes, Some(&shape)).ok()?;
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

    /// Adds a row-major reshape to these dims.
    pub fn reshape(&mut self, value: impl Into<Value>, dims: &[i64]) -> Option<Value> {
        let value = value.into();
        let element_type = self.array(value)?.element_type;
        let shape = ArrayShape::new(element_type, dims.iter().copied()).into();
        let shape = self.laid_out(shape);
        self.op_with_shape(reshape_op(), shape, [value])
    }

    /// Adds a transpose. Dim `d` of its result is dim `order[d]` of the value.
    pub fn transpose(&mut self, value: impl Into<Value>, order: &[i64]) -> Option<Value> {
        let attrs = TransposeAttrs { dimensions: Dims::from_slice(order) };
        self.op(Op::Transpose(Box::new(attrs)), [value])
    }

    /// Adds a broadcast to a shape. Dim `d` of the value becomes dim `places[d]` of the result.
    pub fn broadcast(
        &mut self,
        value: impl Into<Value>,
        places: &[i64],
        shape: Shape,
    ) -> Option<Value> {
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

/// Whether two arrays of the same dims have the same order of elements in memory.
fn same_layouts(one: &Shape, other: &Shape) -> bool {
    match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => one.layout_or_default() == other.layout_or_default(),
        _ => one == other,
    }
}
