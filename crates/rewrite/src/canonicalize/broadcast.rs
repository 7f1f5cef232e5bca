//! Broadcasts in their simplest form.
//!
//! - `broadcast(x) = x` where nothing changes;
//! - `broadcast(broadcast(x)) = broadcast(x)`;
//! - `broadcast(reshape(x)) = broadcast(x)` where the reshape only adds dims
//!   of size 1.

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Patch, Value};

use crate::driver::numbers::Class;
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct BroadcastCanonical;

impl Pass for BroadcastCanonical {
    fn name(&self) -> &'static str {
        "broadcast"
    }

    fn summary(&self) -> &'static str {
        "merge broadcasts and drop those that change nothing"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _cx: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    let (Op::Broadcast(attrs), [operand]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let (from, to) = (module.array_shape(*operand)?, module.array_shape(id)?);
    if module.extras(id).is_some() || !from.is_static() || !to.is_static() {
        return None;
    }
    let mut patch = Patch::new();
    let same_place = attrs.dimensions.iter().enumerate().all(|(i, &d)| usize::try_from(d) == Ok(i));
    if from.dims() == to.dims() && same_place && from.layout_or_default() == to.layout_or_default()
    {
        patch.replace(id, Value::Old(*operand));
        return Some(patch);
    }
    let (source, dimensions) = match (module.op(*operand), module.operands(*operand)) {
        (Op::Broadcast(inner), [source]) if module.extras(*operand).is_none() => {
            let outer = |&d: &i64| attrs.dimensions.get(usize::try_from(d).ok()?).copied();
            (*source, inner.dimensions.iter().map(outer).collect::<Option<Dims>>()?)
        }
        (Op::Reshape(_), [source]) if module.extras(*operand).is_none() => {
            (*source, through_added_ones(module, *source, *operand, &attrs.dimensions)?)
        }
        _ => return None,
    };
    let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
    let merged = patch.add(id, op, module.shape(id).clone(), [Value::Old(source)]);
    patch.replace(id, merged);
    Some(patch)
}

/// Where the dims of `source` go if `reshaped`, which goes to `dimensions`,
/// is `source` with dims of size 1 added.
fn through_added_ones(
    module: &Module,
    source: InstId,
    reshaped: InstId,
    dimensions: &[i64],
) -> Option<Dims> {
    let (source, reshaped) = (module.array_shape(source)?, module.array_shape(reshaped)?);
    let mut places = reshaped.dims().iter().zip(dimensions).peekable();
    let mut mapped = Dims::new();
    for &size in source.dims() {
        let (_, &place) = loop {
            let (&candidate, place) = places.next()?;
            if candidate == size {
                break (candidate, place);
            }
            if candidate != 1 {
                return None;
            }
        };
        mapped.push(place);
    }
    places.all(|(&size, _)| size == 1).then_some(mapped)
}
