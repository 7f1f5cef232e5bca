//! Attributes of the module as its header.

use tilewright_ir::{CompId, Module, ProgramShape, Shape};

use super::body::fill_layouts;
use super::error::Import;
use super::shardings;
use crate::mlir::{Attribute, Program};

/// Sets the header of a module.
pub(super) fn set(program: &Program, module: &mut Module, entry: CompId) -> Import<()> {
    module.header.frontend_attributes = shardings::frontend(&program.module.attributes);
    let computation = module.computation(entry);
    let parameters = computation.parameters().iter();
    let mut parameters: Vec<Shape> = parameters.map(|&id| row_major(module.shape(id))).collect();
    let root = computation.root();
    let mut result = root.map_or(Shape::Tuple(Vec::new()), |id| row_major(module.shape(id)));
    layouts(program, "mhlo.xla_entry_computation_parameter_layouts", &mut parameters);
    layouts(program, "mhlo.xla_entry_computation_result_layout", std::slice::from_mut(&mut result));
    module.header.entry_layout = Some(ProgramShape { parameters, result });
    Ok(())
}

/// The layouts of parameters and results are row-major unless the program says otherwise.
fn row_major(shape: &Shape) -> Shape {
    let mut shape = shape.without_layout();
    fill_layouts(&mut shape);
    shape
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
            let order = super::attributes::integers(order).unwrap_or_default();
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
