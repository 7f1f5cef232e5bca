//! Tuples, calls, loops, branches, custom calls, and random bits.

use super::{BuildError, Builder};
use crate::entity::{CompId, InstId};
use crate::ops::Op;
use crate::ops::control::{
    CallAttrs, ConditionalAttrs, CustomCallAttrs, GetTupleElementAttrs, WhileAttrs,
};
use crate::ops::random::{RngAlgorithm, RngBitGeneratorAttrs};
use crate::types::shape::Shape;

impl Builder {
    /// Adds a tuple of values of any shapes.
    ///
    /// # Errors
    /// Returns an error if a value lies in another computation.
    pub fn tuple(&mut self, elements: impl AsRef<[InstId]>) -> Result<InstId, BuildError> {
        self.made("tuple", Op::Tuple, None, elements.as_ref())
    }

    /// Adds the element of a tuple with this number, from 0.
    ///
    /// # Errors
    /// Returns an error if the value is not a tuple with this element.
    pub fn get_tuple_element(&mut self, tuple: InstId, index: i64) -> Result<InstId, BuildError> {
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        self.made("get_tuple_element", op, None, &[tuple])
    }

    /// Adds a call; the result has the shape that the computation yields.
    ///
    /// # Errors
    /// Returns an error if the computation takes other parameters.
    pub fn call(
        &mut self,
        to_apply: CompId,
        operands: impl AsRef<[InstId]>,
    ) -> Result<InstId, BuildError> {
        let op = Op::Call(Box::new(CallAttrs { to_apply, is_composite: false }));
        self.made("call", op, None, operands.as_ref())
    }

    /// Adds a loop: while `condition` yields true of the state, `body` makes the
    /// next one. The state is one value, for several a tuple, and keeps its shape.
    /// This one counts to ten:
    ///
    /// ```
    /// # use tilewright_ir::{BuildError, Builder, ElementType, Literal, Opcode, Shape};
    /// use tilewright_ir::ops::elementwise::Direction;
    ///
    /// # fn main() -> Result<(), BuildError> {
    /// # let mut b = Builder::new("m");
    /// let counter = || Shape::scalar(ElementType::S32);
    /// let condition = b.computation("is_less_than_ten", |b| {
    ///     let at = b.parameter("at", counter())?;
    ///     let ten = b.constant(Literal::scalar(ElementType::S32, 10_i32)?)?;
    ///     b.compare(Direction::Lt, at, ten)
    /// })?;
    /// let body = b.computation("next", |b| {
    ///     let at = b.parameter("at", counter())?;
    ///     let one = b.constant(Literal::scalar(ElementType::S32, 1_i32)?)?;
    ///     b.binary(Opcode::Add, at, one)
    /// })?;
    /// let zero = b.constant(Literal::scalar(ElementType::S32, 0_i32)?)?;
    /// let ten = b.while_loop(condition, body, zero)?;
    /// # b.finish(ten)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a computation does not take the state, `condition` does not yield
    /// `pred[]` or `body` does not yield the state's shape.
    pub fn while_loop(
        &mut self,
        condition: CompId,
        body: CompId,
        init: InstId,
    ) -> Result<InstId, BuildError> {
        let op = Op::While(Box::new(WhileAttrs { condition, body }));
        self.made("while_loop", op, None, &[init])
    }

    /// Adds a conditional: if the scalar `pred` is true, it calls `true_computation` with
    /// `true_operand`, otherwise `false_computation` with `false_operand`. Each computation
    /// takes one parameter, and both return the same shape.
    ///
    /// # Errors
    /// Returns an error if `pred` is not `pred[]`, a computation does not take its operand, or
    /// they yield different shapes.
    pub fn conditional(
        &mut self,
        pred: InstId,
        true_operand: InstId,
        true_computation: CompId,
        false_operand: InstId,
        false_computation: CompId,
    ) -> Result<InstId, BuildError> {
        let attrs = ConditionalAttrs {
            true_computation: Some(true_computation),
            false_computation: Some(false_computation),
            ..ConditionalAttrs::default()
        };
        let op = Op::Conditional(Box::new(attrs));
        self.made("conditional", op, None, &[pred, true_operand, false_operand])
    }

    /// Adds a conditional with several branches, each a computation and its operand. The
    /// `s32[]` index selects the branch; an index out of range selects the last one. All return
    /// the same shape.
    ///
    /// # Errors
    /// Returns an error if the index is not `s32[]`, there are no branches, a computation does
    /// not take its operand, or they return different shapes.
    pub fn conditional_by_index(
        &mut self,
        branch_index: InstId,
        branches: impl IntoIterator<Item = (CompId, InstId)>,
    ) -> Result<InstId, BuildError> {
        let mut attrs = ConditionalAttrs::default();
        let mut operands = vec![branch_index];
        for (computation, operand) in branches {
            attrs.branch_computations.push(computation);
            operands.push(operand);
        }
        let op = Op::Conditional(Box::new(attrs));
        self.made("conditional_by_index", op, None, &operands)
    }

    /// Adds a call to a function that only the backend knows, by the name in `attrs`; the
    /// caller gives the shape of the result.
    ///
    /// # Errors
    /// Returns an error if `attrs` constrain the layouts of missing operands, or if XLA defines
    /// another result for a target of this name.
    pub fn custom_call(
        &mut self,
        attrs: CustomCallAttrs,
        operands: impl AsRef<[InstId]>,
        shape: Shape,
    ) -> Result<InstId, BuildError> {
        let op = Op::CustomCall(Box::new(attrs));
        self.made("custom_call", op, Some(shape), operands.as_ref())
    }

    /// Adds a value that is the operand itself, and that no optimisation sees
    /// through.
    ///
    /// # Errors
    /// Returns an error if the operand lies in another computation.
    pub fn optimization_barrier(&mut self, operand: InstId) -> Result<InstId, BuildError> {
        self.made("optimization_barrier", Op::OptimizationBarrier, None, &[operand])
    }

    /// Adds random bits drawn from a state: a tuple of the next state and an array of `shape`,
    /// all of whose bits are random.
    ///
    /// # Errors
    /// Returns an error if `shape` is not an array.
    pub fn rng_bit_generator(
        &mut self,
        algorithm: RngAlgorithm,
        initial_state: InstId,
        shape: Shape,
    ) -> Result<InstId, BuildError> {
        let method = "rng_bit_generator";
        let state = self.array(method, initial_state)?.without_layout();
        let op = Op::RngBitGenerator(Box::new(RngBitGeneratorAttrs { algorithm }));
        let both = Shape::Tuple(vec![state.into(), shape]);
        self.made(method, op, Some(both), &[initial_state])
    }
}
