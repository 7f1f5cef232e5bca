//! Selections.

use super::algebra::{is, same_type};
use super::constants::Number;
use super::{Outcome, Pattern, Simplifier, before, instead};
use crate::mlir::Operation;

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("select", of_equals),
    ("select", inverted),
    ("select", inverted_broadcast),
    ("slice", same_type),
    ("get_tuple_element", element_of_tuple),
    ("tuple", repacked),
];

/// Both values are the same, or the condition is constant.
fn of_equals(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let [condition, on_true, on_false] = operation.operands[..] else { return None };
    if on_true == on_false {
        return is(on_true);
    }
    match s.splat(condition)? {
        Number::Integer(0) => is(on_false),
        _ => is(on_true),
    }
}

/// `select(not(p), a, b)` is `select(p, b, a)`.
fn inverted(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let [condition, on_true, on_false] = operation.operands[..] else { return None };
    let not = s.defined(condition, "not")?;
    let operands = [*not.operands.first()?, on_false, on_true];
    Some(Outcome::Operations(vec![instead(operation, "select", &operands, Vec::new())]))
}

fn inverted_broadcast(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let [condition, on_true, on_false] = operation.operands[..] else { return None };
    let spread = s.defined(condition, "broadcast_in_dim").filter(|_| s.has_one_use(condition))?;
    let not = s.defined(*spread.operands.first()?, "not")?;
    let ty = s.tensor(condition)?.clone();
    let value = s.value(crate::mlir::Type::Tensor(ty));
    let (location, span) = (operation.location.clone(), operation.span);
    let attributes = spread.attributes.clone();
    let spread = before(location, span, ("broadcast_in_dim", &not.operands), attributes, value);
    let select = instead(operation, "select", &[value, on_false, on_true], Vec::new());
    Some(Outcome::Operations(vec![spread, select]))
}

fn element_of_tuple(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let tuple = s.defined(*operation.operands.first()?, "tuple")?;
    let index = super::integer(&operation.attributes, "index")?;
    is(*tuple.operands.get(usize::try_from(index).ok()?)?)
}

/// A tuple of all elements of a tuple is that tuple.
fn repacked(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let first = s.defined(*operation.operands.first()?, "get_tuple_element")?;
    let &tuple = first.operands.first()?;
    let ty = |value: crate::mlir::Value| s.values.get(usize::try_from(value.0).ok()?);
    if ty(tuple)? != ty(*operation.results.first()?)? {
        return None;
    }
    for (index, &value) in (0i64..).zip(&operation.operands) {
        let element = s.defined(value, "get_tuple_element")?;
        if element.operands.first() != Some(&tuple)
            || super::integer(&element.attributes, "index") != Some(index)
        {
            return None;
        }
    }
    is(tuple)
}
