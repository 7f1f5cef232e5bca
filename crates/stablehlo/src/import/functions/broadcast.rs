//! CHLO's ops that broadcast their operands first, and StableHLO's older ops that are others with other attributes.

use super::maker::Maker;
use super::{Function, next_after, structure, widened, zeta};
use crate::mlir::{Attribute, Attributes, DenseArray, Scalar, Sign, TensorType, Type, Value};

/// `chlo.broadcast_add` and its like: operands have the last dims of the result, or those of `broadcast_dimensions`.
pub(super) fn elementwise(m: &mut Maker<'_>, operands: &[Value]) -> Option<Value> {
    let ty = m.result()?.clone();
    let rank = |value: &Value| m.tensor(*value).map(|tensor| tensor.dims.len());
    let ranks: Vec<usize> = operands.iter().map(rank).collect::<Option<_>>()?;
    let named = m.integers("broadcast_dimensions");
    let mut spread = Vec::new();
    for (&operand, &rank) in operands.iter().zip(&ranks) {
        let places = match &named {
            Some(named) if ranks.iter().any(|&other| other > rank) => named.clone(),
            _ => (0..).take(ty.dims.len()).skip(ty.dims.len().checked_sub(rank)?).collect(),
        };
        spread.push(broadcast_to(m, operand, &ty, places)?);
    }
    let name = m.name().strip_prefix("chlo.broadcast_")?.to_owned();
    match name.as_str() {
        "next_after" => widened(m, &spread, Function::OfTwo(next_after::next_after), false),
        "polygamma" => widened(m, &spread, Function::OfTwo(zeta::polygamma), true),
        "zeta" => widened(m, &spread, Function::OfTwo(zeta::zeta), true),
        _ => {
            let kept = ["comparison_direction", "compare_type"];
            let attributes = m.attributes().iter().filter(|(name, _)| kept.contains(&&**name));
            let attributes = attributes.cloned().collect();
            m.make(&name, &spread, attributes, ty)
        }
    }
}

/// Broadcasts a value to the dims of a type.
fn broadcast_to(
    m: &mut Maker<'_>,
    value: Value,
    to: &TensorType,
    places: Vec<i64>,
) -> Option<Value> {
    let from = m.tensor(value)?;
    if to.dims.iter().chain(&from.dims).any(Option::is_none) || places.len() != from.dims.len() {
        return None;
    }
    if from.dims == to.dims {
        return Some(value);
    }
    let ty = TensorType { element: from.element.clone(), ..to.clone() };
    let dims = Attribute::DenseArray(DenseArray::I64(places));
    m.make("broadcast_in_dim", &[value], vec![("broadcast_dimensions".into(), dims)], ty)
}

/// `stablehlo.broadcast`: new dims come first.
pub(super) fn broadcast(m: &mut Maker<'_>, operands: &[Value]) -> Option<Value> {
    let (&[value], ty) = (operands, m.result()?.clone()) else { return None };
    let new = m.integers("broadcast_sizes")?.len();
    let places = (0..).take(ty.dims.len()).skip(new).collect();
    broadcast_to(m, value, &ty, places)
}

/// `chlo.constant_like`: a number in each element of a tensor of the operand's type.
pub(super) fn constant_like(m: &mut Maker<'_>, operands: &[Value]) -> Option<Value> {
    let like = *operands.first()?;
    match m.attribute("value")? {
        Attribute::Float(value, _) => m.number(like, *value),
        Attribute::Integer(value, _) => m.integer(like, i64::try_from(*value).ok()?),
        _ => None,
    }
}

/// `stablehlo.cross-replica-sum`: an all-reduce that adds.
pub(super) fn cross_replica_sum(m: &mut Maker<'_>, operands: &[Value]) -> Option<Value> {
    let ty = m.result()?.clone();
    let attributes = m.attributes().clone();
    let sum = m.make("all_reduce", operands, attributes, ty)?;
    m.reduces_by("add", *operands.first()?)?;
    Some(sum)
}

/// `chlo.conj`; a real number is its own.
pub(super) fn conjugate(m: &mut Maker<'_>, z: Value) -> Option<Value> {
    let element = m.tensor(z)?.element.clone();
    if !matches!(element, Scalar::Complex(_)) {
        return m.convert(z, &element);
    }
    let (real, imaginary) = (m.part("real", z)?, m.part("imag", z)?);
    let negative = m.op("negate", &[imaginary])?;
    m.complex(real, negative, z)
}

/// `stablehlo.torch_index_select`: rows of a dim by their numbers, of the same batch.
pub(super) fn index_select(m: &mut Maker<'_>, operands: &[Value]) -> Option<Value> {
    let &[from, index] = operands else { return None };
    let (of, by, ty) = (m.tensor(from)?.clone(), m.tensor(index)?.clone(), m.result()?.clone());
    let (dim, batch) = (m.integers("dim")?, m.integers("batch_dims")?);
    let (&[dim], &[batch]) = (dim.as_slice(), batch.as_slice()) else { return None };
    let at = usize::try_from(dim).ok().filter(|&at| at < of.dims.len())?;
    let batches = usize::try_from(batch).ok().filter(|&count| count <= at)?;
    let picked = by.dims.len().checked_sub(batches)?;
    let mut sizes: Vec<i64> = of.dims.iter().copied().collect::<Option<_>>()?;
    let (front, rest) = sizes.split_at_mut(batches);
    front.fill(1);
    *rest.get_mut(at - batches)? = 1;
    // The dims of the index stand where the dim was.
    let list = |dims: Vec<i64>| Attribute::DenseArray(DenseArray::I64(dims));
    let offsets: Vec<i64> = (0..).take(ty.dims.len()).collect();
    let is_offset =
        |at: &i64| *at >= batch && (*at < dim || *at >= dim + i64::try_from(picked).unwrap_or(0));
    let numbers: Attributes = vec![
        ("offset_dims".into(), list(offsets.into_iter().filter(is_offset).collect())),
        ("collapsed_slice_dims".into(), list(vec![dim])),
        ("operand_batching_dims".into(), list((0..batch).collect())),
        ("start_indices_batching_dims".into(), list((0..batch).collect())),
        ("start_index_map".into(), list(vec![dim])),
        ("index_vector_dim".into(), integer(i64::try_from(by.dims.len()).ok()?)),
    ];
    let attributes = vec![
        ("dimension_numbers".into(), structure("gather", numbers)),
        ("indices_are_sorted".into(), Attribute::Bool(false)),
        ("slice_sizes".into(), list(sizes)),
    ];
    m.make("gather", &[from, index], attributes, ty)
}

fn integer(value: i64) -> Attribute {
    let ty = Scalar::Integer { bits: 64, sign: Sign::Signless };
    Attribute::Integer(value.into(), Type::Scalar(ty))
}
