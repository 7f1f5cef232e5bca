//! Elementwise ops.

use super::error::misfit;
use super::{BuildError, Builder};
use crate::entity::{CompId, InstId};
use crate::ops::control::MapAttrs;
use crate::ops::elementwise::{CompareAttrs, Direction, ReducePrecisionAttrs};
use crate::ops::{Op, Opcode};
use crate::types::element::ElementType;
use crate::types::shape::{Dims, Shape};

impl Builder {
    /// Adds an elementwise op of one operand without attributes, such as `negate`,
    /// `exponential` or `is-finite`; the result has the operand's dims.
    ///
    /// # Errors
    /// Returns an error if `opcode` is another kind of op, or does not take elements of this
    /// type.
    pub fn unary(&mut self, opcode: Opcode, operand: InstId) -> Result<InstId, BuildError> {
        let op = elementwise("unary", opcode, 1)?;
        self.made("unary", op, None, &[operand])
    }

    /// Adds an elementwise op of two operands without attributes, such as `add`,
    /// `maximum` or `shift-left`. Operands and result have the same dims:
    /// [`Builder::broadcast`] a smaller operand before.
    ///
    /// # Errors
    /// Returns an error if `opcode` is another kind of op, the operands differ in type or dims,
    /// or it does not take elements of this type.
    pub fn binary(
        &mut self,
        opcode: Opcode,
        lhs: InstId,
        rhs: InstId,
    ) -> Result<InstId, BuildError> {
        let op = elementwise("binary", opcode, 2)?;
        self.made("binary", op, None, &[lhs, rhs])
    }

    /// Adds a comparison: `pred` in the dims of the operands. Floats are compared
    /// as IEEE 754 does, integers as numbers.
    ///
    /// # Errors
    /// Returns an error if the operands differ in type or dims.
    pub fn compare(
        &mut self,
        direction: Direction,
        lhs: InstId,
        rhs: InstId,
    ) -> Result<InstId, BuildError> {
        let attrs = CompareAttrs { direction, order: None };
        self.made("compare", Op::Compare(Box::new(attrs)), None, &[lhs, rhs])
    }

    /// Adds a conversion of each element to the nearest of another type.
    ///
    /// # Errors
    /// Returns an error if the operand is not an array.
    pub fn convert(
        &mut self,
        operand: InstId,
        element_type: ElementType,
    ) -> Result<InstId, BuildError> {
        let shape = self.array("convert", operand)?.without_layout();
        let shape = shape.with_element_type(element_type).into();
        self.made("convert", Op::Convert, Some(shape), &[operand])
    }

    /// Adds a rounding of floats to this many bits of exponent and mantissa; the result has the
    /// operand's shape.
    ///
    /// # Errors
    /// Returns an error if the operand is not an array of floats, there is no bit of exponent,
    /// or the number of bits is negative.
    pub fn reduce_precision(
        &mut self,
        operand: InstId,
        exponent_bits: i64,
        mantissa_bits: i64,
    ) -> Result<InstId, BuildError> {
        let attrs = ReducePrecisionAttrs { exponent_bits, mantissa_bits };
        let op = Op::ReducePrecision(Box::new(attrs));
        self.made("reduce_precision", op, None, &[operand])
    }

    /// Adds a choice: the element of `on_true` where `pred` holds, or else that of
    /// `on_false`. `pred` is a scalar or has the dims of the values.
    ///
    /// # Errors
    /// Returns an error if the values differ in type or dims, or `pred` has another shape.
    pub fn select(
        &mut self,
        pred: InstId,
        on_true: InstId,
        on_false: InstId,
    ) -> Result<InstId, BuildError> {
        self.made("select", Op::Select, None, &[pred, on_true, on_false])
    }

    /// Adds a clamp: elements below `min` become `min`, and elements above `max`
    /// become `max`. Each bound is a scalar or has the operand's shape, which is
    /// also the result's.
    ///
    /// # Errors
    /// Returns an error if a bound differs from the operand in type, or in dims without being a
    /// scalar.
    pub fn clamp(
        &mut self,
        min: InstId,
        operand: InstId,
        max: InstId,
    ) -> Result<InstId, BuildError> {
        self.made("clamp", Op::Clamp, None, &[min, operand, max])
    }

    /// Adds a computation's application to each tuple of elements at one index.
    /// The operands have the same dims, and the computation takes and yields
    /// scalars.
    ///
    /// # Errors
    /// Returns an error if the operands differ in dims, or the computation does not take their
    /// elements or does not yield a scalar.
    pub fn map(
        &mut self,
        operands: impl AsRef<[InstId]>,
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        let operands = operands.as_ref();
        let Some(&first) = operands.first() else {
            return Err(misfit("map", "operands", "operands: it takes one operand at least"));
        };
        let dimensions: Dims =
            (0..).zip(self.array("map", first)?.dims()).map(|(dim, _)| dim).collect();
        let op = Op::Map(Box::new(MapAttrs { dimensions, to_apply }));
        self.made("map", op, None, operands)
    }

    /// Adds a computation of two scalars of one type, for [`Builder::reduce`] and other ops
    /// that combine elements. Its name is the name of the op, with a number if other
    /// computations have that name.
    ///
    /// # Errors
    /// Returns an error if `opcode` is not an elementwise op of two operands without
    /// attributes, or does not take elements of this type.
    pub fn reducer(
        &mut self,
        opcode: Opcode,
        element_type: ElementType,
    ) -> Result<CompId, BuildError> {
        let op = elementwise("reducer", opcode, 2)?;
        let name = self.free_computation_name(opcode.name());
        self.computation(&name, |b| {
            let lhs = b.parameter("lhs", Shape::scalar(element_type))?;
            let rhs = b.parameter("rhs", Shape::scalar(element_type))?;
            b.made("reducer", op, None, &[lhs, rhs])
        })
    }
}

/// Returns the elementwise op with this many operands that needs no attributes.
fn elementwise(method: &'static str, opcode: Opcode, operands: usize) -> Result<Op, BuildError> {
    let is_one = opcode.is_elementwise() && opcode.arity().admits(operands);
    if !is_one {
        let count = if operands == 1 { "one operand" } else { "two operands" };
        let why = format!("opcode: `{opcode}` is not an elementwise op of {count}");
        return Err(misfit(method, "opcode", why));
    }
    let needs_more = matches!(opcode, Opcode::Convert | Opcode::StochasticConvert);
    let op = Op::from_attrs(opcode, &mut Default::default()).ok().filter(|_| !needs_more);
    op.ok_or_else(|| {
        let why = match opcode {
            Opcode::Compare => "its direction: call `compare`",
            Opcode::Convert => "the type of its result: call `convert`",
            Opcode::StochasticConvert => "the type of its result: call `op_with_shape`",
            Opcode::ReducePrecision => "the numbers of its bits: call `reduce_precision`",
            _ => "attributes: call `op`",
        };
        misfit(method, "opcode", format!("opcode: `{opcode}` needs {why}"))
    })
}
