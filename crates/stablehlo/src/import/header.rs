//! Attributes of the module as its header.

use tilewright_ir::layout::Tile;
use tilewright_ir::metadata::InputOutputAlias;
use tilewright_ir::{CompId, Dims, Layout, Module, ProgramShape, Shape};

use super::attributes::{integer, integers, text};
use super::error::Import;
use super::shardings;
use crate::mlir::{Attribute, Program, value_of};

/// Sets the header of a module.
pub(super) fn set(program: &Program, module: &mut Module, entry: CompId) -> Import<()> {
    aliases(program, module);
    module.header.frontend_attributes = shardings::frontend(&program.module.attributes);
    let computation = module.computation(entry);
    let parameters = computation.parameters().iter();
    let mut parameters: Vec<Shape> = parameters.map(|&id| module.shape(id).clone()).collect();
    let root = computation.root();
    let mut result = root.map_or(Shape::Tuple(Vec::new()), |id| module.shape(id).clone());
    let [name, tiles] = ["parameter_layouts", "parameter_tiles"].map(of_entry);
    layouts(program, &name, &tiles, &mut parameters);
    let [name, tiles] = ["result_layout", "result_tiles"].map(of_entry);
    layouts(program, &name, &tiles, std::slice::from_mut(&mut result));
    module.header.entry_layout = Some(ProgramShape { parameters, result });
    Ok(())
}

fn of_entry(name: &str) -> String {
    format!("mhlo.xla_entry_computation_{name}")
}

/// Adds the aliases of `mhlo.input_output_alias`, which XLA writes when it converts HLO.
fn aliases(program: &Program, module: &mut Module) {
    let Some(Attribute::Array(list)) = program.module.attribute("mhlo.input_output_alias") else {
        return;
    };
    let aliases: Vec<InputOutputAlias> = list.iter().filter_map(alias).collect();
    if !aliases.is_empty() {
        module.header.input_output_alias = aliases;
    }
}

fn alias(entry: &Attribute) -> Option<InputOutputAlias> {
    let Attribute::Dictionary(entry) = entry else { return None };
    let Some(Attribute::Dictionary(alias)) = value_of(entry, "alias") else { return None };
    let indices = |entries, name| -> Option<Dims> {
        let list = integers(value_of(entries, name)?)?;
        Some(list.into_iter().collect())
    };
    Some(InputOutputAlias {
        output: indices(entry, "output_index")?,
        parameter: integer(value_of(alias, "parameter_number")?)?,
        parameter_part: indices(alias, "parameter_index").unwrap_or_default(),
        must: value_of(alias, "kind").and_then(text).is_some_and(|kind| kind == "must_alias"),
    })
}

/// Sets the layouts that attributes list: one for each array, or one for each shape, with lists for tuples, as
/// older versions wrote them.
fn layouts(program: &Program, name: &str, tiles: &str, shapes: &mut [Shape]) {
    let list = |name| match program.module.attribute(name) {
        Some(Attribute::Array(list)) => list.as_slice(),
        _ => &[],
    };
    let mut all = Vec::new();
    arrays(shapes, &mut all);
    for (layout, order) in all.iter_mut().zip(flat(list(name))) {
        let Some(layout) = layout else { continue };
        let order = integers(order).unwrap_or_default();
        let order: Vec<u32> = order.iter().filter_map(|&dim| dim.try_into().ok()).collect();
        if order.len() == layout.minor_to_major.len() {
            layout.minor_to_major = order.into_iter().collect();
        }
    }
    for (layout, tiles) in all.into_iter().zip(list(tiles)) {
        let (Some(layout), Attribute::Array(tiles)) = (layout, tiles) else { continue };
        let tile = |dims: Vec<i64>| Tile { dims: dims.into_iter().collect() };
        layout.tiles = tiles.iter().filter_map(integers).map(tile).collect();
    }
}

/// Adds the layouts of all parts that are no tuples, in order. Tokens and their like have none.
fn arrays<'s>(shapes: &'s mut [Shape], all: &mut Vec<Option<&'s mut Layout>>) {
    for shape in shapes {
        match shape {
            Shape::Array(array) => all.push(array.layout.as_mut()),
            Shape::Tuple(parts) => arrays(parts, all),
            Shape::Buffer(_) | Shape::Token | Shape::Opaque => all.push(None),
        }
    }
}

/// Returns the entries of nested lists.
fn flat(list: &[Attribute]) -> Vec<&Attribute> {
    let mut entries = Vec::new();
    let mut rest: Vec<&Attribute> = list.iter().rev().collect();
    while let Some(attribute) = rest.pop() {
        match attribute {
            Attribute::Array(list) => rest.extend(list.iter().rev()),
            entry => entries.push(entry),
        }
    }
    entries
}
