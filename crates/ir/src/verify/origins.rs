//! Checks that a value has one origin per array.

use super::Report;
use crate::diag::DiagnosticPlace;
use crate::entity::InstId;
use crate::metadata::{Origin, OriginTree};
use crate::module::Module;
use crate::types::shape::Shape;

pub(super) fn check(module: &Module, id: InstId, report: &mut Report) {
    let origin = module.extras(id).and_then(|extras| extras.origin.as_deref());
    let Some(Origin::Value(tree)) = origin else { return };
    if !fits(module.shape(id), tree) {
        let message = format!(
            "the origin has not the form of the shape {}; write one for each of its arrays, in \
             parentheses as the tuples have them",
            module.shape(id).without_layout()
        );
        report.add(super::ORIGIN, DiagnosticPlace::Instruction(id), message);
    }
}

/// Checks whether both have values at the same tuple indices.
fn fits(shape: &Shape, tree: &OriginTree) -> bool {
    match (shape, tree) {
        (Shape::Tuple(shapes), OriginTree::Tuple(trees)) => {
            shapes.len() == trees.len() && shapes.iter().zip(trees).all(|(s, t)| fits(s, t))
        }
        (
            Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque,
            OriginTree::Array(_),
        ) => true,
        _ => false,
    }
}
