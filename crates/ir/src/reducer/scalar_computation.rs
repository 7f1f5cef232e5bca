//! Makes computations on scalars, for reduces.

use crate::edit::{EditError, Position};
use crate::entity::{CompId, InstId};
use crate::module::Module;
use crate::ops::shaping::ParameterAttrs;
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::shape::Shape;

/// Adds an empty computation before the computation `caller`. Its name begins with `stem`, and is
/// no other computation's.
pub(super) fn scalar_computation(module: &mut Module, stem: &str, caller: CompId) -> CompId {
    let is_taken = |name: &str| {
        let mut computations = module.computations().iter();
        computations.any(|&id| module.computation(id).name() == name)
    };
    let numbered = (1u64..).map(|number| format!("{stem}.{number}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    let name = names.find(|name| !is_taken(name)).unwrap_or_default();
    module.add_computation_before(name, caller)
}

/// Adds parameters of these types to an empty computation.
pub(super) fn parameters(
    module: &mut Module,
    computation: CompId,
    element_types: &[ElementType],
) -> Result<Vec<InstId>, EditError> {
    let parameter = |(number, &element_type)| {
        let name = module.fresh_name(Opcode::Parameter.name());
        let op = Op::Parameter(Box::new(ParameterAttrs { number }));
        module.insert(Position::End(computation), op, Shape::scalar(element_type), &[], name)
    };
    (0i64..).zip(element_types).map(parameter).collect()
}
