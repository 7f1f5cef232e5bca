//! The attributes of ops, by the names they have in text: the other way of
//! `decode/attribute.rs`.

use smol_str::SmolStr;
use tilewright_ir::Opcode;
use tilewright_ir::ops::attr::{AttrValue, Real64};
use tilewright_ir::ops::contract::{Sparsity, SparsityConfig};
use tilewright_ir::ops::control::{DomainMetadata, OutputAlias};
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;

use super::ids::Ids;
use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::hlo_instruction_proto::SliceDimensions;
use crate::generated::xla::padding_config::PaddingConfigDimension;
use crate::generated::xla::result_accuracy::{Specs, Tolerance};
use crate::generated::xla::sparsity_config::TensorSparsityConfig;
use crate::generated::xla::{self, DotDimensionNumbers, HloInstructionProto};
use crate::metadata::narrow;
use crate::words;
use crate::{devices, literal, shape, sharding};

type Written = Result<(), ProtoError>;

/// Sets the field of an attribute.
pub(super) fn set(
    opcode: Opcode,
    name: &str,
    value: AttrValue,
    ids: &Ids,
    p: &mut HloInstructionProto,
) -> Written {
    match value {
        AttrValue::Int(number) => set_int(name, number, p)?,
        AttrValue::Bool(value) => return set_bool(opcode, name, value, p),
        AttrValue::Float(value) => p.epsilon = value.0,
        AttrValue::Str(text) => return set_text(name, text.to_string(), p),
        AttrValue::Word(word) => return set_word(opcode, name, &word, p),
        AttrValue::Words(list) => set_precisions(&list, p)?,
        AttrValue::Dims(dims) => return set_dims(opcode, name, dims.to_vec(), p),
        // A collective permute has a size for each part.
        AttrValue::DimsLists(lists) => {
            p.dynamic_slice_sizes = lists.iter().flat_map(|list| list.iter().copied()).collect();
        }
        AttrValue::Pairs(pairs) => {
            let pair = |&(source, target): &(i64, i64)| xla::SourceTarget { source, target };
            p.source_target_pairs = pairs.iter().map(pair).collect();
        }
        AttrValue::Computation(id) => add_computation(opcode, name, ids.computation(id), p),
        AttrValue::Computations(list) => {
            p.called_computation_ids.extend(list.iter().map(|&id| ids.computation(id)));
        }
        AttrValue::Slices(dims) => p.slice_dimensions = dims.iter().map(slice).collect(),
        AttrValue::Padding(dims) => {
            p.padding_config =
                Some(xla::PaddingConfig { dimensions: dims.iter().map(pad).collect() });
        }
        AttrValue::Window(dims) => {
            p.window = Some(xla::Window { dimensions: dims.iter().map(window).collect() });
        }
        AttrValue::ConvDims(dims) => p.convolution_dimension_numbers = Some(conv_dims(&dims)),
        AttrValue::Sparsity(config) => p.sparsity_config = Some(sparsity(&config)),
        AttrValue::Accuracy(accuracy) => {
            p.result_accuracy = Some(xla::ResultAccuracy { specs: Some(specs(&accuracy)) });
        }
        AttrValue::Shape(outfed) => {
            p.outfeed_shape = Some(shape::encode(&outfed).within("outfeed_shape")?);
        }
        AttrValue::Shapes(shapes) => {
            p.constrain_layout = true;
            p.operand_shapes_with_layout =
                each("operand_shapes_with_layout", &shapes, shape::encode)?;
        }
        AttrValue::Literal(value) => {
            p.literal = Some(literal::encode(&value, &value.shape()).within("literal")?);
        }
        AttrValue::Aliasing(list) => p.output_operand_aliasing = list.iter().map(alias).collect(),
        AttrValue::ReplicaGroups(groups) => {
            p.replica_group_list = Some(devices::encode_groups(&groups)?);
        }
        AttrValue::Domain(domain) => set_domain(&domain, p)?,
    }
    Ok(())
}

fn set_precisions(list: &[SmolStr], p: &mut HloInstructionProto) -> Written {
    let wanted = each("operand_precision", list, |word| words::PRECISIONS.number(word))?;
    p.precision_config.get_or_insert_default().operand_precision = wanted;
    Ok(())
}

/// Adds a called computation by its id in the proto.
fn add_computation(opcode: Opcode, name: &str, id: i64, p: &mut HloInstructionProto) {
    match (opcode, name) {
        // Only the start of an asynchronous operation names its computation in proto.
        (Opcode::AsyncUpdate | Opcode::AsyncDone, _) => {}
        // The text lists the condition first.
        (_, "body") => p.called_computation_ids.insert(0, id),
        _ => p.called_computation_ids.push(id),
    }
}

fn no_place(name: &str) -> ProtoError {
    let message = format!("the attribute `{name}` has no known place in proto");
    ProtoError::with_help(message, "report this; text can hold it")
}

fn set_int(name: &str, number: i64, p: &mut HloInstructionProto) -> Written {
    match name {
        "parameter_number" => p.parameter_number = number,
        "iota_dimension" | "inferred_dimension" => p.dimensions = vec![number],
        "index" => p.tuple_index = number,
        "index_vector_dim" => {
            if let Some(gather) = &mut p.gather_dimension_numbers {
                gather.index_vector_dim = number;
            } else if let Some(scatter) = &mut p.scatter_dimension_numbers {
                scatter.index_vector_dim = number;
            }
        }
        "exponent_bits" => p.exponent_bits = narrow(name, number)?,
        "mantissa_bits" => p.mantissa_bits = narrow(name, number)?,
        "k" => p.k = number,
        "num_carries" => p.num_carries = number,
        "feature_index" => p.feature_index = number,
        "delta" => p.delta = number,
        "feature_group_count" => p.feature_group_count = number,
        "batch_group_count" => p.batch_group_count = number,
        "channel_id" => p.channel_id = number,
        "cross_program_prefetch_index" => {
            p.cross_program_prefetch_index = Some(narrow(name, number)?);
        }
        _ => return Err(no_place(name)),
    }
    Ok(())
}

fn set_bool(opcode: Opcode, name: &str, value: bool, p: &mut HloInstructionProto) -> Written {
    match name {
        "lower" if opcode == Opcode::Cholesky => {
            p.cholesky_options.get_or_insert_default().lower = value;
        }
        "lower" => p.triangular_solve_options.get_or_insert_default().lower = value,
        "left_side" => p.triangular_solve_options.get_or_insert_default().left_side = value,
        "unit_diagonal" => {
            p.triangular_solve_options.get_or_insert_default().unit_diagonal = value;
        }
        "largest" => p.largest = value,
        "is_stable" => p.is_stable = value,
        "has_dynamic_root" => p.has_dynamic_root = value,
        "is_reverse" => p.is_reverse = value,
        "is_associative" => p.is_associative = if value { 1 } else { 2 },
        "is_composite" => p.is_composite = value,
        "indices_are_sorted" => p.indices_are_sorted = value,
        "unique_indices" => p.unique_indices = value,
        "constrain_layout" => p.constrain_layout = value,
        "use_global_device_ids" => p.use_global_device_ids = value,
        "is_host_transfer" => p.is_host_transfer = value,
        "custom_call_has_side_effect" => p.custom_call_has_side_effect = value,
        _ => return Err(no_place(name)),
    }
    Ok(())
}

fn set_text(name: &str, text: String, p: &mut HloInstructionProto) -> Written {
    match name {
        "custom_call_target" => p.custom_call_target = text,
        "async_execution_thread" => p.async_execution_thread = text,
        "infeed_config" => p.infeed_config = text.into_bytes(),
        "outfeed_config" => p.outfeed_config = text.into_bytes(),
        _ => return Err(no_place(name)),
    }
    Ok(())
}

fn set_word(opcode: Opcode, name: &str, word: &str, p: &mut HloInstructionProto) -> Written {
    match name {
        "direction" => p.comparison_direction = word.to_owned(),
        // Both, as older readers know the first alone.
        "type" => {
            p.comparison_type = word.to_owned();
            if word == "TOTALORDER" {
                p.comparison_order = "TOTAL".to_owned();
            }
        }
        "kind" => p.fusion_kind = word.to_owned(),
        "distribution" => p.distribution = words::DISTRIBUTIONS.number(word)?,
        "algorithm" if opcode == Opcode::RngBitGenerator => {
            p.rng_algorithm = words::RNG_ALGORITHMS.number(word)?;
        }
        "algorithm" => {
            p.precision_config.get_or_insert_default().algorithm =
                words::DOT_ALGORITHMS.number(word)?;
        }
        "fft_type" => p.fft_type = words::FFT_TYPES.number(word)?,
        "transpose_a" => {
            p.triangular_solve_options.get_or_insert_default().transpose_a =
                words::TRANSPOSES.number(word)?;
        }
        "convolution_kind" => p.conv_kind = words::CONVOLUTION_KINDS.number(word)?,
        "padding_type" => p.padding_type = words::PADDING_TYPES.number(word)?,
        "schedule" => p.custom_call_schedule = words::SCHEDULES.number(word)?,
        "api_version" => p.custom_call_api_version = words::API_VERSIONS.number(word)?,
        _ => return Err(no_place(name)),
    }
    Ok(())
}

fn dot_numbers(opcode: Opcode, p: &mut HloInstructionProto) -> &mut DotDimensionNumbers {
    if opcode == Opcode::RaggedDot {
        let ragged = p.ragged_dot_dimension_numbers.get_or_insert_default();
        return ragged.dot_dimension_numbers.get_or_insert_default();
    }
    p.dot_dimension_numbers.get_or_insert_default()
}

fn set_dims(opcode: Opcode, name: &str, dims: Vec<i64>, p: &mut HloInstructionProto) -> Written {
    let field = match name {
        "dimensions" => &mut p.dimensions,
        "fft_length" => &mut p.fft_length,
        "dynamic_slice_sizes" => &mut p.dynamic_slice_sizes,
        "slice_sizes" => &mut p.gather_slice_sizes,
        "lhs_batch_dims" => &mut dot_numbers(opcode, p).lhs_batch_dimensions,
        "lhs_contracting_dims" => &mut dot_numbers(opcode, p).lhs_contracting_dimensions,
        "rhs_batch_dims" => &mut dot_numbers(opcode, p).rhs_batch_dimensions,
        "rhs_contracting_dims" => &mut dot_numbers(opcode, p).rhs_contracting_dimensions,
        "lhs_ragged_dims" => {
            &mut p.ragged_dot_dimension_numbers.get_or_insert_default().lhs_ragged_dimensions
        }
        "rhs_group_dims" => {
            &mut p.ragged_dot_dimension_numbers.get_or_insert_default().rhs_group_dimensions
        }
        _ => return set_index_dims(name, dims, p),
    };
    *field = dims;
    Ok(())
}

fn set_index_dims(name: &str, dims: Vec<i64>, p: &mut HloInstructionProto) -> Written {
    let field = match (&mut p.gather_dimension_numbers, &mut p.scatter_dimension_numbers) {
        (Some(gather), _) => match name {
            "offset_dims" => &mut gather.offset_dims,
            "collapsed_slice_dims" => &mut gather.collapsed_slice_dims,
            "start_index_map" => &mut gather.start_index_map,
            "operand_batching_dims" => &mut gather.operand_batching_dims,
            "start_indices_batching_dims" => &mut gather.start_indices_batching_dims,
            _ => return Err(no_place(name)),
        },
        (None, Some(scatter)) => match name {
            "update_window_dims" => &mut scatter.update_window_dims,
            "inserted_window_dims" => &mut scatter.inserted_window_dims,
            "scatter_dims_to_operand_dims" => &mut scatter.scatter_dims_to_operand_dims,
            "input_batching_dims" => &mut scatter.input_batching_dims,
            "scatter_indices_batching_dims" => &mut scatter.scatter_indices_batching_dims,
            _ => return Err(no_place(name)),
        },
        (None, None) => return Err(no_place(name)),
    };
    *field = dims;
    Ok(())
}

fn set_domain(domain: &DomainMetadata, p: &mut HloInstructionProto) -> Written {
    if domain.kind != "sharding" {
        let message = format!("proto has no domains of the kind `{}`", domain.kind);
        return Err(ProtoError::with_help(message, "write text"));
    }
    // The text's exit sharding is beside the operand; proto calls this side the entry.
    p.domain_entry_sharding = Some(sharding::encode(&domain.exit).within("domain_entry_sharding")?);
    p.domain_exit_sharding = Some(sharding::encode(&domain.entry).within("domain_exit_sharding")?);
    Ok(())
}

fn slice(dim: &SliceDim) -> SliceDimensions {
    SliceDimensions { start: dim.start, limit: dim.limit, stride: dim.stride }
}

fn pad(dim: &PadDim) -> PaddingConfigDimension {
    PaddingConfigDimension {
        edge_padding_low: dim.low,
        edge_padding_high: dim.high,
        interior_padding: dim.interior,
    }
}

fn window(dim: &WindowDim) -> xla::WindowDimension {
    xla::WindowDimension {
        size: dim.size,
        stride: dim.stride,
        padding_low: dim.padding_low,
        padding_high: dim.padding_high,
        window_dilation: dim.window_dilation,
        base_dilation: dim.base_dilation,
        window_reversal: dim.reversal,
    }
}

fn conv_dims(dims: &ConvDims) -> xla::ConvolutionDimensionNumbers {
    xla::ConvolutionDimensionNumbers {
        kernel_input_feature_dimension: dims.kernel_input_feature,
        kernel_output_feature_dimension: dims.kernel_output_feature,
        kernel_spatial_dimensions: dims.kernel_spatial.to_vec(),
        input_batch_dimension: dims.input_batch,
        input_feature_dimension: dims.input_feature,
        output_batch_dimension: dims.output_batch,
        output_feature_dimension: dims.output_feature,
        input_spatial_dimensions: dims.input_spatial.to_vec(),
        output_spatial_dimensions: dims.output_spatial.to_vec(),
    }
}

fn sparsity(config: &SparsityConfig) -> xla::SparsityConfig {
    let side = |side: Sparsity| TensorSparsityConfig {
        num_non_zero: side.non_zero,
        block_size: side.block_size,
        dimension: side.dimension,
        stride: side.stride,
    };
    xla::SparsityConfig { lhs: config.lhs.map(side), rhs: config.rhs.map(side) }
}

fn specs(accuracy: &ResultAccuracy) -> Specs {
    match accuracy {
        ResultAccuracy::Default => Specs::Mode(0),
        ResultAccuracy::Highest => Specs::Mode(1),
        ResultAccuracy::Tolerance { atol: Real64(atol), rtol: Real64(rtol), ulps } => {
            Specs::Tolerance(Tolerance { atol: *atol, rtol: *rtol, ulps: *ulps })
        }
    }
}

fn alias(alias: &OutputAlias) -> xla::OutputOperandAliasing {
    xla::OutputOperandAliasing {
        output_shape_index: alias.output.to_vec(),
        operand_index: alias.operand,
        operand_shape_index: alias.operand_part.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ops::attr::{AttrKind, Real};

    /// Returns a value of a kind that more than one attribute has.
    fn sample(kind: AttrKind) -> Option<AttrValue> {
        match kind {
            AttrKind::Int => Some(AttrValue::Int(1)),
            AttrKind::Bool => Some(AttrValue::Bool(true)),
            AttrKind::Float => Some(AttrValue::Float(Real(1.0))),
            AttrKind::Str => Some(AttrValue::Str("a".into())),
            AttrKind::Word => Some(AttrValue::Word("no such word".into())),
            AttrKind::Dims => Some(AttrValue::Dims([1].as_slice().into())),
            _ => None,
        }
    }

    #[test]
    fn every_attribute_has_its_place() {
        for &opcode in Opcode::ALL {
            for spec in opcode.attrs() {
                let mut proto = HloInstructionProto::default();
                match opcode {
                    Opcode::Gather => {
                        proto.gather_dimension_numbers.get_or_insert_default();
                    }
                    Opcode::Scatter => {
                        proto.scatter_dimension_numbers.get_or_insert_default();
                    }
                    _ => {}
                }
                let Some(value) = sample(spec.kind) else { continue };
                let set = set(opcode, spec.name, value, &Ids::default(), &mut proto);
                let lost = set.is_err_and(|error| error == no_place(spec.name));
                assert!(!lost, "`{}` of `{opcode}`", spec.name);
            }
        }
    }
}
