//! The ops that HLO and StableHLO have in common, one row each. Import and export both read it.

use tilewright_ir::Opcode;

/// An op of HLO and its name in StableHLO.
pub(crate) struct Row {
    /// The name with its dialect.
    pub(crate) name: &'static str,
    /// The opcode in HLO.
    pub(crate) opcode: Opcode,
    /// The attributes, in MLIR's order.
    pub(crate) attributes: &'static [Field],
    /// The attributes of HLO that name the computations of the regions.
    pub(crate) regions: &'static [&'static str],
}

/// An attribute: its name in StableHLO, its name in HLO, and how its value is written.
///
/// `a.b` in StableHLO is the parameter `b` of the attribute `a`.
pub(crate) type Field = (&'static str, &'static str, Form);

/// How the value of an attribute is written in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `array<i64: 0, 2>`; an empty one if it is missing.
    Dims,
    /// `3 : i64`.
    Int,
    /// `3 : i32`.
    Int32,
    /// `3 : i64`, which is a list of one dim in HLO.
    OneDim,
    /// `0.001 : f32`.
    Float,
    /// `true`, always written.
    PlainBool,
    /// A bool that may be missing, without a default.
    OptionalBool,
    /// `unit`, which is present or not.
    Unit,
    /// `#stablehlo<comparison_direction LT>`: the name of the enumeration.
    Word(&'static str),
    /// As `Word`, but HLO's words have a prefix and are in lower case.
    PrefixedWord(&'static str, &'static str),
    /// `[#stablehlo<precision DEFAULT>]`.
    Precisions,
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`.
    Groups,
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`.
    Pairs,
    /// `#stablehlo.channel_handle<handle = 1, type = 0>`.
    Channel,
    /// `#stablehlo.result_accuracy<...>`.
    Accuracy,
    /// `#stablehlo.dot_algorithm<...>`.
    Algorithm,
    /// `#stablehlo.conv<...>`.
    Conv,
    /// `start_indices`, `limit_indices` and `strides` together.
    Slices,
    /// `edge_padding_low`, `edge_padding_high` and `interior_padding` together.
    Padding,
    /// `window_dimensions` and all that belongs to it; the dilations of the base and the window
    /// have these names.
    Window(&'static str, &'static str),
    /// The window of a convolution, whose sizes are those of the kernel.
    ConvWindow,
}

const NONE: &[Field] = &[];
const ACCURACY: &[Field] = &[("result_accuracy", "result_accuracy", Form::Accuracy)];

const GATHER: &[Field] = &[
    ("dimension_numbers.offset_dims", "offset_dims", Form::Dims),
    ("dimension_numbers.collapsed_slice_dims", "collapsed_slice_dims", Form::Dims),
    ("dimension_numbers.operand_batching_dims", "operand_batching_dims", Form::Dims),
    ("dimension_numbers.start_indices_batching_dims", "start_indices_batching_dims", Form::Dims),
    ("dimension_numbers.start_index_map", "start_index_map", Form::Dims),
    ("dimension_numbers.index_vector_dim", "index_vector_dim", Form::Int),
    ("indices_are_sorted", "indices_are_sorted", Form::PlainBool),
    ("slice_sizes", "slice_sizes", Form::Dims),
];

const SCATTER: &[Field] = &[
    ("indices_are_sorted", "indices_are_sorted", Form::PlainBool),
    ("scatter_dimension_numbers.update_window_dims", "update_window_dims", Form::Dims),
    ("scatter_dimension_numbers.inserted_window_dims", "inserted_window_dims", Form::Dims),
    ("scatter_dimension_numbers.input_batching_dims", "input_batching_dims", Form::Dims),
    (
        "scatter_dimension_numbers.scatter_indices_batching_dims",
        "scatter_indices_batching_dims",
        Form::Dims,
    ),
    (
        "scatter_dimension_numbers.scatter_dims_to_operand_dims",
        "scatter_dims_to_operand_dims",
        Form::Dims,
    ),
    ("scatter_dimension_numbers.index_vector_dim", "index_vector_dim", Form::Int),
    ("unique_indices", "unique_indices", Form::PlainBool),
];

const DOT: &[Field] = &[
    ("dot_dimension_numbers.lhs_batching_dimensions", "lhs_batch_dims", Form::Dims),
    ("dot_dimension_numbers.rhs_batching_dimensions", "rhs_batch_dims", Form::Dims),
    ("dot_dimension_numbers.lhs_contracting_dimensions", "lhs_contracting_dims", Form::Dims),
    ("dot_dimension_numbers.rhs_contracting_dimensions", "rhs_contracting_dims", Form::Dims),
    ("precision_config", "operand_precision", Form::Precisions),
    ("algorithm", "algorithm", Form::Algorithm),
];

const CONVOLUTION: &[Field] = &[
    ("batch_group_count", "batch_group_count", Form::Int),
    ("dimension_numbers", "dim_labels", Form::Conv),
    ("feature_group_count", "feature_group_count", Form::Int),
    ("window", "window", Form::ConvWindow),
    ("precision_config", "operand_precision", Form::Precisions),
];

const CHANNEL: Field = ("channel_handle", "channel_id", Form::Channel);
const GROUPS: Field = ("replica_groups", "replica_groups", Form::Groups);
const GLOBAL: Field = ("use_global_device_ids", "use_global_device_ids", Form::Unit);

const NORM: &[Field] =
    &[("epsilon", "epsilon", Form::Float), ("feature_index", "feature_index", Form::Int)];

const fn row(name: &'static str, opcode: Opcode) -> Row {
    Row { name, opcode, attributes: NONE, regions: &[] }
}

const fn with(name: &'static str, opcode: Opcode, attributes: &'static [Field]) -> Row {
    Row { name, opcode, attributes, regions: &[] }
}

const fn calling(
    name: &'static str,
    opcode: Opcode,
    attributes: &'static [Field],
    regions: &'static [&'static str],
) -> Row {
    Row { name, opcode, attributes, regions }
}

/// All rows. Where two have one opcode, export takes the first.
pub(crate) static ROWS: &[Row] = &[
    row("stablehlo.abs", Opcode::Abs),
    row("chlo.acos", Opcode::Acos),
    row("mhlo.acos", Opcode::Acos),
    row("chlo.acosh", Opcode::Acosh),
    row("mhlo.acosh", Opcode::Acosh),
    row("stablehlo.add", Opcode::Add),
    row("mhlo.add_dependency", Opcode::AddDependency),
    row("stablehlo.after_all", Opcode::AfterAll),
    row("stablehlo.create_token", Opcode::AfterAll),
    with(
        "stablehlo.all_gather",
        Opcode::AllGather,
        &[("all_gather_dim", "dimensions", Form::OneDim), CHANNEL, GROUPS, GLOBAL],
    ),
    calling("stablehlo.all_reduce", Opcode::AllReduce, &[CHANNEL, GROUPS, GLOBAL], &["to_apply"]),
    row("stablehlo.and", Opcode::And),
    row("chlo.asin", Opcode::Asin),
    row("mhlo.asin", Opcode::Asin),
    row("chlo.asinh", Opcode::Asinh),
    row("mhlo.asinh", Opcode::Asinh),
    row("stablehlo.atan2", Opcode::Atan2),
    row("chlo.atanh", Opcode::Atanh),
    row("mhlo.atanh", Opcode::Atanh),
    with("stablehlo.batch_norm_grad", Opcode::BatchNormGrad, NORM),
    with("stablehlo.batch_norm_inference", Opcode::BatchNormInference, NORM),
    with("stablehlo.batch_norm_training", Opcode::BatchNormTraining, NORM),
    row("stablehlo.bitcast_convert", Opcode::BitcastConvert),
    with(
        "stablehlo.broadcast_in_dim",
        Opcode::Broadcast,
        &[("broadcast_dimensions", "dimensions", Form::Dims)],
    ),
    with("stablehlo.cbrt", Opcode::Cbrt, ACCURACY),
    row("stablehlo.ceil", Opcode::Ceil),
    with("stablehlo.cholesky", Opcode::Cholesky, &[("lower", "lower", Form::PlainBool)]),
    row("stablehlo.clamp", Opcode::Clamp),
    row("stablehlo.count_leading_zeros", Opcode::Clz),
    with("stablehlo.collective_broadcast", Opcode::CollectiveBroadcast, &[CHANNEL, GROUPS]),
    with(
        "stablehlo.collective_permute",
        Opcode::CollectivePermute,
        &[CHANNEL, ("source_target_pairs", "source_target_pairs", Form::Pairs)],
    ),
    with(
        "stablehlo.compare",
        Opcode::Compare,
        &[
            ("compare_type", "type", Form::Word("comparison_type")),
            ("comparison_direction", "direction", Form::Word("comparison_direction")),
        ],
    ),
    row("stablehlo.complex", Opcode::Complex),
    with(
        "stablehlo.concatenate",
        Opcode::Concatenate,
        &[("dimension", "dimensions", Form::OneDim)],
    ),
    row("stablehlo.convert", Opcode::Convert),
    with("stablehlo.convolution", Opcode::Convolution, CONVOLUTION),
    row("mhlo.copy", Opcode::Copy),
    with("stablehlo.cosine", Opcode::Cos, ACCURACY),
    row("chlo.cosh", Opcode::Cosh),
    row("mhlo.cosh", Opcode::Cosh),
    row("stablehlo.divide", Opcode::Divide),
    with("stablehlo.dot_general", Opcode::Dot, DOT),
    with(
        "stablehlo.dynamic_slice",
        Opcode::DynamicSlice,
        &[("slice_sizes", "dynamic_slice_sizes", Form::Dims)],
    ),
    row("stablehlo.dynamic_update_slice", Opcode::DynamicUpdateSlice),
    row("chlo.erf", Opcode::Erf),
    row("mhlo.erf", Opcode::Erf),
    with("stablehlo.exponential", Opcode::Exp, ACCURACY),
    with("stablehlo.exponential_minus_one", Opcode::Expm1, ACCURACY),
    with(
        "stablehlo.fft",
        Opcode::Fft,
        &[
            ("fft_length", "fft_length", Form::Dims),
            ("fft_type", "fft_type", Form::Word("fft_type")),
        ],
    ),
    row("stablehlo.floor", Opcode::Floor),
    with("stablehlo.gather", Opcode::Gather, GATHER),
    with(
        "stablehlo.get_dimension_size",
        Opcode::GetDimensionSize,
        &[("dimension", "dimensions", Form::OneDim)],
    ),
    with(
        "stablehlo.get_tuple_element",
        Opcode::GetTupleElement,
        &[("index", "index", Form::Int32)],
    ),
    row("stablehlo.imag", Opcode::Imag),
    with("stablehlo.iota", Opcode::Iota, &[("iota_dimension", "iota_dimension", Form::Int)]),
    row("stablehlo.is_finite", Opcode::IsFinite),
    with("stablehlo.log", Opcode::Log, ACCURACY),
    with("stablehlo.log_plus_one", Opcode::Log1p, ACCURACY),
    with("stablehlo.logistic", Opcode::Logistic, ACCURACY),
    calling(
        "stablehlo.map",
        Opcode::Map,
        &[("dimensions", "dimensions", Form::Dims)],
        &["to_apply"],
    ),
    row("stablehlo.maximum", Opcode::Maximum),
    row("stablehlo.minimum", Opcode::Minimum),
    row("chlo.mulhi", Opcode::Mulhi),
    row("stablehlo.multiply", Opcode::Multiply),
    row("stablehlo.negate", Opcode::Negate),
    row("stablehlo.not", Opcode::Not),
    row("stablehlo.or", Opcode::Or),
    with("stablehlo.pad", Opcode::Pad, &[("padding", "padding", Form::Padding)]),
    row("stablehlo.partition_id", Opcode::PartitionId),
    row("stablehlo.popcnt", Opcode::PopulationCount),
    row("stablehlo.power", Opcode::Power),
    row("stablehlo.real", Opcode::Real),
    calling(
        "stablehlo.reduce",
        Opcode::Reduce,
        &[("dimensions", "dimensions", Form::Dims)],
        &["to_apply"],
    ),
    with(
        "stablehlo.reduce_precision",
        Opcode::ReducePrecision,
        &[
            ("exponent_bits", "exponent_bits", Form::Int32),
            ("mantissa_bits", "mantissa_bits", Form::Int32),
        ],
    ),
    calling(
        "stablehlo.reduce_scatter",
        Opcode::ReduceScatter,
        &[CHANNEL, GROUPS, ("scatter_dimension", "dimensions", Form::OneDim), GLOBAL],
        &["to_apply"],
    ),
    calling(
        "stablehlo.reduce_window",
        Opcode::ReduceWindow,
        &[("window", "window", Form::Window("base_dilations", "window_dilations"))],
        &["to_apply"],
    ),
    row("stablehlo.remainder", Opcode::Remainder),
    row("stablehlo.replica_id", Opcode::ReplicaId),
    row("stablehlo.reshape", Opcode::Reshape),
    with("stablehlo.reverse", Opcode::Reverse, &[("dimensions", "dimensions", Form::Dims)]),
    with(
        "stablehlo.rng_bit_generator",
        Opcode::RngBitGenerator,
        &[("rng_algorithm", "algorithm", Form::PrefixedWord("rng_algorithm", "rng_"))],
    ),
    with(
        "mhlo.xla.rng_get_and_update_state",
        Opcode::RngGetAndUpdateState,
        &[("delta", "delta", Form::Int)],
    ),
    row("stablehlo.round_nearest_afz", Opcode::RoundNearestAfz),
    row("stablehlo.round_nearest_even", Opcode::RoundNearestEven),
    with("stablehlo.rsqrt", Opcode::Rsqrt, ACCURACY),
    calling("stablehlo.scatter", Opcode::Scatter, SCATTER, &["to_apply"]),
    row("stablehlo.select", Opcode::Select),
    calling(
        "stablehlo.select_and_scatter",
        Opcode::SelectAndScatter,
        &[("window", "window", Form::Window("", ""))],
        &["select", "scatter"],
    ),
    with(
        "stablehlo.set_dimension_size",
        Opcode::SetDimensionSize,
        &[("dimension", "dimensions", Form::OneDim)],
    ),
    row("stablehlo.shift_left", Opcode::ShiftLeft),
    row("stablehlo.shift_right_arithmetic", Opcode::ShiftRightArithmetic),
    row("stablehlo.shift_right_logical", Opcode::ShiftRightLogical),
    row("stablehlo.sign", Opcode::Sign),
    with("stablehlo.sine", Opcode::Sin, ACCURACY),
    row("chlo.sinh", Opcode::Sinh),
    row("mhlo.sinh", Opcode::Sinh),
    with("stablehlo.slice", Opcode::Slice, &[("slice", "slice", Form::Slices)]),
    calling(
        "stablehlo.sort",
        Opcode::Sort,
        &[("dimension", "dimensions", Form::OneDim), ("is_stable", "is_stable", Form::PlainBool)],
        &["to_apply"],
    ),
    with("stablehlo.sqrt", Opcode::Sqrt, ACCURACY),
    row("mhlo.stochastic_convert", Opcode::StochasticConvert),
    row("stablehlo.subtract", Opcode::Subtract),
    with("stablehlo.tan", Opcode::Tan, ACCURACY),
    with("stablehlo.tanh", Opcode::Tanh, ACCURACY),
    with(
        "mhlo.topk",
        Opcode::TopK,
        &[("k", "k", Form::Int), ("largest", "largest", Form::OptionalBool)],
    ),
    with("chlo.top_k", Opcode::TopK, &[("k", "k", Form::Int)]),
    with("stablehlo.transpose", Opcode::Transpose, &[("permutation", "dimensions", Form::Dims)]),
    with(
        "stablehlo.triangular_solve",
        Opcode::TriangularSolve,
        &[
            ("left_side", "left_side", Form::PlainBool),
            ("lower", "lower", Form::PlainBool),
            ("transpose_a", "transpose_a", Form::Word("transpose")),
            ("unit_diagonal", "unit_diagonal", Form::PlainBool),
        ],
    ),
    row("stablehlo.tuple", Opcode::Tuple),
    row("stablehlo.optimization_barrier", Opcode::OptimizationBarrier),
    row("stablehlo.xor", Opcode::Xor),
];
