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
    /// If a value lies in another computation.
    pub fn tuple(&mut self, elements: impl AsRef<[InstId]>) -> Result<InstId, BuildError> {
        self.made("tuple", Op::Tuple, None, elements.as_ref())
    }

    /// Adds the element of a tuple with this number, from 0.
    ///
    /// # Errors
    /// If the value is not a tuple of as many elements.
    pub fn get_tuple_element(&mut self, tuple: InstId, index: i64) -> Result<InstId, BuildError> {
        let op = Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }));
        self.made("get_tuple_element", op, None, &[tuple])
    }

    /// Adds a call; the result has the shape that the computation yields.
    ///
    /// # Errors
    /// If the computation takes other parameters.
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
    /// If a computation does not take the state, `condition` does not yield `pred[]`
    /// or `body` does not yield the state's shape.
    pub fn while_loop(
        &mut self,
        condition: CompId,
        body: CompId,
        init: InstId,
    ) -> Result<InstId, BuildError> {
        let op = Op::While(Box::new(WhileAttrs { condition, body }));
        self.made("while_loop", op, None, &[init])
    }

    /// Adds a choice of what is computed: `true_computation` of `true_operand` where
    /// `pred`, a scalar, holds, or else `false_computation` of `false_operand`. Each
    /// computation takes one parameter, and both yield one shape.
    ///
    /// # Errors
    /// If `pred` is not `pred[]`, a computation does not take its operand, or they
    /// yield different shapes.
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

    /// Adds a choice of what is computed by a number, `s32[]`: of the branches, each
    /// a computation and its operand, the one with that number, and the last where
    /// there is none. All yield one shape.
    ///
    /// # Errors
    /// If the number is not `s32[]`, there are no branches, a computation does not
    /// take its operand, or they yield different shapes.
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

    /// Adds a call of what only the backend knows, by the name in `attrs`; the
    /// result has the shape that the caller says.
    ///
    /// # Errors
    /// If layouts are constrained of operands that there are not, or XLA itself
    /// says that a target of this name yields something else.
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
    /// If the operand lies in another computation.
    pub fn optimization_barrier(&mut self, operand: InstId) -> Result<InstId, BuildError> {
        self.made("optimization_barrier", Op::OptimizationBarrier, None, &[operand])
    }

    /// Adds random bits of a state: a tuple of the next state and an array of
    /// `shape`, all of whose bits are random.
    ///
    /// # Errors
    /// If `shape` is not an array.
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
