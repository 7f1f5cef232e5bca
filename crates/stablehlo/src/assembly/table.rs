//! The pretty forms, one row for all operations with the same one.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::Kind::{Any, Bool, Float, Integer, Integers, Name, Sharding, Shardings, Symbol};
use super::Part::{
    Attribute, Dictionary, Glued, Maybe, Operand, Operands, OperandsBefore, Own, SomeOperands,
    Text, Types,
};
use super::{Kind, Own as Parts, Part, Types as Rule};
use crate::mlir::Sign;

const COMMA: Part = Text(",");
const EQUAL: Part = Text("=");
const GLUED: Part = Glued("=");
const COLON: Part = Text(":");
const I64: Kind = Integer(64, Sign::Signless);
const I32: Kind = Integer(32, Sign::Signless);
const DIRECTION: Kind = Kind::Number(&["NONE", "FORWARD", "BACKWARD", "BOTH"]);
const FUNCTION: Part = Types(Rule::Function);
const SAME: Part = Types(Rule::Same);
const ARROW: Part = Types(Rule::Arrow);
const BRACKETS: Part = Types(Rule::Brackets);
const UNARY: Part = Types(Rule::Unary);
const TO: Part = Text("out_sharding");
const OUT_SHARDING: Part = Attribute("out_sharding", Sharding("sharding"));

/// Operations of a dialect with the same form.
struct Row {
    dialect: &'static str,
    names: &'static [&'static str],
    form: &'static [Part],
}

/// All forms by the names of their operations.
static FORMS: LazyLock<FxHashMap<String, &'static [Part]>> = LazyLock::new(|| {
    let rows = ROWS
        .iter()
        .flat_map(|row| row.names.iter().map(|name| (format!("{}.{name}", row.dialect), row.form)));
    rows.collect()
});

/// Returns the form of an operation.
pub(crate) fn form(name: &str) -> Option<&'static [Part]> {
    FORMS.get(name).copied().or_else(|| {
        // Most forms of MHLO are those of StableHLO.
        let name = name.strip_prefix("mhlo.")?;
        FORMS.get(format!("stablehlo.{name}").as_str()).copied()
    })
}

/// Returns the names of all operations with a form.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FORMS.keys().map(String::as_str)
}

const fn stablehlo(names: &'static [&'static str], form: &'static [Part]) -> Row {
    Row { dialect: "stablehlo", names, form }
}

const fn mhlo(names: &'static [&'static str], form: &'static [Part]) -> Row {
    Row { dialect: "mhlo", names, form }
}

const fn chlo(names: &'static [&'static str], form: &'static [Part]) -> Row {
    Row { dialect: "chlo", names, form }
}

const fn sdy(names: &'static [&'static str], form: &'static [Part]) -> Row {
    Row { dialect: "sdy", names, form }
}

const fn other(
    dialect: &'static str,
    names: &'static [&'static str],
    form: &'static [Part],
) -> Row {
    Row { dialect, names, form }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    stablehlo(&[
        "abs", "cbrt", "ceil", "convert", "cosine", "count_leading_zeros",
        "exponential", "exponential_minus_one", "floor", "imag", "log", "log_plus_one", "logistic",
        "negate", "not", "popcnt", "real", "round_nearest_afz", "round_nearest_even", "rsqrt",
        "sign", "sine", "sqrt", "tan", "tanh", "uniform_dequantize", "uniform_quantize",
    ], &[Operand, Dictionary, COLON, SAME]),
    stablehlo(&[
        "add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power",
        "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract",
        "xor",
    ], &[Operand, COMMA, Operand, Dictionary, COLON, SAME]),
    stablehlo(&[
        "bitcast_convert", "dynamic_pad", "dynamic_reshape", "dynamic_update_slice", "is_finite",
        "real_dynamic_slice", "reshape",
    ], &[Operands, Dictionary, COLON, FUNCTION]),
    stablehlo(&["clamp"], &[Operand, COMMA, Operand, COMMA, Operand, Dictionary, COLON, SAME]),
    stablehlo(&["after_all"], &[Operands, Dictionary, COLON, SAME]),
    stablehlo(&["select"], &[Operands, Dictionary, COLON, Types(Rule::Select)]),
    stablehlo(&["complex"], &[Operands, Dictionary, COLON, Types(Rule::Complex)]),
    stablehlo(&["tuple"], &[Operands, Dictionary, COLON, Types(Rule::Tuple)]),
    stablehlo(&["create_token", "partition_id", "replica_id"],
        &[Dictionary, COLON, Types(Rule::Results)]),
    stablehlo(&["return"], &[Operands, Dictionary, Maybe(&[COLON, Types(Rule::Operands)])]),
    stablehlo(&["optimization_barrier"], &[Dictionary, Own(Parts::OperandsOrNone),
        Maybe(&[COLON, Types(Rule::Pairwise)])]),
    stablehlo(&["constant"], &[Own(Parts::Constant)]),
    stablehlo(&["iota"], &[Text("dim"), EQUAL, Attribute("iota_dimension", I64), Dictionary, COLON,
        Types(Rule::Results)]),
    stablehlo(&["dynamic_iota"], &[Operand, COMMA, Text("dim"), EQUAL,
        Attribute("iota_dimension", I64), Dictionary, COLON, FUNCTION]),
    stablehlo(&["get_dimension_size"], &[Operand, COMMA, Text("dim"), EQUAL,
        Attribute("dimension", I64), Dictionary, COLON, FUNCTION]),
    stablehlo(&["set_dimension_size"], &[Operand, COMMA, Operand, COMMA, Text("dim"), EQUAL,
        Attribute("dimension", I64), Dictionary, COLON, FUNCTION]),
    stablehlo(&["get_tuple_element"], &[Operand, Text("["), Attribute("index", I32), Text("]"),
        Dictionary, COLON, FUNCTION]),
    stablehlo(&["compare"], &[
        Attribute("comparison_direction", Kind::Word("comparison_direction")), COMMA,
        Operand, COMMA, Operand,
        Maybe(&[COMMA, Attribute("compare_type", Kind::Word("comparison_type"))]),
        Dictionary, COLON, FUNCTION]),
    stablehlo(&["slice"], &[Operand, Own(Parts::SliceRanges), Dictionary, COLON, FUNCTION]),
    stablehlo(&["dynamic_slice"], &[Operand, COMMA, OperandsBefore, Text("sizes"), EQUAL,
        Attribute("slice_sizes", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["broadcast"], &[Operand, COMMA, Text("sizes"), EQUAL,
        Attribute("broadcast_sizes", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["broadcast_in_dim"], &[Operand, COMMA, Text("dims"), EQUAL,
        Attribute("broadcast_dimensions", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["dynamic_broadcast_in_dim"], &[Operand, COMMA, Operand, COMMA, Text("dims"), EQUAL,
        Attribute("broadcast_dimensions", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["transpose"], &[Operand, COMMA, Text("dims"), EQUAL,
        Attribute("permutation", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["reverse"], &[Operand, COMMA, Text("dims"), EQUAL,
        Attribute("dimensions", Integers), Dictionary, COLON, SAME]),
    stablehlo(&["concatenate"], &[OperandsBefore, Text("dim"), EQUAL, Attribute("dimension", I64),
        Dictionary, COLON, FUNCTION]),
    stablehlo(&["pad"], &[Operand, COMMA, Operand, COMMA,
        Text("low"), EQUAL, Attribute("edge_padding_low", Integers), COMMA,
        Text("high"), EQUAL, Attribute("edge_padding_high", Integers), COMMA,
        Text("interior"), EQUAL, Attribute("interior_padding", Integers),
        Dictionary, COLON, FUNCTION]),
    stablehlo(&["cholesky"], &[Operand,
        Maybe(&[COMMA, Text("lower"), EQUAL, Attribute("lower", Bool)]), Dictionary, COLON, SAME]),
    stablehlo(&["dot"], &[Operand, COMMA, Operand, Own(Parts::Precision), Dictionary, COLON,
        FUNCTION]),
    stablehlo(&["dot_general"], &[Operand, COMMA, Operand, COMMA, Own(Parts::DotDims),
        Own(Parts::Precision), Dictionary, COLON, FUNCTION]),
    stablehlo(&["convolution"], &[Text("("), Operands, Text(")"), Own(Parts::Convolution),
        Dictionary, COLON, FUNCTION]),
    stablehlo(&["einsum"], &[Operand, COMMA, Operand, COMMA, Text("config"), EQUAL,
        Attribute("einsum_config", Kind::Text), Dictionary, COLON, FUNCTION]),
    stablehlo(&["unary_einsum"], &[Operand, COMMA, Text("config"), EQUAL,
        Attribute("einsum_config", Kind::Text), Dictionary, COLON, FUNCTION]),
    stablehlo(&["fft"], &[Operand, COMMA, Text("type"), EQUAL,
        Attribute("fft_type", Kind::Word("fft_type")), COMMA, Text("length"), EQUAL,
        Attribute("fft_length", Integers), Dictionary, COLON, FUNCTION]),
    stablehlo(&["rng"], &[Operand, COMMA, Operand, COMMA, Operand, COMMA, Text("distribution"),
        EQUAL, Attribute("rng_distribution", Kind::Word("rng_distribution")), Dictionary, COLON,
        FUNCTION]),
    stablehlo(&["rng_bit_generator"], &[Operand, COMMA, Text("algorithm"), EQUAL,
        Attribute("rng_algorithm", Kind::Word("rng_algorithm")), Dictionary, COLON, FUNCTION]),
    stablehlo(&["reduce_precision"], &[Operand, COMMA, Text("format"), EQUAL,
        Own(Parts::ReducedFormat), Dictionary, COLON, SAME]),
    stablehlo(&["custom_call"], &[Attribute("call_target_name", Name), Text("("), Operands,
        Text(")"), Dictionary, COLON, FUNCTION]),
    stablehlo(&["composite"], &[Attribute("name", Kind::Text), Operands,
        Own(Parts::CompositeRegions), Dictionary, COLON, FUNCTION]),

    mhlo(&["acos", "acosh", "asin", "asinh", "atanh", "copy", "cosh", "erf", "sinh"],
        &[Operand, Dictionary, COLON, SAME]),
    mhlo(&["add_dependency", "bitcast"], &[Operands, Dictionary, COLON, FUNCTION]),
    mhlo(&["scan"], &[Own(Parts::Scan)]),
    mhlo(&["xla.rng_get_and_update_state"], &[Dictionary, Own(Parts::GeneratorState)]),
    mhlo(&["topk"], &[Text("("), Operand, COMMA, Text("k"), EQUAL, Attribute("k", I64),
        Maybe(&[COMMA, Text("largest"), EQUAL, Attribute("largest", Bool)]),
        Maybe(&[COMMA, Text("is_stable"), EQUAL, Attribute("is_stable", Bool)]), Text(")"),
        Dictionary, COLON, ARROW]),

    chlo(&[
        "_asin_acos_kernel", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e",
        "conj", "cosh", "digamma", "erf", "erf_inv", "erfc", "is_inf", "is_neg_inf", "is_pos_inf",
        "lgamma", "sinh", "square", "tan",
    ], &[Operand, Dictionary, COLON, ARROW]),
    chlo(&[
        "broadcast_add", "broadcast_and", "broadcast_atan2", "broadcast_complex",
        "broadcast_divide", "broadcast_maximum", "broadcast_minimum", "broadcast_multiply",
        "broadcast_next_after", "broadcast_or", "broadcast_polygamma", "broadcast_power",
        "broadcast_remainder", "broadcast_shift_left", "broadcast_shift_right_arithmetic",
        "broadcast_shift_right_logical", "broadcast_subtract", "broadcast_xor", "broadcast_zeta",
        "broadcast_compare",
    ], &[Operand, COMMA, Operand, Dictionary, COLON, BRACKETS]),
    chlo(&["mulhi", "next_after", "polygamma", "zeta"],
        &[Operand, COMMA, Operand, Dictionary, COLON, ARROW]),
    chlo(&["broadcast_select"], &[Operand, COMMA, Operand, COMMA, Operand, Dictionary, COLON,
        BRACKETS]),
    chlo(&["constant"], &[Own(Parts::Constant)]),
    chlo(&["top_k"], &[Text("("), Operand, COMMA, Text("k"), EQUAL, Attribute("k", I64),
        Maybe(&[COMMA, Text("is_stable"), EQUAL, Attribute("is_stable", Bool)]), Text(")"),
        Dictionary, COLON, ARROW]),
    chlo(&["scan"], &[Own(Parts::Scan)]),

    sdy(&["mesh"], &[Attribute("sym_name", Name), EQUAL, Attribute("mesh", Sharding("mesh")),
        Dictionary]),
    sdy(&["sharding_constraint", "reshard"], &[Operand,
        Attribute("sharding", Sharding("sharding")), Dictionary, COLON, UNARY]),
    sdy(&["return"], &[Dictionary, SomeOperands, Maybe(&[COLON, Types(Rule::Operands)])]),
    sdy(&["manual_computation"], &[Text("("), Operands, Text(")"),
        Text("in_shardings"), GLUED, Attribute("in_shardings", Shardings),
        Text("out_shardings"), GLUED, Attribute("out_shardings", Shardings),
        Text("manual_axes"), GLUED, Attribute("manual_axes", Sharding("manual_axes")),
        Own(Parts::LabelledRegion), Dictionary, COLON, FUNCTION]),
    sdy(&["named_computation"], &[Text("<"), Attribute("name", Kind::Text), Text(">"),
        Glued("("), Operands, Text(")"),
        Maybe(&[Text("in_shardings"), GLUED, Attribute("in_shardings", Shardings)]),
        Maybe(&[Text("out_shardings"), GLUED, Attribute("out_shardings", Shardings)]),
        Own(Parts::LabelledRegion), Dictionary, COLON, FUNCTION]),
    sdy(&["sharding_group"], &[Operand, Text("group_id"), GLUED, Attribute("group_id", I64),
        Dictionary, COLON, Types(Rule::Operands)]),
    sdy(&["constant"], &[Own(Parts::Constant)]),
    sdy(&["data_flow_edge"], &[Operand,
        Maybe(&[Text("sharding"), GLUED, Attribute("sharding", Sharding("sharding"))]),
        Dictionary, COLON, UNARY]),
    sdy(&["func_data_flow_edge"], &[Operand, Dictionary, COLON, UNARY]),
    sdy(&["propagation_barrier"], &[Operand, Text("allowed_direction"), GLUED,
        Attribute("allowed_direction", DIRECTION), Dictionary, COLON,
        UNARY]),
    sdy(&["all_gather"], &[Attribute("gathering_axes", Sharding("list_of_axis_ref_lists")),
        Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["all_slice"], &[Attribute("slicing_axes", Sharding("list_of_axis_ref_lists")),
        Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["sharded_to_unreduced"], &[Attribute("axes", Sharding("list_of_axis_ref_lists")),
        Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["replicated_to_unreduced"], &[Attribute("axes", Sharding("axis_ref_list")),
        Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["all_to_all"], &[Attribute("params", Sharding("all_to_all_param_list")),
        Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["collective_permute"], &[Operand, TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["all_reduce"], &[Own(Parts::ReductionKind),
        Attribute("reduction_axes", Sharding("axis_ref_list")), Operand,
        TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),
    sdy(&["reduce_scatter"], &[Own(Parts::ReductionKind),
        Attribute("reduce_scatter_axes", Sharding("list_of_axis_ref_lists")), Operand,
        TO, GLUED, OUT_SHARDING, Dictionary, COLON, UNARY]),

    other("check", &["expect_eq_const"], &[Operand, COMMA, Attribute("value", Any), Dictionary]),
    other("check", &["expect_almost_eq_const"], &[Operand, COMMA, Attribute("value", Any),
        Maybe(&[COMMA, Text("tolerance"), EQUAL, Attribute("tolerance", Float)]), Dictionary]),
    other("check", &["expect_eq"], &[Operand, COMMA, Operand, Dictionary, COLON,
        Types(Rule::SameOperands)]),
    other("check", &["expect_almost_eq"], &[Operand, COMMA, Operand,
        Maybe(&[COMMA, Text("tolerance"), EQUAL, Attribute("tolerance", Float)]), Dictionary,
        COLON, Types(Rule::SameOperands)]),
    other("check", &["expect_close"], &[Operand, COMMA, Operand, COMMA,
        Text("max_ulp_difference"), EQUAL,
        Attribute("max_ulp_difference", Integer(64, Sign::Unsigned)),
        Maybe(&[COMMA, Text("min_ulp_difference"), EQUAL,
            Attribute("min_ulp_difference", Integer(64, Sign::Unsigned))]),
        COLON, Dictionary, Types(Rule::Operands)]),
    other("check", &["expect_serialized_eq"], &[Operand, COMMA, Text("probe_id"), EQUAL,
        Attribute("probe_id", Kind::Text),
        Maybe(&[COMMA, Text("iter"), EQUAL, Attribute("iteration", Integer(32, Sign::Unsigned))]),
        Dictionary, COLON, Types(Rule::Operands)]),

    other("interpreter", &["print"], &[Operand, Dictionary, COLON, Types(Rule::Operands)]),
    other("interpreter", &["probe"], &[Operand, COMMA, Text("probe_id"), EQUAL,
        Attribute("probe_id", Kind::Text), Dictionary, COLON, UNARY]),
    other("arith", &["constant"], &[Own(Parts::Constant)]),
    other("tensor", &["cast"], &[Operand, Dictionary, COLON, Types(Rule::To)]),
    other("builtin", &["unrealized_conversion_cast"], &[Operands, Dictionary, COLON,
        Types(Rule::To)]),

    other("func", &["return"], &[Dictionary, SomeOperands, Maybe(&[COLON, Types(Rule::Operands)])]),
    other("func", &["call"], &[Attribute("callee", Symbol), Text("("), Operands, Text(")"), Dictionary,
        COLON, FUNCTION]),
    other("func", &["constant"], &[Attribute("value", Symbol), Dictionary, COLON, Types(Rule::Results)]),
];
