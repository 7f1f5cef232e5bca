//! Operations on constants.

use super::constants::{Number, numbers};
use super::{Outcome, Pattern, Simplifier, count, integers};
use crate::mlir::{Attribute, DenseElements, Elements, Operation, Scalar, Type};

pub(super) const PATTERNS: &[(&str, Pattern)] = &[
    ("broadcast_in_dim", splat),
    ("reshape", reshape),
    ("transpose", transpose),
    ("convert", convert),
    ("add", arithmetic),
    ("and", arithmetic),
    ("divide", arithmetic),
    ("maximum", arithmetic),
    ("minimum", arithmetic),
    ("multiply", arithmetic),
    ("or", arithmetic),
    ("remainder", arithmetic),
    ("subtract", arithmetic),
    ("xor", arithmetic),
    ("compare", compare),
    ("abs", function),
    ("negate", function),
    ("not", function),
    ("sqrt", function),
    ("rsqrt", function),
    ("log", function),
    ("exponential", function),
    ("concatenate", concatenate),
    ("slice", slice),
];

/// The largest number of elements of a folded constant that are not all equal.
const MOST_ELEMENTS: i64 = 65536;

/// Whether an array's elements are moved one by one: there are some, and not too many.
fn is_foldable(sizes: &[i64]) -> bool {
    count(sizes).is_some_and(|count| (1..=MOST_ELEMENTS).contains(&count))
}

/// Returns the type of an operation's result if its dims are known and its elements folded.
fn folded(s: &Simplifier, operation: &Operation) -> Option<crate::mlir::TensorType> {
    let tensor = s.tensor(*operation.results.first()?)?;
    tensor.dims.iter().all(Option::is_some).then(|| tensor.clone())
}

fn same_elements(s: &Simplifier, operation: &Operation, elements: Elements) -> Option<Outcome> {
    let tensor = folded(s, operation)?;
    let dense = DenseElements { ty: Box::new(Type::Tensor(tensor)), elements };
    let attributes = vec![("value".into(), Attribute::Dense(dense))];
    let mut constant = super::instead(operation, "constant", &[], attributes);
    constant.attributes.truncate(1);
    Some(Outcome::Operations(vec![constant]))
}

/// Returns the constant operand of an operation if its elements are all equal.
fn equal(s: &Simplifier, operation: &Operation) -> Option<Elements> {
    let constant = s.constant(*operation.operands.first()?)?;
    let (Elements::Bytes(bytes), Type::Tensor(tensor)) = (&constant.elements, &*constant.ty) else {
        return None;
    };
    (bytes.len() == super::constants::width(&tensor.element)).then(|| constant.elements.clone())
}

fn splat(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let elements = equal(s, operation)?;
    same_elements(s, operation, elements)
}

fn reshape(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let constant = s.constant(*operation.operands.first()?)?;
    same_elements(s, operation, constant.elements)
}

fn transpose(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    if let Some(elements) = equal(s, operation) {
        return same_elements(s, operation, elements);
    }
    let &from = operation.operands.first()?;
    let (constant, sizes) = (s.constant(from)?, s.dims(from)?);
    let tensor = folded(s, operation)?;
    if !is_foldable(&sizes) {
        return None;
    }
    let Elements::Bytes(bytes) = &constant.elements else { return None };
    let width = super::constants::width(&tensor.element);
    if !s.affords(bytes.len() / width) {
        return None;
    }
    let permutation = integers(&operation.attributes, "permutation")?;
    let mut sorted = permutation.clone();
    sorted.sort_unstable();
    if sorted.len() != sizes.len() || !super::is_iota(&sorted) {
        return None;
    }
    let mut strides = vec![1i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        let stride = strides.get(at)?.checked_mul(*sizes.get(at)?)?;
        *strides.get_mut(at - 1)? = stride;
    }
    let mut places = vec![0i64];
    for dim in permutation {
        let dim = usize::try_from(dim).ok()?;
        let (size, stride) = (*sizes.get(dim)?, *strides.get(dim)?);
        places = places.iter().flat_map(|p| (0..size).map(move |at| p + at * stride)).collect();
    }
    let mut moved = Vec::with_capacity(bytes.len());
    for place in places {
        let at = usize::try_from(place).ok()?.checked_mul(width)?;
        moved.extend(bytes.get(at..at.checked_add(width)?)?);
    }
    same_elements(s, operation, Elements::Bytes(moved.into()))
}

/// Returns the numbers of the operands, which have as many as the result, or one.
fn operands(s: &Simplifier, operation: &Operation) -> Option<Vec<Vec<Number>>> {
    if count(&s.dims(*operation.results.first()?)?)? > MOST_ELEMENTS
        && !operation.operands.iter().all(|&operand| s.splat(operand).is_some())
    {
        return None;
    }
    operation.operands.iter().map(|&operand| numbers(&s.constant(operand)?)).collect()
}

fn finish(s: &Simplifier, operation: &Operation, numbers: Option<Vec<Number>>) -> Option<Outcome> {
    let tensor = folded(s, operation)?;
    let constant = s.constant_instead(operation, &tensor, &numbers?)?;
    Some(Outcome::Operations(vec![constant]))
}

fn convert(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let tensor = folded(s, operation)?;
    if count(&s.dims(*operation.results.first()?)?)? > MOST_ELEMENTS {
        return None;
    }
    let [values] = &operands(s, operation)?[..] else { return None };
    let converted = values.iter().map(|&value| converted(value, &tensor.element));
    let converted = converted.collect();
    finish(s, operation, converted)
}

/// Converts a number that fits; what saturates, and integers that are rounded twice, are left to the program.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "it converts")]
fn converted(value: Number, to: &Scalar) -> Option<Number> {
    Some(match (value, to) {
        (Number::Integer(value), Scalar::Integer { bits: 1, .. }) => {
            Number::Integer(i128::from(value != 0))
        }
        (Number::Integer(_), Scalar::Integer { .. }) => value,
        (Number::Integer(value), Scalar::Float(_)) if value.unsigned_abs() <= 1 << 53 => {
            Number::Real(value as f64)
        }
        (Number::Real(_), Scalar::Float(_)) => value,
        (Number::Real(value), Scalar::Integer { bits: 1, .. }) => {
            Number::Integer(i128::from(value != 0.0))
        }
        (Number::Real(value), &Scalar::Integer { bits, sign }) if value.is_finite() => {
            let value = value.trunc() as i128;
            let (least, greatest) = match (sign, bits.clamp(1, 64)) {
                (crate::mlir::Sign::Unsigned, bits) => (0, (1 << bits) - 1),
                (_, bits) => (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1),
            };
            Number::Integer(Some(value).filter(|value| (least..=greatest).contains(value))?)
        }
        _ => return None,
    })
}

/// Applies a function to corresponding numbers of two operands.
fn zip(
    [left, right]: [&[Number]; 2],
    f: impl Fn(Number, Number) -> Option<Number>,
) -> Option<Vec<Number>> {
    match (left, right) {
        (&[left], &[right]) => Some(vec![f(left, right)?]),
        (&[left], right) => right.iter().map(|&right| f(left, right)).collect(),
        (left, &[right]) => left.iter().map(|&left| f(left, right)).collect(),
        (left, right) if left.len() == right.len() => {
            left.iter().zip(right).map(|(&left, &right)| f(left, right)).collect()
        }
        _ => None,
    }
}

fn arithmetic(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let operands = operands(s, operation)?;
    let [left, right] = &operands[..] else { return None };
    let name = operation.name.strip_prefix("stablehlo.")?.to_owned();
    let numbers = zip([left, right], |left, right| match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => {
            integers_of(&name, left, right).map(Number::Integer)
        }
        (Number::Real(left), Number::Real(right)) => reals(&name, left, right).map(Number::Real),
        _ => None,
    });
    finish(s, operation, numbers)
}

fn integers_of(name: &str, left: i128, right: i128) -> Option<i128> {
    Some(match name {
        "add" => left.checked_add(right)?,
        "subtract" => left.checked_sub(right)?,
        "multiply" => left.checked_mul(right)?,
        "divide" => left.checked_div(right)?,
        "remainder" => left.checked_rem(right)?,
        "maximum" => left.max(right),
        "minimum" => left.min(right),
        "and" => left & right,
        "or" => left | right,
        "xor" => left ^ right,
        _ => return None,
    })
}

fn reals(name: &str, left: f64, right: f64) -> Option<f64> {
    Some(match name {
        "add" => left + right,
        "subtract" => left - right,
        "multiply" => left * right,
        "divide" => left / right,
        "remainder" => left % right,
        "maximum" if !left.is_nan() && !right.is_nan() => left.max(right),
        "minimum" if !left.is_nan() && !right.is_nan() => left.min(right),
        _ => return None,
    })
}

fn compare(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let operands = operands(s, operation)?;
    let [left, right] = &operands[..] else { return None };
    let text = |name| operation.attribute(name).and_then(super::super::attributes::text);
    if text("compare_type").as_deref() == Some("TOTALORDER") {
        return None;
    }
    let direction = text("comparison_direction")?;
    let numbers = zip([left, right], |left, right| {
        let order = match (left, right) {
            (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
            (Number::Real(left), Number::Real(right)) => left.partial_cmp(&right),
            _ => return None,
        };
        let holds = match direction.as_str() {
            "EQ" => order.is_some_and(std::cmp::Ordering::is_eq),
            "NE" => order.is_none_or(std::cmp::Ordering::is_ne),
            "GE" => order.is_some_and(std::cmp::Ordering::is_ge),
            "GT" => order.is_some_and(std::cmp::Ordering::is_gt),
            "LE" => order.is_some_and(std::cmp::Ordering::is_le),
            "LT" => order.is_some_and(std::cmp::Ordering::is_lt),
            _ => return None,
        };
        Some(Number::Integer(i128::from(holds)))
    });
    finish(s, operation, numbers)
}

fn function(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let operands = operands(s, operation)?;
    let [values] = &operands[..] else { return None };
    let is_bool = matches!(folded(s, operation)?.element, Scalar::Integer { bits: 1, .. });
    let name = operation.name.strip_prefix("stablehlo.")?.to_owned();
    let apply = |&value: &Number| {
        Some(match (name.as_str(), value) {
            ("abs", Number::Integer(value)) => Number::Integer(value.abs()),
            ("abs", Number::Real(value)) => Number::Real(value.abs()),
            ("negate", Number::Integer(value)) => Number::Integer(-value),
            ("negate", Number::Real(value)) => Number::Real(-value),
            ("not", Number::Integer(value)) if is_bool => Number::Integer(1 - value),
            ("not", Number::Integer(value)) => Number::Integer(!value),
            ("sqrt", Number::Real(value)) if value >= 0.0 => Number::Real(value.sqrt()),
            ("log", Number::Real(value)) if value > 0.0 => Number::Real(value.ln()),
            ("exponential", Number::Real(value)) => Number::Real(value.exp()),
            ("rsqrt", Number::Real(value)) if value > 0.0 => Number::Real(1.0 / value.sqrt()),
            _ => return None,
        })
    };
    let numbers = values.iter().map(apply).collect();
    finish(s, operation, numbers)
}

/// Joins constants along the outermost dim.
fn concatenate(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    let total = count(&s.dims(*operation.results.first()?)?)?;
    let dim = super::integer(&operation.attributes, "dimension")?;
    if total > MOST_ELEMENTS || dim != 0 {
        return None;
    }
    let width = super::constants::width(&folded(s, operation)?.element);
    if !s.affords(usize::try_from(total).ok()?) {
        return None;
    }
    let mut joined = Vec::new();
    for &operand in &operation.operands {
        let Elements::Bytes(bytes) = s.constant(operand)?.elements else { return None };
        let count = count(&s.dims(operand)?).filter(|&count| count <= total)?;
        let count = usize::try_from(count).ok()?;
        let times = if bytes.len() == width { count } else { 1 };
        joined.extend(bytes.repeat(times));
    }
    same_elements(s, operation, Elements::Bytes(joined.into()))
}

fn slice(s: &mut Simplifier, operation: &mut Operation) -> Option<Outcome> {
    if let Some(elements) = equal(s, operation) {
        return same_elements(s, operation, elements);
    }
    let &from = operation.operands.first()?;
    let (constant, sizes) = (s.constant(from)?, s.dims(from)?);
    if !is_foldable(&sizes) {
        return None;
    }
    let Elements::Bytes(bytes) = &constant.elements else { return None };
    let width = super::constants::width(&folded(s, operation)?.element);
    let list = |name| integers(&operation.attributes, name);
    if !s.affords(bytes.len() / width) {
        return None;
    }
    let (starts, limits) = (list("start_indices")?, list("limit_indices")?);
    let strides = list("strides")?;
    let mut places = vec![0i64];
    for (((&size, start), limit), stride) in sizes.iter().zip(starts).zip(limits).zip(strides) {
        let step = usize::try_from(stride).ok().filter(|&step| step > 0)?;
        if start < 0 || limit > size {
            return None;
        }
        let next = |place: &i64| {
            let outer = place.saturating_mul(size);
            (start..limit).step_by(step).map(move |at| outer.saturating_add(at))
        };
        places = places.iter().flat_map(next).collect();
    }
    let mut kept = Vec::new();
    for place in places {
        let at = usize::try_from(place).ok()?.checked_mul(width)?;
        kept.extend(bytes.get(at..at.checked_add(width)?)?);
    }
    same_elements(s, operation, Elements::Bytes(kept.into()))
}
