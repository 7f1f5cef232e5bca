//! Shardings and frontend attributes.

use smol_str::SmolStr;
use tilewright_ir::Sharding;
use tilewright_ir::metadata::FrontendAttributes;
use tilewright_ir::sharding::{LeafSharding, Placement};

use super::error::{Import, ImportError};
use crate::mlir::{Attribute, Operation, value_of};

/// Returns the sharding of an operation's results.
pub(super) fn of(operation: &Operation) -> Import<Option<Sharding>> {
    in_attributes(&operation.attributes, operation)
}

/// Returns the sharding that attributes name: a text, or as JAX wrote it until 2023, a serialised message, which is empty for
/// an array that is whole on each device.
pub(super) fn in_attributes(
    attributes: &[(SmolStr, Attribute)],
    operation: &Operation,
) -> Import<Option<Sharding>> {
    match value_of(attributes, "mhlo.sharding") {
        None => Ok(None),
        Some(value) => read(operation, "mhlo.sharding", value).map(Some),
    }
}

/// Reads a sharding in HLO's syntax, or a serialised one.
pub(super) fn read(operation: &Operation, name: &str, value: &Attribute) -> Import<Sharding> {
    let Attribute::String(bytes) = value else {
        return Err(super::attributes::misfit(operation, name, "a text"));
    };
    match std::str::from_utf8(bytes) {
        Ok(text) if text.starts_with('{') => parse(operation, text),
        _ => tilewright_proto::decode_sharding(bytes).map_err(|error| {
            let why = format!("has no sharding of HLO in `{name}`: {error}");
            ImportError::malformed(operation, &why)
        }),
    }
}

fn parse(operation: &Operation, text: &str) -> Import<Sharding> {
    tilewright_text::parse_sharding(text).map_err(|_| {
        ImportError::malformed(operation, &format!("has `{text}`, which is no sharding of HLO"))
    })
}

/// Returns the frontend attributes of an operation, in the order of their names.
pub(super) fn frontend_attributes(operation: &Operation) -> FrontendAttributes {
    frontend(&operation.attributes)
}

/// Returns the frontend attributes among attributes, in the order of their names.
pub(super) fn frontend(attributes: &[(SmolStr, Attribute)]) -> FrontendAttributes {
    let Some(Attribute::Dictionary(entries)) = value_of(attributes, "mhlo.frontend_attributes")
    else {
        return FrontendAttributes::new();
    };
    let texts = entries.iter().filter_map(|(name, value)| match value {
        Attribute::String(bytes) => {
            Some((name.clone(), String::from_utf8_lossy(bytes).into_owned().into_boxed_str()))
        }
        _ => None,
    });
    let mut texts: FrontendAttributes = texts.collect();
    texts.sort_by(|(a, _), (b, _)| a.cmp(b));
    texts
}

/// Returns the sharding of a tuple of values; missing ones are replicated. `None` if all are
/// missing.
pub(super) fn together(shardings: &[Option<Sharding>]) -> Option<Sharding> {
    if shardings.iter().all(Option::is_none) {
        return None;
    }
    let leaves = shardings.iter().flat_map(|sharding| match sharding {
        Some(sharding) => sharding.leaves().to_vec(),
        None => vec![LeafSharding::from(Placement::Replicated)],
    });
    Some(Sharding::Tuple(leaves.collect()))
}

/// Returns the sharding of an element of a tuple.
pub(super) fn element(sharding: &Sharding, index: usize) -> Sharding {
    match sharding {
        Sharding::Tuple(leaves) => match leaves.get(index) {
            Some(leaf) => Sharding::Leaf(leaf.clone()),
            None => sharding.clone(),
        },
        Sharding::Leaf(_) => sharding.clone(),
    }
}

/// Returns the sharding of each of several results; none if there is no sharding.
pub(super) fn each(sharding: Option<&Sharding>, count: usize) -> Vec<Option<Sharding>> {
    match sharding {
        None => Vec::new(),
        Some(sharding) => (0..count).map(|index| Some(element(sharding, index))).collect(),
    }
}
