//! The attributes of StableHLO that both its own encoding and VHLO's have: words and structures.

use std::sync::Arc;

use super::Read;
use super::cursor::Cursor;
use super::entries::Entries;
use super::numbers;
use crate::mlir::{Attribute, Attributes, DenseArray, DialectAttribute, Scalar, Sign, Type};

/// A parameter of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A number.
    Number,
    /// A number that is left out where it is zero.
    NumberUnlessZero,
    /// A list of numbers.
    List,
    /// A list of numbers that is left out where it is empty.
    ListUnlessEmpty,
    /// A type.
    Type,
    /// A truth value.
    Bool,
    /// A float of 64 bits that is left out where it is zero.
    Double,
    /// Another attribute.
    Attribute,
}

use Field::{List, ListUnlessEmpty, Number, NumberUnlessZero};

/// A structure: its name and its parameters.
pub(crate) struct Structure {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [(&'static str, Field)],
}

/// The structures.
pub(crate) const STRUCTURES: &[Structure] = &[
    Structure { name: "channel_handle", fields: &[("handle", Number), ("type", Number)] },
    Structure {
        name: "conv",
        fields: &[
            ("input_batch_dimension", Number),
            ("input_feature_dimension", Number),
            ("input_spatial_dimensions", List),
            ("kernel_input_feature_dimension", Number),
            ("kernel_output_feature_dimension", Number),
            ("kernel_spatial_dimensions", List),
            ("output_batch_dimension", Number),
            ("output_feature_dimension", Number),
            ("output_spatial_dimensions", List),
        ],
    },
    Structure {
        name: "dot",
        fields: &[
            ("lhs_batching_dimensions", ListUnlessEmpty),
            ("rhs_batching_dimensions", ListUnlessEmpty),
            ("lhs_contracting_dimensions", ListUnlessEmpty),
            ("rhs_contracting_dimensions", ListUnlessEmpty),
        ],
    },
    Structure {
        name: "gather",
        fields: &[
            ("offset_dims", ListUnlessEmpty),
            ("collapsed_slice_dims", ListUnlessEmpty),
            ("operand_batching_dims", ListUnlessEmpty),
            ("start_indices_batching_dims", ListUnlessEmpty),
            ("start_index_map", ListUnlessEmpty),
            ("index_vector_dim", NumberUnlessZero),
        ],
    },
    Structure {
        name: "scatter",
        fields: &[
            ("update_window_dims", ListUnlessEmpty),
            ("inserted_window_dims", ListUnlessEmpty),
            ("input_batching_dims", ListUnlessEmpty),
            ("scatter_indices_batching_dims", ListUnlessEmpty),
            ("scatter_dims_to_operand_dims", ListUnlessEmpty),
            ("index_vector_dim", NumberUnlessZero),
        ],
    },
    Structure {
        name: "output_operand_alias",
        fields: &[
            ("output_tuple_indices", List),
            ("operand_index", Number),
            ("operand_tuple_indices", List),
        ],
    },
    Structure {
        name: "dot_algorithm",
        fields: &[
            ("lhs_precision_type", Field::Type),
            ("rhs_precision_type", Field::Type),
            ("accumulation_type", Field::Type),
            ("lhs_component_count", Number),
            ("rhs_component_count", Number),
            ("num_primitive_operations", Number),
            ("allow_imprecise_accumulation", Field::Bool),
        ],
    },
    Structure {
        name: "result_accuracy",
        fields: &[
            ("atol", Field::Double),
            ("rtol", Field::Double),
            ("ulps", NumberUnlessZero),
            ("mode", Field::Attribute),
        ],
    },
    Structure { name: "sub_axis_info", fields: &[("pre_size", Number), ("size", Number)] },
];

/// Returns the structure of this name.
pub(crate) fn structure(name: &str) -> Option<&'static Structure> {
    STRUCTURES.iter().find(|structure| structure.name == name)
}

/// The words of attributes that are one word, by their numbers. The empty word has no number.
const WORDS: &[(&str, &[&str])] = &[
    ("comparison_direction", &["EQ", "NE", "GE", "GT", "LE", "LT"]),
    ("comparison_type", &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
    ("fft_type", &["FFT", "IFFT", "RFFT", "IRFFT"]),
    ("precision", &["DEFAULT", "HIGH", "HIGHEST"]),
    ("rng_algorithm", &["DEFAULT", "THREE_FRY", "PHILOX"]),
    ("rng_distribution", &["", "UNIFORM", "NORMAL"]),
    ("transpose", &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]),
    ("result_accuracy_mode", &["DEFAULT", "HIGHEST", "TOLERANCE"]),
];

/// Returns the number of a word.
pub(crate) fn number_of_word(name: &str, word: &[u8]) -> Option<u64> {
    let (_, words) = WORDS.iter().find(|(known, _)| *known == name)?;
    let number = words.iter().position(|known| known.as_bytes() == word && !word.is_empty())?;
    u64::try_from(number).ok()
}

/// An attribute of StableHLO or CHLO with these parameters.
pub(crate) fn dialect(dialect: &str, name: &str, parameters: Attributes) -> Attribute {
    let (dialect, name) = (dialect.into(), name.into());
    Attribute::Dialect(Box::new(DialectAttribute { dialect, name, parameters }))
}

/// An integer of 64 bits.
pub(crate) fn number(value: i64) -> Attribute {
    let ty = Scalar::Integer { bits: 64, sign: Sign::Signless };
    Attribute::Integer(value.into(), Type::Scalar(ty))
}

/// A list of integers of 64 bits.
pub(crate) fn list(values: Vec<i64>) -> Attribute {
    Attribute::DenseArray(DenseArray::I64(values))
}

/// A string.
pub(crate) fn string(text: &str) -> Attribute {
    Attribute::String(Arc::from(text.as_bytes()))
}

/// Takes the number of a word.
pub(crate) fn word(cursor: &mut Cursor<'_>, of: &str, name: &str) -> Read<Attribute> {
    let before = *cursor;
    let number = cursor.varint()?;
    let words = WORDS.iter().find(|(known, _)| *known == name).map(|(_, words)| *words);
    let word = usize::try_from(number).ok().and_then(|at| words?.get(at));
    match word {
        Some(word) if !word.is_empty() => {
            Ok(dialect(of, name, vec![("value".into(), string(word))]))
        }
        _ => Err(before.error(format!("`{name}` has no word {number}"))),
    }
}

/// Takes the parameters of a structure.
pub(crate) fn read_structure(
    entries: &mut Entries<'_>,
    cursor: &mut Cursor<'_>,
    name: &str,
) -> Read<Attribute> {
    let mut parameters = Attributes::new();
    for (field, kind) in structure(name).map_or([].as_slice(), |structure| structure.fields) {
        let value = match kind {
            Field::Number => Some(number(cursor.signed()?)),
            Field::NumberUnlessZero => Some(cursor.signed()?).filter(|n| *n != 0).map(number),
            Field::List => Some(list(cursor.signed_list()?)),
            Field::ListUnlessEmpty => {
                Some(cursor.signed_list()?).filter(|values| !values.is_empty()).map(list)
            }
            Field::Type => Some(Attribute::Type(Box::new(entries.ty(cursor)?))),
            Field::Bool => Some(Attribute::Bool(cursor.byte()? != 0)),
            Field::Double => {
                Some(numbers::double(cursor)?).filter(|value| *value != 0.0).map(double)
            }
            Field::Attribute => Some(entries.attribute(cursor)?),
        };
        parameters.extend(value.map(|value| ((*field).into(), value)));
    }
    Ok(dialect("stablehlo", name, parameters))
}

fn double(value: f64) -> Attribute {
    Attribute::Float(value, Type::Scalar(Scalar::Float("f64".into())))
}
