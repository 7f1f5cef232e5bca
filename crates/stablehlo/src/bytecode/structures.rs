//! Words and structures of StableHLO, which its own encoding and VHLO's have alike.

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use super::numbers;
use crate::dialect::{Field, Structure, Words};
use crate::mlir::{Attribute, Attributes, Scalar, Type};

/// Takes the number of a word.
pub(crate) fn word(cursor: &mut Cursor<'_>, of: &str, words: &Words) -> Read<Attribute> {
    let before = *cursor;
    let number = cursor.varint()?;
    let word = usize::try_from(number).ok().and_then(|at| words.words.get(at));
    match word {
        Some(word) if !word.is_empty() => Ok(Attribute::word(of, words.name, word)),
        _ => Err(before.error(format!("`{}` has no word {number}", words.name))),
    }
}

/// Takes the parameters of a structure.
pub(crate) fn read_structure(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    structure: &Structure,
) -> Read<Attribute> {
    let mut parameters = Attributes::new();
    for parameter in structure.parameters {
        let value = match parameter.field {
            Field::Number | Field::NumberUnlessZero => Attribute::i64(cursor.signed()?),
            Field::List | Field::ListUnlessEmpty => Attribute::i64s(cursor.signed_list()?),
            Field::Type => Attribute::Type(Box::new(entries.ty(cursor)?)),
            Field::Bool => Attribute::Bool(cursor.byte()? != 0),
            Field::Double => {
                let ty = Type::Scalar(Scalar::Float("f64".into()));
                Attribute::Float(numbers::double(cursor)?, ty)
            }
            Field::Attribute => entries.attribute(cursor)?,
        };
        if !parameter.field.leaves_out(&value) {
            parameters.push((parameter.name.into(), value));
        }
    }
    Ok(Attribute::structure("stablehlo", structure.name, parameters))
}
