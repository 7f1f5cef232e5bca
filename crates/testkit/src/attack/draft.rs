//! A program under construction: ops on values, with the broadcasts that they need.

use std::collections::BTreeMap;

use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, BuildError, Builder, CompId, Dims, ElementType, InstId, Literal, Op,
    Opcode, Shape,
};

use crate::generate::graph::data;

/// The result of a step that makes a part of a program.
pub(super) type Made<T> = Result<T, BuildError>;

/// A builder with the reducers made so far.
pub(super) struct Draft {
    pub(super) b: Builder,
    reducers: BTreeMap<(Opcode, ElementType), CompId>,
}

impl Draft {
    pub(super) fn new(name: &str) -> Self {
        Self { b: Builder::new(name), reducers: BTreeMap::new() }
    }

    fn array(&self, value: InstId) -> Made<&ArrayShape> {
        self.b.array_shape(value)
    }

    pub(super) fn dims(&self, value: InstId) -> Made<Dims> {
        Ok(self.array(value)?.dims().into())
    }

    pub(super) fn element(&self, value: InstId) -> Made<ElementType> {
        Ok(self.array(value)?.element_type)
    }

    pub(super) fn is_float(&self, value: InstId) -> bool {
        self.array(value).is_ok_and(|array| array.element_type.is_float())
    }

    pub(super) fn parameter(
        &mut self,
        name: &str,
        element: ElementType,
        dims: &[i64],
    ) -> Made<InstId> {
        self.b.parameter(name, Shape::array(element, dims.iter().copied()))
    }

    pub(super) fn scalar(&mut self, element: ElementType, number: f64) -> Made<InstId> {
        let array = ArrayLiteral::new(element, [], data(element, &[number]))?;
        self.b.constant(Literal::Array(array))
    }

    /// Returns a number in every place of an array like this one.
    pub(super) fn splat(&mut self, like: InstId, number: f64) -> Made<InstId> {
        let (element, dims) = (self.element(like)?, self.dims(like)?);
        let scalar = self.scalar(element, number)?;
        if dims.is_empty() { Ok(scalar) } else { self.b.broadcast(scalar, &dims, []) }
    }

    pub(super) fn un(&mut self, opcode: Opcode, value: InstId) -> Made<InstId> {
        self.b.unary(opcode, value)
    }

    pub(super) fn bin(&mut self, opcode: Opcode, left: InstId, right: InstId) -> Made<InstId> {
        self.b.binary(opcode, left, right)
    }

    pub(super) fn add(&mut self, left: InstId, right: InstId) -> Made<InstId> {
        self.bin(Opcode::Add, left, right)
    }

    pub(super) fn sub(&mut self, left: InstId, right: InstId) -> Made<InstId> {
        self.bin(Opcode::Subtract, left, right)
    }

    pub(super) fn mul(&mut self, left: InstId, right: InstId) -> Made<InstId> {
        self.bin(Opcode::Multiply, left, right)
    }

    pub(super) fn div(&mut self, left: InstId, right: InstId) -> Made<InstId> {
        self.bin(Opcode::Divide, left, right)
    }

    pub(super) fn times(&mut self, value: InstId, number: f64) -> Made<InstId> {
        let number = self.splat(value, number)?;
        self.mul(value, number)
    }

    pub(super) fn plus(&mut self, value: InstId, number: f64) -> Made<InstId> {
        let number = self.splat(value, number)?;
        self.add(value, number)
    }

    pub(super) fn convert(&mut self, value: InstId, element: ElementType) -> Made<InstId> {
        if self.element(value)? == element {
            return Ok(value);
        }
        let shape = Shape::array(element, self.dims(value)?);
        self.b.op_with_shape(Op::Convert, shape, [value])
    }

    /// 1 where both are equal and 0 where not, in their type.
    pub(super) fn equals(&mut self, left: InstId, right: InstId) -> Made<InstId> {
        let same = self.b.compare(Direction::Eq, left, right)?;
        let element = self.element(left)?;
        self.convert(same, element)
    }

    pub(super) fn select(&mut self, which: InstId, yes: InstId, no: InstId) -> Made<InstId> {
        self.b.op(Op::Select, [which, yes, no])
    }

    pub(super) fn reshape(&mut self, value: InstId, dims: &[i64]) -> Made<InstId> {
        if self.dims(value)?[..] == *dims { Ok(value) } else { self.b.reshape(value, dims) }
    }

    pub(super) fn sum(&mut self, value: InstId, reduced: &[i64]) -> Made<InstId> {
        self.reduce(Opcode::Add, value, reduced)
    }

    pub(super) fn max(&mut self, value: InstId, reduced: &[i64]) -> Made<InstId> {
        self.reduce(Opcode::Maximum, value, reduced)
    }

    /// Returns a sum, maximum or minimum along dims, from what adds nothing.
    pub(super) fn reduce(
        &mut self,
        opcode: Opcode,
        value: InstId,
        reduced: &[i64],
    ) -> Made<InstId> {
        let element = self.element(value)?;
        let init = match opcode {
            Opcode::Maximum if element.is_float() => f64::NEG_INFINITY,
            Opcode::Minimum if element.is_float() => f64::INFINITY,
            // Integers saturate.
            Opcode::Maximum => f64::MIN,
            Opcode::Minimum => f64::MAX,
            _ => 0.0,
        };
        self.reduce_from(init, opcode, value, reduced)
    }

    /// Returns a sum, maximum or minimum along dims, from a number.
    pub(super) fn reduce_from(
        &mut self,
        init: f64,
        opcode: Opcode,
        value: InstId,
        reduced: &[i64],
    ) -> Made<InstId> {
        let element = self.element(value)?;
        let reducer = match self.reducers.get(&(opcode, element)) {
            Some(&known) => known,
            None => {
                let new = self.b.reducer(opcode, element)?;
                self.reducers.insert((opcode, element), new);
                new
            }
        };
        let init = self.scalar(element, init)?;
        self.b.reduce(value, init, reduced, reducer)
    }

    /// Returns how many elements of `value` flow into one of its sum.
    pub(super) fn terms(&self, value: InstId, reduced: &[i64]) -> Made<f64> {
        let dims = self.dims(value)?;
        let sizes = reduced.iter().filter_map(|&dim| dims.get(usize::try_from(dim).ok()?));
        Ok(sizes.filter_map(|&size| i32::try_from(size).ok()).map(f64::from).product())
    }

    /// Broadcasts an array that was reduced along these dims back along them.
    pub(super) fn spread(&mut self, small: InstId, like: InstId, reduced: &[i64]) -> Made<InstId> {
        let dims = self.dims(like)?;
        let kept: Dims = (0i64..).take(dims.len()).filter(|d| !reduced.contains(d)).collect();
        self.b.broadcast(small, &dims, &kept)
    }

    /// Returns a vector along one dim of `like`, repeated along the others.
    pub(super) fn along(&mut self, vector: InstId, like: InstId, dim: usize) -> Made<InstId> {
        let dims = self.dims(like)?;
        self.b.broadcast(vector, &dims, [i64::try_from(dim).unwrap_or_default()])
    }
}
