//! Every declared shape is the one its op yields; entry layouts match.

use smallvec::SmallVec;

use super::Report;
use crate::diag::{Code, Place};
use crate::infer::{ShapeErrorKind, infer_shape};
use crate::module::Module;
use crate::types::shape::Shape;

pub(super) fn check(module: &Module, report: &mut Report) {
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            if report.is_exhausted() {
                return;
            }
            let operands: SmallVec<[&Shape; 4]> =
                module.operands(id).iter().map(|&o| module.shape(o)).collect();
            let declared = module.shape(id);
            if report.is_full() {
                let parts = operands.iter().map(|shape| shape.leaves().len());
                report.spend(parts.sum::<usize>() + declared.leaves().len());
            }
            if let Err(error) = infer_shape(module, module.op(id), &operands, Some(declared)) {
                report.add(code_of(error.kind), Place::Instruction(id), error.message);
            }
        }
    }
    check_entry_layout(module, report);
}

fn code_of(kind: ShapeErrorKind) -> Code {
    match kind {
        ShapeErrorKind::OperandCount => super::OPERAND_COUNT,
        ShapeErrorKind::Operand => super::OPERAND,
        ShapeErrorKind::Attribute => super::ATTRIBUTE,
        ShapeErrorKind::Result => super::RESULT,
        ShapeErrorKind::NeedsShape => super::NEEDS_SHAPE,
        ShapeErrorKind::Callee => super::CALLEE,
    }
}

fn check_entry_layout(module: &Module, report: &mut Report) {
    let (Some(entry), Some(layout)) = (module.entry(), &module.header.entry_layout) else { return };
    let computation = module.computation(entry);
    let parameters = computation.parameters();
    if parameters.len() != layout.parameters.len() {
        let message = format!(
            "entry_computation_layout has {} parameters, but the entry `{}` has {}",
            layout.parameters.len(),
            computation.name(),
            parameters.len()
        );
        report.add(super::ENTRY_LAYOUT, Place::Module, message);
        return;
    }
    for (i, (&parameter, expected)) in parameters.iter().zip(&layout.parameters).enumerate() {
        if !module.shape(parameter).compatible(expected) {
            let message = format!(
                "entry_computation_layout says {expected} for parameter {i}, which is {}",
                module.shape(parameter)
            );
            report.add(super::ENTRY_LAYOUT, Place::Instruction(parameter), message);
        }
    }
    if let Some(root) = computation.root()
        && !module.shape(root).compatible(&layout.result)
    {
        let message = format!(
            "entry_computation_layout says {} for the result, which is {}",
            layout.result,
            module.shape(root)
        );
        report.add(super::ENTRY_LAYOUT, Place::Instruction(root), message);
    }
}
