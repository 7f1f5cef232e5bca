//! Values that attributes have unless they are given.

use std::sync::Arc;

use crate::mlir::{
    Attribute, Attributes, DenseArray, DenseElements, Elements, Scalar, Sign, TensorType, Type,
    value_of,
};

/// The value of an attribute that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    False,
    True,
    Zero,
    MinusOne,
    EmptyArray,
    /// An empty array, and the layouts of operands and results are left out together.
    EmptyLayouts,
    EmptyString,
    /// An empty string that StableHLO writes out, too.
    Config,
    EmptyDictionary,
    /// An empty string or an empty dictionary.
    EmptyConfig,
    EmptyTensor,
    /// Ones, as many as there are window dims.
    Ones,
    Falses,
    /// Pairs of zeros, as many as there are window dims.
    Padding,
    /// Words `DEFAULT`, one for each operand.
    Precision,
    /// The word `NOTYPE`.
    NoType,
    /// The number 1.
    OriginalApi,
    Accuracy,
}

impl Initial {
    /// Checks whether an attribute has this value. The other attributes are those of the same
    /// operation.
    pub(crate) fn is(self, value: &Attribute, others: &Attributes) -> bool {
        match (self, value) {
            (Self::False, Attribute::Bool(value)) => !value,
            (Self::True, Attribute::Bool(value)) => *value,
            (Self::Zero, Attribute::Integer(value, _)) => *value == 0,
            (Self::OriginalApi, Attribute::Integer(value, _)) => *value == 1,
            (Self::MinusOne, Attribute::Integer(value, _)) => *value == -1,
            (Self::EmptyArray, Attribute::Array(items)) => items.is_empty(),
            (Self::EmptyLayouts, Attribute::Array(_)) => {
                ["operand_layouts", "result_layouts"].iter().all(|name| {
                    matches!(value_of(others, name), Some(Attribute::Array(items)) if items.is_empty())
                })
            }
            (Self::EmptyString | Self::EmptyConfig, Attribute::String(text)) => text.is_empty(),
            (Self::EmptyDictionary | Self::EmptyConfig, Attribute::Dictionary(named)) => {
                named.is_empty()
            }
            (Self::EmptyTensor, value) => bytes(value).is_some_and(<[u8]>::is_empty),
            (Self::Ones, value) => {
                all(value, |element| element.first() == Some(&1) && zeros(element, 1))
            }
            (Self::Falses | Self::Padding, value) => all(value, |element| zeros(element, 0)),
            (Self::Precision, Attribute::Array(items)) => {
                items.iter().all(|item| is_word(item, b"DEFAULT"))
            }
            (Self::NoType, value) => is_word(value, b"NOTYPE"),
            (Self::Accuracy, Attribute::Dialect(accuracy)) => {
                let mode = accuracy.parameters.as_slice();
                // MHLO's is written out.
                accuracy.dialect == "stablehlo"
                    && matches!(mode, [(_, mode)] if is_word(mode, b"DEFAULT"))
            }
            _ => false,
        }
    }

    /// Returns the value in VHLO. The other attributes are those of the same operation there.
    ///
    /// # Errors
    /// Returns an error if the value has an entry for each dim of a window whose dims are missing.
    pub(crate) fn value(self, others: &Attributes) -> Result<Attribute, String> {
        let mode = |name: &str| Attribute::word("stablehlo", name, "DEFAULT");
        Ok(match self {
            Self::False => Attribute::Bool(false),
            Self::True => Attribute::Bool(true),
            Self::Zero => Attribute::i64(0),
            Self::MinusOne => Attribute::i64(-1),
            Self::EmptyArray | Self::EmptyLayouts => Attribute::Array(Vec::new()),
            Self::EmptyString | Self::Config => Attribute::text(""),
            Self::EmptyDictionary => Attribute::Dictionary(Attributes::new()),
            Self::EmptyConfig => empty_config(others),
            Self::EmptyTensor => Attribute::i64s([]),
            Self::Ones => Attribute::i64s(vec![1; window_rank(others)?]),
            Self::Falses => {
                Attribute::DenseArray(DenseArray::Bool(vec![false; window_rank(others)?]))
            }
            Self::Padding => padding(window_rank(others)?),
            Self::Precision => Attribute::Array(vec![mode("precision"), mode("precision")]),
            Self::NoType => Attribute::word("stablehlo", "comparison_type", "NOTYPE"),
            Self::OriginalApi => api_version(1),
            Self::Accuracy => {
                let parameters = vec![("mode".into(), mode("result_accuracy_mode"))];
                Attribute::structure("stablehlo", "result_accuracy", parameters)
            }
        })
    }
}

/// The version of the interface of a custom call, as VHLO has it.
pub(crate) fn api_version(version: i64) -> Attribute {
    Attribute::structure("vhlo", "api_version", vec![("value".into(), Attribute::i64(version))])
}

/// Calls with typed parameters have a dictionary as their configuration.
fn empty_config(attributes: &Attributes) -> Attribute {
    /// The number of this interface.
    const TYPED: i64 = 4;
    match value_of(attributes, "api_version") {
        Some(version) if *version == api_version(TYPED) => Attribute::Dictionary(Attributes::new()),
        _ => Attribute::text(""),
    }
}

/// The number of dims of a window.
fn window_rank(attributes: &Attributes) -> Result<usize, String> {
    let dims = ["window_dimensions", "input_spatial_dimensions"];
    match dims.iter().find_map(|name| value_of(attributes, name)) {
        Some(Attribute::DenseArray(DenseArray::I64(dims))) => Ok(dims.len()),
        _ => Err("the dims of the window are missing".into()),
    }
}

/// Pairs of zeros.
fn padding(rank: usize) -> Attribute {
    let dims = [i64::try_from(rank).ok(), Some(2)].into_iter().collect();
    let element = Scalar::Integer { bits: 64, sign: Sign::Signless };
    let ty = Type::Tensor(TensorType { dims, element, encoding: None });
    let bytes: Arc<[u8]> = vec![0; rank.saturating_mul(16)].into();
    Attribute::Dense(DenseElements { ty: Box::new(ty), elements: Elements::Bytes(bytes) })
}

fn zeros(bytes: &[u8], from: usize) -> bool {
    bytes.get(from..).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
}

/// The bytes of a constant.
pub(crate) fn bytes(value: &Attribute) -> Option<&[u8]> {
    match value {
        Attribute::Dense(dense) => match &dense.elements {
            Elements::Bytes(bytes) => Some(bytes),
            Elements::Strings(_) => None,
        },
        _ => None,
    }
}

/// Checks all elements of a constant that has some.
fn all(value: &Attribute, check: impl Fn(&[u8]) -> bool) -> bool {
    /// The bytes of an `i64`; those of `i1` are all zero or not, in groups of any size.
    const SIZE: usize = 8;
    bytes(value).is_some_and(|bytes| !bytes.is_empty() && bytes.chunks(SIZE).all(check))
}

/// Checks for an attribute of one word.
fn is_word(value: &Attribute, word: &[u8]) -> bool {
    match value {
        Attribute::Dialect(attribute) => matches!(
            attribute.parameters.as_slice(),
            [(_, Attribute::String(value))] if **value == *word
        ),
        _ => false,
    }
}
