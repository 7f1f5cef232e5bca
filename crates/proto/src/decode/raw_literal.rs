//! Values as XLA stores them after a message, so that they may be larger than a message can be.
//!
//! ```text
//! length of the shape: 8 bytes | shape: ShapeProto | elements of each array, little-endian
//! ```
//!
//! Elements narrower than a byte share one, the first in the lowest bits; booleans take a bit.

use num_complex::Complex;
use prost::Message as _;
use tilewright_ir::{ArrayShape, Data, ElementType, Literal, Shape};

use crate::error::{ProtoError, Within as _};
use crate::generated::xla::ShapeProto;
use crate::literal::{in_logical_order, signed};
use crate::shape;

/// Reads a value, which takes all the bytes.
pub(super) fn decode(bytes: &[u8]) -> Result<Literal, ProtoError> {
    let mut rest = bytes;
    let length = take(&mut rest, 8)?.try_into().map(u64::from_le_bytes);
    let length = usize::try_from(length.unwrap_or(u64::MAX)).map_err(|_| too_short())?;
    let proto = ShapeProto::decode(take(&mut rest, length)?)
        .map_err(|error| ProtoError::new(format!("it cannot be decoded: {error}")))
        .within("shape")?;
    let value = value(&shape::decode(&proto).within("shape")?, &mut rest)?;
    if rest.is_empty() {
        return Ok(value);
    }
    Err(ProtoError::new(format!("{} bytes follow the last element", rest.len())))
}

fn too_short() -> ProtoError {
    ProtoError::new("it is shorter than its shape says")
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], ProtoError> {
    let (taken, left) = rest.split_at_checked(count).ok_or_else(too_short)?;
    *rest = left;
    Ok(taken)
}

fn value(shape: &Shape, rest: &mut &[u8]) -> Result<Literal, ProtoError> {
    Ok(match shape {
        Shape::Array(array) => Literal::Array(in_logical_order(array, elements(array, rest)?)?),
        Shape::Tuple(parts) => {
            let parts = parts.iter().map(|part| value(part, rest));
            Literal::Tuple(parts.collect::<Result<_, _>>()?)
        }
        Shape::Token => Literal::Token,
        Shape::Buffer(_) | Shape::Opaque => {
            return Err(ProtoError::new(format!("there are no values of {shape}")));
        }
    })
}

fn elements(shape: &ArrayShape, rest: &mut &[u8]) -> Result<Data, ProtoError> {
    if (0..shape.rank()).any(|dim| shape.dim_is_dynamic(dim)) {
        let message = format!("values of {shape} have sizes of their own, which are not read");
        return Err(ProtoError::with_help(message, "record arrays of static sizes"));
    }
    let count = shape.num_elements().and_then(|count| usize::try_from(count).ok());
    let bits = width(shape.element_type);
    let size = count.and_then(|count| count.checked_mul(bits)).map(|bits| bits.div_ceil(8));
    let bytes = take(rest, size.ok_or_else(too_short)?)?;
    Ok(data(shape.element_type, bytes, count.unwrap_or_default()))
}

/// Returns how many bits an element takes.
fn width(element: ElementType) -> usize {
    match element {
        ElementType::Pred => 1,
        // Floats of six bits do not share bytes.
        ElementType::F6E2M3FN | ElementType::F6E3M2FN => 8,
        _ => element.bits() as usize,
    }
}

/// Returns the elements in bytes, whose number fits.
fn data(element: ElementType, bytes: &[u8], count: usize) -> Data {
    use ElementType as E;
    let bits = element.bits();
    match element {
        E::Pred => Data::Pred(narrow(bytes, 1, count).into_iter().map(|bit| bit != 0).collect()),
        E::S1 | E::S2 | E::S4 => Data::S8(signed(&narrow(bytes, bits, count), bits)),
        E::U1 | E::U2 | E::U4 | E::F4E2M1FN => Data::U8(narrow(bytes, bits, count)),
        E::S8 => Data::S8(bytes.iter().map(|byte| byte.cast_signed()).collect()),
        E::U8 | E::F6E2M3FN | E::F6E3M2FN | E::F8E3M4 | E::F8E4M3 | E::F8E4M3FN => {
            Data::U8(bytes.to_vec())
        }
        E::F8E4M3B11FNUZ | E::F8E4M3FNUZ | E::F8E5M2 | E::F8E5M2FNUZ | E::F8E8M0FNU => {
            Data::U8(bytes.to_vec())
        }
        E::S16 => Data::S16(wide(bytes, i16::from_le_bytes)),
        E::S32 => Data::S32(wide(bytes, i32::from_le_bytes)),
        E::S64 => Data::S64(wide(bytes, i64::from_le_bytes)),
        E::U16 => Data::U16(wide(bytes, u16::from_le_bytes)),
        E::U32 => Data::U32(wide(bytes, u32::from_le_bytes)),
        E::U64 => Data::U64(wide(bytes, u64::from_le_bytes)),
        E::F16 => Data::F16(wide(bytes, half::f16::from_le_bytes)),
        E::BF16 => Data::BF16(wide(bytes, half::bf16::from_le_bytes)),
        E::F32 => Data::F32(wide(bytes, f32::from_le_bytes)),
        E::F64 => Data::F64(wide(bytes, f64::from_le_bytes)),
        E::C64 => Data::C64(complex(&wide(bytes, f32::from_le_bytes))),
        E::C128 => Data::C128(complex(&wide(bytes, f64::from_le_bytes))),
    }
}

/// Returns elements of one, two or four bits, each in the lowest bits of a byte.
fn narrow(bytes: &[u8], bits: u32, count: usize) -> Vec<u8> {
    let mask = u8::MAX >> 8u32.saturating_sub(bits);
    let shifts = || (0..8).step_by(bits as usize);
    bytes.iter().flat_map(|byte| shifts().map(move |by| byte >> by & mask)).take(count).collect()
}

fn wide<T, const N: usize>(bytes: &[u8], make: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&chunk| make(chunk)).collect()
}

fn complex<T: Copy>(parts: &[T]) -> Vec<Complex<T>> {
    parts.as_chunks::<2>().0.iter().map(|&[re, im]| Complex { re, im }).collect()
}
