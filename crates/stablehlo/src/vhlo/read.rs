//! Reads VHLO's attributes and types as StableHLO's.

use super::codes::{SCALARS, code, type_code};
use super::quantized;
use crate::bytecode::read::{
    Cursor, Entries, Read, builtin, dense, numbers, stablehlo, structures,
};
use crate::dialect;
use crate::mlir::{Attribute, FunctionType, Scalar, Sign, Type};
use crate::text;

/// Names of meshes are at most this long.
const MAX_NAME: usize = 512;

/// Takes an attribute.
pub(crate) fn attribute(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    let number = cursor.varint()?;
    if let Some(words) = dialect::WORDS.iter().find(|words| words.codes.1 == number) {
        return structures::word(cursor, "stablehlo", words);
    }
    if let Some(structure) = dialect::structure(|known| known.codes.1 == Some(number)) {
        return structures::read_structure(entries, cursor, structure);
    }
    Ok(match number {
        code::ARRAY => Attribute::Array(entries.attributes(cursor)?),
        code::BOOL => Attribute::Bool(cursor.varint()? != 0),
        code::API_VERSION => api_version(cursor.varint()?),
        code::DICTIONARY => Attribute::Dictionary(builtin::dictionary(entries, cursor)?),
        code::FLOAT => {
            let ty = entries.ty(cursor)?;
            numbers::float(cursor, ty)?
        }
        code::INTEGER => {
            let ty = entries.ty(cursor)?;
            numbers::integer(cursor, ty)?
        }
        code::STRING => Attribute::String(entries.file_string(cursor)?),
        code::TENSOR => {
            let ty = entries.ty(cursor)?;
            dense::elements(cursor, ty)?
        }
        code::TYPE => Attribute::Type(Box::new(entries.ty(cursor)?)),
        code::BOUNDS => stablehlo::bounds(cursor.signed_list()?),
        code::AXIS..=code::MESH => mesh(entries, cursor, number)?,
        _ => return Err(before.error(format!("VHLO has no attribute {number}"))),
    })
}

/// The version of the interface of a custom call.
pub(super) fn api_version(version: u64) -> Attribute {
    let ty = Scalar::Integer { bits: 32, sign: Sign::Signless };
    Attribute::Integer(version.into(), Type::Scalar(ty))
}

/// Takes an attribute of meshes.
fn mesh(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>, number: u64) -> Read<Attribute> {
    let first = entries.attribute(cursor)?;
    Ok(match number {
        code::AXIS => {
            let part = if cursor.varint()? != 0 { Some(entries.attribute(cursor)?) } else { None };
            stablehlo::axis(first, part)
        }
        code::REPLICA_GROUPS => {
            let mesh = match first {
                Attribute::String(name) => match std::str::from_utf8(&name) {
                    Ok(name) if name.len() < MAX_NAME => {
                        Attribute::Symbol(std::iter::once(name.into()).collect())
                    }
                    _ => return Err(cursor.error("this string is no name of a mesh")),
                },
                other => other,
            };
            stablehlo::replica_groups(mesh, entries.attribute(cursor)?)
        }
        code::MESH_AXIS => stablehlo::mesh_axis(first, cursor.signed()?),
        _ => stablehlo::mesh(first, entries.optional_attribute(cursor)?),
    })
}

/// Takes a type.
pub(crate) fn ty(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let before = *cursor;
    let number = cursor.varint()?;
    if let Some((_, name, _)) = SCALARS.iter().find(|(known, ..)| *known == number) {
        return text::ty(name).map_err(|error| before.error(error.message));
    }
    Ok(match number {
        type_code::COMPLEX => {
            Type::Scalar(Scalar::Complex(Box::new(builtin::scalar(entries, cursor)?)))
        }
        type_code::FUNCTION => Type::Function(FunctionType {
            inputs: entries.types(cursor)?,
            results: entries.types(cursor)?,
        }),
        type_code::TENSOR => builtin::tensor(entries, cursor, false)?,
        type_code::TENSOR_WITH_ENCODING => builtin::tensor(entries, cursor, true)?,
        type_code::TOKEN => Type::Token,
        type_code::TUPLE => Type::Tuple(entries.types(cursor)?),
        type_code::UNRANKED => Type::UnrankedTensor(builtin::scalar(entries, cursor)?),
        type_code::NONE => Type::None,
        type_code::BUFFER => buffer(entries, cursor)?,
        type_code::FUTURE => Type::Future(entries.types(cursor)?),
        type_code::QUANTIZED => quantized::whole(entries, cursor)?,
        type_code::QUANTIZED_PER_AXIS => quantized::per_axis(entries, cursor)?,
        _ => return Err(before.error(format!("VHLO has no type {number}"))),
    })
}

/// Takes the type of a buffer, which MLIR prints as `memref<2xf32>`.
fn buffer(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let mut text = String::from("memref<");
    for dim in cursor.signed_list()? {
        match dim {
            i64::MIN => text.push('?'),
            _ => text.push_str(&dim.to_string()),
        }
        text.push('x');
    }
    text.push_str(&builtin::name_of(&builtin::scalar(entries, cursor)?));
    text.push('>');
    Ok(Type::Other { text: text.into() })
}
