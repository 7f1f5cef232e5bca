//! Guards by which each device decides for its own part of a sum's results.
//!
//! ```text
//! S  =  whole(body(parts of (failures, value, arrays)))        body: the guard, for the parts of one device
//! ```
//!
//! The body is a manual computation along all axes of the mesh, as `shard_map` makes them. Its devices exchange
//! nothing: each has its parts of the values.

use tilewright_ir::ops::control::{CallAttrs, GetTupleElementAttrs};
use tilewright_ir::{EditError, InstId, Module, Op, Position, Shape};

use super::original::Original;
use super::{Site, choose, parameter};
use crate::analysis::sharding::{DeviceMesh, ManualCalls, Spread};

/// Adds a guard of parts; see [`choose`]. Returns the value in place of the sum.
pub(super) fn guard(
    module: &mut Module,
    at: Site,
    original: &Original,
    inputs: &[InstId],
    mesh: &DeviceMesh,
    pass: &str,
) -> Result<Option<InstId>, EditError> {
    // The failures and the value lie as the sum does.
    let like: Vec<InstId> = [at.like; 2].iter().chain(&original.leaves).copied().collect();
    let spreads: Option<Vec<&Spread>> = like.iter().map(|&id| original.spread(id)).collect();
    let calls = spreads.zip(original.spread(at.like));
    let Some(calls) = calls.and_then(|(given, result)| mesh.manual_calls(&given, &[result])) else {
        return Ok(None);
    };
    let ManualCalls { body, to_parts, call, to_whole } = calls;
    let body = module.add_computation_before(module.fresh_computation_name(body), at.computation);
    let shapes: Vec<Shape> = like.iter().map(|&id| original.shape(module, id)).collect();
    let mut parts = Vec::new();
    for (number, shape) in (0i64..).zip(&shapes) {
        parts.push(parameter(module, body, number, shape.clone())?);
    }
    let within = Site { computation: body, position: Position::End(body), ..at };
    let Some(root) = choose(module, within, original, &parts, pass)? else { return Ok(None) };
    module.set_root(root)?;

    let tuple = at.add(module, to_parts.0, Shape::Tuple(shapes.clone()), inputs)?;
    module.set_extras(tuple, to_parts.1);
    let mut parts = Vec::new();
    for (index, shape) in (0i64..).zip(shapes) {
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        parts.push(at.add(module, op, shape, &[tuple])?);
    }
    let op = Op::Call(Box::new(CallAttrs { to_apply: body, is_composite: false }));
    let result = at.add(module, op, original.shape(module, at.like), &parts)?;
    module.set_extras(result, call);
    let whole = at.add(module, to_whole.0, module.shape(at.like).clone(), &[result])?;
    module.set_extras(whole, to_whole.1);
    Ok(Some(whole))
}
