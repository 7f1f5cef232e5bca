//! The attributes of ops, by the names they have in text.
//!
//! The ir lists the attributes of every op; this module finds their place in the message. An op
//! whose attributes all have known names needs nothing here.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::ops::attr::{AttrValue, Real, Real64};
use tilewright_ir::ops::contract::{Sparsity, SparsityConfig};
use tilewright_ir::ops::control::{DomainMetadata, OutputAlias};
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;
use tilewright_ir::sharding::Sharding;
use tilewright_ir::{CompId, Dims, ElementType, Opcode, Shape};

use super::Env;
use crate::error::{ProtoError, Within as _, each};
use crate::generated::xla::result_accuracy::Specs;
use crate::generated::xla::sparsity_config::TensorSparsityConfig;
use crate::generated::xla::{self, DotDimensionNumbers, HloInstructionProto, OpSharding};
use crate::words::{self, Words};
use crate::{devices, literal, shape, sharding};

/// Its value, unless the message does not have it.
type Read = Result<Option<AttrValue>, ProtoError>;
/// The same, unless the attribute is of another family.
type OfFamily = Option<Option<AttrValue>>;

/// The data besides its field that an attribute may depend on.
pub(super) struct Context<'a> {
    pub(super) opcode: Opcode,
    pub(super) called: &'a [CompId],
    pub(super) operands: &'a [&'a Shape],
    pub(super) env: &'a Env<'a>,
}

impl Context<'_> {
    /// Returns the value of an attribute; none where the message does not have it. Large parts
    /// are taken out of the message.
    pub(super) fn attribute(&self, name: &str, p: &mut HloInstructionProto) -> Read {
        if let Some(value) = self.computations(name) {
            return Ok(value);
        }
        if let Some(value) = self.contraction(name, p)? {
            return Ok(value);
        }
        if let Some(value) = indexing(name, p) {
            return Ok(value);
        }
        let some = |value| Ok(Some(value));
        match name {
            "parameter_number" => some(AttrValue::Int(p.parameter_number)),
            "dimensions" => Ok(self.dimensions(p)),
            "iota_dimension" | "inferred_dimension" => Ok(only(p).map(AttrValue::Int)),
            "index" => some(AttrValue::Int(p.tuple_index)),
            "padding" => Ok(p.padding_config.as_ref().map(padding)),
            "slice" => some(slices(&p.slice_dimensions)),
            "window" => Ok(p.window.as_ref().map(window)),
            "exponent_bits" => some(AttrValue::Int(i64::from(p.exponent_bits))),
            "mantissa_bits" => some(AttrValue::Int(i64::from(p.mantissa_bits))),
            "result_accuracy" => Ok(accuracy(p)?),
            "direction" => some(AttrValue::Word(SmolStr::new(&p.comparison_direction))),
            "type" => Ok(self.comparison_type(p)),
            "k" => some(AttrValue::Int(p.k)),
            "largest" => some(AttrValue::Bool(p.largest)),
            "is_stable" => some(AttrValue::Bool(p.is_stable)),
            "num_carries" => some(AttrValue::Int(p.num_carries)),
            "has_dynamic_root" => some(AttrValue::Bool(p.has_dynamic_root)),
            "is_reverse" => some(AttrValue::Bool(p.is_reverse)),
            "is_associative" => tristate(p.is_associative).within("is_associative"),
            "kind" => some(AttrValue::Word(SmolStr::new(&p.fusion_kind))),
            "is_composite" => some(AttrValue::Bool(p.is_composite)),
            "epsilon" => some(AttrValue::Float(Real(p.epsilon))),
            "feature_index" => some(AttrValue::Int(p.feature_index)),
            "delta" => some(AttrValue::Int(p.delta)),
            "distribution" => word(&words::DISTRIBUTIONS, p.distribution).within("distribution"),
            "fft_type" => word(&words::FFT_TYPES, p.fft_type).within("fft_type"),
            "fft_length" => some(dims(&p.fft_length)),
            "lower" | "left_side" | "unit_diagonal" | "transpose_a" => self.linalg(name, p),
            _ => self.boundary(name, p),
        }
    }

    /// Attributes for called computations.
    fn computations(&self, name: &str) -> OfFamily {
        let called = |at: usize| self.called.get(at).map(|&id| AttrValue::Computation(id));
        let two_way = self.operands.first().is_some_and(|selector| {
            selector.as_array().is_some_and(|array| array.element_type == ElementType::Pred)
        });
        let custom_call = self.opcode == Opcode::CustomCall;
        Some(match name {
            // XLA writes all of them in one list.
            "to_apply" if custom_call => None,
            "to_apply" | "calls" | "body" | "select" => called(0),
            "condition" | "scatter" => called(1),
            "true_computation" => called(0).filter(|_| two_way),
            "false_computation" => called(1).filter(|_| two_way),
            "branch_computations" if two_way => None,
            "branch_computations" | "called_computations" => {
                (!self.called.is_empty()).then(|| AttrValue::Computations(self.called.into()))
            }
            _ => return None,
        })
    }

    fn dimensions(&self, p: &HloInstructionProto) -> Option<AttrValue> {
        // An all-to-all of tuples has no dim.
        let absent = self.opcode == Opcode::AllToAll && p.dimensions.is_empty();
        (!absent).then(|| dims(&p.dimensions))
    }

    /// Returns the order of numbers, unless it is the usual one of the type. Newer modules
    /// state whether it is total, older ones name it; integers have no other.
    fn comparison_type(&self, p: &HloInstructionProto) -> Option<AttrValue> {
        let element = self.operands.first().and_then(|shape| shape.as_array());
        let usual = element.map(|array| usual_order(array.element_type));
        let order = match p.comparison_order.as_str() {
            "TOTAL" if usual == Some(FLOAT) => TOTAL_ORDER,
            "TOTAL" | "PARTIAL" => return None,
            _ => p.comparison_type.as_str(),
        };
        (!order.is_empty() && Some(order) != usual).then(|| AttrValue::Word(SmolStr::new(order)))
    }

    fn dot<'p>(&self, p: &'p HloInstructionProto) -> Option<&'p DotDimensionNumbers> {
        match self.opcode {
            Opcode::RaggedDot => {
                p.ragged_dot_dimension_numbers.as_ref()?.dot_dimension_numbers.as_ref()
            }
            _ => p.dot_dimension_numbers.as_ref(),
        }
    }

    /// Attributes of dots and convolutions.
    fn contraction(&self, name: &str, p: &HloInstructionProto) -> Result<OfFamily, ProtoError> {
        let dot = self.dot(p);
        let ragged = p.ragged_dot_dimension_numbers.as_ref();
        let precision = p.precision_config.as_ref();
        Ok(Some(match name {
            "lhs_batch_dims" => dot.map(|dot| dims(&dot.lhs_batch_dimensions)),
            "lhs_contracting_dims" => dot.map(|dot| dims(&dot.lhs_contracting_dimensions)),
            "rhs_batch_dims" => dot.map(|dot| dims(&dot.rhs_batch_dimensions)),
            "rhs_contracting_dims" => dot.map(|dot| dims(&dot.rhs_contracting_dimensions)),
            "lhs_ragged_dims" => ragged.map(|ragged| dims(&ragged.lhs_ragged_dimensions)),
            "rhs_group_dims" => ragged.map(|ragged| dims(&ragged.rhs_group_dimensions)),
            "operand_precision" => precisions(p).within("precision_config")?,
            "algorithm" if self.opcode == Opcode::RngBitGenerator => {
                word(&words::RNG_ALGORITHMS, p.rng_algorithm).within("rng_algorithm")?
            }
            "algorithm" => match precision.map_or(0, |precision| precision.algorithm) {
                0 => None,
                number => word(&words::DOT_ALGORITHMS, number).within("precision_config")?,
            },
            "dim_labels" => p.convolution_dimension_numbers.as_ref().map(conv_dims),
            "feature_group_count" => Some(AttrValue::Int(p.feature_group_count.max(1))),
            "batch_group_count" => Some(AttrValue::Int(p.batch_group_count.max(1))),
            "convolution_kind" => {
                word(&words::CONVOLUTION_KINDS, p.conv_kind).within("conv_kind")?
            }
            "sparsity_config" => p.sparsity_config.as_ref().and_then(sparsity),
            _ => return Ok(None),
        }))
    }

    fn linalg(&self, name: &str, p: &HloInstructionProto) -> Read {
        if self.opcode == Opcode::Cholesky {
            return Ok(p.cholesky_options.map(|options| AttrValue::Bool(options.lower)));
        }
        let Some(options) = p.triangular_solve_options else { return Ok(None) };
        Ok(match name {
            "left_side" => Some(AttrValue::Bool(options.left_side)),
            "lower" => Some(AttrValue::Bool(options.lower)),
            "unit_diagonal" => Some(AttrValue::Bool(options.unit_diagonal)),
            _ if options.transpose_a == 0 => None,
            _ => word(&words::TRANSPOSES, options.transpose_a)
                .within("triangular_solve_options.transpose_a")?,
        })
    }

    /// Attributes of ops that involve devices, hosts or libraries.
    fn boundary(&self, name: &str, p: &mut HloInstructionProto) -> Read {
        let some = |value| Ok(Some(value));
        match name {
            "channel_id" => Ok((p.channel_id > 0).then_some(AttrValue::Int(p.channel_id))),
            "replica_groups" => {
                let groups = devices::decode_groups(p)?;
                some(AttrValue::ReplicaGroups(Box::new(groups)))
            }
            "constrain_layout" => some(AttrValue::Bool(p.constrain_layout)),
            "use_global_device_ids" => some(AttrValue::Bool(p.use_global_device_ids)),
            "source_target_pairs" => {
                let pairs = p.source_target_pairs.iter();
                some(AttrValue::Pairs(pairs.map(|pair| (pair.source, pair.target)).collect()))
            }
            "is_host_transfer" => some(AttrValue::Bool(p.is_host_transfer)),
            "cross_program_prefetch_index" => {
                Ok(p.cross_program_prefetch_index.map(|index| AttrValue::Int(index.into())))
            }
            "async_execution_thread" => Ok(text(&p.async_execution_thread)),
            "infeed_config" => config(&p.infeed_config).within("infeed_config"),
            "outfeed_config" => config(&p.outfeed_config).within("outfeed_config"),
            "outfeed_shape" => {
                let outfed = p.outfeed_shape.as_ref().map(shape::decode).transpose();
                Ok(outfed.within("outfeed_shape")?.map(AttrValue::Shape))
            }
            "domain" => self.domain(p),
            _ => self.custom_call(name, p),
        }
    }

    fn domain(&self, p: &HloInstructionProto) -> Read {
        let side = |sharding: &Option<OpSharding>| -> Result<Sharding, ProtoError> {
            let sharding = sharding.as_ref();
            let sharding = sharding.ok_or_else(|| ProtoError::new("the sharding is missing"))?;
            sharding::decode(sharding, self.env.payloads)
        };
        Ok(Some(AttrValue::Domain(Box::new(DomainMetadata {
            kind: SmolStr::new_static("sharding"),
            // Text's exit is the side of the operand, which is the entry in proto.
            entry: side(&p.domain_exit_sharding).within("domain_exit_sharding")?,
            exit: side(&p.domain_entry_sharding).within("domain_entry_sharding")?,
        }))))
    }

    fn custom_call(&self, name: &str, p: &mut HloInstructionProto) -> Read {
        let some = |value| Ok(Some(value));
        match name {
            "custom_call_target" => some(AttrValue::Str(SmolStr::new(&p.custom_call_target))),
            "operand_layout_constraints" if p.constrain_layout => {
                let shapes = &p.operand_shapes_with_layout;
                some(AttrValue::Shapes(each("operand_shapes_with_layout", shapes, shape::decode)?))
            }
            "operand_layout_constraints" => Ok(None),
            "custom_call_has_side_effect" => some(AttrValue::Bool(p.custom_call_has_side_effect)),
            "literal" => {
                let value = p.literal.take().map(literal::decode).transpose();
                Ok(value.within("literal")?.map(|value| AttrValue::Literal(Box::new(value))))
            }
            "output_to_operand_aliasing" => some(aliasing(p)),
            "schedule" => {
                word(&words::SCHEDULES, p.custom_call_schedule).within("custom_call_schedule")
            }
            "api_version" => {
                let version = p.custom_call_api_version;
                word(&words::API_VERSIONS, version).within("custom_call_api_version")
            }
            "padding_type" => word(&words::PADDING_TYPES, p.padding_type).within("padding_type"),
            _ => {
                let message = format!("the attribute `{name}` has no known place in proto");
                Err(ProtoError::with_help(message, "report this; text can hold it"))
            }
        }
    }
}

/// Attributes of ops that index by values.
fn indexing(name: &str, p: &HloInstructionProto) -> OfFamily {
    let gather = p.gather_dimension_numbers.as_ref();
    let scatter = p.scatter_dimension_numbers.as_ref();
    Some(match name {
        "dynamic_slice_sizes" => Some(dims(&p.dynamic_slice_sizes)),
        "slice_sizes" if gather.is_some() => Some(dims(&p.gather_slice_sizes)),
        // A collective permute that sends slices has one size for each slice.
        "slice_sizes" => {
            let sizes = p.dynamic_slice_sizes.iter().map(|&size| Dims::from_slice(&[size]));
            Some(AttrValue::DimsLists(sizes.collect()))
        }
        "offset_dims" => gather.map(|g| dims(&g.offset_dims)),
        "collapsed_slice_dims" => gather.map(|g| dims(&g.collapsed_slice_dims)),
        "start_index_map" => gather.map(|g| dims(&g.start_index_map)),
        "operand_batching_dims" => gather.map(|g| dims(&g.operand_batching_dims)),
        "start_indices_batching_dims" => gather.map(|g| dims(&g.start_indices_batching_dims)),
        "update_window_dims" => scatter.map(|s| dims(&s.update_window_dims)),
        "inserted_window_dims" => scatter.map(|s| dims(&s.inserted_window_dims)),
        "scatter_dims_to_operand_dims" => scatter.map(|s| dims(&s.scatter_dims_to_operand_dims)),
        "input_batching_dims" => scatter.map(|s| dims(&s.input_batching_dims)),
        "scatter_indices_batching_dims" => scatter.map(|s| dims(&s.scatter_indices_batching_dims)),
        "index_vector_dim" => gather
            .map(|g| g.index_vector_dim)
            .or(scatter.map(|s| s.index_vector_dim))
            .map(AttrValue::Int),
        "indices_are_sorted" => Some(AttrValue::Bool(p.indices_are_sorted)),
        "unique_indices" => Some(AttrValue::Bool(p.unique_indices)),
        _ => return None,
    })
}

/// The usual order of floats.
pub(crate) const FLOAT: &str = "FLOAT";
/// The order of floats in which all have a place.
const TOTAL_ORDER: &str = "TOTALORDER";

/// Returns the usual order of a type's numbers.
pub(crate) fn usual_order(element: ElementType) -> &'static str {
    use tilewright_ir::element::NumberClass;
    match element.class() {
        NumberClass::Float | NumberClass::Complex => FLOAT,
        NumberClass::Signed => "SIGNED",
        NumberClass::Unsigned | NumberClass::Bool => "UNSIGNED",
    }
}

fn dims(values: &[i64]) -> AttrValue {
    AttrValue::Dims(Dims::from_slice(values))
}

fn word(words: &Words, number: i32) -> Read {
    words.word(number).map(AttrValue::Word).map(Some)
}

fn text(value: &str) -> Option<AttrValue> {
    (!value.is_empty()).then(|| AttrValue::Str(SmolStr::new(value)))
}

fn config(bytes: &[u8]) -> Read {
    let text_in = std::str::from_utf8(bytes);
    text_in.map(text).map_err(|_| ProtoError::with_help("it is not UTF-8", "remove it"))
}

/// Returns the only dim.
fn only(p: &HloInstructionProto) -> Option<i64> {
    p.dimensions.first().copied().filter(|_| p.dimensions.len() == 1)
}

fn tristate(number: i32) -> Read {
    match number {
        0 => Ok(None),
        1 => Ok(Some(AttrValue::Bool(true))),
        2 => Ok(Some(AttrValue::Bool(false))),
        _ => Err(ProtoError::unknown("truth value", number)),
    }
}

/// Returns the precision wanted for each operand, unless none is out of the ordinary.
fn precisions(p: &HloInstructionProto) -> Read {
    let wanted = p.precision_config.iter().flat_map(|config| &config.operand_precision);
    let wanted: Vec<i32> = wanted.copied().collect();
    if wanted.iter().all(|&precision| precision == 0) {
        return Ok(None);
    }
    let wanted = each("operand_precision", &wanted, |&number| words::PRECISIONS.word(number))?;
    Ok(Some(AttrValue::Words(wanted)))
}

fn padding(proto: &xla::PaddingConfig) -> AttrValue {
    let dims = proto.dimensions.iter().map(|dim| PadDim {
        low: dim.edge_padding_low,
        high: dim.edge_padding_high,
        interior: dim.interior_padding,
    });
    AttrValue::Padding(dims.collect())
}

fn slices(proto: &[xla::hlo_instruction_proto::SliceDimensions]) -> AttrValue {
    let dims = proto.iter();
    let dims = dims.map(|dim| SliceDim { start: dim.start, limit: dim.limit, stride: dim.stride });
    AttrValue::Slices(dims.collect())
}

fn window(proto: &xla::Window) -> AttrValue {
    let dims = proto.dimensions.iter().map(|dim| WindowDim {
        size: dim.size,
        stride: dim.stride,
        padding_low: dim.padding_low,
        padding_high: dim.padding_high,
        base_dilation: dim.base_dilation,
        window_dilation: dim.window_dilation,
        reversal: dim.window_reversal,
    });
    AttrValue::Window(dims.collect())
}

fn conv_dims(proto: &xla::ConvolutionDimensionNumbers) -> AttrValue {
    AttrValue::ConvDims(ConvDims {
        input_batch: proto.input_batch_dimension,
        input_feature: proto.input_feature_dimension,
        input_spatial: SmallVec::from_slice(&proto.input_spatial_dimensions),
        kernel_input_feature: proto.kernel_input_feature_dimension,
        kernel_output_feature: proto.kernel_output_feature_dimension,
        kernel_spatial: SmallVec::from_slice(&proto.kernel_spatial_dimensions),
        output_batch: proto.output_batch_dimension,
        output_feature: proto.output_feature_dimension,
        output_spatial: SmallVec::from_slice(&proto.output_spatial_dimensions),
    })
}

/// An empty one, which every convolution has, means nothing.
fn sparsity(proto: &xla::SparsityConfig) -> Option<AttrValue> {
    let side = |side: &TensorSparsityConfig| Sparsity {
        non_zero: side.num_non_zero,
        block_size: side.block_size,
        dimension: side.dimension,
        stride: side.stride,
    };
    let config =
        SparsityConfig { lhs: proto.lhs.as_ref().map(side), rhs: proto.rhs.as_ref().map(side) };
    (config != SparsityConfig::default()).then_some(AttrValue::Sparsity(config))
}

fn accuracy(p: &HloInstructionProto) -> Read {
    let specs = p.result_accuracy.as_ref().and_then(|accuracy| accuracy.specs.as_ref());
    let accuracy = match specs {
        None | Some(Specs::Mode(0)) => ResultAccuracy::Default,
        Some(Specs::Mode(1)) => ResultAccuracy::Highest,
        Some(Specs::Mode(other)) => {
            return Err(ProtoError::unknown("mode", other).within("result_accuracy"));
        }
        Some(Specs::Tolerance(tolerance)) => ResultAccuracy::Tolerance {
            atol: Real64(tolerance.atol),
            rtol: Real64(tolerance.rtol),
            ulps: tolerance.ulps,
        },
    };
    Ok(Some(AttrValue::Accuracy(accuracy)))
}

fn aliasing(p: &HloInstructionProto) -> AttrValue {
    let aliases = p.output_operand_aliasing.iter().map(|alias| OutputAlias {
        output: Dims::from_slice(&alias.output_shape_index),
        operand: alias.operand_index,
        operand_part: Dims::from_slice(&alias.operand_shape_index),
    });
    AttrValue::Aliasing(aliases.collect())
}
