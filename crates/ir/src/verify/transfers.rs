//! Checks sends to and receives from the host that share a channel.

use std::collections::BTreeMap;

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::entity::InstId;
use crate::metadata::Extras;
use crate::module::Module;
use crate::ops::Op;
use crate::types::shape::{ArrayShape, Shape};

/// Checks that transfers with one host channel agree, because the host identifies transfers only by
/// their channels.
pub(super) fn check(module: &Module, report: &mut Report) {
    let mut first_of: BTreeMap<i64, InstId> = BTreeMap::new();
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    for id in all {
        let Some(channel) = host_channel(module.op(id)) else { continue };
        let first = *first_of.entry(channel).or_insert(id);
        if let Some(what) = difference(module, first, id) {
            let message = format!(
                "it shares channel {channel} with `{}`, but their {what} differ; give it a \
                 channel of its own",
                module.name_of(first)
            );
            report.add(super::TRANSFERS, DiagnosticPlace::Instruction(id), message);
        }
    }
}

fn host_channel(op: &Op) -> Option<i64> {
    match op {
        Op::Send(attrs) | Op::Recv(attrs) if attrs.is_host_transfer => attrs.channel_id,
        _ => None,
    }
}

/// Returns a property in which two transfers differ.
fn difference(module: &Module, a: InstId, b: InstId) -> Option<&'static str> {
    if module.opcode(a) != module.opcode(b) {
        return Some("ops");
    }
    if !same_shape(module.shape(a), module.shape(b)) {
        return Some("shapes");
    }
    let (a, b) = (module.extras(a), module.extras(b));
    let sharding = |extras: Option<&Extras>| extras.and_then(|e| e.sharding.clone());
    if let (Some(a), Some(b)) = (sharding(a), sharding(b))
        && a != b
    {
        return Some("shardings");
    }
    let config = |extras: Option<&Extras>| extras.and_then(|e| e.backend_config.clone());
    if config(a) != config(b) {
        return Some("backend_configs");
    }
    let attributes = |extras: Option<&Extras>| {
        let mut all = extras.map(|e| e.frontend_attributes.clone()).unwrap_or_default();
        all.sort();
        all
    };
    (attributes(a) != attributes(b)).then_some("frontend_attributes")
}

/// Checks whether two shapes are equal, layouts included.
pub(super) fn same_shape(a: &Shape, b: &Shape) -> bool {
    let same_array = |a: &ArrayShape, b: &ArrayShape| {
        a.compatible(b) && a.layout_or_default() == b.layout_or_default()
    };
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => same_array(a, b),
        (Shape::Tuple(a), Shape::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b))
        }
        (Shape::Buffer(a), Shape::Buffer(b)) => same_shape(a, b),
        (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
        (
            Shape::Array(_) | Shape::Tuple(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque,
            _,
        ) => false,
    }
}
