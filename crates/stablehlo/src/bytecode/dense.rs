//! Constants.

use std::sync::Arc;

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use crate::mlir::{Attribute, DenseArray, DenseElements, Elements, Scalar, TensorType, Type};

/// Returns the number of elements of a tensor, if it is known and can be counted.
pub(crate) fn count(tensor: &TensorType) -> Option<usize> {
    tensor
        .dims
        .iter()
        .try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from((*dim)?).ok()?))
}

/// Returns the number of bytes of an element of a constant; `None` for a type without bytes.
pub(crate) fn bytes_of(element: &Scalar) -> Option<usize> {
    match element {
        Scalar::Complex(part) => bytes_of(part)?.checked_mul(2),
        _ => usize::try_from(bits_of(element)?.div_ceil(8)).ok(),
    }
}

/// Takes the elements of a constant of this type.
pub(crate) fn elements(cursor: &mut Cursor<'_>, ty: Type) -> Read<Attribute> {
    let before = *cursor;
    let blob = cursor.blob()?;
    let Type::Tensor(tensor) = &ty else {
        return Err(before.error("a constant has a type that is no tensor with known dims"));
    };
    let (Some(count), Some(width)) = (count(tensor), bytes_of(&tensor.element)) else {
        return Err(before.error("a constant has a type whose elements cannot be counted"));
    };
    let bytes: Arc<[u8]> = match tensor.element {
        Scalar::Integer { bits: 1, .. } => match truth_values(blob, count) {
            Some(values) => values.into(),
            None => return Err(wrong_size(&before, blob.len(), count, width)),
        },
        _ if blob.len() == width || count.checked_mul(width) == Some(blob.len()) => {
            let mut bytes = blob.to_vec();
            if let Some(bits) = bits_of(&tensor.element) {
                crate::text::clear_unused_bits(&mut bytes, bits);
            }
            bytes.into()
        }
        _ => return Err(wrong_size(&before, blob.len(), count, width)),
    };
    Ok(Attribute::Dense(DenseElements { ty: Box::new(ty), elements: Elements::Bytes(bytes) }))
}

/// Returns the number of bits of an element that is one number.
fn bits_of(element: &Scalar) -> Option<u32> {
    match element {
        Scalar::Integer { bits, .. } => Some(*bits),
        Scalar::Index => Some(64),
        Scalar::Float(name) => crate::text::float_width(name),
        Scalar::Complex(_) | Scalar::Other(_) => None,
    }
}

fn wrong_size(
    at: &Cursor<'_>,
    size: usize,
    count: usize,
    width: usize,
) -> Box<super::BytecodeError> {
    at.error(format!("a constant of {count} elements of {width} bytes has {size} bytes"))
}

/// Returns a byte for each truth value. They are stored as bits or as bytes; one byte of ones or
/// zeros stands for equal values.
fn truth_values(blob: &[u8], count: usize) -> Option<Vec<u8>> {
    match *blob {
        [0xFF] if count > 0 => Some(vec![1]),
        [0] if count > 0 => Some(vec![0]),
        // One byte could be eight values or one: newer versions of MLIR write bits, too.
        _ if blob.len() == count.div_ceil(8) => {
            let bit = |index: usize| blob.get(index / 8).map(|byte| byte >> (index % 8) & 1);
            (0..count).map(bit).collect()
        }
        _ if blob.len() == count => Some(blob.iter().map(|&byte| u8::from(byte != 0)).collect()),
        _ => None,
    }
}

/// Takes `array<i64: ...>`.
pub(super) fn array(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let ty = entries.ty(cursor)?;
    let before = *cursor;
    let size = cursor.varint()?;
    let blob = cursor.blob()?;
    let Type::Scalar(element) = &ty else {
        return Err(before.error("the elements of an array should be scalars"));
    };
    let width = bytes_of(element).unwrap_or(0);
    if Some(blob.len() as u64) != size.checked_mul(width as u64) {
        return Err(before.error(format!("an array of {size} elements has {} bytes", blob.len())));
    }
    let values = blob.chunks_exact(width.max(1));
    let array = match element {
        Scalar::Integer { bits: 1, .. } => DenseArray::Bool(values.map(|v| v != [0]).collect()),
        Scalar::Integer { bits: 64, .. } => DenseArray::I64(values.map(sign_extended).collect()),
        Scalar::Integer { bits, .. } if *bits < 64 => {
            DenseArray::Integer(*bits, values.map(sign_extended).collect())
        }
        Scalar::Float(name) if name == "f32" => {
            DenseArray::F32(values.map(|v| f32::from_bits(sign_extended(v) as u32)).collect())
        }
        Scalar::Float(name) if name == "f64" => {
            DenseArray::F64(values.map(|v| f64::from_bits(sign_extended(v) as u64)).collect())
        }
        _ => return Err(before.error("an array has elements of an unknown type")),
    };
    Ok(Attribute::DenseArray(array))
}

/// Returns the signed number in little-endian bytes, at most eight.
pub(crate) fn sign_extended(bytes: &[u8]) -> i64 {
    let negative = bytes.last().is_some_and(|&byte| byte & 0x80 != 0);
    let mut all = [if negative { 0xFF } else { 0 }; 8];
    for (to, from) in all.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(all)
}

/// Takes `dense_resource<name>`.
pub(super) fn resource(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let ty = Box::new(entries.ty(cursor)?);
    let before = *cursor;
    let index = cursor.varint()?;
    let known = usize::try_from(index).ok().and_then(|index| entries.file.resources.get(index));
    let Some((name, bytes)) = known else {
        return Err(before.error(format!("there is no resource {index}")));
    };
    Ok(Attribute::Resource { name: name.clone(), bytes: bytes.clone(), ty })
}

/// Takes a constant of strings.
pub(super) fn strings(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let ty = entries.ty(cursor)?;
    let before = *cursor;
    let splat = cursor.varint()? != 0;
    let counted = match &ty {
        // Strings in a text of another element type are bytes of numbers.
        Type::Tensor(tensor) if matches!(tensor.element, Scalar::Other(_)) => count(tensor),
        _ => None,
    };
    let counted = counted
        .ok_or_else(|| before.error("a constant of strings has no tensor type of known size"))?;
    let count = if splat { 1 } else { counted };
    let count = cursor.payable(count as u64, "strings")?;
    let strings =
        (0..count).map(|_| entries.file_string(cursor)).collect::<Read<Vec<Arc<[u8]>>>>()?;
    Ok(Attribute::Dense(DenseElements { ty: Box::new(ty), elements: Elements::Strings(strings) }))
}
