//! Attributes that any instruction may have.

use std::collections::BTreeMap;

use tilewright_ir::metadata::{Origin, OriginTree, OriginalArray, Statistics};
use tilewright_ir::ops::attr::Real64;
use tilewright_ir::{Dims, Extras, Shape, backend_config};

use super::Env;
use super::header::frontend_attributes;

use crate::error::{ProtoError, Within as _};
use crate::generated::xla::{
    HloInstructionProto, OriginalArrayProto, OriginalValueElementProto, OriginalValueProto,
    StatisticsViz,
};
use crate::sharding;

/// Returns all but control predecessors and residue.
pub(super) fn decode(
    proto: &mut HloInstructionProto,
    shape: &Shape,
    env: &Env<'_>,
) -> Result<Extras, ProtoError> {
    let sharding = proto.sharding.as_ref();
    let sharding = sharding.map(|sharding| sharding::decode(sharding, env.payloads)).transpose();
    let origin = proto.original_value.as_ref().map(|origin| decode_origin(origin, shape));
    let replication = proto.parameter_replication.take().unwrap_or_default();
    let config = &proto.backend_config;
    let mut extras = Extras::default();
    extras.sharding = sharding.within("sharding")?.map(Box::new);
    extras.frontend_attributes = frontend_attributes(proto.frontend_attributes.as_ref());
    extras.parameter_replication = replication.replicated_at_leaf_buffers;
    extras.statistics = proto.statistics_viz.as_ref().and_then(decode_statistics).map(Box::new);
    extras.origin = origin.transpose().within("original_value")?.map(Box::new);
    extras.backend_config = (!config.is_empty()).then(|| backend_config::to_text(config));
    Ok(extras)
}

/// An empty one, which every instruction has, means nothing.
fn decode_statistics(proto: &StatisticsViz) -> Option<Statistics> {
    let values = proto.statistics.iter();
    let statistics = Statistics {
        visualizing_index: proto.stat_index_to_visualize,
        values: values
            .map(|value| (value.stat_name.as_str().into(), Real64(value.stat_val)))
            .collect(),
    };
    (statistics != Statistics::default()).then_some(statistics)
}

fn decode_origin(proto: &OriginalValueProto, shape: &Shape) -> Result<Origin, ProtoError> {
    if proto.is_synthetic_call {
        return Ok(Origin::SyntheticCall);
    }
    let mut elements = BTreeMap::new();
    for (at, element) in proto.elements.iter().enumerate() {
        if elements.insert(element.shape_index.as_slice(), element).is_some() {
            let error = ProtoError::new("a second origin of the same part");
            return Err(error.within_element("elements", at));
        }
    }
    let tree = origin_of(shape, &mut Dims::new(), &mut elements);
    match elements.keys().next() {
        None => Ok(Origin::Value(tree)),
        Some(index) => {
            Err(ProtoError::new(format!("{shape} has no array {index:?}")).within("elements"))
        }
    }
}

/// Returns the origins of a part of a value; takes them out of `elements`.
fn origin_of(
    shape: &Shape,
    index: &mut Dims,
    elements: &mut BTreeMap<&[i64], &OriginalValueElementProto>,
) -> OriginTree {
    match shape {
        Shape::Tuple(parts) => {
            let mut trees = Vec::with_capacity(parts.len());
            for (part, at) in parts.iter().zip(0..) {
                index.push(at);
                trees.push(origin_of(part, index, elements));
                index.pop();
            }
            OriginTree::Tuple(trees)
        }
        Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque => {
            let element = elements.remove(index.as_slice());
            let array = element.and_then(|element| element.original_array.as_ref());
            OriginTree::Array(array.map(original_array))
        }
    }
}

pub(super) fn original_array(proto: &OriginalArrayProto) -> OriginalArray {
    OriginalArray {
        instruction: proto.instruction_name.as_str().into(),
        part: Dims::from_slice(&proto.shape_index),
    }
}
