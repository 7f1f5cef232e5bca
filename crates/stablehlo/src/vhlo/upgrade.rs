//! Operations of VHLO as StableHLO's.

use super::rules::{Conversion, Group, Initial, Rules, bytes};
use crate::bytecode::read::dense;
use crate::bytecode::structures::{Field, dialect, list, number};
use crate::mlir::{Attribute, Attributes, DenseArray, Type, value_of};

/// Converts the attributes of an operation. Versions of an operation differ in the attributes that
/// older ones lack, and these have the value that StableHLO leaves out.
pub(crate) fn upgrade(rules: &Rules, attributes: Attributes) -> Result<Attributes, String> {
    let mut converted = Attributes::new();
    let mut grouped: Vec<&str> = Vec::new();
    for group in &rules.groups {
        if let Some(value) = structure_of(group, &attributes)? {
            converted.push((group.attribute.into(), value));
        }
        grouped.extend(group.fields().map(|(name, ..)| name));
    }
    let left_out: Vec<bool> = attributes
        .iter()
        .map(|(name, value)| {
            let initial = rules.initial(name);
            grouped.contains(&name.as_str())
                || rules.drops_padding && name == "padding"
                || initial.is_some_and(|initial: Initial| initial.is(value, &attributes))
        })
        .collect();
    for ((name, value), left_out) in attributes.into_iter().zip(left_out) {
        if left_out {
            continue;
        }
        if rules.has_channel && name == "channel_id" {
            let Attribute::Integer(id, _) = value else {
                return Err("`channel_id` should be an integer".into());
            };
            let id = i64::try_from(id).map_err(|_| "`channel_id` is too great")?;
            let handle = vec![("handle".into(), number(id)), ("type".into(), number(0))];
            converted
                .push(("channel_handle".into(), dialect("stablehlo", "channel_handle", handle)));
            continue;
        }
        let value = match rules.conversion(&name) {
            Some(conversion) => convert(value, conversion)
                .ok_or_else(|| format!("the attribute `{name}` has a value of another kind"))?,
            None => value,
        };
        converted.push((name, value));
    }
    Ok(converted)
}

/// Makes a structure of the attributes that are its parameters.
fn structure_of(group: &Group, attributes: &Attributes) -> Result<Option<Attribute>, String> {
    let mut parameters = Attributes::new();
    for (vhlo, name, field) in group.fields() {
        let value = value_of(attributes, vhlo);
        if group.optional() && value.is_none_or(is_none) {
            return Ok(None);
        }
        let wrong = || format!("the attribute `{vhlo}` is missing or has a value of another kind");
        let value = match field {
            Field::Number | Field::NumberUnlessZero => match value {
                Some(Attribute::Integer(0, _)) if field == Field::NumberUnlessZero => None,
                Some(Attribute::Integer(value, _)) => {
                    Some(number(i64::try_from(*value).map_err(|_| wrong())?))
                }
                _ => return Err(wrong()),
            },
            Field::List | Field::ListUnlessEmpty => {
                let values = match value {
                    Some(value) => numbers(value).ok_or_else(wrong)?,
                    None if field == Field::ListUnlessEmpty => Vec::new(),
                    None => return Err(wrong()),
                };
                Some(list(values)).filter(|_| field == Field::List || !is_empty(value))
            }
            Field::Type | Field::Bool | Field::Double | Field::Attribute => {
                Some(value.ok_or_else(wrong)?.clone())
            }
        };
        parameters.extend(value.map(|value| (name.into(), value)));
    }
    Ok(Some(dialect("stablehlo", group.structure, parameters)))
}

fn is_none(value: &Attribute) -> bool {
    matches!(value, Attribute::Type(ty) if **ty == Type::None)
}

fn is_empty(value: Option<&Attribute>) -> bool {
    value.and_then(bytes).is_none_or(<[u8]>::is_empty)
}

/// Returns the elements of a constant, one for each.
fn elements<T: Clone>(value: &Attribute, size: usize, of: impl Fn(&[u8]) -> T) -> Option<Vec<T>> {
    let Attribute::Dense(constant) = value else { return None };
    let Type::Tensor(tensor) = &*constant.ty else { return None };
    let count = dense::count(tensor)?;
    let values: Vec<T> = bytes(value)?.chunks_exact(size).map(of).collect();
    match values.as_slice() {
        // The list belongs to the dims of a tensor, so that it is short.
        [only] if count > 1 => (count <= MAX_LIST).then(|| vec![only.clone(); count]),
        _ => Some(values),
    }
}

/// Equal elements of a list that are stored as one are at most this many.
const MAX_LIST: usize = 64;

fn numbers(value: &Attribute) -> Option<Vec<i64>> {
    match value {
        // Artifacts of other programs have arrays.
        Attribute::DenseArray(DenseArray::I64(values)) => Some(values.clone()),
        _ => elements(value, 8, dense::sign_extended),
    }
}

fn convert(value: Attribute, conversion: Conversion) -> Option<Attribute> {
    Some(match conversion {
        Conversion::Numbers => list(numbers(&value)?),
        Conversion::Bools => {
            Attribute::DenseArray(DenseArray::Bool(elements(&value, 1, |byte| byte != [0])?))
        }
        Conversion::Symbol => symbol(&value)?,
        Conversion::Symbols => match value {
            Attribute::Array(names) => {
                Attribute::Array(names.iter().map(symbol).collect::<Option<_>>()?)
            }
            _ => return None,
        },
        Conversion::Unit => match value {
            Attribute::Bool(true) => Attribute::Unit,
            _ => return None,
        },
    })
}

fn symbol(value: &Attribute) -> Option<Attribute> {
    match value {
        Attribute::String(name) => {
            let name = std::str::from_utf8(name).ok()?;
            Some(Attribute::Symbol(std::iter::once(name.into()).collect()))
        }
        _ => None,
    }
}
