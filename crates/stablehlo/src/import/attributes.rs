//! Reads the attributes of an operation.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::Dims;

use super::error::{Import, ImportError};
use crate::mlir::{
    Attribute, DenseArray, DenseElements, DialectAttribute, Elements, Operation, Type, value_of,
};

/// Returns an attribute; `a.b` is the parameter or entry `b` of the attribute `a`.
pub(super) fn find<'a>(operation: &'a Operation, name: &str) -> Option<&'a Attribute> {
    match name.split_once('.') {
        None => operation.attribute(name),
        Some((outer, inner)) => match operation.attribute(outer)? {
            Attribute::Dialect(attribute) => parameter(attribute, inner),
            Attribute::Dictionary(entries) => value_of(entries, inner),
            _ => None,
        },
    }
}

/// Returns a parameter of an attribute, or of the attribute in one of its parameters.
pub(super) fn parameter<'a>(attribute: &'a DialectAttribute, name: &str) -> Option<&'a Attribute> {
    let nested = attribute.parameters.iter().find_map(|(_, inner)| match inner {
        Attribute::Dialect(inner) => value_of(&inner.parameters, name),
        _ => None,
    });
    value_of(&attribute.parameters, name).or(nested)
}

/// Returns the integers of a list; `None` if it is no list of integers.
pub(super) fn integers(attribute: &Attribute) -> Option<Vec<i64>> {
    match attribute {
        Attribute::DenseArray(DenseArray::I64(values) | DenseArray::Integer(_, values)) => {
            Some(values.clone())
        }
        Attribute::DenseArray(DenseArray::Bool(values)) => {
            Some(values.iter().map(|&value| i64::from(value)).collect())
        }
        Attribute::Dense(elements) => dense_integers(elements),
        Attribute::Array(values) => values.iter().map(integer).collect(),
        _ => None,
    }
}

/// Returns one integer.
pub(super) fn integer(attribute: &Attribute) -> Option<i64> {
    match attribute {
        Attribute::Integer(value, _) => i64::try_from(*value).ok(),
        Attribute::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}

/// Returns a text: a string, or the name of a value of an enumeration.
pub(super) fn text(attribute: &Attribute) -> Option<SmolStr> {
    match attribute {
        Attribute::String(bytes) => std::str::from_utf8(bytes).ok().map(SmolStr::new),
        Attribute::Dialect(attribute) => text(parameter(attribute, "value")?),
        // `#mhlo<fusion_kind kLoop>`
        Attribute::Opaque { text, .. } => {
            let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
            inner.unwrap_or(text).split_whitespace().nth(1).map(SmolStr::new)
        }
        _ => None,
    }
}

/// The largest number of elements of a splat that stands for a list in an attribute.
const MOST_REPEATED: usize = 1 << 16;

/// Returns the elements of a dense list of integers.
fn dense_integers(dense: &DenseElements) -> Option<Vec<i64>> {
    let Type::Tensor(tensor) = &*dense.ty else { return None };
    let Elements::Bytes(bytes) = &dense.elements else { return None };
    let bits = match &tensor.element {
        crate::mlir::Scalar::Integer { bits, .. } => *bits,
        crate::mlir::Scalar::Index => 64,
        _ => return None,
    };
    let width = usize::try_from(bits.div_ceil(8)).ok().filter(|&width| (1..=8).contains(&width))?;
    let mut values: Vec<i64> = bytes.chunks_exact(width).map(little_endian).collect();
    let count = tensor
        .dims
        .iter()
        .try_fold(1usize, |count, dim| count.checked_mul(usize::try_from((*dim)?).ok()?))?;
    if values.len() == 1 && count <= MOST_REPEATED {
        let only = *values.first()?;
        values = vec![only; count];
    }
    (values.len() == count).then_some(values)
}

/// Returns the integer with these bytes, at most 8 of them.
fn little_endian(bytes: &[u8]) -> i64 {
    let sign = bytes.last().is_some_and(|&last| last >= 128);
    let mut all = [if sign { 255 } else { 0 }; 8];
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(all)
}

/// Returns the integers of an attribute; `None` if it is missing.
pub(super) fn optional_list(operation: &Operation, name: &str) -> Import<Option<Vec<i64>>> {
    let Some(attribute) = find(operation, name) else { return Ok(None) };
    integers(attribute).map(Some).ok_or_else(|| misfit(operation, name, "a list of integers"))
}

/// As [`optional_list`], where a missing attribute is an empty list.
pub(super) fn dims(operation: &Operation, name: &str) -> Import<Dims> {
    Ok(optional_list(operation, name)?.unwrap_or_default().into_iter().collect())
}

/// Returns an integer; `None` if the attribute is missing.
pub(super) fn optional_int(operation: &Operation, name: &str) -> Import<Option<i64>> {
    let Some(attribute) = find(operation, name) else { return Ok(None) };
    integer(attribute).map(Some).ok_or_else(|| misfit(operation, name, "an integer"))
}

/// Returns an integer.
pub(super) fn int(operation: &Operation, name: &str) -> Import<i64> {
    optional_int(operation, name)?.ok_or_else(|| missing(operation, name))
}

/// Returns a bool; a unit is true, and what is missing is `None`.
pub(super) fn optional_bool(operation: &Operation, name: &str) -> Import<Option<bool>> {
    match find(operation, name) {
        None => Ok(None),
        Some(Attribute::Unit) => Ok(Some(true)),
        Some(Attribute::Bool(value)) => Ok(Some(*value)),
        Some(Attribute::Integer(value, _)) => Ok(Some(*value != 0)),
        Some(_) => Err(misfit(operation, name, "a bool")),
    }
}

/// Returns a text; `None` if the attribute is missing.
pub(super) fn optional_text(operation: &Operation, name: &str) -> Import<Option<SmolStr>> {
    let Some(attribute) = find(operation, name) else { return Ok(None) };
    text(attribute).map(Some).ok_or_else(|| misfit(operation, name, "a text"))
}

/// Returns the name of the function that an attribute holds.
pub(super) fn symbol(operation: &Operation, name: &str) -> Import<SmolStr> {
    match find(operation, name) {
        Some(Attribute::Symbol(path)) => Ok(path.first().cloned().unwrap_or_default()),
        Some(_) => Err(misfit(operation, name, "a function")),
        None => Err(missing(operation, name)),
    }
}

/// Returns the rows of a table of integers with rows of one length.
pub(super) fn table(operation: &Operation, name: &str) -> Import<Option<Vec<Vec<i64>>>> {
    let Some(attribute) = find(operation, name) else { return Ok(None) };
    rows(attribute).map(Some).ok_or_else(|| misfit(operation, name, "a table of integers"))
}

fn rows(attribute: &Attribute) -> Option<Vec<Vec<i64>>> {
    let Attribute::Dense(dense) = attribute else { return None };
    let Type::Tensor(tensor) = &*dense.ty else { return None };
    let width = match *tensor.dims.as_slice() {
        [Some(0)] => 0,
        [Some(_), Some(width)] => width,
        _ => return None,
    };
    let width = usize::try_from(width).ok()?;
    if width == 0 {
        return Some(Vec::new());
    }
    Some(dense_integers(dense)?.chunks(width).map(<[i64]>::to_vec).collect())
}

/// A list of pairs.
pub(super) type Pairs = SmallVec<[(i64, i64); 4]>;

/// Returns the pairs of a table with two columns.
pub(super) fn pairs(operation: &Operation, name: &str) -> Import<Option<Pairs>> {
    let Some(rows) = table(operation, name)? else { return Ok(None) };
    let pair = |row: &Vec<i64>| match row.as_slice() {
        &[first, second] => Some((first, second)),
        _ => None,
    };
    let pairs = rows.iter().map(pair).collect::<Option<_>>();
    pairs.map(Some).ok_or_else(|| misfit(operation, name, "a table with two columns"))
}

/// The error of an attribute of the wrong kind.
pub(super) fn misfit(operation: &Operation, name: &str, expected: &str) -> ImportError {
    ImportError::malformed(operation, &format!("takes {expected} as `{name}`"))
}

/// The error of an attribute that is missing.
pub(super) fn missing(operation: &Operation, name: &str) -> ImportError {
    ImportError::malformed(operation, &format!("lacks its attribute `{name}`"))
}
