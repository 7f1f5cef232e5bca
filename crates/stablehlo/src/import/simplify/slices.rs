//! Slices at known places, and reductions of nothing.

use super::algebra::is;
use super::constants::{Number, numbers};
use super::{Outcome, Pattern, Simplifier, instead, integers, list};
use crate::mlir::{Operation, Value};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("dynamic_slice", dynamic_slice),
    ("dynamic_update_slice", dynamic_update_slice),
    ("reduce", reduce),
];

/// Returns scalars that are constant.
fn scalars(s: &Simplifier, values: &[Value]) -> Option<Vec<i64>> {
    let scalar = |&value: &Value| match numbers(&s.constant(value)?)?[..] {
        [Number::Integer(number)] => i64::try_from(number).ok(),
        _ => None,
    };
    values.iter().map(scalar).collect()
}

/// A dynamic slice at a known place is a slice.
fn dynamic_slice(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (&from, starts) = operation.operands.split_first()?;
    let (sizes, of) = (integers(&operation.attributes, "slice_sizes")?, s.dims(from)?);
    let starts = scalars(s, starts)?;
    if starts.len() != sizes.len() || sizes.len() != of.len() {
        return None;
    }
    let places = starts.iter().zip(&sizes).zip(&of);
    let starts = places.map(|((&start, &size), &of)| {
        Some(start.clamp(0, of.checked_sub(size).filter(|&most| most >= 0)?))
    });
    let starts: Vec<i64> = starts.collect::<Option<_>>()?;
    let limits: Vec<i64> = starts.iter().zip(&sizes).map(|(start, size)| start + size).collect();
    let attributes = vec![
        list("limit_indices", limits),
        list("start_indices", starts.iter().copied()),
        list("strides", std::iter::repeat_n(1, sizes.len())),
    ];
    Some(Outcome::Operations(vec![instead(operation, "slice", &[from], attributes)]))
}

/// An update of the whole, or by nothing.
fn dynamic_update_slice(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let [whole, update, starts @ ..] = &operation.operands[..] else { return None };
    if s.dims(*update)?.contains(&0) && s.constant(*update).is_some() {
        return is(*whole);
    }
    let all_zero = starts.iter().all(|&start| s.is_zero(start));
    if all_zero && s.same_type(*whole, *update) { is(*update) } else { None }
}

/// A reduction of no elements is its initial value. One of no dims combines each element with it, which jaxlib
/// leaves out.
fn reduce(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (inputs, inits) = operation.operands.split_at(operation.operands.len() / 2);
    if !s.dims(*inputs.first()?)?.contains(&0) {
        return None;
    }
    let broadcasts = inits.iter().zip(&operation.results).map(|(&init, &result)| {
        let attributes = vec![list("broadcast_dimensions", [])];
        let mut broadcast = instead(operation, "broadcast_in_dim", &[init], attributes);
        broadcast.results = std::iter::once(result).collect();
        broadcast
    });
    Some(Outcome::Operations(broadcasts.collect()))
}
