//! Attributes and types of MLIR's own dialect.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use smol_str::{SmolStr, format_smolstr};

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use super::{dense, locations, numbers};
use crate::mlir::{Attribute, Attributes, FunctionType, Scalar, Sign, TensorType, Type};

/// The numbers of the encodings of attributes.
pub(super) mod code {
    pub(crate) const ARRAY: u64 = 0;
    pub(crate) const DICTIONARY: u64 = 1;
    pub(crate) const STRING: u64 = 2;
    pub(crate) const TYPED_STRING: u64 = 3;
    pub(crate) const FLAT_SYMBOL: u64 = 4;
    pub(crate) const SYMBOL: u64 = 5;
    pub(crate) const TYPE: u64 = 6;
    pub(crate) const UNIT: u64 = 7;
    pub(crate) const INTEGER: u64 = 8;
    pub(crate) const FLOAT: u64 = 9;
    pub(crate) const CALL: u64 = 10;
    pub(crate) const FILE: u64 = 11;
    pub(crate) const FUSED: u64 = 12;
    pub(crate) const FUSED_WITH_METADATA: u64 = 13;
    pub(crate) const NAME: u64 = 14;
    pub(crate) const UNKNOWN: u64 = 15;
    pub(crate) const RESOURCE: u64 = 16;
    pub(crate) const DENSE_ARRAY: u64 = 17;
    pub(crate) const DENSE: u64 = 18;
    pub(crate) const DENSE_STRINGS: u64 = 19;
    pub(crate) const SPARSE: u64 = 20;
    pub(crate) const DISTINCT: u64 = 21;
    pub(crate) const FILE_RANGE: u64 = 22;
}

/// The numbers of the encodings of types.
pub(super) mod type_code {
    pub(crate) const INTEGER: u64 = 0;
    pub(crate) const INDEX: u64 = 1;
    pub(crate) const FUNCTION: u64 = 2;
    pub(crate) const COMPLEX: u64 = 9;
    pub(crate) const NONE: u64 = 12;
    pub(crate) const TENSOR: u64 = 13;
    pub(crate) const TENSOR_WITH_ENCODING: u64 = 14;
    pub(crate) const TUPLE: u64 = 15;
    pub(crate) const UNRANKED: u64 = 18;
}

/// The float types that have a number.
pub(super) const FLOATS: [(u64, &str); 6] =
    [(3, "bf16"), (4, "f16"), (5, "f32"), (6, "f64"), (7, "f80"), (8, "f128")];

/// The float types that newer versions of MLIR gave a number. Older ones, and this writer, write
/// their texts.
const NEWER_FLOATS: [(u64, &str); 12] = [
    (21, "tf32"),
    (22, "f8E5M2"),
    (23, "f8E4M3"),
    (24, "f8E4M3FN"),
    (25, "f8E5M2FNUZ"),
    (26, "f8E4M3FNUZ"),
    (27, "f8E4M3B11FNUZ"),
    (28, "f8E3M4"),
    (29, "f4E2M1FN"),
    (30, "f6E2M3FN"),
    (31, "f6E3M2FN"),
    (32, "f8E8M0FNU"),
];

pub(super) fn attribute(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let before = *cursor;
    Ok(match cursor.varint()? {
        code::ARRAY => Attribute::Array(entries.attributes(cursor)?),
        code::DICTIONARY => Attribute::Dictionary(dictionary(entries, cursor)?),
        code::STRING => Attribute::String(entries.file_string(cursor)?),
        code::TYPED_STRING => {
            let string = entries.file_string(cursor)?;
            entries.ty(cursor)?;
            Attribute::String(string)
        }
        code::FLAT_SYMBOL => {
            let name = entries.name(cursor)?;
            Attribute::Symbol(std::iter::once(name).collect())
        }
        code::SYMBOL => symbol(entries, cursor)?,
        code::TYPE => Attribute::Type(Box::new(entries.ty(cursor)?)),
        code::UNIT => Attribute::Unit,
        code::INTEGER => {
            let ty = entries.ty(cursor)?;
            numbers::integer(cursor, ty)?
        }
        code::FLOAT => {
            let ty = entries.ty(cursor)?;
            numbers::float(cursor, ty)?
        }
        code::RESOURCE => dense::resource(entries, cursor)?,
        code::DENSE_ARRAY => dense::array(entries, cursor)?,
        code::DENSE => {
            let ty = entries.ty(cursor)?;
            dense::elements(cursor, ty)?
        }
        code::DENSE_STRINGS => dense::strings(entries, cursor)?,
        code::SPARSE => return Err(before.error("sparse constants cannot be read")),
        code::DISTINCT => return Err(before.error("distinct attributes cannot be read")),
        other => match locations::location(entries, cursor, other)? {
            Some(location) => Attribute::Location(Arc::new(location)),
            None => {
                return Err(before.error(format!("there is no builtin attribute {other}")));
            }
        },
    })
}

/// Takes the attributes of a dictionary.
pub(crate) fn dictionary(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attributes> {
    let before = *cursor;
    let count = cursor.count("attributes")?;
    let attributes = (0..count)
        .map(|_| Ok((entries.name(cursor)?, entries.attribute(cursor)?)))
        .collect::<Read<Attributes>>()?;
    distinct(&before, attributes)
}

/// Returns the attributes, unless two of them have one name.
pub(super) fn distinct(at: &Cursor<'_>, attributes: Attributes) -> Read<Attributes> {
    let mut names = FxHashSet::default();
    match attributes.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(at.error(format!("the attribute `{name}` is here twice"))),
        None => Ok(attributes),
    }
}

fn symbol(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Attribute> {
    let mut names: SmallVec<[SmolStr; 1]> = SmallVec::new();
    names.push(entries.name(cursor)?);
    let count = cursor.count("symbols")?;
    for _ in 0..count {
        let before = *cursor;
        match entries.attribute(cursor)? {
            Attribute::Symbol(nested) => names.extend(nested),
            _ => return Err(before.error("this attribute should be a symbol")),
        }
    }
    Ok(Attribute::Symbol(names))
}

pub(super) fn ty(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Type> {
    let before = *cursor;
    Ok(match cursor.varint()? {
        type_code::INTEGER => integer_type(cursor)?,
        type_code::INDEX => Type::Scalar(Scalar::Index),
        type_code::FUNCTION => Type::Function(FunctionType {
            inputs: entries.types(cursor)?,
            results: entries.types(cursor)?,
        }),
        type_code::COMPLEX => Type::Scalar(Scalar::Complex(Box::new(scalar(entries, cursor)?))),
        type_code::NONE => Type::None,
        type_code::TENSOR => tensor(entries, cursor, false)?,
        type_code::TENSOR_WITH_ENCODING => tensor(entries, cursor, true)?,
        type_code::TUPLE => Type::Tuple(entries.types(cursor)?),
        type_code::UNRANKED => Type::UnrankedTensor(scalar(entries, cursor)?),
        other => match FLOATS.iter().chain(&NEWER_FLOATS).find(|(code, _)| *code == other) {
            Some((_, name)) => Type::Scalar(Scalar::Float((*name).into())),
            None => {
                let error = before.error(format!("the builtin type {other} cannot be read"));
                return Err(error.help("StableHLO has no memrefs and vectors"));
            }
        },
    })
}

fn integer_type(cursor: &mut Cursor<'_>) -> Read<Type> {
    let before = *cursor;
    let value = cursor.varint()?;
    let sign = match value & 3 {
        0 => Sign::Signless,
        1 => Sign::Signed,
        2 => Sign::Unsigned,
        _ => return Err(before.error("an integer type has no such sign")),
    };
    // MLIR's greatest width.
    match u32::try_from(value >> 2) {
        Ok(bits) if bits < 1 << 24 => Ok(Type::Scalar(Scalar::Integer { bits, sign })),
        _ => Err(before.error("an integer type is too wide")),
    }
}

/// Takes the type of an element.
pub(crate) fn scalar(entries: &mut Entries<'_>, cursor: &mut Cursor<'_>) -> Read<Scalar> {
    let before = *cursor;
    match entries.ty(cursor)? {
        Type::Scalar(scalar) => Ok(scalar),
        Type::Other { text } => Ok(Scalar::Other(text)),
        _ => Err(before.error("the type of an element should be a scalar")),
    }
}

/// Takes the dims and the element type of a tensor, and before them the encoding if there is one.
pub(crate) fn tensor(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    encoded: bool,
) -> Read<Type> {
    let encoding = if encoded { Some(Box::new(entries.attribute(cursor)?)) } else { None };
    let before = *cursor;
    let mut dims = SmallVec::new();
    for dim in cursor.signed_list()? {
        dims.push(match dim {
            0.. => Some(dim),
            i64::MIN => None,
            // Versions of MLIR until 2022 wrote a dynamic dim so.
            -1 => None,
            _ => return Err(before.error(format!("a tensor has a dim of {dim}"))),
        });
    }
    let element = scalar(entries, cursor)?;
    Ok(Type::Tensor(TensorType { dims, element, encoding }))
}

/// The name of a scalar type, as MLIR prints it.
pub(crate) fn name_of(scalar: &Scalar) -> SmolStr {
    match scalar {
        Scalar::Integer { bits, sign: Sign::Signless } => format_smolstr!("i{bits}"),
        Scalar::Integer { bits, sign: Sign::Signed } => format_smolstr!("si{bits}"),
        Scalar::Integer { bits, sign: Sign::Unsigned } => format_smolstr!("ui{bits}"),
        Scalar::Float(name) | Scalar::Other(name) => name.clone(),
        Scalar::Complex(part) => format_smolstr!("complex<{}>", name_of(part)),
        Scalar::Index => SmolStr::new_static("index"),
    }
}
