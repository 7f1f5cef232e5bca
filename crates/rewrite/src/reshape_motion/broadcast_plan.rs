//! Plans a broadcast or iota after a reshape in the dims before it.

use smallvec::SmallVec;
use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::shaping::{BroadcastAttrs, IotaAttrs};
use tilewright_ir::{ArrayLiteral, Dims, InstId, Literal, Module, Op, Patch, Shape, Value};

use crate::analysis::digits::{BroadcastPlan, Digits};
use crate::analysis::reduce::{reshape_op, shape_like};
use crate::analysis::whole_number::whole_number;
use crate::cost::CostModel;

/// Adds to `patch`, before `id`, the value of `id` in the input dims of `digits`. `id` has their
/// output dims and is a broadcast, which becomes broadcast, small reshape, broadcast; or an iota,
/// which is handled as the broadcast of a one-dim iota. `None` for anything else.
pub(crate) fn repeated_through(
    module: &Module,
    id: InstId,
    digits: &Digits,
    patch: &mut Patch,
) -> Option<Value> {
    match (module.op(id), module.operands(id)) {
        (Op::Broadcast(attrs), [source]) => {
            broadcast_through(module, id, Value::Old(*source), &attrs.dimensions, digits, patch)
        }
        (Op::Iota(attrs), []) => {
            let size = digits.to_dims().get(usize::try_from(attrs.dimension).ok()?)?;
            let shape = shape_like(module.array_shape(id)?, &[*size]);
            let line = Op::Iota(Box::new(IotaAttrs { dimension: 0 }));
            let line = patch.add(id, line, shape, []);
            broadcast_through(module, id, line, &[attrs.dimension], digits, patch)
        }
        _ => None,
    }
}

/// Like [`repeated_through`] or [`counted_through`], whichever costs less.
pub(super) fn cheapest_through(
    module: &Module,
    model: &CostModel<'_>,
    id: InstId,
    digits: &Digits,
    patch: &mut Patch,
) -> Option<Value> {
    let ways = [repeated_through, counted_through];
    let cycles = ways.map(|way| {
        let mut patch = Patch::new();
        way(module, id, digits, &mut patch).map(|_| model.patch(module, &patch).cycles)
    });
    let counts = matches!(cycles, [Some(repeated), Some(counted)] if counted < repeated);
    ways[usize::from(counts)](module, id, digits, patch)
}

/// Like [`repeated_through`], for an integer iota along one output dim that merges several
/// whole input dims: the sum of an iota along each input dim times its stride. Nothing is
/// reshaped, but every element is added up.
///
/// Law: if dims `d` of sizes `n_d` merge into one, its index is the sum over `d` of `i_d` times the
/// product of `n_e` over the later dims `e`.
pub(super) fn counted_through(
    module: &Module,
    id: InstId,
    digits: &Digits,
    patch: &mut Patch,
) -> Option<Value> {
    let steps = steps(digits, usize::try_from(counted_dim(module, id)?).ok()?)?;
    let like = module.array_shape(id)?;
    let element_type = like.element_type;
    if !matches!(element_type.class(), NumberClass::Signed | NumberClass::Unsigned) {
        return None;
    }
    let whole = shape_like(like, digits.from_dims());
    let mut sum = None;
    for (dim, step) in steps {
        let shape = shape_like(like, &[*digits.from_dims().get(dim)?]);
        let iota = Op::Iota(Box::new(IotaAttrs { dimension: 0 }));
        let mut line = patch.add(id, iota, shape.clone(), []);
        if step != 1 {
            let step = ArrayLiteral::new(element_type, [], whole_number(element_type, step)?);
            let step = Op::Constant(Box::new(Literal::Array(step.ok()?)));
            let step = patch.add(id, step, Shape::scalar(element_type), []);
            let steps = patch.add(id, broadcast_op(&[]), shape.clone(), [step]);
            line = patch.add(id, Op::Multiply, shape, [line, steps]);
        }
        let counted = patch.add(id, broadcast_op(&[dim]), whole.clone(), [line]);
        sum = Some(match sum {
            Some(sum) => patch.add(id, Op::Add, whole.clone(), [sum, counted]),
            None => counted,
        });
    }
    sum
}

/// Returns the dim along which an iota, or a broadcast of a one-dim iota, counts.
fn counted_dim(module: &Module, id: InstId) -> Option<i64> {
    match (module.op(id), module.operands(id)) {
        (Op::Iota(attrs), []) => Some(attrs.dimension),
        (Op::Broadcast(attrs), [line]) => match (module.op(*line), attrs.dimensions.as_slice()) {
            (Op::Iota(_), &[dim]) => Some(dim),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the input dims that make up an output dim, each with its stride in it; `None` unless
/// they are several, and whole.
fn steps(digits: &Digits, to: usize) -> Option<SmallVec<[(usize, i64); 4]>> {
    let range = digits.digits_of_to(to);
    let mut steps: SmallVec<[(usize, i64); 4]> = SmallVec::new();
    let mut step = 1i64;
    for digit in digits.digits().get(range.clone())?.iter().rev() {
        // The digit has to be all of its input dim.
        if digit.is_opaque() || digits.digits_of_from(digit.from.start).len() != 1 {
            return None;
        }
        steps.push((digit.from.start, step));
        step = step.checked_mul(digit.size)?;
    }
    (steps.len() > 1).then_some(steps)
}

/// Returns the broadcast of `source` along these output dims.
fn broadcast_through(
    module: &Module,
    id: InstId,
    source: Value,
    dims: &[i64],
    digits: &Digits,
    patch: &mut Patch,
) -> Option<Value> {
    let places: Option<SmallVec<[usize; 6]>> =
        dims.iter().map(|&d| usize::try_from(d).ok()).collect();
    let plan: BroadcastPlan = digits.broadcast_through(&places?)?;
    let like = module.array_shape(id)?;
    let mut value = source;
    if !plan.inner_is_trivial() {
        let op = broadcast_op(&plan.inner_broadcast_dims);
        value = patch.add(id, op, shape_like(like, &plan.inner_dims), [value]);
    }
    if !plan.reshape_is_trivial() {
        value = patch.add(id, reshape_op(), shape_like(like, &plan.reshape_to), [value]);
    }
    let op = broadcast_op(&plan.outer_dims);
    Some(patch.add(id, op, shape_like(like, digits.from_dims()), [value]))
}

fn broadcast_op(dims: &[usize]) -> Op {
    let dimensions: Dims = dims.iter().filter_map(|&d| i64::try_from(d).ok()).collect();
    Op::Broadcast(Box::new(BroadcastAttrs { dimensions }))
}
