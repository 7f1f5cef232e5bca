//! StableHLO.

use tilewright_ir::Opcode;

use super::Initial::{
    Accuracy, Config, EmptyArray, EmptyConfig, EmptyDictionary, EmptyLayouts, EmptyTensor, False,
    Falses, MinusOne, NoType, Ones, OriginalApi, Zero,
};
use super::Part::{
    Attribute, Dictionary, Maybe, Operand, Operands, OperandsBefore, Own as Parts, Text, Types,
};
use super::ValueKind::{
    Any, Bool, Dims, Float, Groups, Name, OneDim, Pairs, PrefixedWord, Symbol, Symbols, Unit, Word,
};
use super::attribute::kind;
use super::form::{BINARY, COLON, COMMA, EQUAL, FUNCTION, PLAIN, SAME, UNARY};
use super::{Attr, FIRST, Initial, Joined, Newer, Op, Own, Types as Rule, ValueKind, Version};
use crate::import::convert;
use crate::mlir::Sign;

const I64: ValueKind = ValueKind::Integer(64, Sign::Signless);
const I32: ValueKind = ValueKind::Integer(32, Sign::Signless);

const fn attr(name: &'static str, kind: ValueKind) -> Attr {
    Attr::new(name, kind)
}

/// An attribute with the same name in HLO.
const fn same(name: &'static str, kind: ValueKind) -> Attr {
    Attr::new(name, kind).hlo(name)
}

/// Dims with another name in HLO.
const fn dims(name: &'static str, hlo: &'static str) -> Attr {
    attr(name, Dims).hlo(hlo)
}

const ACCURACY: Attr = same("result_accuracy", ValueKind::Accuracy).default(Accuracy).from(2);
const CHANNEL: Attr = attr("channel_handle", ValueKind::Channel).hlo("channel_id").or(Zero);
const GROUPS: Attr = same("replica_groups", Groups);
const GLOBAL: Attr = same("use_global_device_ids", Unit).or(False);
const ROOT: Attr = same("has_dynamic_root", Unit).or(False);
pub(super) const PRECISION: Attr =
    attr("precision_config", ValueKind::Precisions).hlo("operand_precision").or(Initial::Precision);
const NORM: &[Attr] = &[same("epsilon", Float(32)), same("feature_index", I64)];
const GATHER: Attr = attr("dimension_numbers", kind::GATHER);
const SORTED: Attr = same("indices_are_sorted", Bool).or(False);

const TRANSFER: &[Attr] = &[
    attr("channel_handle", kind::CHANNEL),
    attr("is_host_transfer", Bool).or(False),
    attr("source_target_pairs", Pairs).or(EmptyTensor).from(2),
];

/// The attributes of a convolution, and others.
macro_rules! convolution {
    ($($more:expr)?) => {
        &[
            same("batch_group_count", I64),
            attr("dimension_numbers", ValueKind::Convolution).hlo("dim_labels"),
            same("feature_group_count", I64),
            attr("lhs_dilation", Dims).or(Ones),
            PRECISION,
            attr("rhs_dilation", Dims).or(Ones),
            attr("window_reversal", ValueKind::Bools).or(Falses),
            attr("window_strides", Dims).or(Ones),
            $($more,)?
        ]
    };
}

const fn op(name: &'static str) -> Op {
    Op::new(name).since(FIRST)
}

/// An op of one operand.
const fn unary(name: &'static str, opcode: Opcode) -> Op {
    op(name).form(UNARY).is(opcode)
}

/// An op of one operand that is accurate to some digits, with its versions.
const fn accurate(name: &'static str, opcode: Opcode, versions: &'static [Version]) -> Op {
    unary(name, opcode).with(&[ACCURACY]).since(versions)
}

/// An op of two operands.
const fn binary(name: &'static str, opcode: Opcode) -> Op {
    op(name).form(BINARY).is(opcode)
}

/// The versions of most ops with an accuracy.
const ACCURATE: &[Version] = &[(0, 9), (1, 10)];

/// The form of custom calls.
pub(super) const CUSTOM_CALL: &[super::Part] =
    &[Attribute("call_target_name"), Text("("), Operands, Text(")"), Dictionary, COLON, FUNCTION];

/// The form of ops without operands.
const RESULTS: &[super::Part] = &[Dictionary, COLON, Types(Rule::Results)];

/// The ops.
#[rustfmt::skip]
pub(super) const OPS: &[Op] = &[
    unary("stablehlo.abs", Opcode::Abs),
    binary("stablehlo.add", Opcode::Add),
    op("stablehlo.after_all").form(&[Operands, Dictionary, COLON, SAME]).is(Opcode::AfterAll),
    op("stablehlo.all_gather").is(Opcode::AllGather)
        .with(&[attr("all_gather_dim", OneDim).hlo("dimensions"), CHANNEL, GROUPS, GLOBAL])
        .since(&[(0, 9), (1, 5)]).newer(2, Newer::Operands),
    op("stablehlo.all_reduce").is(Opcode::AllReduce)
        .with(&[CHANNEL, GROUPS, GLOBAL]).calls(&["to_apply"])
        .since(&[(0, 9), (1, 5)]).newer(2, Newer::Operands),
    op("stablehlo.all_to_all").by(convert::all_to_all)
        .with(&[CHANNEL, attr("concat_dimension", I64), GROUPS, attr("split_count", I64),
            attr("split_dimension", I64)])
        .since(&[(0, 9), (1, 5)]).newer(2, Newer::Operands),
    binary("stablehlo.and", Opcode::And),
    op("stablehlo.async_done").by(convert::async_done).since(&[(1, 15)]),
    op("stablehlo.async_start").by(convert::async_start).since(&[(1, 15)]),
    binary("stablehlo.atan2", Opcode::Atan2),
    op("stablehlo.batch_norm_grad").is(Opcode::BatchNormGrad).with(NORM)
        .yields(&["grad_operand", "grad_scale", "grad_offset"]),
    op("stablehlo.batch_norm_inference").is(Opcode::BatchNormInference).with(NORM),
    op("stablehlo.batch_norm_training").is(Opcode::BatchNormTraining).with(NORM)
        .yields(&["output", "batch_mean", "batch_var"]),
    op("stablehlo.bitcast_convert").form(PLAIN).is(Opcode::BitcastConvert),
    op("stablehlo.broadcast").by(convert::broadcast)
        .with(&[attr("broadcast_sizes", Dims)])
        .form(&[Operand, COMMA, Text("sizes"), EQUAL, Attribute("broadcast_sizes"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.broadcast_in_dim").is(Opcode::Broadcast).by(convert::broadcast_in_dim)
        .with(&[dims("broadcast_dimensions", "dimensions")])
        .form(&[Operand, COMMA, Text("dims"), EQUAL, Attribute("broadcast_dimensions"), Dictionary,
            COLON, FUNCTION]),
    op("stablehlo.case").by(convert::case),
    accurate("stablehlo.cbrt", Opcode::Cbrt, ACCURATE),
    unary("stablehlo.ceil", Opcode::Ceil),
    op("stablehlo.cholesky").is(Opcode::Cholesky).with(&[same("lower", Bool).default(False)])
        .form(&[Operand, Maybe(&[COMMA, Text("lower"), EQUAL, Attribute("lower")]), Dictionary, COLON,
            SAME]),
    op("stablehlo.clamp").is(Opcode::Clamp).by(convert::ternary)
        .form(&[Operand, COMMA, Operand, COMMA, Operand, Dictionary, COLON, SAME]),
    op("stablehlo.collective_broadcast").is(Opcode::CollectiveBroadcast)
        .with(&[CHANNEL, ROOT.from(2), GROUPS])
        .since(&[(0, 16), (1, 20)]).newer(2, Newer::Operands),
    op("stablehlo.collective_permute").is(Opcode::CollectivePermute)
        .with(&[CHANNEL, same("source_target_pairs", Pairs)]),
    op("stablehlo.collective_reduce").is(Opcode::CollectiveReduce).with(&[CHANNEL, ROOT, GROUPS, GLOBAL])
        .calls(&["to_apply"]).since(&[(1, 19)]),
    op("stablehlo.compare").is(Opcode::Compare)
        .with(&[attr("compare_type", Word("comparison_type")).hlo("type").or(NoType),
            attr("comparison_direction", Word("comparison_direction")).hlo("direction")])
        .form(&[Attribute("comparison_direction"), COMMA, Operand, COMMA, Operand,
            Maybe(&[COMMA, Attribute("compare_type")]), Dictionary, COLON, FUNCTION]),
    op("stablehlo.complex").form(&[Operands, Dictionary, COLON, Types(Rule::Complex)])
        .is(Opcode::Complex),
    op("stablehlo.composite").by(convert::composite)
        .with(&[attr("composite_attributes", Any).default(EmptyDictionary),
            attr("decomposition", Symbol), attr("name", ValueKind::Text), attr("version", I32).default(Zero)])
        .form(&[Attribute("name"), Operands, Parts(Own::CompositeRegions), Dictionary, COLON, FUNCTION])
        .since(&[(0, 19), (1, 14)]).newer(2, Newer::Regions),
    op("stablehlo.concatenate").is(Opcode::Concatenate)
        .with(&[attr("dimension", OneDim).hlo("dimensions")])
        .form(&[OperandsBefore, Text("dim"), EQUAL, Attribute("dimension"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.constant").by(convert::constant).with(&[attr("value", Any)])
        .form(&[Parts(Own::Constant)]),
    op("stablehlo.convert").form(UNARY).is(Opcode::Convert).by(convert::convert),
    op("stablehlo.convolution").is(Opcode::Convolution)
        .with(convolution!(attr("padding", Pairs).or(Initial::Padding)))
        .joins(Joined::ConvolutionWindow)
        .form(&[Text("("), Operands, Text(")"), Parts(Own::Convolution), Dictionary, COLON, FUNCTION]),
    accurate("stablehlo.cosine", Opcode::Cos, ACCURATE),
    unary("stablehlo.count_leading_zeros", Opcode::Clz),
    op("stablehlo.create_token").form(RESULTS).is(Opcode::AfterAll),
    op("stablehlo.cross-replica-sum").by(convert::cross_replica_sum).with(&[GROUPS]),
    op("stablehlo.custom_call").by(convert::custom_call)
        .with(&[attr("api_version", I32).default(OriginalApi),
            attr("backend_config", Any).or(EmptyConfig), attr("call_target_name", Name),
            attr("called_computations", Symbols).default(EmptyArray),
            attr("has_side_effect", Bool).default(False),
            attr("operand_layouts", Any).or(EmptyLayouts),
            attr("output_operand_aliases", Any).default(EmptyArray),
            attr("result_layouts", Any).or(EmptyLayouts),
            attr("result_tilings", Any).or(EmptyArray).from(2)])
        .form(CUSTOM_CALL).since(&[(0, 9), (1, 18)]).added(&[&["result_tilings"]]),
    binary("stablehlo.divide", Opcode::Divide),
    op("stablehlo.dot").by(convert::dot).with(&[PRECISION])
        .form(&[Operand, COMMA, Operand, Parts(Own::Precision), Dictionary, COLON, FUNCTION]),
    op("stablehlo.dot_general").is(Opcode::Dot)
        .with(&[same("algorithm", ValueKind::Algorithm).optional().from(2),
            attr("dot_dimension_numbers", kind::DOT), PRECISION])
        .form(&[Operand, COMMA, Operand, COMMA, Parts(Own::DotDims), Parts(Own::Precision), Dictionary,
            COLON, FUNCTION])
        .since(&[(0, 9), (1, 6)]),
    op("stablehlo.dynamic_broadcast_in_dim").by(convert::dynamic_broadcast_in_dim)
        .with(&[attr("broadcast_dimensions", Dims),
            attr("known_expanding_dimensions", Dims).or(EmptyTensor),
            attr("known_nonexpanding_dimensions", Dims).or(EmptyTensor)])
        .form(&[Operand, COMMA, Operand, COMMA, Text("dims"), EQUAL,
            Attribute("broadcast_dimensions"), Dictionary, COLON, FUNCTION]),
    op("stablehlo.dynamic_conv").by(convert::dynamic_conv)
        .with(convolution!(attr("padding", Pairs).or(Initial::Padding).until(1)))
        .joins(Joined::ConvolutionWindow)
        .since(&[(0, 9), (0, 20)]),
    op("stablehlo.dynamic_gather").by(convert::dynamic_gather).with(&[GATHER, SORTED])
        .since(&[(0, 9), (1, 1)]),
    op("stablehlo.dynamic_iota").by(convert::dynamic_iota).with(&[same("iota_dimension", I64)])
        .form(&[Operand, COMMA, Text("dim"), EQUAL, Attribute("iota_dimension"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.dynamic_pad").by(convert::dynamic_pad).form(PLAIN),
    op("stablehlo.dynamic_reshape").by(convert::dynamic_reshape).form(PLAIN),
    op("stablehlo.dynamic_slice").is(Opcode::DynamicSlice)
        .with(&[dims("slice_sizes", "dynamic_slice_sizes")])
        .form(&[Operand, COMMA, OperandsBefore, Text("sizes"), EQUAL, Attribute("slice_sizes"),
            Dictionary, COLON, FUNCTION]),
    op("stablehlo.dynamic_update_slice").form(PLAIN).is(Opcode::DynamicUpdateSlice),
    op("stablehlo.einsum").by(convert::einsum).with(&[attr("einsum_config", ValueKind::Text)])
        .form(&[Operand, COMMA, Operand, COMMA, Text("config"), EQUAL, Attribute("einsum_config"),
            Dictionary, COLON, FUNCTION]),
    accurate("stablehlo.exponential", Opcode::Exp, &[(0, 9), (1, 9)]),
    accurate("stablehlo.exponential_minus_one", Opcode::Expm1, ACCURATE),
    op("stablehlo.fft").is(Opcode::Fft)
        .with(&[same("fft_length", Dims), same("fft_type", Word("fft_type"))])
        .form(&[Operand, COMMA, Text("type"), EQUAL, Attribute("fft_type"), COMMA, Text("length"),
            EQUAL, Attribute("fft_length"), Dictionary, COLON, FUNCTION]),
    unary("stablehlo.floor", Opcode::Floor),
    op("stablehlo.gather").is(Opcode::Gather).with(&[GATHER, SORTED, same("slice_sizes", Dims)])
        .since(&[(0, 9), (1, 1)]),
    op("stablehlo.get_dimension_size").is(Opcode::GetDimensionSize).by(convert::get_dimension_size)
        .with(&[attr("dimension", OneDim).hlo("dimensions")])
        .form(&[Operand, COMMA, Text("dim"), EQUAL, Attribute("dimension"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.get_tuple_element").is(Opcode::GetTupleElement).by(convert::get_tuple_element)
        .with(&[same("index", I32)])
        .form(&[Operand, Text("["), Attribute("index"), Text("]"), Dictionary, COLON, FUNCTION]),
    op("stablehlo.if").by(convert::if_else),
    unary("stablehlo.imag", Opcode::Imag),
    op("stablehlo.infeed").by(convert::infeed)
        .with(&[attr("infeed_config", ValueKind::Text).or(Config), attr("layout", Any).or(EmptyArray)]),
    op("stablehlo.iota").is(Opcode::Iota).with(&[same("iota_dimension", I64)])
        .form(&[Text("dim"), EQUAL, Attribute("iota_dimension"), Dictionary, COLON,
            Types(Rule::Results)]),
    op("stablehlo.is_finite").form(PLAIN).is(Opcode::IsFinite),
    accurate("stablehlo.log", Opcode::Log, ACCURATE),
    accurate("stablehlo.log_plus_one", Opcode::Log1p, ACCURATE),
    accurate("stablehlo.logistic", Opcode::Logistic, ACCURATE),
    op("stablehlo.map").is(Opcode::Map).with(&[same("dimensions", Dims)]).calls(&["to_apply"]),
    binary("stablehlo.maximum", Opcode::Maximum),
    binary("stablehlo.minimum", Opcode::Minimum),
    binary("stablehlo.multiply", Opcode::Multiply),
    unary("stablehlo.negate", Opcode::Negate),
    unary("stablehlo.not", Opcode::Not),
    op("stablehlo.optimization_barrier").is(Opcode::OptimizationBarrier)
        .by(convert::optimization_barrier)
        .form(&[Dictionary, Parts(Own::OperandsOrNone), Maybe(&[COLON, Types(Rule::Pairwise)])]),
    binary("stablehlo.or", Opcode::Or),
    op("stablehlo.outfeed").by(convert::outfeed)
        .with(&[attr("outfeed_config", ValueKind::Text).or(Config)]),
    op("stablehlo.pad").is(Opcode::Pad)
        .with(&[attr("edge_padding_high", Dims), attr("edge_padding_low", Dims),
            attr("interior_padding", Dims)])
        .joins(Joined::Padding)
        .form(&[Operand, COMMA, Operand, COMMA, Text("low"), EQUAL, Attribute("edge_padding_low"),
            COMMA, Text("high"), EQUAL, Attribute("edge_padding_high"), COMMA, Text("interior"), EQUAL,
            Attribute("interior_padding"), Dictionary, COLON, FUNCTION]),
    op("stablehlo.partition_id").form(RESULTS).is(Opcode::PartitionId),
    unary("stablehlo.popcnt", Opcode::PopulationCount),
    binary("stablehlo.power", Opcode::Power),
    unary("stablehlo.real", Opcode::Real),
    op("stablehlo.real_dynamic_slice").by(convert::real_dynamic_slice).form(PLAIN),
    op("stablehlo.recv").by(convert::recv).with(TRANSFER).since(&[(0, 9), (1, 12)]),
    op("stablehlo.reduce").is(Opcode::Reduce).with(&[same("dimensions", Dims)]).calls(&["to_apply"])
        .form(&[Parts(Own::Reduce)]),
    op("stablehlo.reduce_precision").is(Opcode::ReducePrecision)
        .with(&[same("exponent_bits", I32), same("mantissa_bits", I32)])
        .form(&[Operand, COMMA, Text("format"), EQUAL, Parts(Own::ReducedFormat), Dictionary, COLON,
            SAME]),
    op("stablehlo.reduce_scatter").is(Opcode::ReduceScatter)
        .with(&[CHANNEL, GROUPS, attr("scatter_dimension", OneDim).hlo("dimensions"), GLOBAL])
        .calls(&["to_apply"]),
    op("stablehlo.reduce_window").is(Opcode::ReduceWindow)
        .with(&[attr("base_dilations", Dims).or(Ones), attr("padding", Pairs).or(Initial::Padding),
            attr("window_dilations", Dims).or(Ones), attr("window_dimensions", Dims),
            attr("window_strides", Dims).or(Ones)])
        .joins(Joined::Window("base_dilations", "window_dilations")).calls(&["to_apply"]),
    binary("stablehlo.remainder", Opcode::Remainder),
    op("stablehlo.replica_id").form(RESULTS).is(Opcode::ReplicaId),
    op("stablehlo.reshape").form(PLAIN).is(Opcode::Reshape),
    op("stablehlo.return").form(&[Operands, Dictionary, Maybe(&[COLON, Types(Rule::Operands)])]),
    op("stablehlo.reverse").is(Opcode::Reverse).with(&[same("dimensions", Dims)])
        .form(&[Operand, COMMA, Text("dims"), EQUAL, Attribute("dimensions"), Dictionary, COLON, SAME]),
    op("stablehlo.rng").by(convert::rng).with(&[attr("rng_distribution", Word("rng_distribution"))])
        .form(&[Operand, COMMA, Operand, COMMA, Operand, COMMA, Text("distribution"), EQUAL,
            Attribute("rng_distribution"), Dictionary, COLON, FUNCTION]),
    op("stablehlo.rng_bit_generator").is(Opcode::RngBitGenerator).by(convert::tupled)
        .with(&[attr("rng_algorithm", PrefixedWord("rng_algorithm", "rng_")).hlo("algorithm")])
        .form(&[Operand, COMMA, Text("algorithm"), EQUAL, Attribute("rng_algorithm"), Dictionary, COLON,
            FUNCTION])
        .yields(&["output_state", "output"]),
    unary("stablehlo.round_nearest_afz", Opcode::RoundNearestAfz),
    unary("stablehlo.round_nearest_even", Opcode::RoundNearestEven),
    accurate("stablehlo.rsqrt", Opcode::Rsqrt, ACCURATE),
    op("stablehlo.scatter").is(Opcode::Scatter)
        .with(&[SORTED, attr("scatter_dimension_numbers", kind::SCATTER),
            same("unique_indices", Bool).or(False)])
        .calls(&["to_apply"]).since(&[(0, 9), (1, 1)]),
    op("stablehlo.select").is(Opcode::Select).by(convert::ternary)
        .form(&[Operands, Dictionary, COLON, Types(Rule::Select)]),
    op("stablehlo.select_and_scatter").is(Opcode::SelectAndScatter)
        .with(&[attr("padding", Pairs).or(Initial::Padding), attr("window_dimensions", Dims).optional(),
            attr("window_strides", Dims).or(Ones)])
        .joins(Joined::Window("", "")).calls(&["select", "scatter"]),
    op("stablehlo.send").by(convert::send).with(TRANSFER).since(&[(0, 9), (1, 12)]),
    op("stablehlo.set_dimension_size").is(Opcode::SetDimensionSize).by(convert::set_dimension_size)
        .with(&[attr("dimension", OneDim).hlo("dimensions")])
        .form(&[Operand, COMMA, Operand, COMMA, Text("dim"), EQUAL, Attribute("dimension"), Dictionary,
            COLON, FUNCTION]),
    binary("stablehlo.shift_left", Opcode::ShiftLeft),
    binary("stablehlo.shift_right_arithmetic", Opcode::ShiftRightArithmetic),
    binary("stablehlo.shift_right_logical", Opcode::ShiftRightLogical),
    unary("stablehlo.sign", Opcode::Sign),
    accurate("stablehlo.sine", Opcode::Sin, ACCURATE),
    op("stablehlo.slice").is(Opcode::Slice)
        .with(&[attr("limit_indices", Dims), attr("start_indices", Dims), attr("strides", Dims)])
        .joins(Joined::Slices).form(&[Operand, Parts(Own::SliceRanges), Dictionary, COLON, FUNCTION]),
    op("stablehlo.sort").is(Opcode::Sort)
        .with(&[attr("dimension", OneDim).hlo("dimensions").or(MinusOne),
            same("is_stable", Bool).or(False)])
        .calls(&["to_apply"]),
    accurate("stablehlo.sqrt", Opcode::Sqrt, ACCURATE),
    binary("stablehlo.subtract", Opcode::Subtract),
    accurate("stablehlo.tan", Opcode::Tan, &[(1, 4), (1, 10)]),
    accurate("stablehlo.tanh", Opcode::Tanh, ACCURATE),
    op("stablehlo.torch_index_select").by(convert::index_select)
        .with(&[attr("batch_dims", I64), attr("dim", I64)]),
    op("stablehlo.transpose").is(Opcode::Transpose).with(&[dims("permutation", "dimensions")])
        .form(&[Operand, COMMA, Text("dims"), EQUAL, Attribute("permutation"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.triangular_solve").is(Opcode::TriangularSolve)
        .with(&[same("left_side", Bool), same("lower", Bool), same("transpose_a", Word("transpose")),
            same("unit_diagonal", Bool)]),
    op("stablehlo.tuple").form(&[Operands, Dictionary, COLON, Types(Rule::Tuple)]).is(Opcode::Tuple),
    op("stablehlo.unary_einsum").by(convert::unary_einsum).with(&[attr("einsum_config", ValueKind::Text)])
        .form(&[Operand, COMMA, Text("config"), EQUAL, Attribute("einsum_config"), Dictionary, COLON,
            FUNCTION]),
    op("stablehlo.uniform_dequantize").by(convert::dequantize).form(UNARY),
    op("stablehlo.uniform_quantize").by(convert::quantize).form(UNARY),
    op("stablehlo.while").by(convert::while_loop).form(&[Parts(Own::While)]),
    binary("stablehlo.xor", Opcode::Xor),
];
