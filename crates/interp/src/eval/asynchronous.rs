//! Evaluates ops that begin and end apart from each other. The start computes the result.

use tilewright_ir::ops::control::{AsyncAttrs, CopyStartAttrs};
use tilewright_ir::{Data, Shape};

use super::{Cx, tuple, unsupported};
use crate::error::{Fault, Outcome};
use crate::value::Value;

/// Returns the copy, its source, and a context of the device.
pub(super) fn copy_start(cx: &mut Cx<'_, '_>, _attrs: &CopyStartAttrs) -> Outcome<Value> {
    let source = cx.take(0)?;
    let shape = cx.shape();
    started(cx, shape, [source.clone(), source])
}

pub(super) fn copy_done(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    element(cx, 0)
}

/// Returns its operands, the result of the computation, and contexts of the device.
pub(super) fn async_start(cx: &mut Cx<'_, '_>, attrs: &AsyncAttrs) -> Outcome<Value> {
    let computation = attrs.calls.ok_or(Fault::Internal("it calls no computation"))?;
    let operands = std::mem::take(&mut cx.operands);
    if operands.len() < cx.module().computation(computation).parameters().len() {
        return Err(unsupported("it is given operands later, by an `async-update`"));
    }
    let result = cx.call(computation, operands.iter().cloned().collect())?;
    let shape = cx.shape();
    started(cx, shape, [tuple(operands), result])
}

pub(super) fn async_update(cx: &mut Cx<'_, '_>, _attrs: &AsyncAttrs) -> Outcome<Value> {
    cx.take(0)
}

pub(super) fn async_done(cx: &mut Cx<'_, '_>, _attrs: &AsyncAttrs) -> Outcome<Value> {
    element(cx, 1)
}

/// Returns the result of a start: two values, and zeros for further elements of its shape.
pub(super) fn started(cx: &Cx<'_, '_>, shape: &Shape, values: [Value; 2]) -> Outcome<Value> {
    let context = shape.as_tuple().and_then(|elements| elements.get(2..)).unwrap_or_default();
    let context = context.iter().map(|shape| zero(cx, shape)).collect::<Outcome<Vec<_>>>()?;
    Ok(tuple(values.into_iter().chain(context)))
}

/// Returns an element of the start's result.
pub(super) fn element(cx: &Cx<'_, '_>, index: usize) -> Outcome<Value> {
    let Value::Tuple(elements) = cx.operand(0)? else {
        return Err(Fault::Internal("its start yields no tuple"));
    };
    elements.get(index).cloned().ok_or(Fault::Internal("its start yields too few values"))
}

/// Zeros in a shape.
pub(super) fn zero(cx: &Cx<'_, '_>, shape: &Shape) -> Outcome<Value> {
    match shape {
        Shape::Array(shape) => {
            let allocation = cx.allocate(shape)?;
            let zeros = Data::zeros(allocation.element_type, allocation.len);
            allocation.with(zeros)
        }
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|shape| zero(cx, shape));
            Ok(tuple(elements.collect::<Outcome<Vec<_>>>()?))
        }
        Shape::Token => Ok(Value::Token),
        Shape::Buffer(_) | Shape::Opaque => Err(unsupported(format!("a value of shape {shape}"))),
    }
}
