//! Infers the shape of a result at run time, op by op. Most ops infer it from their operands;
//! the ops with a declared shape are below.

use tilewright_ir::ops::dims::{SliceDim, WindowDim};
use tilewright_ir::ops::shaping::{BroadcastAttrs, SliceAttrs};
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{ArrayShape, Dims, Family, InstId, Op, Shape, Verified, infer_shape};

use super::{reshape, shape_of};
use crate::error::{Fault, Outcome};
use crate::eval::{Operands, unsupported};
use crate::strides::extent;
use crate::value::{Array, Value};

/// A dynamic instruction, and its operands.
struct Given<'a> {
    module: &'a Verified,
    id: InstId,
    operands: &'a [Value],
}

pub(super) fn shape(module: &Verified, id: InstId, operands: &Operands) -> Outcome<Shape> {
    let given = Given { module, id, operands };
    let declared = module.shape(id);
    let dims = match module.op(id) {
        op if op.opcode().family() == Family::Collective => {
            return Err(unsupported("devices hand each other no values of dynamic dims here"));
        }
        Op::Constant(literal) => return Ok(literal.shape()),
        Op::Iota(_) => given.bounds()?,
        Op::Convert | Op::StochasticConvert => given.array(0)?.dims().into(),
        Op::Broadcast(attrs) => given.broadcast(attrs)?,
        Op::BitcastConvert => given.bitcast_convert()?,
        Op::Bitcast => given.bitcast()?,
        Op::Reshape(_) => {
            reshape::dims(given.declared(0)?, given.array(0)?.dims(), given.result()?)?
        }
        Op::DynamicReshape => given.dynamic_reshape()?,
        Op::SetDimensionSize(attrs) => given.set_dimension_size(&attrs.dimensions)?,
        Op::Slice(attrs) => given.slice(attrs)?,
        Op::DynamicSlice(attrs) => given.dynamic_slice(&attrs.dynamic_slice_sizes)?,
        Op::DynamicUpdateSlice => given.dynamic_update_slice()?,
        Op::ReduceWindow(attrs) => {
            given.check_window(&attrs.window)?;
            return given.by_rule();
        }
        Op::SelectAndScatter(attrs) => {
            given.check_window(&attrs.window)?;
            return given.by_rule();
        }
        // A rule that needs a declared shape and is not handled above is an error.
        _ => return given.by_rule(),
    };
    let element_type = declared.as_array().map(|array| array.element_type);
    let element_type = element_type.ok_or(Fault::Internal("its result is not an array"))?;
    Ok(Shape::array(element_type, dims))
}

impl<'a> Given<'a> {
    fn array(&self, index: usize) -> Outcome<&'a Array> {
        self.operands.get(index).ok_or(Fault::Internal("an operand is missing"))?.array()
    }

    /// Returns the declared shape of an operand.
    fn declared(&self, index: usize) -> Outcome<&'a ArrayShape> {
        let operand = self.module.operands(self.id).get(index);
        let shape = operand.and_then(|&operand| self.module.array_shape(operand));
        shape.ok_or(Fault::Internal("an operand is not an array"))
    }

    /// Returns the declared shape of the result.
    fn result(&self) -> Outcome<&'a ArrayShape> {
        self.module.array_shape(self.id).ok_or(Fault::Internal("its result is not an array"))
    }

    /// Returns the op's rule for the actual operands; element types as declared.
    fn by_rule(&self) -> Outcome<Shape> {
        let shapes: Vec<Shape> = self.operands.iter().map(shape_of).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let inferred = infer_shape(self.module, self.module.op(self.id), &shapes, None);
        let inferred =
            inferred.map_err(|error| unsupported(format!("at run time, {}", error.message)))?;
        Ok(retyped(inferred, self.module.shape(self.id)))
    }

    /// Returns the bounds as dims, for dims of which only the bound is known.
    fn bounds(&self) -> Outcome<Dims> {
        self.bounded(self.result()?.dims().into())
    }

    /// Checks that each dim of the result has a size.
    fn bounded(&self, dims: Dims) -> Outcome<Dims> {
        if dims.contains(&UNBOUNDED) {
            let shape = self.result()?;
            return Err(unsupported(format!("nothing says how large {shape} is")));
        }
        Ok(dims)
    }

    fn broadcast(&self, attrs: &BroadcastAttrs) -> Outcome<Dims> {
        let mut dims = Dims::from(self.result()?.dims());
        for (&size, &dim) in self.array(0)?.dims().iter().zip(&attrs.dimensions) {
            if let Some(slot) = dims.get_mut(extent(dim)) {
                *slot = size;
            }
        }
        self.bounded(dims)
    }

    /// All dims but the minor one, which may come or go, are the operand's.
    fn bitcast_convert(&self) -> Outcome<Dims> {
        let (from, to) = (self.declared(0)?, self.result()?);
        if from.rank() > to.rank() && from.dim_is_dynamic(from.rank() - 1) {
            return Err(unsupported("elements are joined of a dynamic number of parts"));
        }
        let mut dims = Dims::from(to.dims());
        for (slot, &size) in dims.iter_mut().zip(self.array(0)?.dims()) {
            *slot = size;
        }
        Ok(dims)
    }

    /// The layout of a dynamic array is not specified.
    fn bitcast(&self) -> Outcome<Dims> {
        let (from, to) = (self.declared(0)?, self.result()?);
        if from.compatible(to) && from.layout_or_default() == to.layout_or_default() {
            return Ok(self.array(0)?.dims().into());
        }
        Err(unsupported(format!("{from} may lie in memory otherwise than {to}")))
    }

    fn dynamic_reshape(&self) -> Outcome<Dims> {
        let sizes = (1..self.operands.len()).map(|index| self.size(index));
        let dims = sizes.collect::<Outcome<Dims>>()?;
        reshape::check_count(self.array(0)?.dims(), &dims)?;
        Ok(dims)
    }

    /// Returns a size given as an operand.
    fn size(&self, index: usize) -> Outcome<i64> {
        let size = self.array(index)?.slice::<i32>()?.first().copied();
        let size = size.ok_or(Fault::Internal("a size is missing"))?;
        if size < 0 {
            return Err(unsupported(format!("a size of {size}")));
        }
        Ok(size.into())
    }

    fn set_dimension_size(&self, dimensions: &[i64]) -> Outcome<Dims> {
        let mut dims = Dims::from(self.array(0)?.dims());
        let dim = dimensions.first().map_or(usize::MAX, |&dim| extent(dim));
        let slot = dims.get_mut(dim).ok_or(Fault::Internal("no such dim"))?;
        let bound = self.declared(0)?.dims().get(dim).copied().unwrap_or(*slot);
        let size = self.size(1)?;
        if size > bound.max(*slot) {
            return Err(unsupported(format!(
                "it makes dim {dim} of at most {bound} elements {size} long"
            )));
        }
        *slot = size;
        Ok(dims)
    }

    /// Returns the part of each range that exists.
    fn slice(&self, attrs: &SliceAttrs) -> Outcome<Dims> {
        let parts = self.array(0)?.dims().iter().zip(&attrs.slice);
        let count = |(&size, part): (&i64, &SliceDim)| {
            let length = part.limit.min(size).saturating_sub(part.start).max(0);
            let stride = part.stride.max(1);
            length / stride + i64::from(length % stride != 0)
        };
        Ok(parts.map(count).collect())
    }

    /// Returns a whole dynamic dim, or a part of the given size; one element is always one.
    fn dynamic_slice(&self, sizes: &[i64]) -> Outcome<Dims> {
        let declared = self.declared(0)?;
        let mut dims = Dims::from(sizes);
        let bounds = declared.dims().iter().zip(self.array(0)?.dims());
        for (dim, (slot, (&bound, &actual))) in dims.iter_mut().zip(bounds).enumerate() {
            if declared.dim_is_dynamic(dim) && *slot == bound && bound != 1 {
                *slot = actual;
            }
            if *slot > actual {
                return Err(unsupported(format!(
                    "it takes {slot} elements of dim {dim}, which has {actual}"
                )));
            }
        }
        Ok(dims)
    }

    /// Returns the operand's dims; XLA gives a dim that a dynamic update replaces as a whole
    /// the size of the update.
    fn dynamic_update_slice(&self) -> Outcome<Dims> {
        let (operand, update) = (self.array(0)?.dims(), self.array(1)?.dims());
        let (of_operand, of_update) = (self.declared(0)?, self.declared(1)?);
        for dim in 0..of_operand.rank() {
            let replaced =
                of_update.dim_is_dynamic(dim) && of_operand.dims()[dim] == of_update.dims()[dim];
            if replaced && operand[dim] != update[dim] {
                return Err(unsupported(format!(
                    "it replaces dim {dim} of {} elements by one of {}",
                    operand[dim], update[dim]
                )));
            }
            if update[dim] > operand[dim] {
                return Err(unsupported(format!(
                    "it updates {} elements of dim {dim}, which has {}",
                    update[dim], operand[dim]
                )));
            }
        }
        Ok(operand.into())
    }

    /// Checks that no padded dim is dynamic. The number of its windows is not agreed upon: XLA
    /// ignores the padding.
    fn check_window(&self, window: &[WindowDim]) -> Outcome<()> {
        let declared = self.declared(0)?;
        let unclear = window.iter().enumerate().position(|(dim, window)| {
            declared.dim_is_dynamic(dim)
                && (window.padding_low, window.padding_high, window.base_dilation) != (0, 0, 1)
        });
        match unclear {
            Some(dim) => Err(unsupported(format!("a padded window over the dynamic dim {dim}"))),
            None => Ok(()),
        }
    }
}

/// Returns a shape with the element types of another.
fn retyped(shape: Shape, types: &Shape) -> Shape {
    match (shape, types) {
        (Shape::Array(array), Shape::Array(types)) => {
            Shape::Array(array.with_element_type(types.element_type))
        }
        (Shape::Tuple(elements), Shape::Tuple(types)) => {
            let pairs = elements.into_iter().zip(types);
            Shape::Tuple(pairs.map(|(element, types)| retyped(element, types)).collect())
        }
        (other, _) => other,
    }
}
