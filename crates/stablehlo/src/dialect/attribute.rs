//! The attributes of ops: their values in MLIR, VHLO and HLO.

use super::Initial;
use crate::mlir::{Attribute, DenseArray, Sign};

/// An attribute of an op.
pub(crate) struct Attr {
    /// The name.
    pub(crate) name: &'static str,
    /// The kind of its value.
    pub(crate) kind: ValueKind,
    /// The name in HLO; none if HLO does not have it by itself.
    pub(crate) hlo: Option<&'static str>,
    /// Whether it may be missing.
    pub(crate) need: Need,
    /// The first version of the op in VHLO that has it.
    pub(crate) from: usize,
    /// The last one; StableHLO has only what the newest has.
    pub(crate) until: usize,
}

/// Whether an attribute may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It must be there.
    Required,
    /// It may be missing.
    Optional,
    /// It may be missing; VHLO then writes this value.
    Or(Initial),
    /// As `Or`, and MLIR does not print the value.
    Default(Initial),
}

/// The kind of the value of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    /// `array<i64: 0, 2>`, printed as `[0, 2]`; a tensor in VHLO.
    Dims,
    /// `array<i1: true>`; a tensor in VHLO.
    Bools,
    /// An integer of so many bits, printed without its type.
    Integer(u32, Sign),
    /// `3 : i64`, which is a list of one dim in HLO.
    OneDim,
    /// A number of this many bits.
    Float(u32),
    /// `true`.
    Bool,
    /// `unit`, which is there or not; a truth value in VHLO.
    Unit,
    /// `#stablehlo<comparison_direction LT>`, printed as `LT`: the name of the enumeration.
    Word(&'static str),
    /// As `Word`; HLO's words have this prefix and are in lower case.
    PrefixedWord(&'static str, &'static str),
    /// One of these words, as its number of type `i32`.
    Number(&'static [&'static str]),
    /// `"text"`.
    Text,
    /// `"name"`, printed as `@name`.
    Name,
    /// `@name`; a string in VHLO.
    Symbol,
    /// `[@name]`; strings in VHLO.
    Symbols,
    /// `[#stablehlo<precision DEFAULT>]`.
    Precisions,
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`.
    Groups,
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`.
    Pairs,
    /// `#stablehlo.channel_handle<handle = 1, type = 0>`; the number of the channel in VHLO and HLO.
    Channel,
    /// `#stablehlo.result_accuracy<...>`.
    Accuracy,
    /// `#stablehlo.dot_algorithm<...>`; a word in HLO, and attributes in VHLO.
    Algorithm,
    /// `#stablehlo.conv<...>`; attributes in VHLO.
    Convolution,
    /// A structure whose parameters are attributes in VHLO, and in HLO if these have a name there.
    Structure(&'static Structure),
    /// The part of an attribute of Shardy after its name: `<@mesh, [{}]>` of `sharding`.
    Sharding(&'static str),
    /// `[<@mesh, [{}]>, ...]`.
    Shardings,
    /// An attribute as it is elsewhere.
    Any,
}

/// Attributes of StableHLO that are one attribute in HLO.
#[derive(Clone, Copy)]
pub(crate) enum Joined {
    /// `start_indices`, `limit_indices` and `strides`.
    Slices,
    /// `edge_padding_low`, `edge_padding_high` and `interior_padding`.
    Padding,
    /// `window_dimensions` and all that belongs to it; the dilations of the base and of the window
    /// have these names.
    Window(&'static str, &'static str),
    /// The window of a convolution, whose sizes are those of the kernel.
    ConvolutionWindow,
}

impl Joined {
    /// The name of the attribute in HLO.
    pub(crate) fn hlo(self) -> &'static str {
        match self {
            Self::Slices => "slice",
            Self::Padding => "padding",
            Self::Window(..) | Self::ConvolutionWindow => "window",
        }
    }
}

impl Attr {
    pub(super) const fn new(name: &'static str, kind: ValueKind) -> Self {
        Self { name, kind, hlo: None, need: Need::Required, from: 1, until: usize::MAX }
    }

    /// HLO has it by this name.
    pub(super) const fn hlo(self, name: &'static str) -> Self {
        Self { hlo: Some(name), ..self }
    }

    pub(super) const fn optional(self) -> Self {
        Self { need: Need::Optional, ..self }
    }

    pub(super) const fn or(self, initial: Initial) -> Self {
        Self { need: Need::Or(initial), ..self }
    }

    pub(super) const fn default(self, initial: Initial) -> Self {
        Self { need: Need::Default(initial), ..self }
    }

    pub(super) const fn from(self, version: usize) -> Self {
        Self { from: version, ..self }
    }

    pub(super) const fn until(self, version: usize) -> Self {
        Self { until: version, ..self }
    }

    /// It is missing in VHLO.
    pub(super) const fn not_in_vhlo(self) -> Self {
        self.from(usize::MAX)
    }

    /// The value that VHLO writes where it is missing.
    pub(crate) fn initial(&self) -> Option<Initial> {
        match self.need {
            Need::Or(initial) | Need::Default(initial) => Some(initial),
            Need::Required | Need::Optional => None,
        }
    }

    /// The structure whose parameters are attributes in VHLO.
    pub(crate) fn structure(&self) -> Option<&'static Structure> {
        match self.kind {
            ValueKind::Algorithm => Some(&DOT_ALGORITHM),
            ValueKind::Convolution => Some(&CONVOLUTION),
            ValueKind::Structure(structure) => Some(structure),
            _ => None,
        }
    }

    /// The names of the attributes that it is in a version of its op in VHLO.
    pub(crate) fn names_in_vhlo(&self, version: usize) -> Vec<&'static str> {
        match self.structure() {
            Some(structure) => {
                let parameters = structure.parameters.iter();
                parameters.filter(|one| one.from <= version).map(|one| one.vhlo).collect()
            }
            None if matches!(self.kind, ValueKind::Channel) => vec!["channel_id"],
            None => vec![self.name],
        }
    }
}

/// A structure of StableHLO.
pub(crate) struct Structure {
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Its number among StableHLO's attributes in bytecode, and among those of VHLO, if they have it.
    pub(crate) codes: (Option<u64>, Option<u64>),
}

/// A parameter of a structure.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) field: Field,
    /// The name of the attribute that it is in HLO.
    pub(crate) hlo: Option<&'static str>,
    /// The name of the attribute that it is in VHLO.
    pub(crate) vhlo: &'static str,
    /// The first version of its op in VHLO that has it.
    pub(crate) from: usize,
}

/// The kind of the value of a parameter.
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

impl Field {
    /// Checks whether a value is left out.
    pub(crate) fn leaves_out(self, value: &Attribute) -> bool {
        match (self, value) {
            (Self::NumberUnlessZero, Attribute::Integer(value, _)) => *value == 0,
            (Self::Double, Attribute::Float(value, _)) => *value == 0.0,
            (Self::ListUnlessEmpty, Attribute::DenseArray(DenseArray::I64(values))) => {
                values.is_empty()
            }
            _ => false,
        }
    }
}

const fn parameter(name: &'static str, field: Field) -> Parameter {
    Parameter { name, field, hlo: None, vhlo: name, from: 1 }
}

/// A list that HLO has by another name.
const fn list(name: &'static str, hlo: &'static str) -> Parameter {
    Parameter { hlo: Some(hlo), ..parameter(name, Field::ListUnlessEmpty) }
}

/// A list that HLO has by the same name.
const fn same(name: &'static str) -> Parameter {
    list(name, name)
}

const fn newer(parameter: Parameter) -> Parameter {
    Parameter { from: 2, ..parameter }
}

const INDEX_VECTOR: Parameter = Parameter {
    hlo: Some("index_vector_dim"),
    ..parameter("index_vector_dim", Field::NumberUnlessZero)
};

const CHANNEL: Structure = Structure {
    name: "channel_handle",
    parameters: &[
        Parameter { vhlo: "channel_id", ..parameter("handle", Field::Number) },
        Parameter { vhlo: "channel_type", ..parameter("type", Field::Number) },
    ],
    codes: (Some(1), None),
};

const CONVOLUTION: Structure = Structure {
    name: "conv",
    parameters: &[
        parameter("input_batch_dimension", Field::Number),
        parameter("input_feature_dimension", Field::Number),
        parameter("input_spatial_dimensions", Field::List),
        parameter("kernel_input_feature_dimension", Field::Number),
        parameter("kernel_output_feature_dimension", Field::Number),
        parameter("kernel_spatial_dimensions", Field::List),
        parameter("output_batch_dimension", Field::Number),
        parameter("output_feature_dimension", Field::Number),
        parameter("output_spatial_dimensions", Field::List),
    ],
    codes: (Some(4), None),
};

const LHS_BATCH: Parameter = list("lhs_batching_dimensions", "lhs_batch_dims");
const RHS_BATCH: Parameter = list("rhs_batching_dimensions", "rhs_batch_dims");
const LHS_CONTRACTING: Parameter = list("lhs_contracting_dimensions", "lhs_contracting_dims");
const RHS_CONTRACTING: Parameter = list("rhs_contracting_dimensions", "rhs_contracting_dims");

const DOT: Structure = Structure {
    name: "dot",
    parameters: &[LHS_BATCH, RHS_BATCH, LHS_CONTRACTING, RHS_CONTRACTING],
    codes: (Some(5), None),
};

const DOT_ALGORITHM: Structure = Structure {
    name: "dot_algorithm",
    parameters: &[
        parameter("lhs_precision_type", Field::Type),
        parameter("rhs_precision_type", Field::Type),
        parameter("accumulation_type", Field::Type),
        parameter("lhs_component_count", Field::Number),
        parameter("rhs_component_count", Field::Number),
        parameter("num_primitive_operations", Field::Number),
        parameter("allow_imprecise_accumulation", Field::Bool),
    ],
    codes: (Some(15), None),
};

const GATHER: Structure = Structure {
    name: "gather",
    parameters: &[
        same("offset_dims"),
        same("collapsed_slice_dims"),
        newer(same("operand_batching_dims")),
        newer(same("start_indices_batching_dims")),
        same("start_index_map"),
        INDEX_VECTOR,
    ],
    codes: (Some(7), None),
};

const SCATTER: Structure = Structure {
    name: "scatter",
    parameters: &[
        same("update_window_dims"),
        same("inserted_window_dims"),
        newer(same("input_batching_dims")),
        newer(same("scatter_indices_batching_dims")),
        same("scatter_dims_to_operand_dims"),
        INDEX_VECTOR,
    ],
    codes: (Some(11), None),
};

const RAGGED_DOT: Structure = Structure {
    name: "ragged_dot",
    parameters: &[
        LHS_BATCH,
        RHS_BATCH,
        LHS_CONTRACTING,
        RHS_CONTRACTING,
        list("lhs_ragged_dimensions", "lhs_ragged_dims"),
        list("rhs_group_dimensions", "rhs_group_dims"),
    ],
    codes: (None, None),
};

const ALIAS: Structure = Structure {
    name: "output_operand_alias",
    parameters: &[
        parameter("output_tuple_indices", Field::List),
        parameter("operand_index", Field::Number),
        parameter("operand_tuple_indices", Field::List),
    ],
    codes: (Some(14), Some(10)),
};

const ACCURACY: Structure = Structure {
    name: "result_accuracy",
    parameters: &[
        parameter("atol", Field::Double),
        parameter("rtol", Field::Double),
        parameter("ulps", Field::NumberUnlessZero),
        parameter("mode", Field::Attribute),
    ],
    codes: (Some(17), Some(20)),
};

const SUB_AXIS: Structure = Structure {
    name: "sub_axis_info",
    parameters: &[parameter("pre_size", Field::Number), parameter("size", Field::Number)],
    codes: (Some(19), Some(21)),
};

/// The structures.
static STRUCTURES: [Structure; 10] = [
    CHANNEL,
    CONVOLUTION,
    DOT,
    DOT_ALGORITHM,
    GATHER,
    SCATTER,
    RAGGED_DOT,
    ALIAS,
    ACCURACY,
    SUB_AXIS,
];

/// Kinds of attributes that are structures.
pub(super) mod kind {
    use super::ValueKind;

    pub(in super::super) const CHANNEL: ValueKind = ValueKind::Structure(&super::CHANNEL);
    pub(in super::super) const DOT: ValueKind = ValueKind::Structure(&super::DOT);
    pub(in super::super) const GATHER: ValueKind = ValueKind::Structure(&super::GATHER);
    pub(in super::super) const RAGGED_DOT: ValueKind = ValueKind::Structure(&super::RAGGED_DOT);
    pub(in super::super) const SCATTER: ValueKind = ValueKind::Structure(&super::SCATTER);
}

/// An enumeration.
pub(crate) struct Words {
    pub(crate) name: &'static str,
    /// The words by their numbers. The empty word has no number.
    pub(crate) words: &'static [&'static str],
    /// Its number among StableHLO's attributes in bytecode, and among those of VHLO.
    pub(crate) codes: (u64, u64),
}

const fn enumeration(
    name: &'static str,
    words: &'static [&'static str],
    codes: (u64, u64),
) -> Words {
    Words { name, words, codes }
}

/// The enumerations.
pub(crate) static WORDS: [Words; 8] = [
    enumeration("comparison_direction", &["EQ", "NE", "GE", "GT", "LE", "LT"], (2, 3)),
    enumeration(
        "comparison_type",
        &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
        (3, 4),
    ),
    enumeration("fft_type", &["FFT", "IFFT", "RFFT", "IRFFT"], (6, 7)),
    enumeration("precision", &["DEFAULT", "HIGH", "HIGHEST"], (8, 11)),
    enumeration("rng_algorithm", &["DEFAULT", "THREE_FRY", "PHILOX"], (9, 12)),
    enumeration("rng_distribution", &["", "UNIFORM", "NORMAL"], (10, 13)),
    enumeration(
        "transpose",
        &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
        (12, 16),
    ),
    enumeration("result_accuracy_mode", &["DEFAULT", "HIGHEST", "TOLERANCE"], (16, 19)),
];

/// Returns the structure for which this holds.
pub(crate) fn structure(is_it: impl Fn(&Structure) -> bool) -> Option<&'static Structure> {
    STRUCTURES.iter().find(|structure| is_it(structure))
}

/// Returns the enumeration of this name.
pub(crate) fn words(name: &str) -> Option<&'static Words> {
    WORDS.iter().find(|words| words.name == name)
}

impl Words {
    /// Returns the number of a word.
    pub(crate) fn number(&self, word: &[u8]) -> Option<u64> {
        let is_it = |known: &&str| known.as_bytes() == word && !word.is_empty();
        u64::try_from(self.words.iter().position(is_it)?).ok()
    }
}
