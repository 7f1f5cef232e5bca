//! Attributes of the module and of the arguments of functions.

use smol_str::SmolStr;
use tilewright_ir::metadata::FrontendAttributes;
use tilewright_ir::{Extras, Module, Shape, Sharding};

use super::attributes::{i64s, int, sized_int, string};
use super::forms::text;
use crate::mlir::{Attribute, Attributes};

/// Returns the attributes of the module.
pub(super) fn of_module(module: &Module) -> Attributes {
    let header = &module.header;
    let mut attributes = frontend(&header.frontend_attributes);
    let aliases = header.input_output_alias.iter().map(|alias| {
        let kind = if alias.must { "must_alias" } else { "may_alias" };
        let parts = vec![
            text("kind", kind),
            ("parameter_index".into(), i64s(alias.parameter_part.iter().copied())),
            ("parameter_number".into(), int(alias.parameter)),
        ];
        Attribute::Dictionary(vec![
            ("alias".into(), Attribute::Dictionary(parts)),
            ("output_index".into(), i64s(alias.output.iter().copied())),
        ])
    });
    let aliases: Vec<Attribute> = aliases.collect();
    if !aliases.is_empty() {
        attributes.push(("mhlo.input_output_alias".into(), Attribute::Array(aliases)));
    }
    for (name, count) in [
        ("mhlo.num_partitions", header.num_partitions),
        ("mhlo.num_replicas", header.replica_count),
    ] {
        if let Some(count) = count {
            attributes.push((name.into(), sized_int(count, 32)));
        }
    }
    attributes.extend(layouts(module));
    attributes
}

/// Returns the layouts of the entry's parameters and result, if one is not that of its value.
fn layouts(module: &Module) -> Attributes {
    let (Some(layout), Some(entry)) = (&module.header.entry_layout, module.entry()) else {
        return Vec::new();
    };
    let entry = module.computation(entry);
    let result = entry.root().map(|root| module.shape(root));
    let parameters = entry.parameters().iter().map(|&id| module.shape(id));
    let differs = |given: &Shape, of: &Shape| order(given) != order(of);
    let mut attributes = Attributes::new();
    if layout.parameters.iter().zip(parameters).any(|(given, of)| differs(given, of)) {
        let orders = layout.parameters.iter().map(order).collect();
        let name = "mhlo.xla_entry_computation_parameter_layouts";
        attributes.push((name.into(), Attribute::Array(orders)));
    }
    if result.is_some_and(|result| differs(&layout.result, result)) {
        let orders = vec![order(&layout.result)];
        let name = "mhlo.xla_entry_computation_result_layout";
        attributes.push((name.into(), Attribute::Array(orders)));
    }
    attributes
}

/// Returns the order of an array's dims, or the orders of a tuple's parts.
fn order(shape: &Shape) -> Attribute {
    match shape {
        Shape::Tuple(parts) => Attribute::Array(parts.iter().map(order).collect()),
        Shape::Array(array) => super::attributes::order(&array.layout_or_default().minor_to_major),
        _ => super::attributes::order(&[]),
    }
}

/// Returns the attributes of an operation that any instruction can have.
pub(super) fn common(extras: &Extras) -> Attributes {
    let mut attributes = frontend(&extras.frontend_attributes);
    attributes.extend(extras.sharding.as_deref().map(sharding));
    attributes
}

/// `mhlo.sharding`.
pub(super) fn sharding(sharding: &Sharding) -> (SmolStr, Attribute) {
    text("mhlo.sharding", &tilewright_text::print_sharding(sharding))
}

fn frontend(entries: &FrontendAttributes) -> Attributes {
    let mut entries: Attributes = entries
        .iter()
        .filter(|(name, _)| !name.starts_with("composite."))
        .map(|(name, value)| (name.clone(), string(&unquoted(value))))
        .collect();
    if entries.is_empty() {
        return Vec::new();
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    vec![("mhlo.frontend_attributes".into(), Attribute::Dictionary(entries))]
}

/// A value is quoted in the text of HLO, and may be stored so.
pub(super) fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let bytes = inner.and_then(tilewright_ir::escape::unescape);
    bytes.map_or_else(|| value.into(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
