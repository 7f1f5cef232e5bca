//! Plans a broadcast to the output of a reshape as one to its input.

use smallvec::SmallVec;
use tilewright_ir::ops::shaping::{BroadcastAttrs, IotaAttrs};
use tilewright_ir::{Dims, InstId, Module, Op, Patch, Value};

use super::digits::{BroadcastPlan, Digits};
use super::reduce::{reshape_op, shape_like};

/// Adds to `patch`, before `id`, what `id` is in the input dims of `digits`: an
/// instruction of their output dims that repeats values, namely a broadcast, which
/// becomes broadcast, small reshape, broadcast, or an iota, which is the broadcast
/// of a line. `None` for anything else.
pub fn repeated_through(
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

/// The broadcast of `source` along these output dims.
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
