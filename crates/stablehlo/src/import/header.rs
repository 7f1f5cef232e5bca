//! Attributes of the module as its header.

use tilewright_ir::metadata::InputOutputAlias;
use tilewright_ir::{CompId, Dims, Module, ProgramShape, Shape};

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
    layouts(program, "mhlo.xla_entry_computation_parameter_layouts", &mut parameters);
    layouts(program, "mhlo.xla_entry_computation_result_layout", std::slice::from_mut(&mut result));
    module.header.entry_layout = Some(ProgramShape { parameters, result });
    Ok(())
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

/// Sets the orders of dims that an attribute lists, one for each shape.
fn layouts(program: &Program, name: &str, shapes: &mut [Shape]) {
    let Some(Attribute::Array(list)) = program.module.attribute(name) else { return };
    for (shape, order) in shapes.iter_mut().zip(list) {
        set_order(shape, order);
    }
}

fn set_order(shape: &mut Shape, order: &Attribute) {
    match (shape, order) {
        (Shape::Array(array), order) => {
            let order = integers(order).unwrap_or_default();
            let order: Vec<u32> = order.iter().filter_map(|&dim| dim.try_into().ok()).collect();
            if order.len() == array.rank()
                && let Some(layout) = &mut array.layout
            {
                layout.minor_to_major = order.into_iter().collect();
            }
        }
        (Shape::Tuple(elements), Attribute::Array(orders)) => {
            for (element, order) in elements.iter_mut().zip(orders) {
                set_order(element, order);
            }
        }
        _ => {}
    }
}
