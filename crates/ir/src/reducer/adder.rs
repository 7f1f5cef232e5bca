//! The computation that adds two scalars of a type.

use super::Monoid;
use super::scalar_computation::{parameters, scalar_computation};
use crate::edit::{EditError, Position};
use crate::entity::CompId;
use crate::module::Module;
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
    let id = scalar_computation(module, &format!("add_{element_type}"), caller);
    let operands = parameters(module, id, &[element_type; 2])?;
    let name = module.fresh_name(Opcode::Add.name());
    let shape = Shape::scalar(element_type);
    let sum = module.insert(Position::End(id), Op::Add, shape, &operands, name)?;
    module.set_root(sum)?;
    Ok(id)
}
