//! Operations in the generic form among pretty ones: those that have no other in MLIR.

use super::super::{attribute, quoted, types};
use super::{Label, Printer};
use crate::dialect;
use crate::mlir::{Attribute, Operation};

use smol_str::SmolStr;

impl<'p> Printer<'p> {
    /// Writes `"name"(operands) <{properties}> ({regions}) {attributes} : type`.
    pub(super) fn generic(&mut self, operation: &'p Operation, depth: usize) {
        quoted(&mut self.out, operation.name.as_bytes());
        self.out.push('(');
        self.values(&operation.operands);
        self.out.push(')');
        let mut sorted: Vec<&(SmolStr, Attribute)> = operation.attributes.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        let op = dialect::op(&operation.name);
        let (inherent, others): (Vec<_>, Vec<_>) = sorted
            .into_iter()
            .partition(|(name, _)| op.is_some_and(|op| op.attribute(name).is_some()));
        if !inherent.is_empty() {
            self.out.push_str(" <");
            attribute::dictionary_of(&mut self.out, &inherent, 0);
            self.out.push('>');
        }
        for (number, region) in operation.regions.iter().enumerate() {
            self.out.push_str(if number > 0 { ", " } else { " (" });
            self.region(region, depth, Label::Shown, "");
        }
        if !operation.regions.is_empty() {
            self.out.push(')');
        }
        if !others.is_empty() {
            self.out.push(' ');
            attribute::dictionary_of(&mut self.out, &others, 0);
        }
        self.out.push_str(" : ");
        self.function_type(operation);
    }

    /// Writes `(operands) -> results`.
    pub(super) fn function_type(&mut self, operation: &Operation) {
        let program = self.program;
        let ty = |value: &crate::mlir::Value| {
            program.type_of(*value).unwrap_or(&crate::mlir::Type::None)
        };
        let (operands, results) = (operation.operands.iter(), operation.results.iter());
        types::signature(&mut self.out, operands.map(ty), results.map(ty), 0);
    }
}
