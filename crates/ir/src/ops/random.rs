//! Random numbers.

use super::attr::{attributes, words};
use crate::infer::{ShapeError, ShapeQuery};
use crate::types::shape::Shape;

attributes! {
    /// Attributes of `rng`.
    pub struct RngAttrs {
        /// How its numbers are distributed.
        distribution: Distribution = "distribution",
    }

    /// Attributes of `rng-bit-generator`.
    pub struct RngBitGeneratorAttrs {
        /// How its bits are made.
        algorithm: RngAlgorithm = "algorithm",
    }

    /// Attributes of `rng-get-and-update-state`.
    pub struct RngStateAttrs {
        /// By how much the state advances.
        delta: i64 = "delta",
    }
}

words! {
    /// How random numbers are distributed.
    pub enum Distribution {
        /// Evenly between the two operands.
        Uniform = "rng_uniform",
        /// Normally; the operands are mean and deviation.
        Normal = "rng_normal",
    }

    /// How random bits are made.
    pub enum RngAlgorithm {
        /// As the backend likes.
        Default = "rng_default",
        /// ThreeFry-2x32.
        ThreeFry = "rng_three_fry",
        /// Philox-4x32.
        Philox = "rng_philox",
    }
}

pub(super) fn rng(q: &ShapeQuery<'_>, _attrs: &RngAttrs) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}

/// The new state and the bits, or the bits alone.
pub(super) fn rng_bit_generator(
    q: &ShapeQuery<'_>,
    _attrs: &RngBitGeneratorAttrs,
) -> Result<Shape, ShapeError> {
    let shape = q.declared()?;
    if let Some([state, _]) = shape.as_tuple()
        && !state.compatible(q.operand(0)?)
    {
        return Err(ShapeError::result(format!(
            "`rng-bit-generator` keeps the shape {} of its state, it cannot yield {state}",
            q.operand(0)?
        )));
    }
    Ok(shape.clone())
}

pub(super) fn rng_state(q: &ShapeQuery<'_>, _attrs: &RngStateAttrs) -> Result<Shape, ShapeError> {
    q.declared().cloned()
}
