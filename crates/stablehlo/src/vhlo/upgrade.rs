//! Operations of VHLO as StableHLO's.

use crate::bytecode::read::dense;
use crate::dialect::{Attr, Field, Need, Op, Parameter, Structure, ValueKind, bytes};
use crate::mlir::{Attribute, Attributes, DenseArray, Type, value_of};

/// Converts the attributes of an operation to those of StableHLO's op. Versions of an operation differ
/// in the attributes that older ones lack, and these have the value that StableHLO leaves out.
pub(crate) fn upgrade(op: &Op, attributes: Attributes) -> Result<Attributes, String> {
    let mut converted = Attributes::new();
    let mut grouped: Vec<&str> = Vec::new();
    for attr in op.attributes() {
        let Some(structure) = attr.structure() else { continue };
        if let Some(value) = structure_of(structure, attr.need, &attributes)? {
            converted.push((attr.name.into(), value));
        }
        grouped.extend(structure.parameters.iter().map(|parameter| parameter.vhlo));
    }
    let known: Vec<(Option<&Attr>, bool)> = attributes
        .iter()
        .map(|(name, value)| {
            let attr = op
                .attributes()
                .find(|attr| attr.names_in_vhlo(usize::MAX).contains(&name.as_str()));
            let initial = attr.and_then(Attr::initial);
            let is_left_out = grouped.contains(&name.as_str())
                || op.is_removed(name)
                || initial.is_some_and(|initial| initial.is(value, &attributes));
            (attr, is_left_out)
        })
        .collect();
    for ((name, value), (attr, is_left_out)) in attributes.into_iter().zip(known) {
        if is_left_out {
            continue;
        }
        let Some(attr) = attr else {
            converted.push((name, value));
            continue;
        };
        let value = convert(value, attr.kind)
            .ok_or_else(|| format!("the attribute `{name}` has a value of another kind"))?;
        converted.push((attr.name.into(), value));
    }
    Ok(converted)
}

/// Makes a structure of the attributes that are its parameters.
fn structure_of(
    structure: &Structure,
    need: Need,
    attributes: &Attributes,
) -> Result<Option<Attribute>, String> {
    let mut parameters = Attributes::new();
    for Parameter { name, field, vhlo, .. } in structure.parameters {
        let value = value_of(attributes, vhlo);
        if need == Need::Optional && value.is_none_or(is_none) {
            return Ok(None);
        }
        let wrong = || format!("the attribute `{vhlo}` is missing or has a value of another kind");
        let value = match (field, value) {
            (Field::Number | Field::NumberUnlessZero, Some(Attribute::Integer(value, _))) => {
                Attribute::i64(i64::try_from(*value).map_err(|_| wrong())?)
            }
            (Field::List | Field::ListUnlessEmpty, Some(value)) => {
                Attribute::i64s(numbers(value).ok_or_else(wrong)?)
            }
            (Field::ListUnlessEmpty, None) => Attribute::i64s([]),
            (Field::Type | Field::Bool | Field::Double | Field::Attribute, Some(value)) => {
                value.clone()
            }
            _ => return Err(wrong()),
        };
        if !field.leaves_out(&value) {
            parameters.push(((*name).into(), value));
        }
    }
    Ok(Some(Attribute::structure("stablehlo", structure.name, parameters)))
}

fn is_none(value: &Attribute) -> bool {
    matches!(value, Attribute::Type(ty) if **ty == Type::None)
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

fn convert(value: Attribute, kind: ValueKind) -> Option<Attribute> {
    Some(match kind {
        ValueKind::Dims => Attribute::i64s(numbers(&value)?),
        ValueKind::Bools => {
            Attribute::DenseArray(DenseArray::Bool(elements(&value, 1, |byte| byte != [0])?))
        }
        ValueKind::Symbol => symbol(&value)?,
        ValueKind::Symbols => match value {
            Attribute::Array(names) => {
                Attribute::Array(names.iter().map(symbol).collect::<Option<_>>()?)
            }
            _ => return None,
        },
        ValueKind::Unit => match value {
            Attribute::Bool(true) => Attribute::Unit,
            _ => return None,
        },
        ValueKind::Channel => match value {
            Attribute::Integer(..) => {
                let handle = vec![("handle".into(), value), ("type".into(), Attribute::i64(0))];
                Attribute::structure("stablehlo", "channel_handle", handle)
            }
            _ => return None,
        },
        _ => value,
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
