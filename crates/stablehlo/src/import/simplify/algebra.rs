//! Identities of arithmetic.

use super::constants::Number;
use super::{Outcome, Pattern, Simplifier};
use crate::mlir::{Operation, Scalar, Value};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("add", constant_right),
    ("and", constant_right),
    ("maximum", constant_right),
    ("minimum", constant_right),
    ("multiply", constant_right),
    ("or", constant_right),
    ("xor", constant_right),
    ("add", neutral_zero),
    ("subtract", neutral_zero),
    ("xor", neutral_zero),
    ("or", or),
    ("and", and),
    ("multiply", multiply),
    ("subtract", itself),
    ("xor", itself),
    ("compare", compare_bools),
    ("compare", compare_integers),
    ("complex", complex_parts),
    ("real", part_of_complex),
    ("imag", part_of_complex),
    ("convert", same_type),
];

/// Returns the two operands of an operation.
pub(super) fn two(operation: &Operation) -> Option<(Value, Value)> {
    match operation.operands[..] {
        [left, right] => Some((left, right)),
        _ => None,
    }
}

pub(super) fn is(value: Value) -> Option<Outcome> {
    Some(Outcome::Values(vec![value]))
}

/// `op(constant, x)` is `op(x, constant)`.
fn constant_right(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    if s.constant(left).is_some() && s.constant(right).is_none() {
        operation.operands.swap(0, 1);
        s.changed = true;
    }
    None
}

/// `x + 0`, `x - 0`, and `xor(x, 0)`, are `x`.
fn neutral_zero(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    if s.is_zero(right) { is(left) } else { None }
}

fn is_integer_zero(s: &Simplifier, value: Value) -> bool {
    s.splat(value) == Some(Number::Integer(0))
}

fn or(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    match (is_integer_zero(s, right), s.is_all_ones(right)) {
        (true, _) => is(left),
        (_, true) => is(right),
        _ => None,
    }
}

fn and(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    match (is_integer_zero(s, right), s.is_all_ones(right)) {
        (true, _) => is(right),
        (_, true) => is(left),
        _ => None,
    }
}

/// `x * 1` is `x`; `x * 0` is `0` for integers.
fn multiply(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    if s.is_one(right) {
        return is(left);
    }
    if is_integer_zero(s, right) { is(right) } else { None }
}

/// `x - x` and `xor(x, x)` of integers are `0`.
fn itself(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    let tensor = s.tensor(left)?.clone();
    let is_static = tensor.dims.iter().all(Option::is_some);
    if left != right || !is_static || !matches!(tensor.element, Scalar::Integer { .. }) {
        return None;
    }
    let zero = s.constant_instead(operation, &tensor, &[Number::Integer(0)])?;
    Some(Outcome::Operations(vec![zero]))
}

/// `x != false` and `x == true` are `x`.
fn compare_bools(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    let is_bool = matches!(s.tensor(right)?.element, Scalar::Integer { bits: 1, .. });
    let direction =
        operation.attribute("comparison_direction").and_then(super::super::attributes::text);
    match (direction.as_deref(), s.splat(right)) {
        (Some("NE"), Some(Number::Integer(0))) | (Some("EQ"), Some(Number::Integer(1)))
            if is_bool =>
        {
            is(left)
        }
        _ => None,
    }
}

/// An integer is equal to itself, and constants come second.
fn compare_integers(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (left, right) = two(operation)?;
    let text = |name| operation.attribute(name).and_then(super::super::attributes::text);
    if !matches!(text("compare_type").as_deref(), Some("SIGNED" | "UNSIGNED")) {
        return None;
    }
    let direction = text("comparison_direction")?;
    if left == right {
        let holds = matches!(direction.as_str(), "EQ" | "GE" | "LE");
        let tensor = s.tensor(*operation.results.first()?)?.clone();
        let constant = s.constant_instead(operation, &tensor, &[Number::Integer(holds.into())])?;
        return Some(Outcome::Operations(vec![constant]));
    }
    if s.constant(left).is_some() && s.constant(right).is_none() {
        let turned = match direction.as_str() {
            "GE" => "LE",
            "GT" => "LT",
            "LE" => "GE",
            "LT" => "GT",
            other => other,
        };
        let turned = super::super::functions::word("comparison_direction", turned);
        let attributes = operation.attributes.iter_mut();
        let (_, value) = attributes.into_iter().find(|(name, _)| name == "comparison_direction")?;
        *value = turned;
        operation.operands.swap(0, 1);
        s.changed = true;
    }
    None
}

/// `complex(real(x), imag(x))` is `x`.
fn complex_parts(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (real, imaginary) = two(operation)?;
    let real = s.defined(real, "real")?;
    let imaginary = s.defined(imaginary, "imag")?;
    if real.operands == imaginary.operands { is(*real.operands.first()?) } else { None }
}

/// `real(complex(r, i))` is `r`.
fn part_of_complex(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let complex = s.defined(*operation.operands.first()?, "complex")?;
    let at = usize::from(operation.name.ends_with("imag"));
    is(*complex.operands.get(at)?)
}

/// An operation that changes nothing.
pub(super) fn same_type(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (&from, &to) = (operation.operands.first()?, operation.results.first()?);
    if s.same_type(from, to) { is(from) } else { None }
}
