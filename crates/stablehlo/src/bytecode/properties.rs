//! The properties of operations: the attributes that MLIR stores apart from the dictionary.

use crate::vhlo;

/// The attributes among the properties of an operation, in the order of their encoding.
pub(super) type Layout = Vec<(&'static str, bool)>;

/// Returns the layouts that the properties of an operation may have: the newest first, then that
/// of older versions of MLIR. Each attribute comes with whether it may be missing.
pub(super) fn layouts(name: &str) -> Vec<Layout> {
    if let Some(name) = name.strip_prefix("vhlo.") {
        return vhlo::row(name).map(|row| layout(row.attributes)).into_iter().collect();
    }
    OLD.iter()
        .chain(ROWS)
        .rev()
        .filter(|(known, _)| *known == name)
        .map(|(_, attributes)| layout(attributes))
        .collect()
}

/// Checks whether an attribute is a property of an operation. Those of MHLO are StableHLO's, and a
/// few more.
pub(crate) fn is_property(operation: &str, attribute: &str) -> bool {
    let has = |of: &str| {
        let rows = ROWS.iter().chain(MORE).filter(|(known, _)| *known == of);
        let mut names = rows.flat_map(|(_, attributes)| attributes.split_ascii_whitespace());
        names.any(|name| name.strip_suffix('?').unwrap_or(name) == attribute)
    };
    let (dialect, name) = operation.split_once('.').unwrap_or_default();
    has(operation) || (dialect == "mhlo" && has(&format!("stablehlo.{name}")))
}

/// Properties of operations that no bytecode here has.
const MORE: &[(&str, &str)] = &[
    ("chlo.scan", "dimension is_associative? is_reverse scan_dim_size?"),
    ("mhlo.async_start", "called_computation execution_thread"),
    ("mhlo.copy", "cross_program_prefetch_index"),
    ("mhlo.custom_call", "custom_call_schedule"),
    ("mhlo.domain", "entry_metadata exit_metadata kind"),
    ("mhlo.exp2", "result_accuracy"),
    ("mhlo.fusion", "fusion_kind output_operand_aliases"),
    ("mhlo.log2", "result_accuracy"),
    ("mhlo.ragged_dot", "precision_config ragged_dot_dimension_numbers"),
    ("mhlo.scan", "dimension is_associative is_reverse scan_dim_size"),
    ("mhlo.topk", "is_stable k largest"),
    ("mhlo.trace", "tag"),
    ("mhlo.xla.rng_get_and_update_state", "delta"),
];

fn layout(attributes: &'static str) -> Layout {
    let names = attributes.split_ascii_whitespace();
    names.map(|name| name.strip_suffix('?').map_or((name, false), |name| (name, true))).collect()
}

/// Layouts that older versions of MLIR wrote.
const OLD: &[(&str, &str)] = &[
    ("func.call", "callee"),
    ("func.call", "callee no_inline?"),
    ("func.func", "arg_attrs? function_type res_attrs? sym_name sym_visibility?"),
    (
        "stablehlo.custom_call",
        "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts?",
    ),
];

/// Operations with properties; `?` marks an attribute that may be missing.
#[rustfmt::skip]
const ROWS: &[(&str, &str)] = &[
    ("builtin.module", "sym_name? sym_visibility?"),
    ("chlo.broadcast_add", "broadcast_dimensions?"),
    ("chlo.broadcast_and", "broadcast_dimensions?"),
    ("chlo.broadcast_atan2", "broadcast_dimensions?"),
    ("chlo.broadcast_compare", "broadcast_dimensions? compare_type? comparison_direction"),
    ("chlo.broadcast_complex", "broadcast_dimensions?"),
    ("chlo.broadcast_divide", "broadcast_dimensions?"),
    ("chlo.broadcast_maximum", "broadcast_dimensions?"),
    ("chlo.broadcast_minimum", "broadcast_dimensions?"),
    ("chlo.broadcast_multiply", "broadcast_dimensions?"),
    ("chlo.broadcast_next_after", "broadcast_dimensions?"),
    ("chlo.broadcast_or", "broadcast_dimensions?"),
    ("chlo.broadcast_polygamma", "broadcast_dimensions?"),
    ("chlo.broadcast_power", "broadcast_dimensions?"),
    ("chlo.broadcast_remainder", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_left", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_right_arithmetic", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_right_logical", "broadcast_dimensions?"),
    ("chlo.broadcast_subtract", "broadcast_dimensions?"),
    ("chlo.broadcast_xor", "broadcast_dimensions?"),
    ("chlo.broadcast_zeta", "broadcast_dimensions?"),
    ("chlo.constant", "value"),
    ("chlo.constant_like", "value"),
    ("chlo.ragged_dot", "precision_config? ragged_dot_dimension_numbers"),
    ("chlo.top_k", "is_stable? k"),
    ("func.call", "arg_attrs? callee no_inline? res_attrs?"),
    ("func.call_indirect", "arg_attrs? res_attrs?"),
    ("func.constant", "value"),
    ("func.func", "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?"),
    ("sdy.all_gather", "gathering_axes out_sharding"),
    ("sdy.all_reduce", "out_sharding reduction_axes reduction_op?"),
    ("sdy.all_slice", "out_sharding slicing_axes"),
    ("sdy.all_to_all", "out_sharding params"),
    ("sdy.collective_permute", "out_sharding"),
    ("sdy.constant", "value"),
    ("sdy.data_flow_edge", "sharding?"),
    ("sdy.manual_computation", "in_shardings manual_axes out_shardings"),
    ("sdy.mesh", "mesh sym_name"),
    ("sdy.named_computation", "in_shardings? name out_shardings?"),
    ("sdy.propagation_barrier", "allowed_direction"),
    ("sdy.reduce_scatter", "out_sharding reduce_scatter_axes reduction_op?"),
    ("sdy.replicated_to_unreduced", "axes out_sharding"),
    ("sdy.reshard", "sharding"),
    ("sdy.sharded_to_unreduced", "axes out_sharding"),
    ("sdy.sharding_constraint", "sharding"),
    ("sdy.sharding_group", "group_id"),
    ("stablehlo.all_gather", "all_gather_dim channel_handle? replica_groups use_global_device_ids?"),
    ("stablehlo.all_reduce", "channel_handle? replica_groups use_global_device_ids?"),
    ("stablehlo.all_to_all", "channel_handle? concat_dimension replica_groups split_count split_dimension"),
    ("stablehlo.batch_norm_grad", "epsilon feature_index"),
    ("stablehlo.batch_norm_inference", "epsilon feature_index"),
    ("stablehlo.batch_norm_training", "epsilon feature_index"),
    ("stablehlo.broadcast", "broadcast_sizes"),
    ("stablehlo.broadcast_in_dim", "broadcast_dimensions"),
    ("stablehlo.cbrt", "result_accuracy?"),
    ("stablehlo.cholesky", "lower?"),
    ("stablehlo.collective_broadcast", "channel_handle? has_dynamic_root? replica_groups"),
    ("stablehlo.collective_permute", "channel_handle? source_target_pairs"),
    ("stablehlo.collective_reduce", "channel_handle? has_dynamic_root? replica_groups use_global_device_ids?"),
    ("stablehlo.compare", "compare_type? comparison_direction"),
    ("stablehlo.composite", "composite_attributes? decomposition name version?"),
    ("stablehlo.concatenate", "dimension"),
    ("stablehlo.constant", "value"),
    ("stablehlo.convolution", "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? precision_config? rhs_dilation? window_reversal? window_strides?"),
    ("stablehlo.cosine", "result_accuracy?"),
    ("stablehlo.cross-replica-sum", "replica_groups"),
    ("stablehlo.custom_call", "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts? result_tilings?"),
    ("stablehlo.dot", "precision_config?"),
    ("stablehlo.dot_general", "algorithm? dot_dimension_numbers precision_config?"),
    ("stablehlo.dynamic_broadcast_in_dim", "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?"),
    ("stablehlo.dynamic_conv", "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? rhs_dilation? window_reversal? window_strides?"),
    ("stablehlo.dynamic_gather", "dimension_numbers indices_are_sorted?"),
    ("stablehlo.dynamic_iota", "iota_dimension"),
    ("stablehlo.dynamic_slice", "slice_sizes"),
    ("stablehlo.einsum", "einsum_config"),
    ("stablehlo.exponential", "result_accuracy?"),
    ("stablehlo.exponential_minus_one", "result_accuracy?"),
    ("stablehlo.fft", "fft_length fft_type"),
    ("stablehlo.gather", "dimension_numbers indices_are_sorted? slice_sizes"),
    ("stablehlo.get_dimension_size", "dimension"),
    ("stablehlo.get_tuple_element", "index"),
    ("stablehlo.infeed", "infeed_config? layout?"),
    ("stablehlo.iota", "iota_dimension"),
    ("stablehlo.log", "result_accuracy?"),
    ("stablehlo.log_plus_one", "result_accuracy?"),
    ("stablehlo.logistic", "result_accuracy?"),
    ("stablehlo.map", "dimensions"),
    ("stablehlo.outfeed", "outfeed_config?"),
    ("stablehlo.pad", "edge_padding_high edge_padding_low interior_padding"),
    ("stablehlo.recv", "channel_handle is_host_transfer? source_target_pairs?"),
    ("stablehlo.reduce", "dimensions"),
    ("stablehlo.reduce_precision", "exponent_bits mantissa_bits"),
    ("stablehlo.reduce_scatter", "channel_handle? replica_groups scatter_dimension use_global_device_ids?"),
    ("stablehlo.reduce_window", "base_dilations? padding? window_dilations? window_dimensions window_strides?"),
    ("stablehlo.reverse", "dimensions"),
    ("stablehlo.rng", "rng_distribution"),
    ("stablehlo.rng_bit_generator", "rng_algorithm"),
    ("stablehlo.rsqrt", "result_accuracy?"),
    ("stablehlo.scatter", "indices_are_sorted? scatter_dimension_numbers unique_indices?"),
    ("stablehlo.select_and_scatter", "padding? window_dimensions? window_strides?"),
    ("stablehlo.send", "channel_handle is_host_transfer? source_target_pairs?"),
    ("stablehlo.set_dimension_size", "dimension"),
    ("stablehlo.sine", "result_accuracy?"),
    ("stablehlo.slice", "limit_indices start_indices strides"),
    ("stablehlo.sort", "dimension? is_stable?"),
    ("stablehlo.sqrt", "result_accuracy?"),
    ("stablehlo.tan", "result_accuracy?"),
    ("stablehlo.tanh", "result_accuracy?"),
    ("stablehlo.torch_index_select", "batch_dims dim"),
    ("stablehlo.transpose", "permutation"),
    ("stablehlo.triangular_solve", "left_side lower transpose_a unit_diagonal"),
    ("stablehlo.unary_einsum", "einsum_config"),
];
