//! Attributes that any instruction may have.

use tilewright_ir::metadata::{FrontendAttributes, Origin, OriginTree, OriginalArray, Statistics};
use tilewright_ir::{Extras, backend_config};

use super::ids::Ids;
use crate::error::{ProtoError, Within as _};
use crate::generated::xla::{
    self, HloInstructionProto, OriginalArrayProto, OriginalValueElementProto, OriginalValueProto,
    ParameterReplication, Statistic, StatisticsViz,
};
use crate::metadata::unknown_to_proto;
use crate::sharding;

pub(super) fn encode(
    extras: &Extras,
    ids: &Ids,
    proto: &mut HloInstructionProto,
) -> Result<(), ProtoError> {
    if let Some((name, _)) = extras.other.first() {
        return Err(unknown_to_proto(name));
    }
    let sharding = extras.sharding.as_deref().map(sharding::encode).transpose();
    proto.sharding = sharding.within("sharding")?;
    proto.frontend_attributes = Some(frontend_attributes(&extras.frontend_attributes));
    if !extras.parameter_replication.is_empty() {
        let replicated_at_leaf_buffers = extras.parameter_replication.clone();
        proto.parameter_replication = Some(ParameterReplication { replicated_at_leaf_buffers });
    }
    proto.statistics_viz = Some(extras.statistics.as_deref().map(statistics).unwrap_or_default());
    proto.original_value = extras.origin.as_deref().map(origin);
    if let Some(text) = &extras.backend_config {
        let error = || ProtoError::with_help("an escape is malformed", "correct the text");
        proto.backend_config =
            backend_config::to_bytes(text).ok_or_else(error).within("backend_config")?;
    }
    let predecessors = extras.control_predecessors.iter();
    proto.control_predecessor_ids = predecessors.map(|&id| ids.instruction(id)).collect();
    Ok(())
}

pub(super) fn frontend_attributes(attributes: &FrontendAttributes) -> xla::FrontendAttributes {
    let map = attributes.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    xla::FrontendAttributes { map: map.collect() }
}

fn statistics(statistics: &Statistics) -> StatisticsViz {
    let values = statistics.values.iter();
    StatisticsViz {
        stat_index_to_visualize: statistics.visualizing_index,
        statistics: values
            .map(|(name, value)| Statistic { stat_name: name.to_string(), stat_val: value.0 })
            .collect(),
    }
}

fn origin(origin: &Origin) -> OriginalValueProto {
    let mut proto = OriginalValueProto::default();
    match origin {
        Origin::SyntheticCall => proto.is_synthetic_call = true,
        Origin::Value(tree) => push_origins(tree, &mut Vec::new(), &mut proto.elements),
    }
    proto
}

fn push_origins(
    tree: &OriginTree,
    index: &mut Vec<i64>,
    elements: &mut Vec<OriginalValueElementProto>,
) {
    match tree {
        OriginTree::Array(array) => elements.push(OriginalValueElementProto {
            shape_index: index.clone(),
            original_array: array.as_ref().map(original_array),
        }),
        OriginTree::Tuple(parts) => {
            for (part, at) in parts.iter().zip(0..) {
                index.push(at);
                push_origins(part, index, elements);
                index.pop();
            }
        }
    }
}

pub(super) fn original_array(array: &OriginalArray) -> OriginalArrayProto {
    OriginalArrayProto {
        instruction_name: array.instruction.to_string(),
        shape_index: array.part.to_vec(),
    }
}
