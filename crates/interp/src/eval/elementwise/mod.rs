//! Ops that compute each result element from the operands' elements at the
//! same index.
//!
//! Every op becomes a [`Kernel`]: a typed loop over lanes. Arrays are one run of
//! lanes; computations of scalars run the same kernels, see [`crate::lanes`].

mod complex;
mod convert;
mod float;
mod float_math;
mod function;
mod int;
mod kernel;
mod narrow;
mod order;
mod precision;
mod stochastic;
mod types;

use smallvec::SmallVec;
use tilewright_ir::ops::elementwise::{AccuracyAttrs, CompareAttrs, ReducePrecisionAttrs};
use tilewright_ir::{ElementType, Op};

use self::narrow::By;
use super::{Cx, unsupported};
use crate::error::{Fault, Outcome};
use crate::value::Value;
pub(crate) use convert::round_to;
pub(crate) use float::{Float, Real};
pub(crate) use function::{Binary, Function, Unary};
pub(crate) use int::Int;
pub(crate) use kernel::{Kernel, empty, map1, map2, map3, repeat};
pub(crate) use narrow::wide;
pub(crate) use order::keys;

/// Returns the kernel of an op on these types.
pub(crate) fn kernel(
    op: &Op,
    operands: &[ElementType],
    result: ElementType,
) -> Outcome<Option<Kernel>> {
    let Some(function) = Function::of(op) else { return Ok(None) };
    let first = *operands.first().ok_or(Fault::Internal("an operand is missing"))?;
    let kernel = match function {
        Function::Convert => convert::kernel(first, result),
        Function::Select => operands.get(1).map(|&chosen| kernel::select(chosen)),
        Function::StochasticConvert => stochastic::kernel(operands, result),
        Function::Compare(direction, order) => order::compare(first, direction, order),
        Function::Unary(f) => {
            narrow::unary(f, first).or_else(|| widely(function, operands, result))
        }
        Function::Binary(f) => {
            narrow::binary(f, first).or_else(|| widely(function, operands, result))
        }
        Function::ReducePrecision { .. }
        | Function::Clamp
        | Function::Complex
        | Function::Imag
        | Function::IsFinite
        | Function::Real => widely(function, operands, result),
    };
    kernel.map(Some).ok_or_else(|| match function {
        Function::StochasticConvert => unsupported(format!(
            "it converts floats to signed integers by unsigned random bits, not {first} to {result}"
        )),
        _ => unsupported(format!("it takes no {first} operands")),
    })
}

/// Returns the kernel of a function in the types in which these types are computed.
fn widely(function: Function, operands: &[ElementType], result: ElementType) -> Option<Kernel> {
    let operands: SmallVec<[By; 3]> = operands.iter().map(|&t| By::usual(t)).collect();
    let kernel = typed(function, operands.first()?)?;
    let result = By::usual(result);
    if operands.iter().chain([&result]).any(|by| by.differs()) {
        return narrow::around(kernel, &operands, result);
    }
    Some(kernel)
}

/// Returns the kernel of a function of a type that it is computed in.
fn typed(function: Function, first: &By) -> Option<Kernel> {
    match function {
        Function::Unary(f) => types::unary(f, first.wide),
        Function::Binary(f) => types::binary(f, first.wide),
        Function::Real => complex::real(first.wide),
        Function::Imag => complex::imag(first.wide),
        Function::Complex => complex::make(first.wide),
        Function::IsFinite => types::is_finite(first.wide),
        Function::Clamp => order::clamp(first.wide),
        Function::ReducePrecision { exponent, mantissa } => {
            precision::reduce(first.wide, exponent, mantissa)
        }
        Function::Convert
        | Function::Select
        | Function::StochasticConvert
        | Function::Compare(..) => None,
    }
}

/// Returns the kernel that converts between two types.
pub(crate) fn convert_kernel(from: ElementType, to: ElementType) -> Outcome<Kernel> {
    convert::kernel(from, to).ok_or_else(|| unsupported(format!("{from} to {to}")))
}

/// Runs the instruction's kernel over whole arrays.
fn apply(cx: &Cx<'_, '_>) -> Outcome<Value> {
    apply_op(cx, cx.module().op(cx.id))
}

/// Returns the sum of two operands in the shape of the result, for any instruction.
pub(crate) fn sum(cx: &Cx<'_, '_>) -> Outcome<Value> {
    apply_op(cx, &Op::Add)
}

fn apply_op(cx: &Cx<'_, '_>, op: &Op) -> Outcome<Value> {
    let shape = cx.array_shape()?;
    let mut types: SmallVec<[ElementType; 3]> = SmallVec::new();
    let mut inputs = SmallVec::<[_; 3]>::new();
    for operand in &cx.operands {
        let operand = operand.array()?;
        types.push(operand.element_type());
        inputs.push(operand.data());
    }
    let numbers = cx.evaluator.numbers();
    let kernel = numbers.kernel(op, &types, shape.element_type)?;
    let kernel = kernel.ok_or(Fault::Internal("it is not an elementwise op"))?;
    let allocation = cx.allocate_result()?;
    let mut out = cx.evaluator.ledger.room(shape.element_type, allocation.len);
    kernel(&inputs, allocation.len, &mut out)?;
    allocation.with(out)
}

pub(super) fn unary(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

/// Computes as exactly as the type allows, regardless of the requested accuracy.
pub(super) fn approximate(cx: &mut Cx<'_, '_>, _attrs: &AccuracyAttrs) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn abs(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn binary(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn complex(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn complex_part(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn is_finite(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn stochastic_convert(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    apply(cx)
}

pub(super) fn compare(cx: &mut Cx<'_, '_>, attrs: &CompareAttrs) -> Outcome<Value> {
    let module = cx.evaluator.module;
    if let Some(ties) = cx.evaluator.field.as_mut().and_then(|field| field.ties.as_mut()) {
        ties.note(module, cx.id, &cx.operands);
    }
    let result = apply(cx)?;
    let Some(ties) = cx.evaluator.ties else { return Ok(result) };
    ties.decide(cx.id, attrs.direction, &cx.operands, result, &cx.evaluator.ledger)
}

pub(super) fn reduce_precision(
    cx: &mut Cx<'_, '_>,
    _attrs: &ReducePrecisionAttrs,
) -> Outcome<Value> {
    apply(cx)
}

/// Converts elements. A conversion to the operand's own type moves nothing.
pub(super) fn convert(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    if cx.array(0)?.element_type() == cx.array_shape()?.element_type {
        return cx.take(0);
    }
    apply(cx)
}

/// A scalar condition chooses one operand as a whole; it may be a tuple.
pub(super) fn select(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    let condition = cx.array(0)?;
    if condition.rank() == 0 {
        let chosen = if condition.slice::<bool>()? == [true] { 1 } else { 2 };
        return cx.take(chosen);
    }
    apply(cx)
}

/// Scalar bounds are repeated to the value's size.
pub(super) fn clamp(cx: &mut Cx<'_, '_>) -> Outcome<Value> {
    for bound in [0, 2] {
        let array = cx.array(bound)?;
        if array.rank() == 0 && cx.array(1)?.rank() != 0 {
            let shape = cx.array_shape()?;
            let allocation = cx.allocate(shape)?;
            let data = kernel::repeat(array.data(), allocation.len);
            cx.operands[bound] = allocation.with(data)?;
        }
    }
    apply(cx)
}
