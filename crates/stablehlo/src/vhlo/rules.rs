//! How the operations of VHLO differ from StableHLO's.

use crate::bytecode::structures::{Field, structure};
use crate::mlir::{Attribute, Attributes, Elements, value_of};

/// How an attribute is written in VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// A tensor of `i64` instead of an array.
    Numbers,
    /// A tensor of `i1` instead of an array.
    Bools,
    /// A string instead of a symbol.
    Symbol,
    /// Strings instead of symbols.
    Symbols,
    /// A truth value instead of a unit, which is there or not.
    Unit,
}

/// The value that VHLO writes where StableHLO leaves an attribute out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initial {
    False,
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

/// A structure of StableHLO whose parameters are attributes in VHLO.
pub(super) struct Group {
    operations: &'static str,
    /// The attribute in StableHLO.
    pub(super) attribute: &'static str,
    /// The name of the structure.
    pub(super) structure: &'static str,
    /// The names in VHLO that are not those of the parameters.
    renamed: &'static [(&'static str, &'static str)],
}

const GROUPS: &[Group] = &[
    group("convolution dynamic_conv", "dimension_numbers", "conv", &[]),
    group("dot_general", "dot_dimension_numbers", "dot", &[]),
    group("dot_general", "algorithm", "dot_algorithm", &[]),
    group("gather dynamic_gather", "dimension_numbers", "gather", &[]),
    group("scatter", "scatter_dimension_numbers", "scatter", &[]),
    group(
        "send recv",
        "channel_handle",
        "channel_handle",
        &[("handle", "channel_id"), ("type", "channel_type")],
    ),
];

const fn group(
    operations: &'static str,
    attribute: &'static str,
    structure: &'static str,
    renamed: &'static [(&'static str, &'static str)],
) -> Group {
    Group { operations, attribute, structure, renamed }
}

/// Collectives whose channel is a number in VHLO.
const COLLECTIVES: &str = "all_gather all_reduce all_to_all collective_permute \
    collective_broadcast collective_reduce reduce_scatter";

/// Operations with a `result_accuracy`.
const ACCURATE: &str = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic \
    rsqrt sine sqrt tan tanh";

const CONVERSIONS: &[(&str, &str, Conversion)] = &[
    (
        "all_gather all_reduce reduce_scatter collective_reduce",
        "use_global_device_ids",
        Conversion::Unit,
    ),
    ("collective_broadcast collective_reduce", "has_dynamic_root", Conversion::Unit),
    ("custom_call", "called_computations", Conversion::Symbols),
    ("composite", "decomposition", Conversion::Symbol),
    ("call", "callee", Conversion::Symbol),
    ("fft", "fft_length", Conversion::Numbers),
    ("broadcast", "broadcast_sizes", Conversion::Numbers),
    ("dynamic_slice gather", "slice_sizes", Conversion::Numbers),
    ("reverse map reduce", "dimensions", Conversion::Numbers),
    ("transpose", "permutation", Conversion::Numbers),
    ("pad", "edge_padding_low edge_padding_high interior_padding", Conversion::Numbers),
    ("slice", "start_indices limit_indices strides", Conversion::Numbers),
    ("broadcast_in_dim dynamic_broadcast_in_dim", "broadcast_dimensions", Conversion::Numbers),
    (
        "dynamic_broadcast_in_dim",
        "known_expanding_dimensions known_nonexpanding_dimensions",
        Conversion::Numbers,
    ),
    ("select_and_scatter reduce_window", "window_dimensions window_strides", Conversion::Numbers),
    ("reduce_window", "base_dilations window_dilations", Conversion::Numbers),
    ("convolution dynamic_conv", "lhs_dilation rhs_dilation window_strides", Conversion::Numbers),
    ("convolution dynamic_conv", "window_reversal", Conversion::Bools),
];

const INITIALS: &[(&str, &str, Initial)] = &[
    ("func", "sym_visibility", Initial::EmptyString),
    ("func", "arg_attrs res_attrs", Initial::EmptyArray),
    (COLLECTIVES, "channel_id", Initial::Zero),
    (
        "all_gather all_reduce reduce_scatter collective_reduce",
        "use_global_device_ids",
        Initial::False,
    ),
    ("collective_broadcast collective_reduce", "has_dynamic_root", Initial::False),
    ("cholesky", "lower", Initial::False),
    ("compare", "compare_type", Initial::NoType),
    ("composite", "version", Initial::Zero),
    ("composite", "composite_attributes", Initial::EmptyDictionary),
    ("convolution dynamic_conv", "window_strides lhs_dilation rhs_dilation", Initial::Ones),
    ("convolution dynamic_conv", "window_reversal", Initial::Falses),
    ("convolution reduce_window select_and_scatter", "padding", Initial::Padding),
    ("convolution dynamic_conv dot_general dot", "precision_config", Initial::Precision),
    ("custom_call", "has_side_effect", Initial::False),
    ("custom_call", "backend_config", Initial::EmptyConfig),
    ("custom_call", "api_version", Initial::OriginalApi),
    (
        "custom_call",
        "called_computations output_operand_aliases result_tilings",
        Initial::EmptyArray,
    ),
    ("custom_call", "operand_layouts result_layouts", Initial::EmptyLayouts),
    (
        "dynamic_broadcast_in_dim",
        "known_expanding_dimensions known_nonexpanding_dimensions",
        Initial::EmptyTensor,
    ),
    ("gather dynamic_gather scatter", "indices_are_sorted", Initial::False),
    ("scatter", "unique_indices", Initial::False),
    ("infeed", "infeed_config", Initial::Config),
    ("infeed", "layout", Initial::EmptyArray),
    ("outfeed", "outfeed_config", Initial::Config),
    ("send recv", "is_host_transfer", Initial::False),
    ("send recv", "source_target_pairs", Initial::EmptyTensor),
    ("reduce_window", "window_strides base_dilations window_dilations", Initial::Ones),
    ("select_and_scatter", "window_strides", Initial::Ones),
    ("sort", "dimension", Initial::MinusOne),
    ("sort", "is_stable", Initial::False),
    (ACCURATE, "result_accuracy", Initial::Accuracy),
];

/// The differences of one operation.
#[derive(Default)]
pub(crate) struct Rules {
    pub(super) groups: Vec<&'static Group>,
    pub(super) conversions: Vec<(&'static str, Conversion)>,
    pub(super) initials: Vec<(&'static str, Initial)>,
    /// Whether `channel_id` is StableHLO's `channel_handle`.
    pub(super) has_channel: bool,
    /// Whether a `padding` is no attribute of StableHLO's operation.
    pub(super) drops_padding: bool,
}

impl Rules {
    /// Returns the rules of an operation by its name without version and dialect.
    pub(crate) fn of(operation: &str) -> Self {
        let applies = |operations: &str| has_word(operations, operation);
        let mut rules = Self {
            groups: GROUPS.iter().filter(|group| applies(group.operations)).collect(),
            has_channel: applies(COLLECTIVES),
            drops_padding: operation == "dynamic_conv",
            ..Self::default()
        };
        for (operations, attributes, conversion) in CONVERSIONS {
            if applies(operations) {
                let names = attributes.split(' ').map(|name| (name, *conversion));
                rules.conversions.extend(names);
            }
        }
        for (operations, attributes, initial) in INITIALS {
            if applies(operations) {
                rules.initials.extend(attributes.split(' ').map(|name| (name, *initial)));
            }
        }
        rules
    }

    pub(super) fn conversion(&self, attribute: &str) -> Option<Conversion> {
        self.conversions.iter().find(|(name, _)| *name == attribute).map(|(_, rule)| *rule)
    }

    pub(super) fn initial(&self, attribute: &str) -> Option<Initial> {
        self.initials.iter().find(|(name, _)| *name == attribute).map(|(_, rule)| *rule)
    }
}

/// Checks whether a list of words in a text has this word.
pub(super) fn has_word(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

impl Group {
    /// The parameters: the name in VHLO, the name in StableHLO and the kind of the value.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str, Field)> {
        let renamed = self.renamed;
        let fields = structure(self.structure).map_or([].as_slice(), |structure| structure.fields);
        fields.iter().map(move |(name, field)| {
            let vhlo = renamed.iter().find(|(known, _)| known == name);
            (vhlo.map_or(*name, |(_, vhlo)| *vhlo), *name, *field)
        })
    }

    /// Returns whether the structure may be missing.
    pub(super) fn optional(&self) -> bool {
        self.attribute == "algorithm"
    }
}

impl Initial {
    /// Checks whether an attribute has this value. The other attributes are those of the same
    /// operation.
    pub(super) fn is(self, value: &Attribute, others: &Attributes) -> bool {
        match (self, value) {
            (Self::False, Attribute::Bool(value)) => !value,
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
            (Self::Accuracy, Attribute::Dialect(attribute)) => {
                matches!(attribute.parameters.as_slice(), [(_, mode)] if is_word(mode, b"DEFAULT"))
            }
            _ => false,
        }
    }
}

fn zeros(bytes: &[u8], from: usize) -> bool {
    bytes.get(from..).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
}

/// The bytes of a constant.
pub(super) fn bytes(value: &Attribute) -> Option<&[u8]> {
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
