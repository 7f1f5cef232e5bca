//! Attributes of the module and of the arguments of functions.

use smol_str::SmolStr;
use tilewright_ir::metadata::{FrontendAttributes, InputOutputAlias};
use tilewright_ir::{ArrayShape, Extras, Layout, Module, Shape, Sharding};

use super::forms::text;
use crate::mlir::{Attribute, Attributes};

/// Returns the attributes of the module.
pub(super) fn of_module(module: &Module) -> Attributes {
    let header = &module.header;
    let mut attributes = frontend(&header.frontend_attributes);
    let aliases = header.input_output_alias.iter().filter_map(|alias| {
        let kind = if alias.must { "must_alias" } else { "may_alias" };
        let (output, parameter) = flat_alias(module, alias)?;
        let parts = vec![
            text("kind", kind),
            ("parameter_index".into(), Attribute::i64s([])),
            ("parameter_number".into(), Attribute::i64(parameter)),
        ];
        Some(Attribute::Dictionary(vec![
            ("alias".into(), Attribute::Dictionary(parts)),
            ("output_index".into(), Attribute::i64s(output)),
        ]))
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
            attributes.push((name.into(), Attribute::integer(count, 32)));
        }
    }
    attributes.extend(layouts(module));
    attributes
}

/// Returns the place of an alias among the results and the arguments of `main`, which has no tuples; `None` if it
/// is not of an array.
pub(super) fn flat_alias(module: &Module, alias: &InputOutputAlias) -> Option<(Option<i64>, i64)> {
    let entry = module.computation(module.entry()?);
    let result = module.shape(entry.root()?);
    let output = i64::try_from(flat_place(result, &alias.output)?).ok()?;
    let output = (result.leaves().len() != 1).then_some(output);
    Some((output, argument(module, alias.parameter, &alias.parameter_part)?))
}

/// Returns the number of the argument of `main` for a part of a parameter.
pub(super) fn argument(module: &Module, parameter: i64, part: &[i64]) -> Option<i64> {
    let parameters = module.computation(module.entry()?).parameters();
    let number = usize::try_from(parameter).ok()?;
    let before = parameters.get(..number)?.iter().map(|&id| module.shape(id).leaves().len());
    let within = flat_place(module.shape(*parameters.get(number)?), part)?;
    i64::try_from(before.sum::<usize>().checked_add(within)?).ok()
}

/// Returns the number of an array among those of a shape.
fn flat_place(shape: &Shape, part: &[i64]) -> Option<usize> {
    let Some((&first, rest)) = part.split_first() else {
        return shape.as_tuple().is_none().then_some(0);
    };
    let parts = shape.as_tuple()?;
    let first = usize::try_from(first).ok()?;
    let before = parts.get(..first)?.iter().map(|part| part.leaves().len());
    before.sum::<usize>().checked_add(flat_place(parts.get(first)?, rest)?)
}

/// Returns the layouts of the entry's arrays, tuples flattened: of the parameters, and of the result, if one of
/// them is not row major or has tiles.
fn layouts(module: &Module) -> Attributes {
    let Some(entry) = module.entry() else { return Vec::new() };
    let entry = module.computation(entry);
    let (parameters, result): (Vec<&Shape>, Option<&Shape>) = match &module.header.entry_layout {
        Some(layout) => (layout.parameters.iter().collect(), Some(&layout.result)),
        None => {
            let parameters = entry.parameters().iter().map(|&id| module.shape(id));
            (parameters.collect(), entry.root().map(|root| module.shape(root)))
        }
    };
    let mut attributes = Attributes::new();
    for (of, shapes) in
        [("parameter_layouts", parameters), ("result_layout", result.into_iter().collect())]
    {
        let arrays: Vec<&Shape> = shapes.iter().flat_map(|shape| shape.leaves()).collect();
        let layouts: Vec<Layout> = arrays.into_iter().map(layout).collect();
        if layouts.iter().all(is_plain) {
            continue;
        }
        let orders = layouts.iter().map(|layout| super::attributes::order(&layout.minor_to_major));
        let name = format!("mhlo.xla_entry_computation_{of}");
        attributes.push((name.into(), Attribute::Array(orders.collect())));
        let tiles = layouts.iter().map(|layout| {
            Attribute::Array(
                layout.tiles.iter().map(|tile| super::attributes::sizes(&tile.dims)).collect(),
            )
        });
        let of = of.split('_').next().unwrap_or_default();
        let name = format!("mhlo.xla_entry_computation_{of}_tiles");
        attributes.push((name.into(), Attribute::Array(tiles.collect())));
    }
    attributes
}

/// Checks whether a layout is row major, without tiles.
pub(super) fn is_plain(layout: &Layout) -> bool {
    layout.minor_to_major.iter().rev().is_sorted() && layout.tiles.is_empty()
}

/// Returns the layout of a shape that is no tuple.
fn layout(shape: &Shape) -> Layout {
    shape.as_array().map(ArrayShape::layout_or_default).unwrap_or_default()
}

/// Returns the attributes of an operation that any instruction can have.
pub(super) fn common(extras: &Extras) -> Attributes {
    let mut attributes = frontend(&extras.frontend_attributes);
    attributes.extend(extras.sharding.as_deref().map(sharding));
    attributes
}

/// As [`common`], of an operation with one result: the sharding of a tuple of one array is that of the array.
pub(super) fn of_one(extras: &Extras) -> Attributes {
    let mut attributes = frontend(&extras.frontend_attributes);
    attributes.extend(extras.sharding.as_deref().map(|all| match all.leaves() {
        [only] => sharding(&Sharding::Leaf(only.clone())),
        _ => sharding(all),
    }));
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
        .map(|(name, value)| (name.clone(), Attribute::text(&unquoted(value))))
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
