//! Changes shapes, and the attributes and constants that state sizes, to new sizes of dims.

use tilewright::ir::{ArrayLiteral, ArrayShape, InstId, Literal, Module, Op, Shape};

use super::classes::Classes;
use crate::reduce::draft::Draft;
use crate::reduce::walk::all_instructions;

/// Returns the changes that give slots these sizes.
pub(super) fn resized(module: &Module, classes: &Classes, sizes: &[i64]) -> Option<Draft> {
    let mut draft = Draft::default();
    for id in all_instructions(module) {
        let mut leaf = 0usize;
        let shape = with_dims(module.shape(id), &mut || {
            let slots = classes.slots.leaf(id, leaf);
            leaf = leaf.saturating_add(1);
            slots.iter().filter_map(|&slot| sizes.get(slot).copied()).collect()
        });
        if shape != *module.shape(id) {
            draft.shapes.insert(id, shape);
        }
    }
    for id in all_instructions(module) {
        if let Some(op) = op(module, &draft, id)? {
            draft.ops.insert(id, op);
        }
    }
    Some(draft)
}

/// Returns a shape with other dims, which `next` returns for each leaf.
fn with_dims(shape: &Shape, next: &mut dyn FnMut() -> Vec<i64>) -> Shape {
    match shape {
        Shape::Array(array) => {
            let dims = next();
            // Dynamic dims keep their bounds.
            if dims == array.dims() || !array.is_static() {
                return shape.clone();
            }
            let layout = array.layout.clone();
            ArrayShape::new(array.element_type, dims).with_layout(layout).into()
        }
        Shape::Tuple(elements) => {
            Shape::Tuple(elements.iter().map(|element| with_dims(element, next)).collect())
        }
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => {
            next();
            shape.clone()
        }
    }
}

/// Returns an op with other sizes in its attributes, if they change; fails if they cannot.
#[expect(clippy::option_option, reason = "no change is no failure")]
fn op(module: &Module, draft: &Draft, id: InstId) -> Option<Option<Op>> {
    let result = draft.shape_of(module, id).as_array();
    let operand = module.operands(id).first().map(|&id| draft.shape_of(module, id));
    let operand = operand.and_then(Shape::as_array);
    let mut op = module.op(id).clone();
    match &mut op {
        Op::Constant(literal) => {
            let (Some(array), Some(shape)) = (literal.as_array(), result) else {
                return Some(None);
            };
            if array.dims() == shape.dims() {
                return Some(None);
            }
            **literal = Literal::Array(first_elements(array, shape.dims())?);
        }
        Op::Slice(attrs) => {
            // Ranges that are not the whole dim keep it as it is.
            for (dim, range) in attrs.slice.iter_mut().enumerate() {
                let old = module.array_shape(*module.operands(id).first()?)?.dims();
                if range.start == 0 && range.stride == 1 && old.get(dim) == Some(&range.limit) {
                    range.limit = *operand?.dims().get(dim)?;
                }
            }
        }
        Op::DynamicSlice(attrs) => {
            attrs.dynamic_slice_sizes = result?.dims().iter().copied().collect();
        }
        Op::Gather(attrs) => {
            let gone = [&attrs.collapsed_slice_dims, &attrs.operand_batching_dims];
            let is_gone = |dim: usize| {
                let mut all = gone.iter().flat_map(|dims| dims.iter());
                all.any(|&d| usize::try_from(d) == Ok(dim))
            };
            let mut offsets = attrs.offset_dims.iter();
            let mut sizes = attrs.slice_sizes.clone();
            for (dim, size) in sizes.iter_mut().enumerate() {
                if !is_gone(dim) {
                    let offset = usize::try_from(*offsets.next()?).ok()?;
                    *size = *result?.dims().get(offset)?;
                }
            }
            attrs.slice_sizes = sizes;
        }
        _ => return Some(None),
    }
    Some((op != *module.op(id)).then_some(op))
}

/// Returns the first elements along every dim.
fn first_elements(array: &ArrayLiteral, dims: &[i64]) -> Option<ArrayLiteral> {
    let count = tilewright::ir::shape::checked_product(dims)?;
    let old = array.dims();
    let position = |index: i64| {
        let mut rest = index;
        let (mut at, mut stride) = (0i64, 1i64);
        for (&new, &old) in dims.iter().zip(old).rev() {
            at = at.checked_add(rest.checked_rem(new)?.checked_mul(stride)?)?;
            rest = rest.checked_div(new)?;
            stride = stride.checked_mul(old)?;
        }
        usize::try_from(at).ok()
    };
    let positions: Vec<usize> = (0..count).map(position).collect::<Option<_>>()?;
    let data = array.data().gather(positions.into_iter());
    ArrayLiteral::new(array.element_type(), dims.iter().copied(), data).ok()
}
