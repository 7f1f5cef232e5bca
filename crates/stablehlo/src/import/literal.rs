//! Constants of MLIR as literals.

use half::{bf16, f16};
use num_complex::Complex;
use tilewright_ir::small_float::Format;
use tilewright_ir::{ArrayLiteral, ArrayShape, Data, ElementType, Literal};

use super::types;
use crate::mlir::{Attribute, Elements, Type};

/// Returns the value of a constant, or what is wrong with it.
pub(super) fn literal(attribute: &Attribute) -> Result<Literal, String> {
    let (shape, data) = parts(attribute)?;
    let count = shape.num_elements().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or("needs known dims")?;
    let data = if data.len() == 1 && count != 1 { repeated(&data, count)? } else { data };
    of(&shape, data)
}

/// Returns a literal with these elements.
pub(super) fn of(shape: &ArrayShape, data: Data) -> Result<Literal, String> {
    let array = ArrayLiteral::new(shape.element_type, shape.dims().iter().copied(), data);
    array.map(Literal::Array).map_err(|error| format!("is malformed: {error}"))
}

/// Returns a scalar of a type of floats with the value nearest to a number.
pub(super) fn real(ty: ElementType, value: f64) -> Option<ArrayLiteral> {
    let data = match Data::zeros(ty, 0) {
        Data::F64(_) => Data::F64(vec![value]),
        #[allow(clippy::cast_possible_truncation, reason = "it rounds")]
        Data::F32(_) => Data::F32(vec![value as f32]),
        Data::F16(_) => Data::F16(vec![f16::from_f64(value)]),
        Data::BF16(_) => Data::BF16(vec![bf16::from_f64(value)]),
        _ => Data::U8(vec![u8::try_from(Format::of(ty)?.encode(value)).ok()?]),
    };
    ArrayLiteral::new(ty, [], data).ok()
}

/// Returns a scalar of a type of integers with these low bits.
pub(super) fn whole(ty: ElementType, value: i64) -> Option<ArrayLiteral> {
    let width = usize::try_from(ty.bytes()).ok().filter(|_| ty.is_integer())?;
    let data = elements(ty, value.to_le_bytes().get(..width)?);
    ArrayLiteral::new(ty, [], data).ok()
}

/// Returns a scalar of a type with the value of an attribute, if that is such a number.
pub(super) fn number(ty: ElementType, value: &Attribute) -> Option<ArrayLiteral> {
    match value {
        Attribute::Float(value, _) => real(ty, *value),
        Attribute::Integer(value, _) => whole(ty, i64::try_from(*value).ok()?),
        Attribute::Bool(value) => ArrayLiteral::new(ty, [], Data::Pred(vec![*value])).ok(),
        _ => None,
    }
}

/// Returns a list of numbers of a type, integers being given as such.
pub(super) fn list(ty: ElementType, numbers: &[f64]) -> Option<ArrayLiteral> {
    #[allow(clippy::cast_possible_truncation, reason = "they are integers")]
    let data = match Data::zeros(ty, 0) {
        Data::F32(_) => Data::F32(numbers.iter().map(|&number| number as f32).collect()),
        Data::F64(_) => Data::F64(numbers.to_vec()),
        Data::S32(_) => Data::S32(numbers.iter().map(|&number| number as i32).collect()),
        _ => return None,
    };
    ArrayLiteral::new(ty, [i64::try_from(numbers.len()).ok()?], data).ok()
}

/// Returns the shape and the elements of a constant; if there is one, all are equal to it.
pub(super) fn parts(attribute: &Attribute) -> Result<(ArrayShape, Data), String> {
    let (ty, bytes) = match attribute {
        Attribute::Dense(dense) => match &dense.elements {
            Elements::Bytes(bytes) => (&*dense.ty, bytes),
            Elements::Strings(_) => return Err("holds strings, which HLO does not have".into()),
        },
        Attribute::Resource { name, bytes: None, .. } => {
            return Err(format!("refers to the resource `{name}`, which the file does not have"));
        }
        Attribute::Resource { bytes: Some(bytes), ty, .. } => (&**ty, bytes),
        _ => return Err("takes `dense<...>` as its value".into()),
    };
    let Type::Tensor(tensor) = ty else { return Err("takes a tensor as its value".into()) };
    let shape = types::array(tensor).map_err(|what| format!("has {what}"))?;
    let data = elements(shape.element_type, bytes);
    Ok((shape, data))
}

/// The largest number of elements of a constant whose elements are all equal, as the text does
/// not pay for them.
const MOST_REPEATED: usize = 1 << 20;

fn repeated(data: &Data, count: usize) -> Result<Data, String> {
    if count > MOST_REPEATED {
        return Err(format!("has {count} equal elements; broadcast a scalar instead"));
    }
    Ok(data.gather(std::iter::repeat_n(0, count)))
}

/// Reads little-endian numbers; bytes at the end that are no number are left out.
macro_rules! numbers {
    ($bytes:expr, $ty:ty, $width:literal) => {
        $bytes.as_chunks::<$width>().0.iter().map(|&chunk| <$ty>::from_le_bytes(chunk)).collect()
    };
}

/// Returns the elements with these bytes.
fn elements(ty: ElementType, bytes: &[u8]) -> Data {
    let narrow = |value: u8| -> u8 {
        let unused = 8u32.saturating_sub(ty.bits());
        (value << unused) >> unused
    };
    let narrow_signed = |value: u8| -> i8 {
        let unused = 8u32.saturating_sub(ty.bits());
        (value << unused).cast_signed() >> unused
    };
    match Data::zeros(ty, 0) {
        Data::Pred(_) => Data::Pred(bytes.iter().map(|&byte| byte != 0).collect()),
        Data::S8(_) => Data::S8(bytes.iter().map(|&byte| narrow_signed(byte)).collect()),
        Data::U8(_) => Data::U8(bytes.iter().map(|&byte| narrow(byte)).collect()),
        Data::S16(_) => Data::S16(numbers!(bytes, i16, 2)),
        Data::S32(_) => Data::S32(numbers!(bytes, i32, 4)),
        Data::S64(_) => Data::S64(numbers!(bytes, i64, 8)),
        Data::U16(_) => Data::U16(numbers!(bytes, u16, 2)),
        Data::U32(_) => Data::U32(numbers!(bytes, u32, 4)),
        Data::U64(_) => Data::U64(numbers!(bytes, u64, 8)),
        Data::F16(_) => Data::F16(numbers!(bytes, f16, 2)),
        Data::BF16(_) => Data::BF16(numbers!(bytes, bf16, 2)),
        Data::F32(_) => Data::F32(numbers!(bytes, f32, 4)),
        Data::F64(_) => Data::F64(numbers!(bytes, f64, 8)),
        Data::C64(_) => {
            let parts: Vec<f32> = numbers!(bytes, f32, 4);
            Data::C64(parts.as_chunks().0.iter().map(|&[re, im]| Complex { re, im }).collect())
        }
        Data::C128(_) => {
            let parts: Vec<f64> = numbers!(bytes, f64, 8);
            Data::C128(parts.as_chunks().0.iter().map(|&[re, im]| Complex { re, im }).collect())
        }
    }
}
