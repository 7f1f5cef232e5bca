//! The greatest or least elements along a dim, and their indices.

use crate::ops::elementwise::Direction;
use crate::ops::reduce::TopKAttrs;
use crate::reducer::Monoid;
use crate::{BuildError, Builder, CompId, ElementType, InstId, Literal, Op, Opcode, Shape};

use super::operand::CompositeOperand;

/// The type of indices along a dim.
const PLACE: ElementType = ElementType::S32;

/// Returns the index (s32) of the greatest element along `dim`, which is removed; of equal
/// elements the first. NaN is greater than any number.
///
/// As `jnp.argmax(x, axis=dim)`: a reduce of the elements and their indices.
///
/// # Errors
/// Returns an error if `x` is not an array of integers, truth values, f16, bf16, f32 or f64,
/// the dim does not exist or is empty, or s32 cannot count its elements.
pub fn argmax(b: &mut Builder, x: InstId, dim: i64) -> Result<InstId, BuildError> {
    place_of(b, CompositeOperand::of(b, "argmax", "x", x)?, dim, Direction::Gt)
}

/// Returns the index (s32) of the least element along `dim`, which is removed; of equal
/// elements the first. NaN is less than any number.
///
/// As `jnp.argmin(x, axis=dim)`.
///
/// # Errors
/// The errors of [`argmax`].
pub fn argmin(b: &mut Builder, x: InstId, dim: i64) -> Result<InstId, BuildError> {
    place_of(b, CompositeOperand::of(b, "argmin", "x", x)?, dim, Direction::Lt)
}

/// Returns the `k` greatest elements along `dim` in descending order, and their indices as s32;
/// both have `k` elements in `dim`. Of equal elements the first comes first. The order is
/// total: 0 before -0, NaN before all numbers and NaN with a sign after them.
///
/// As `jax.lax.top_k(x, k, axis=dim)`: a `topk`, between transposes if `dim` is not the last.
///
/// # Errors
/// Returns an error if `x` is not an array of real numbers, the dim does not exist or has fewer
/// than `k` elements, or s32 cannot count them.
pub fn top_k(b: &mut Builder, x: InstId, k: i64, dim: i64) -> Result<(InstId, InstId), BuildError> {
    let operand = CompositeOperand::of(b, "top_k", "x", x)?;
    let dim = placed_dim(&operand, dim)?;
    let (element_type, size) = (operand.element_type(), operand.size(dim));
    if element_type.is_complex() || element_type == ElementType::Pred {
        return Err(operand.error("x", format!("it takes real numbers, not {element_type}")));
    }
    if !(0..=size).contains(&k) {
        return Err(operand.error("k", format!("dim {dim} has no {k} elements, but {size}")));
    }
    // `topk` selects along the last dim; swapping two dims is its own inverse.
    let mut exchange: Vec<i64> = (0..).zip(operand.shape.dims()).map(|(d, _)| d).collect();
    let last = exchange.len() - 1;
    let along_last = usize::try_from(dim) == Ok(last);
    if let Ok(dim) = usize::try_from(dim) {
        exchange.swap(dim, last);
    }
    let turn = |b: &mut Builder, id| if along_last { Ok(id) } else { b.transpose(id, &exchange) };
    let x = turn(b, x)?;
    let found = b.op(Op::TopK(Box::new(TopKAttrs { k, largest: true, is_stable: true })), [x])?;
    let (values, places) = (b.get_tuple_element(found, 0)?, b.get_tuple_element(found, 1)?);
    Ok((turn(b, values)?, turn(b, places)?))
}

/// Returns the index of the element that is first in a direction.
fn place_of(
    b: &mut Builder,
    operand: CompositeOperand,
    dim: i64,
    direction: Direction,
) -> Result<InstId, BuildError> {
    let dim = placed_dim(&operand, dim)?;
    if operand.size(dim) == 0 {
        return Err(operand.error("dim", format!("dim {dim} of {} is empty", operand.shape)));
    }
    let element_type = operand.element_type();
    let opcode = if direction == Direction::Gt { Opcode::Maximum } else { Opcode::Minimum };
    let Some(worst) = (Monoid { opcode, element_type }).identity() else {
        let types = "integers of 8 bits or more, truth values, f16, bf16, f32 or f64";
        return Err(operand.error("x", format!("it takes {types}, not {element_type}")));
    };
    let (worst, zero) = (b.constant(worst)?, b.constant(Literal::scalar(PLACE, 0_i32)?)?);
    let places = b.iota(Shape::array(PLACE, operand.shape.dims().iter().copied()), dim)?;
    let to_apply = chooser(b, &operand, direction)?;
    let found = b.reduce_together([operand.id, places], [worst, zero], [dim], to_apply)?;
    b.get_tuple_element(found, 1)
}

/// Selects the first of two elements with their indices in a direction: a NaN, otherwise the
/// better element, otherwise the one with the lesser index.
fn chooser(
    b: &mut Builder,
    operand: &CompositeOperand,
    direction: Direction,
) -> Result<CompId, BuildError> {
    let name = b.free_computation_name(operand.composite);
    let element_type = operand.element_type();
    b.computation(&name, |b| {
        let lhs = b.parameter("lhs", Shape::scalar(element_type))?;
        let lhs_place = b.parameter("lhs_place", Shape::scalar(PLACE))?;
        let rhs = b.parameter("rhs", Shape::scalar(element_type))?;
        let rhs_place = b.parameter("rhs_place", Shape::scalar(PLACE))?;
        let mut better = b.compare(direction, lhs, rhs)?;
        if element_type.is_float() {
            let nan = b.compare(Direction::Ne, lhs, lhs)?;
            better = b.binary(Opcode::Or, better, nan)?;
        }
        let equal = b.compare(Direction::Eq, lhs, rhs)?;
        let before = b.compare(Direction::Lt, lhs_place, rhs_place)?;
        let first = b.binary(Opcode::And, equal, before)?;
        let first = b.binary(Opcode::Or, better, first)?;
        let value = b.select(better, lhs, rhs)?;
        let place = b.select(first, lhs_place, rhs_place)?;
        b.tuple([value, place])
    })
}

/// Checks for a dim whose indices fit in s32.
fn placed_dim(operand: &CompositeOperand, dim: i64) -> Result<i64, BuildError> {
    let dim = operand.dim("dim", dim)?;
    let size = operand.size(dim);
    if i32::try_from(size).is_err() {
        return Err(
            operand.error("dim", format!("dim {dim} has {size} elements, and s32 tells places"))
        );
    }
    Ok(dim)
}
