//! `stablehlo.reduce`.

use super::form::integers;
use super::{Fit, Label, Printer, Unfit};
use crate::dialect::Types;
use crate::mlir::{Attribute, Block, DenseArray, Operation, Scalar, TensorType, Type, Value};

/// The operations that the short form names: those that commute.
const COMMUTATIVE: &[&str] = &["add", "and", "maximum", "minimum", "multiply", "or", "xor"];

impl<'p> Printer<'p> {
    /// `(%a init: %b), ... applies stablehlo.add across dimensions = [0] : type`, or without
    /// `applies`, and the region after the type.
    pub(super) fn reduce(&mut self, operation: &'p Operation, depth: usize) -> Fit {
        let half = operation.operands.len().checked_div(2).ok_or(Unfit)?;
        let (inputs, inits) = operation.operands.split_at_checked(half).ok_or(Unfit)?;
        let dimensions = match operation.attribute("dimensions") {
            Some(Attribute::DenseArray(DenseArray::I64(dimensions))) => dimensions,
            _ => return Err(Unfit),
        };
        let ([region], false) = (operation.regions.as_slice(), inputs.is_empty()) else {
            return Err(Unfit);
        };
        let ([block], true) = (region.blocks.as_slice(), inputs.len() == inits.len()) else {
            return Err(Unfit);
        };
        let (first, second) = block.arguments.split_at_checked(half).ok_or(Unfit)?;
        if first.len() != second.len() {
            return Err(Unfit);
        }
        for (at, (&input, &init)) in inputs.iter().zip(inits).enumerate() {
            self.out.push_str(if at > 0 { ", (" } else { "(" });
            self.value(input);
            self.out.push_str(" init: ");
            self.value(init);
            self.out.push(')');
        }
        let applied = self.short_reduction(operation);
        if let Some(name) = applied {
            self.out.push_str(&format!(" applies {name}"));
        }
        self.out.push_str(" across dimensions = ");
        integers(&mut self.out, dimensions);
        self.dictionary_without(operation, |name| name == "dimensions");
        self.out.push_str(" : ");
        self.form_types(Types::Function, operation)?;
        if applied.is_none() {
            self.out.push('\n');
            self.indent(depth);
            self.out.push_str(" reducer");
            for (&x, &y) in first.iter().zip(second) {
                self.out.push('(');
                self.argument(x);
                self.out.push_str(", ");
                self.argument(y);
                self.out.push_str(") ");
            }
            self.out.push(' ');
            self.region(region, depth, Label::Hidden, "");
        }
        Ok(())
    }

    /// The operation that a reduction applies to the elements, if it is one that commutes and
    /// nothing else is there.
    pub(super) fn short_reduction(&self, reduction: &'p Operation) -> Option<&'p str> {
        let [region] = reduction.regions.as_slice() else { return None };
        let [Block { arguments, operations }] = region.blocks.as_slice() else { return None };
        let [inner, last] = operations.as_slice() else { return None };
        let (dialect, name) = inner.name.split_once('.')?;
        let is_simple = reduction.name.strip_prefix(dialect) == Some(".reduce")
            && COMMUTATIVE.contains(&name)
            && inner.attributes.is_empty()
            && inner.regions.is_empty()
            && inner.operands.as_slice() == arguments.as_slice()
            && last.name.strip_prefix(dialect) == Some(".return")
            && last.attributes.is_empty()
            && last.operands == inner.results;
        if !is_simple {
            return None;
        }
        let ([x, y], [result]) = (arguments.as_slice(), inner.results.as_slice()) else {
            return None;
        };
        let scalar = scalar_of(self.type_of(*reduction.operands.first()?))?;
        let is_scalar = |value: &Value| *self.type_of(*value) == scalar;
        ([x, y, result].into_iter().all(is_scalar) && reduction.operands.len() == 2)
            .then_some(inner.name.as_str())
    }
}

/// The type of a scalar with the elements of a tensor.
fn scalar_of(ty: &Type) -> Option<Type> {
    let element: &Scalar = match ty {
        Type::Tensor(tensor) => &tensor.element,
        Type::UnrankedTensor(element) => element,
        _ => return None,
    };
    let (dims, element) = (Default::default(), element.clone());
    Some(Type::Tensor(TensorType { dims, element, encoding: None }))
}
