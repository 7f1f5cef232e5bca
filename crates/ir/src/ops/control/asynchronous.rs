//! Asynchronous ops: while running, their result is a tuple of the operands of the computation
//! (in a tuple), the result, and contexts of the device.
//!
//! Operands, and parts of the result, can be bound late: a start has the first operands, and
//! each update may add more.

use super::AsyncAttrs;
use crate::infer::{ShapeError, ShapeQuery};
use crate::types::shape::Shape;

pub(in crate::ops) fn async_start(
    q: &ShapeQuery<'_>,
    attrs: &AsyncAttrs,
) -> Result<Shape, ShapeError> {
    if attrs.calls.is_none() {
        return Err(ShapeError::attribute("`async-start` needs `calls`, the computation it runs"));
    }
    let shape = q.declared()?;
    check_callee(q, attrs, shape)?;
    let (given, _) = parts(shape).ok_or_else(|| no_state(q, shape))?;
    check_bound(q, given, q.operands)?;
    Ok(shape.clone())
}

pub(in crate::ops) fn async_update(
    q: &ShapeQuery<'_>,
    attrs: &AsyncAttrs,
) -> Result<Shape, ShapeError> {
    let state = q.operand(0)?;
    let (before, yielded) = parts(state).ok_or_else(|| no_state(q, state))?;
    let next = match q.declared {
        None if q.operands.len() == 1 => return Ok(state.without_layout()),
        _ => q.declared()?,
    };
    check_callee(q, attrs, next)?;
    let Some((after, result)) = parts(next) else { return Err(no_state(q, next)) };
    if !is_bound_tuple(before, after) || !is_part(yielded, result) {
        return Err(ShapeError::result(format!(
            "`async-update` adds operands and results to {state}, it cannot yield {next}"
        )));
    }
    let added = after.get(before.len()..).unwrap_or_default();
    check_bound(q, added, q.operands.get(1..).unwrap_or_default())?;
    Ok(next.without_layout())
}

pub(in crate::ops) fn async_done(
    q: &ShapeQuery<'_>,
    attrs: &AsyncAttrs,
) -> Result<Shape, ShapeError> {
    let state = q.operand(0)?;
    let (given, result) = parts(state).ok_or_else(|| no_state(q, state))?;
    check_callee(q, attrs, state)?;
    let Some(callee) = attrs.calls else {
        // A result that is bound late has more parts than the state.
        let yielded = q.declared.filter(|declared| is_part(result, declared));
        return Ok(yielded.unwrap_or(result).without_layout());
    };
    let computation = q.module.computation(callee);
    let taken = computation.parameters().len();
    if given.len() < taken {
        return Err(ShapeError::operand(format!(
            "`async-done` takes what has all {taken} operands of `{}`, not {}",
            computation.name(),
            given.len()
        )));
    }
    let result = computation.root().map_or(result, |root| q.module.shape(root));
    Ok(result.without_layout())
}

/// Returns the operands and the result in the state of a running asynchronous op.
fn parts(state: &Shape) -> Option<(&[Shape], &Shape)> {
    match state.as_tuple() {
        Some([Shape::Tuple(operands), result, ..]) => Some((operands, result)),
        _ => None,
    }
}

fn no_state(q: &ShapeQuery<'_>, found: &Shape) -> ShapeError {
    ShapeError::operand(format!(
        "`{}` takes what `async-start` yields, a tuple of operands and result, not {found}",
        q.op.opcode()
    ))
}

/// Checks whether the first tuple is a prefix of the second.
fn is_bound_tuple(first: &[Shape], second: &[Shape]) -> bool {
    first.len() <= second.len() && first.iter().zip(second).all(|(a, b)| is_part(a, b))
}

/// Checks whether the second shape equals the first, or extends it by parts bound later.
fn is_part(first: &Shape, second: &Shape) -> bool {
    match (first.as_tuple(), second.as_tuple()) {
        (Some([]), _) => true,
        (Some(first), Some(second)) => is_bound_tuple(first, second),
        _ => first.agrees(second),
    }
}

/// Checks the operands that are bound here against those in the state.
fn check_bound(q: &ShapeQuery<'_>, bound: &[Shape], operands: &[&Shape]) -> Result<(), ShapeError> {
    let opcode = q.op.opcode();
    if bound.len() != operands.len() {
        return Err(ShapeError::operand(format!(
            "`{opcode}` binds {} operands by its shape, but is given {}",
            bound.len(),
            operands.len()
        )));
    }
    match operands.iter().zip(bound).find(|(given, bound)| !given.compatible(bound)) {
        None => Ok(()),
        Some((given, bound)) => Err(ShapeError::operand(format!(
            "`{opcode}` binds {bound} by its shape, but is given {given}"
        ))),
    }
}

/// The default thread.
const MAIN_THREAD: &str = "main";

/// If the op names its computation, the state must have the shapes of its first parameters and
/// of its result, or a part of it, and both must have the same thread.
fn check_callee(q: &ShapeQuery<'_>, attrs: &AsyncAttrs, state: &Shape) -> Result<(), ShapeError> {
    let Some(callee) = attrs.calls else { return Ok(()) };
    let (opcode, computation) = (q.op.opcode(), q.module.computation(callee));
    let thread = attrs.async_execution_thread.as_deref().unwrap_or(MAIN_THREAD);
    let of_callee = computation.execution_thread().unwrap_or(MAIN_THREAD);
    if thread != of_callee {
        return Err(ShapeError::callee(format!(
            "`{opcode}` runs on thread {thread:?}, but `{}` on {of_callee:?}",
            computation.name()
        )));
    }
    let parameters: Vec<Shape> =
        computation.parameters().iter().map(|&p| q.module.shape(p).clone()).collect();
    let result = computation.root().map(|root| q.module.shape(root));
    let fits = match (parts(state), result) {
        (Some((given, yielded)), Some(result)) => {
            is_bound_tuple(given, &parameters) && is_part(yielded, result)
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let parameters = Shape::Tuple(parameters);
    let yields = result.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    Err(ShapeError::callee(format!(
        "`{opcode}` of `{}` has operands {parameters} and result {yields} first, not {state}",
        computation.name()
    )))
}
