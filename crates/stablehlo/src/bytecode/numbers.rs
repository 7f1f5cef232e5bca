//! Integers and floats whose width the type says.

use super::Read;
use super::cursor::Cursor;
use crate::mlir::{Attribute, Scalar, Sign, Type};
use crate::text;

/// The width of `index`.
const INDEX_BITS: u32 = 64;

/// Takes the bits of a number of this width, extended by its sign.
fn bits(cursor: &mut Cursor<'_>, width: u32) -> Read<i128> {
    Ok(match width {
        0..=8 => i128::from(cursor.byte()? as i8),
        9..=64 => i128::from(cursor.signed()?),
        _ => {
            let before = *cursor;
            let words = cursor.count("words of an integer")?;
            if words > 2 || width > 128 {
                return Err(before.error("integers of more than 128 bits cannot be read"));
            }
            let low = if words > 0 { cursor.signed()? as u64 } else { 0 };
            let high = if words > 1 { cursor.signed()? } else { 0 };
            i128::from(high) << 64 | i128::from(low)
        }
    })
}

/// Takes an integer of a type.
pub(crate) fn integer(cursor: &mut Cursor<'_>, ty: Type) -> Read<Attribute> {
    let (width, sign) = match &ty {
        Type::Scalar(Scalar::Integer { bits, sign }) => (*bits, *sign),
        Type::Scalar(Scalar::Index) => (INDEX_BITS, Sign::Signless),
        _ => return Err(cursor.error("an integer has a type that is no integer type")),
    };
    let value = bits(cursor, width)?;
    if width == 1 && sign == Sign::Signless {
        return Ok(Attribute::Bool(value & 1 == 1));
    }
    // The bytes may have more bits than the type.
    let spare = 128_u32.saturating_sub(width.max(1)).min(127);
    let value = match sign {
        Sign::Unsigned => ((value << spare) as u128 >> spare) as i128,
        Sign::Signless | Sign::Signed => value << spare >> spare,
    };
    Ok(Attribute::Integer(value, ty))
}

/// Takes a float of a type.
pub(crate) fn float(cursor: &mut Cursor<'_>, ty: Type) -> Read<Attribute> {
    let before = *cursor;
    let unknown = || before.error("a float has a type whose numbers cannot be read");
    let Type::Scalar(Scalar::Float(name)) = &ty else { return Err(unknown()) };
    let width = text::float_width(name).ok_or_else(unknown)?;
    let bits = bits(cursor, width)? as u64;
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let value = text::float_of_bits(name, bits & mask).ok_or_else(unknown)?;
    Ok(Attribute::Float(value, ty))
}

/// Takes the bits of an `f64`.
pub(crate) fn double(cursor: &mut Cursor<'_>) -> Read<f64> {
    Ok(f64::from_bits(bits(cursor, 64)? as u64))
}
