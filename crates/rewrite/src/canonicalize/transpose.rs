//! Transposes in their simplest form.
//!
//! - `transpose(x) = x` where nothing changes;
//! - `transpose(transpose(x, p), q) = transpose(x, p[q])`;
//! - `transpose(broadcast(x))` and `transpose(iota) ` are a broadcast and an
//!   iota, where the dims of `x` stay in their order;
//! - `transpose(x) = reshape(x)` where only dims of size 1 change places.

use tilewright_ir::ops::shaping::{BroadcastAttrs, IotaAttrs, TransposeAttrs};
use tilewright_ir::{ArrayShape, Dims, EditError, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::{is_plain, reshape_op};
use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct TransposeCanonical;

impl Pass for TransposeCanonical {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn summary(&self) -> &'static str {
        "merge transposes and drop those that move nothing"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    let (Op::Transpose(attrs), [operand]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let (from, to) = (module.array_shape(*operand)?, module.array_shape(id)?);
    // In other layouts a transpose may be what brings the elements in order.
    if module.extras(id).is_some() || !is_plain(from) || !is_plain(to) {
        return None;
    }
    let order = &attrs.dimensions;
    let mut patch = Patch::new();
    if order.iter().enumerate().all(|(i, &d)| usize::try_from(d) == Ok(i)) {
        patch.replace(id, Value::Old(*operand));
        return Some(patch);
    }
    let (op, source) = merged(module, *operand, order)
        .or_else(|| keeps_order(from, order).then(|| (reshape_op(), Some(*operand))))?;
    let merged = patch.add(id, op, module.shape(id).clone(), source.map(Value::Old));
    patch.replace(id, merged);
    Some(patch)
}

/// What `operand`, with its dims in this order, is instead.
fn merged(module: &Module, operand: InstId, order: &[i64]) -> Option<(Op, Option<InstId>)> {
    if module.extras(operand).is_some() {
        return None;
    }
    let place = |dim: i64| i64::try_from(order.iter().position(|&d| d == dim)?).ok();
    match (module.op(operand), module.operands(operand)) {
        (Op::Transpose(inner), [source]) if is_plain(module.array_shape(*source)?) => {
            let inner = |&d: &i64| inner.dimensions.get(usize::try_from(d).ok()?).copied();
            let dimensions = order.iter().map(inner).collect::<Option<Dims>>()?;
            Some((Op::Transpose(Box::new(TransposeAttrs { dimensions })), Some(*source)))
        }
        (Op::Broadcast(attrs), [source]) => {
            let places = attrs.dimensions.iter().map(|&d| place(d)).collect::<Option<Dims>>()?;
            let ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
            let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: places }));
            ascending.then_some((op, Some(*source)))
        }
        (Op::Iota(attrs), []) => {
            let dimension = place(attrs.dimension)?;
            Some((Op::Iota(Box::new(IotaAttrs { dimension })), None))
        }
        _ => None,
    }
}

/// Whether the dims that are not of size 1 stay in their order.
fn keeps_order(from: &ArrayShape, order: &[i64]) -> bool {
    let size = |&d: &i64| usize::try_from(d).ok().and_then(|d| from.dims().get(d)).copied();
    let mut moved = order.iter().filter(|d| size(d) != Some(1));
    let mut last = -1;
    moved.all(|&dim| std::mem::replace(&mut last, dim) < dim)
}
