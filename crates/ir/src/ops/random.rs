//! Random numbers.

use super::attr::{attributes, words};
use crate::infer::{ShapeError, ShapeQuery};
use crate::types::element::ElementType;
use crate::types::shape::Shape;

attributes! {
    /// Attributes of `rng`.
    pub struct RngAttrs {
        /// The distribution of its numbers.
        distribution: Distribution = "distribution",
    }

    /// Attributes of `rng-bit-generator`.
    pub struct RngBitGeneratorAttrs {
        /// The algorithm that generates its bits.
        algorithm: RngAlgorithm = "algorithm",
    }

    /// Attributes of `rng-get-and-update-state`.
    pub struct RngStateAttrs {
        /// The increment of the state.
        delta: i64 = "delta",
    }
}

words! {
    /// The distribution of random numbers.
    pub enum Distribution {
        /// Uniform between the two operands.
        Uniform = "rng_uniform",
        /// Normal; the operands are mean and standard deviation.
        Normal = "rng_normal",
    }

    /// The algorithm that generates random bits.
    pub enum RngAlgorithm {
        /// The default of the backend.
        Default = "rng_default",
        /// ThreeFry-2x32.
        ThreeFry = "rng_three_fry",
        /// Philox-4x32.
        Philox = "rng_philox",
    }
}

/// The operands are the two parameters of the distribution.
pub(super) fn rng(q: &ShapeQuery<'_>, attrs: &RngAttrs) -> Result<Shape, ShapeError> {
    let (first, second) = (q.array(0)?, q.array(1)?);
    let element_type = first.element_type;
    if !first.compatible(second) || first.rank() != 0 {
        return Err(ShapeError::operand(format!(
            "`rng` takes two scalars of one type, not {first} and {second}"
        )));
    }
    let drawn = match attrs.distribution {
        Distribution::Uniform => !element_type.is_complex(),
        Distribution::Normal => element_type.is_float(),
    };
    if !drawn {
        return Err(ShapeError::operand(format!(
            "`rng` cannot draw {element_type} numbers of the distribution {}",
            attrs.distribution.name()
        )));
    }
    Ok(q.declared_array()?.clone().with_element_type(element_type).into())
}

/// The result is the new state and the bits, or only the bits.
pub(super) fn rng_bit_generator(
    q: &ShapeQuery<'_>,
    _attrs: &RngBitGeneratorAttrs,
) -> Result<Shape, ShapeError> {
    let (state, shape) = (q.operand(0)?, q.declared()?);
    match shape {
        Shape::Array(_) => return Ok(shape.clone()),
        Shape::Tuple(elements) => {
            if let [kept, Shape::Array(_)] = elements.as_slice()
                && kept.agrees(state)
            {
                return Ok(shape.clone());
            }
        }
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => {}
    }
    Err(ShapeError::result(format!(
        "`rng-bit-generator` yields an array, or its state {} and an array, not {shape}",
        state.without_layout()
    )))
}

/// The result is the state of 128 bits.
pub(super) fn rng_state(_q: &ShapeQuery<'_>, _attrs: &RngStateAttrs) -> Result<Shape, ShapeError> {
    Ok(Shape::array(ElementType::U64, [2]))
}
