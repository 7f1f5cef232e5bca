//! Operations as instructions, by the rows of their ops.

use tilewright_ir::ops::attr::{AttrValue, AttrValues};
use tilewright_ir::ops::elementwise::CompareOrder;
use tilewright_ir::{InstId, Op, Opcode, Shape};

use super::body::Body;
use super::error::{Import, ImportError};
use super::{forms, special};
use crate::dialect;
use crate::mlir::Operation;

/// Converts an operation.
pub(crate) type Convert = for<'i, 'p> fn(&mut Body<'i, 'p>, &'p Operation) -> Import<()>;

/// The advice to a user whose program has an operation that is not converted.
fn why_not(name: &str) -> &'static str {
    match name.split_once('.') {
        Some(("stablehlo" | "mhlo" | "sdy", _)) => "is not read here yet; write it by other ops",
        Some(("chlo", _)) => {
            "is not read here, or not of these types; legalize it first (`stablehlo-opt --chlo-legalize-to-stablehlo`)"
        }
        _ => "is of a dialect that XLA does not convert; lower it to StableHLO first",
    }
}

impl<'p> Body<'_, 'p> {
    /// Converts an operation and binds its results.
    pub(super) fn convert(&mut self, operation: &'p Operation) -> Import<()> {
        let Some(op) = dialect::op(&operation.name) else {
            return Err(ImportError::unsupported(operation, why_not(&operation.name)));
        };
        if self.convert_quantized(op, operation)? {
            return Ok(());
        }
        self.by_row(op, operation)
    }

    /// Converts an operation by the row of its op.
    pub(super) fn by_row(
        &mut self,
        op: &'static dialect::Op,
        operation: &'p Operation,
    ) -> Import<()> {
        if let Some(convert) = op.convert {
            return convert(self, operation);
        }
        let operands = self.operands(operation)?;
        let id = self.apply(op, operation, &operands)?;
        self.bind(operation, id)
    }

    /// Adds the instructions of an op, whose attributes an operation has, on these operands.
    pub(super) fn apply(
        &mut self,
        op: &dialect::Op,
        operation: &'p Operation,
        operands: &[InstId],
    ) -> Import<InstId> {
        if let Some(function) = &op.function
            && let Some(id) = self.compute(function, operands)?
        {
            return Ok(id);
        }
        let Some(opcode) = op.opcode else {
            return Err(ImportError::unsupported(operation, why_not(&operation.name)));
        };
        let mut values = self.values_by(op, operation)?;
        let instruction = with_values(opcode, operation, &mut values)?;
        let instruction = self.adjusted(operation, instruction)?;
        let shape = self.result_shape(operation)?;
        self.emit(instruction, shape, operands)
    }

    /// Reads an op of HLO by the row of an operation.
    pub(super) fn op(&mut self, opcode: Opcode, operation: &'p Operation) -> Import<Op> {
        let mut values = self.values(operation)?;
        with_values(opcode, operation, &mut values)
    }

    /// Reads the attributes of an operation, with its regions as computations.
    pub(super) fn values(&mut self, operation: &'p Operation) -> Import<AttrValues> {
        match dialect::op(&operation.name) {
            Some(op) => self.values_by(op, operation),
            None => Err(ImportError::unsupported(operation, why_not(&operation.name))),
        }
    }

    fn values_by(&mut self, op: &dialect::Op, operation: &'p Operation) -> Import<AttrValues> {
        let mut values = forms::read(self.importer.program, op, operation)?;
        if op.regions.len() != operation.regions.len() {
            let why = format!("has {} regions, not {}", op.regions.len(), operation.regions.len());
            return Err(ImportError::malformed(operation, &why));
        }
        for (attribute, region) in op.regions.iter().zip(&operation.regions) {
            let computation = self.region(operation, region)?;
            values.insert(attribute, AttrValue::Computation(computation));
        }
        Ok(values)
    }

    /// Attributes that HLO leaves out if they are the default for the operands.
    fn adjusted(&self, operation: &Operation, mut op: Op) -> Import<Op> {
        let first = match operation.operands.first() {
            Some(&first) => self.shape_of(operation, first)?,
            None => return Ok(op),
        };
        let Shape::Array(first) = first else { return Ok(op) };
        match &mut op {
            // A sign says nothing about integers, whose types have it and whose order is total, and means
            // the total order of floats.
            Op::Compare(attrs) => match (attrs.order, special::default_order(first.element_type)) {
                (Some(CompareOrder::Signed | CompareOrder::Unsigned), CompareOrder::Float) => {
                    attrs.order = Some(CompareOrder::TotalOrder);
                }
                (order, default) if order == Some(default) => attrs.order = None,
                (Some(CompareOrder::Float), _) | (_, CompareOrder::Float) => {}
                _ => attrs.order = None,
            },
            Op::Sort(attrs) => {
                let rank = i64::try_from(first.rank()).unwrap_or(i64::MAX);
                attrs.dimensions.iter_mut().filter(|dim| **dim < 0).for_each(|dim| *dim += rank);
            }
            _ => {}
        }
        Ok(op)
    }
}

/// Returns an op of HLO with these attributes.
pub(super) fn with_values(
    opcode: Opcode,
    operation: &Operation,
    values: &mut AttrValues,
) -> Import<Op> {
    Op::from_attrs(opcode, values)
        .map_err(|error| ImportError::malformed(operation, &error.to_string()))
}
