//! Instructions.

use prost::Message as _;
use tilewright_ir::{ArrayShape, InstId, Module, Op};

use super::ids::Ids;
use super::{attribute, extras};
use crate::decode::{FLOAT, usual_order};
use crate::error::{ProtoError, Within as _};
use crate::generated::known::HLO_INSTRUCTION_PROTO;
use crate::generated::xla::{
    self, HloInstructionProto, PrecisionConfig, RaggedDotDimensionNumbers, StatisticsViz,
};
use crate::residue::with_residue;
use crate::wire::push_message;
use crate::{literal, metadata, shape};

const METADATA: u32 = 7;
const FALSE: i32 = 2;

pub(super) fn encode(module: &Module, ids: &Ids, id: InstId) -> Result<Vec<u8>, ProtoError> {
    let op = module.op(id);
    let metadata = module.metadata(id);
    let mut proto = HloInstructionProto {
        name: ids.name(module, id).to_owned(),
        opcode: op.opcode().name().to_owned(),
        shape: Some(shape::encode(module.shape(id)).within("shape")?),
        metadata: Some(
            metadata.map(metadata::encode).transpose().within("metadata")?.unwrap_or_default(),
        ),
        id: ids.instruction(id),
        operand_ids: module.operands(id).iter().map(|&id| ids.instruction(id)).collect(),
        // XLA writes these fields even if they are empty.
        frontend_attributes: Some(xla::FrontendAttributes::default()),
        statistics_viz: Some(StatisticsViz::default()),
        ..HloInstructionProto::default()
    };
    set_defaults(module, id, &mut proto);
    if let (Op::Outfeed(_), Some(&sent)) = (module.op(id), module.operands(id).first()) {
        let shape = shape::encode(module.shape(sent)).within("outfeed_shape")?;
        proto.outfeed_shape = Some(shape);
    }
    set_op(module, ids, id, &mut proto)?;
    let extras = module.extras(id);
    if let Some(extras) = extras {
        extras::encode(extras, ids, &mut proto)?;
    }
    let mut residue = Vec::new();
    if let Some(rare) = metadata.and_then(|metadata| metadata.rare.as_deref()) {
        push_message(&mut residue, METADATA, &rare.residue);
    }
    residue.extend(extras.iter().flat_map(|extras| &extras.residue));
    Ok(with_residue(proto.encode_to_vec(), &residue, &HLO_INSTRUCTION_PROTO))
}

fn set_op(
    module: &Module,
    ids: &Ids,
    id: InstId,
    proto: &mut HloInstructionProto,
) -> Result<(), ProtoError> {
    let op = module.op(id);
    if let Op::Constant(value) = op {
        let value = literal::encode(value, module.shape(id)).within("literal")?;
        proto.literal = Some(value);
        return Ok(());
    }
    let mut done = Ok(());
    op.for_each_attr(&mut |name, value| {
        if done.is_ok() {
            done = attribute::set(op.opcode(), name, value, ids, proto);
        }
    });
    done
}

/// Returns the order of a comparison of elements of this type, as XLA writes it. Readers that
/// know only `comparison_type` infer it from the type of the elements where the order is the
/// usual one.
fn comparison_order(array: &ArrayShape) -> &'static str {
    match usual_order(array.element_type) {
        FLOAT => "PARTIAL",
        _ => "TOTAL",
    }
}

fn precision(operands: usize) -> Option<PrecisionConfig> {
    Some(PrecisionConfig { operand_precision: vec![0; operands], algorithm: 0 })
}

/// Sets the fields that XLA writes although the ir, like text, has no value for them.
fn set_defaults(module: &Module, id: InstId, proto: &mut HloInstructionProto) {
    let operands = module.operands(id);
    // Sizes of groups and scales have no precision.
    let of_factors = || precision(2);
    match module.op(id) {
        Op::Dot(_) | Op::ScaledDot(_) => {
            if matches!(module.op(id), Op::Dot(_)) {
                proto.sparsity_config = Some(xla::SparsityConfig::default());
            }
            proto.dot_dimension_numbers = Some(xla::DotDimensionNumbers::default());
            proto.precision_config = of_factors();
        }
        Op::RaggedDot(_) => {
            let dims = RaggedDotDimensionNumbers {
                dot_dimension_numbers: Some(xla::DotDimensionNumbers::default()),
                ..Default::default()
            };
            proto.ragged_dot_dimension_numbers = Some(dims);
            proto.precision_config = of_factors();
        }
        Op::Convolution(_) => {
            proto.window = Some(xla::Window::default());
            proto.sparsity_config = Some(xla::SparsityConfig::default());
            proto.feature_group_count = 1;
            proto.batch_group_count = 1;
            proto.precision_config = of_factors();
        }
        Op::CustomCall(_) => {
            proto.feature_group_count = 1;
            proto.batch_group_count = 1;
            proto.precision_config = precision(operands.len());
            proto.custom_call_api_version = 1;
        }
        Op::ReduceWindow(_) | Op::SelectAndScatter(_) => {
            proto.window = Some(xla::Window::default());
        }
        Op::Compare(_) => {
            let array = operands.first().and_then(|&operand| module.array_shape(operand));
            proto.comparison_order = array.map_or("", comparison_order).to_owned();
        }
        Op::Cholesky(_) => proto.cholesky_options = Some(xla::CholeskyOptions::default()),
        Op::TriangularSolve(_) => {
            let transpose_a = 1;
            proto.triangular_solve_options =
                Some(xla::TriangularSolveOptions { transpose_a, ..Default::default() });
        }
        Op::Gather(_) => {
            proto.gather_dimension_numbers = Some(xla::GatherDimensionNumbers::default());
        }
        Op::Scatter(_) => {
            proto.scatter_dimension_numbers = Some(xla::ScatterDimensionNumbers::default());
        }
        Op::TopK(_) => (proto.largest, proto.is_stable) = (true, true),
        // A text without this attribute states that the scan is not associative; a proto
        // without it leaves that open.
        Op::Scan(_) if module.unique_id(id).is_none() => proto.is_associative = FALSE,
        _ => {}
    }
}
