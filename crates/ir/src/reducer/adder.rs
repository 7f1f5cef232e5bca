//! The computation that adds two scalars of a type.

use super::Monoid;
use crate::edit::{EditError, Position};
use crate::entity::CompId;
use crate::module::Module;
use crate::ops::shaping::ParameterAttrs;
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::shape::Shape;

/// Returns a computation that adds two scalars of a type, and stands before the computation
/// `caller`; adds one if there is none.
///
/// # Errors
/// Returns an error if the module cannot be edited.
pub fn adder(
    module: &mut Module,
    element_type: ElementType,
    caller: CompId,
) -> Result<CompId, EditError> {
    let sum = Monoid { opcode: Opcode::Add, element_type };
    let before = module.computations().iter().take_while(|&&id| id != caller);
    let known = before.copied().find(|&id| Monoid::of(module, id) == Some(sum));
    known.map_or_else(|| add(module, element_type, caller), Ok)
}

/// Adds such a computation.
fn add(
    module: &mut Module,
    element_type: ElementType,
    caller: CompId,
) -> Result<CompId, EditError> {
    let is_taken = |name: &str| {
        let mut computations = module.computations().iter();
        computations.any(|&id| module.computation(id).name() == name)
    };
    let stem = format!("add_{element_type}");
    let mut names =
        std::iter::once(stem.clone()).chain((1u64..).map(|number| format!("{stem}.{number}")));
    let name = names.find(|name| !is_taken(name)).unwrap_or_default();
    let id = module.add_computation_before(name, caller);
    let scalar = Shape::scalar(element_type);
    let mut add = |op: Op, operands: &[_]| {
        let name = module.fresh_name(op.opcode().name());
        module.insert(Position::End(id), op, scalar.clone(), operands, name)
    };
    let parameter = |number| Op::Parameter(Box::new(ParameterAttrs { number }));
    let operands = [add(parameter(0), &[])?, add(parameter(1), &[])?];
    let sum = add(Op::Add, &operands)?;
    module.set_root(sum)?;
    Ok(id)
}
