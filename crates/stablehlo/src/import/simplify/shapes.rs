//! Reshapes, broadcasts and transposes.

use super::algebra::{is, same_type};
use super::constants::Number;
use super::{
    Outcome, Pattern, Simplifier, before, count, instead, integer, integers, integers_or_none,
    is_iota, list,
};
use crate::mlir::{Elements, Operation, Scalar, TensorType, Type};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("reshape", same_type),
    ("reshape", reshape_of_reshape),
    ("broadcast_in_dim", broadcast_nothing),
    ("broadcast_in_dim", broadcast_of_broadcast),
    ("broadcast_in_dim", broadcast_as_reshape),
    ("broadcast_in_dim", broadcast_as_transpose),
    ("transpose", transpose_nothing),
    ("transpose", transpose_of_transpose),
    ("transpose", transpose_as_reshape),
    ("reverse", reverse_nothing),
    ("iota", iota),
    ("concatenate", concatenate),
    ("pad", pad),
    ("get_dimension_size", dimension_size),
    ("", zero_extent),
];

fn one(operation: Operation) -> Option<Outcome> {
    Some(Outcome::Operations(vec![operation]))
}

fn reshape_of_reshape(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let inner = s.defined(*operation.operands.first()?, "reshape")?;
    one(instead(operation, "reshape", &inner.operands, Vec::new()))
}

fn broadcast_nothing(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let dims = integers_or_none(&operation.attributes, "broadcast_dimensions")?;
    if is_iota(&dims) { same_type(s, operation) } else { None }
}

fn broadcast_of_broadcast(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let from = *operation.operands.first()?;
    let inner = s.defined(from, "broadcast_in_dim")?;
    let inner_dims = integers_or_none(&inner.attributes, "broadcast_dimensions")?;
    let dims = integers_or_none(&operation.attributes, "broadcast_dimensions")?;
    let (between, source) = (s.dims(from), s.dims(*inner.operands.first()?));
    if let (Some(between), Some(source)) = (between, source)
        && inner_dims.is_sorted()
        && count(&between) == count(&source)
    {
        return None;
    }
    let merged = inner_dims.iter().map(|&dim| dims.get(usize::try_from(dim).ok()?).copied());
    let merged: Vec<i64> = merged.collect::<Option<_>>()?;
    let attributes = vec![list("broadcast_dimensions", merged)];
    one(instead(operation, "broadcast_in_dim", &inner.operands, attributes))
}

/// A broadcast that adds only dims of size 1 is a reshape.
fn broadcast_as_reshape(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (&from, &to) = (operation.operands.first()?, operation.results.first()?);
    let dims = integers_or_none(&operation.attributes, "broadcast_dimensions")?;
    if !dims.is_sorted() || count(&s.dims(from)?)? != count(&s.dims(to)?)? {
        return None;
    }
    one(instead(operation, "reshape", &[from], Vec::new()))
}

fn broadcast_as_transpose(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (&from, &to) = (operation.operands.first()?, operation.results.first()?);
    let dims = integers(&operation.attributes, "broadcast_dimensions")?;
    let (of, wanted) = (s.dims(from)?, s.dims(to)?);
    if count(&of)? != count(&wanted)? || of.len() != wanted.len() {
        return None;
    }
    let mut permutation = vec![0; dims.len()];
    for (at, &dim) in dims.iter().enumerate() {
        *permutation.get_mut(usize::try_from(dim).ok()?)? = i64::try_from(at).ok()?;
    }
    one(instead(operation, "transpose", &[from], vec![list("permutation", permutation)]))
}

fn transpose_nothing(_: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let dims = integers(&operation.attributes, "permutation")?;
    if is_iota(&dims) { is(*operation.operands.first()?) } else { None }
}

fn transpose_of_transpose(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let inner = s.defined(*operation.operands.first()?, "transpose")?;
    let inner_dims = integers(&inner.attributes, "permutation")?;
    let dims = integers(&operation.attributes, "permutation")?;
    let merged = dims.iter().map(|&dim| inner_dims.get(usize::try_from(dim).ok()?).copied());
    let merged: Vec<i64> = merged.collect::<Option<_>>()?;
    one(instead(operation, "transpose", &inner.operands, vec![list("permutation", merged)]))
}

/// A transpose that keeps the order of all dims but those of size 1 is a reshape.
fn transpose_as_reshape(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let &from = operation.operands.first()?;
    let sizes = s.dims(from)?;
    s.dims(*operation.results.first()?)?;
    let dims = integers(&operation.attributes, "permutation")?;
    let large = dims
        .iter()
        .copied()
        .filter(|&dim| usize::try_from(dim).ok().and_then(|dim| sizes.get(dim)) != Some(&1));
    let large: Vec<i64> = large.collect();
    large.is_sorted().then(|| instead(operation, "reshape", &[from], Vec::new())).and_then(one)
}

/// A reverse of nothing, of dims of size 1 only, or of equal elements.
fn reverse_nothing(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let &from = operation.operands.first()?;
    let dims = integers_or_none(&operation.attributes, "dimensions")?;
    let sizes = s.dims(from)?;
    let is_one = |&dim: &i64| usize::try_from(dim).ok().and_then(|d| sizes.get(d)) == Some(&1);
    if dims.iter().all(is_one) || sizes.contains(&0) || s.splat(from).is_some() {
        return is(from);
    }
    None
}

/// An iota of several dims is a broadcast of one; an iota of one element is 0.
fn iota(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let tensor = s.tensor(*operation.results.first()?)?.clone();
    let dim = integer(&operation.attributes, "iota_dimension")?;
    let size = (*tensor.dims.get(usize::try_from(dim).ok()?)?)?;
    if size == 1 && tensor.dims.iter().all(Option::is_some) {
        let zero = match tensor.element {
            Scalar::Integer { .. } => Number::Integer(0),
            _ => Number::Real(0.0),
        };
        return one(s.constant_instead(operation, &tensor, &[zero])?);
    }
    if tensor.dims.len() < 2 {
        return None;
    }
    let dims = std::iter::once(Some(size)).collect();
    let ty = TensorType { dims, element: tensor.element, encoding: None };
    let line = s.value(Type::Tensor(ty));
    let zero = vec![("iota_dimension".into(), crate::mlir::Attribute::Integer(0, i64_type()))];
    let (location, span) = (operation.location.clone(), operation.span);
    let line_op = before(location, span, ("iota", &[]), zero, line);
    let attributes = vec![list("broadcast_dimensions", [dim])];
    let all = instead(operation, "broadcast_in_dim", &[line], attributes);
    Some(Outcome::Operations(vec![line_op, all]))
}

fn i64_type() -> Type {
    Type::Scalar(Scalar::Integer { bits: 64, sign: crate::mlir::Sign::Signless })
}

/// Removes empty operands, and unpacks concatenations along the same dim that nothing else uses.
fn concatenate(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    if let [_] = operation.operands[..] {
        return same_type(s, operation);
    }
    let dim = integer(&operation.attributes, "dimension")?;
    let at = usize::try_from(dim).ok()?;
    let is_empty = |value| s.tensor(value).is_some_and(|ty| ty.dims.get(at) == Some(&Some(0)));
    let filled: Vec<_> = operation.operands.iter().copied().filter(|&v| !is_empty(v)).collect();
    let mut operands = Vec::new();
    let source = if filled.is_empty() { operation.operands.to_vec() } else { filled };
    for value in source {
        let inner = s.defined(value, "concatenate").filter(|inner| {
            s.has_one_use(value) && integer(&inner.attributes, "dimension") == Some(dim)
        });
        match inner {
            Some(inner) => operands.extend(inner.operands.iter().copied()),
            None => operands.push(value),
        }
    }
    if operands[..] == operation.operands[..] {
        return None;
    }
    let attributes = vec![("dimension".into(), operation.attribute("dimension")?.clone())];
    one(instead(operation, "concatenate", &operands, attributes))
}

/// Padding by nothing, and of nothing.
fn pad(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let (from, value) = super::algebra::two(operation)?;
    if count(&s.dims(from)?)? == 0 {
        let attributes = vec![list("broadcast_dimensions", [])];
        return one(instead(operation, "broadcast_in_dim", &[value], attributes));
    }
    let all_zero =
        ["edge_padding_low", "edge_padding_high", "interior_padding"].iter().all(|name| {
            integers(&operation.attributes, name)
                .is_some_and(|list| list.iter().all(|&pad| pad == 0))
        });
    if all_zero { same_type(s, operation) } else { None }
}

/// The size of a dim that is not dynamic.
fn dimension_size(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let dim = usize::try_from(integer(&operation.attributes, "dimension")?).ok()?;
    let size = (*s.tensor(*operation.operands.first()?)?.dims.get(dim)?)?;
    let tensor = s.tensor(*operation.results.first()?)?.clone();
    one(s.constant_instead(operation, &tensor, &[Number::Integer(size.into())])?)
}

/// Values without elements are constants.
fn zero_extent(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    if !operation.name.starts_with("stablehlo.") || operation.name == "stablehlo.constant" {
        return None;
    }
    let is_empty = |s: &Simplifier, value| s.dims(value).is_some_and(|dims| dims.contains(&0));
    if !operation.operands.iter().chain(&operation.results).any(|&value| is_empty(s, value)) {
        return None;
    }
    for at in 0..operation.operands.len() {
        let Some(&operand) = operation.operands.get(at) else { break };
        if is_empty(s, operand)
            && s.constant(operand).is_none()
            && let Some(constant) = empty(s, operand)
            && let Some(slot) = operation.operands.get_mut(at)
        {
            *slot = constant;
            s.changed = true;
        }
    }
    if let [result] = operation.results[..]
        && is_empty(s, result)
        && !operation.name.ends_with("custom_call")
    {
        return is(empty(s, result)?);
    }
    for result in operation.results.clone() {
        let is_used = s.uses.get(&result).is_some_and(|&uses| uses > 0);
        if is_empty(s, result) && is_used && !s.replaced.contains_key(&result) {
            let constant = empty(s, result)?;
            s.replace(result, constant);
            s.changed = true;
        }
    }
    None
}

/// Returns an empty constant of the type of a value.
fn empty(s: &mut Simplifier, like: crate::mlir::Value) -> Option<crate::mlir::Value> {
    let ty = s.tensor(like)?.clone();
    let value = s.value(Type::Tensor(ty.clone()));
    let elements = Elements::Bytes(Vec::new().into());
    let dense = crate::mlir::DenseElements { ty: Box::new(Type::Tensor(ty)), elements };
    let attributes = vec![("value".into(), crate::mlir::Attribute::Dense(dense))];
    let span = crate::mlir::Span::default();
    let constant = before(None, span, ("constant", &[]), attributes, value);
    s.hoist(constant, false);
    Some(s.replaced.get(&value).copied().unwrap_or(value))
}
