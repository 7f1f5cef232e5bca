//! Ops whose operands say sizes, as ops whose attributes do: where these operands are constants, or
//! where the type of the result says all that they can.

use super::{Outcome, Pattern, Simplifier, before, instead, list};
use crate::mlir::{Attributes, Operation, TensorType, Type, Value};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("dynamic_broadcast_in_dim", broadcast),
    ("dynamic_gather", gather),
    ("dynamic_iota", iota),
    ("dynamic_pad", pad),
    ("dynamic_reshape", reshape),
    ("real_dynamic_slice", slice),
    ("real_dynamic_slice", dynamic_slice),
];

/// Returns the operation with its first operands and with these attributes of its own.
fn fixed(
    operation: &Operation,
    name: &str,
    operands: usize,
    kept: &[&str],
    added: Attributes,
) -> Option<Outcome> {
    let kept = operation.attributes.iter().filter(|(name, _)| kept.contains(&name.as_str()));
    let attributes = kept.cloned().chain(added).collect();
    let operands = operation.operands.get(..operands)?;
    Some(Outcome::Operations(vec![instead(operation, name, operands, attributes)]))
}

fn broadcast(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    s.dims(*operation.operands.first()?)?;
    s.dims(*operation.results.first()?)?;
    fixed(operation, "broadcast_in_dim", 1, &["broadcast_dimensions"], Vec::new())
}

fn gather(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let sizes = s.sizes(*operation.operands.get(2)?)?;
    let kept = ["dimension_numbers", "indices_are_sorted"];
    fixed(operation, "gather", 2, &kept, vec![list("slice_sizes", sizes)])
}

fn iota(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    s.dims(*operation.results.first()?)?;
    fixed(operation, "iota", 0, &["iota_dimension"], Vec::new())
}

fn pad(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let &[_, _, low, high, interior] = operation.operands.as_slice() else { return None };
    let attributes = vec![
        list("edge_padding_low", s.sizes(low)?),
        list("edge_padding_high", s.sizes(high)?),
        list("interior_padding", s.sizes(interior)?),
    ];
    fixed(operation, "pad", 2, &[], attributes)
}

fn reshape(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    s.dims(*operation.operands.first()?)?;
    s.dims(*operation.results.first()?)?;
    fixed(operation, "reshape", 1, &[], Vec::new())
}

/// A slice between constants has dims that are known, whatever its type says.
fn slice(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let &[_, start, limit, stride] = operation.operands.as_slice() else { return None };
    let (starts, limits) = (s.sizes(start)?, s.sizes(limit)?);
    let strides = s.sizes(stride)?;
    let bounds = starts.iter().zip(&limits).zip(&strides);
    let size = |((&start, &limit), &stride): ((&i64, &i64), &i64)| {
        let span = limit.checked_sub(start).filter(|&span| span >= 0 && stride > 0)?;
        span.checked_add(stride)?.checked_sub(1)?.checked_div(stride)
    };
    let sizes = bounds.map(size).collect::<Option<Vec<i64>>>()?;
    s.set_dims(*operation.results.first()?, &sizes)?;
    let attributes = vec![
        list("start_indices", starts),
        list("limit_indices", limits),
        list("strides", strides),
    ];
    fixed(operation, "slice", 1, &[], attributes)
}

/// A slice of known sizes begins where the program says.
fn dynamic_slice(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let &[from, start, limit, stride] = operation.operands.as_slice() else { return None };
    if s.sizes(stride)?.iter().any(|&stride| stride != 1) {
        return None;
    }
    let sum = s.defined(limit, "add")?;
    let sizes = match sum.operands[..] {
        [left, right] if left == start => s.sizes(right)?,
        [left, right] if right == start => s.sizes(left)?,
        _ => return None,
    };
    s.set_dims(*operation.results.first()?, &sizes)?;
    let element = s.tensor(start)?.element.clone();
    let mut operations = Vec::new();
    let mut operands = vec![from];
    for at in 0..i64::try_from(sizes.len()).ok()? {
        let ty = |dims: &[i64]| {
            let dims = dims.iter().copied().map(Some).collect();
            Type::Tensor(TensorType { dims, element: element.clone(), encoding: None })
        };
        let (one, scalar) = (s.value(ty(&[1])), s.value(ty(&[])));
        let attributes = vec![
            list("start_indices", [at]),
            list("limit_indices", [at.checked_add(1)?]),
            list("strides", [1]),
        ];
        let place = |op: (&str, &[Value]), attributes, result| {
            before(operation.location.clone(), operation.span, op, attributes, result)
        };
        operations.push(place(("slice", &[start]), attributes, one));
        operations.push(place(("reshape", &[one]), Vec::new(), scalar));
        operands.push(scalar);
    }
    let attributes = vec![list("slice_sizes", sizes)];
    operations.push(instead(operation, "dynamic_slice", &operands, attributes));
    Some(Outcome::Operations(operations))
}

impl Simplifier {
    /// Returns the integers of a constant of one dim.
    fn sizes(&self, value: Value) -> Option<Vec<i64>> {
        let &[count] = self.dims(value)?.as_slice() else { return None };
        let numbers = super::constants::numbers(&self.constant(value)?)?;
        let integer = |number: &super::Number| match number {
            super::Number::Integer(value) => i64::try_from(*value).ok(),
            super::Number::Real(_) => None,
        };
        let numbers = numbers.iter().map(integer).collect::<Option<Vec<i64>>>()?;
        let count = usize::try_from(count).ok().filter(|&count| count <= MAX_RANK)?;
        match numbers[..] {
            [only] => Some(vec![only; count]),
            _ => (numbers.len() == count).then_some(numbers),
        }
    }

    /// Gives a tensor known dims, unless it has others.
    fn set_dims(&mut self, value: Value, dims: &[i64]) -> Option<()> {
        let known = &self.tensor(value)?.dims;
        let agree = known.len() == dims.len()
            && known.iter().zip(dims).all(|(known, dim)| known.is_none_or(|known| known == *dim));
        let place = usize::try_from(value.0).ok()?;
        match self.values.get_mut(place)? {
            Type::Tensor(tensor) if agree => {
                if tensor.dims.iter().any(Option::is_none) {
                    tensor.dims = dims.iter().copied().map(Some).collect();
                    tensor.encoding = None;
                }
                Some(())
            }
            _ => None,
        }
    }
}

/// The largest rank of a tensor whose sizes are read.
const MAX_RANK: usize = 64;
