//! Programs over a finite field: the oracle without tolerance.
//!
//! Two modules are evaluated with floats as elements of the field of 2^61 - 1 elements
//! (`field`). Values that are equal over the reals by the laws of sums, products and quotients
//! are always equal there. Values that are not equal differ on random elements, except with a
//! probability of about the degree of the expressions in 2^61 (Schwartz's and Zippel's lemma).
//! There is no rounding and no tolerance. The method follows Wu et al., *Mirage: A Multi-Level
//! Superoptimizer for Tensor Programs* (OSDI 2025), section 5; `docs/decisions/0012-algebra.md`
//! lists the differences.
//!
//! Integers and ops that move data use the ordinary evaluation: an element is kept as the bits
//! of an `f64`, the type that represents every float type (`Numbers`). Functions are those of
//! `function`; other instructions become random functions of all their operands (`step`). The
//! results of float comparisons are marked as unsure, element by element, and arrays of
//! integers as a whole.

mod compare;
mod constant;
pub(crate) mod field;
pub(crate) mod function;
mod inputs;
mod meaning;
mod step;
mod ties;

pub use compare::{AlgebraOptions, Verdict, compare};
pub(crate) use step::{Field, mark};
pub use ties::Ties;

use tilewright_ir::{ArrayLiteral, Data, ElementType, Op, Shape};

use crate::error::Outcome;
use crate::eval::elementwise::{self, Kernel};

/// The representation of floats in an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Themselves.
    Floats,
    /// Elements of the field, all of one type.
    Field,
}

impl Numbers {
    /// Returns the type under which elements of a type are kept.
    pub(crate) fn kept(self, element_type: ElementType) -> ElementType {
        let is_float = element_type.is_float() || element_type.is_complex();
        if self == Self::Field && is_float { function::ELEMENT } else { element_type }
    }

    /// Returns the shape as which a value of a shape is kept.
    pub(crate) fn shape(self, shape: &Shape) -> Shape {
        match shape {
            Shape::Array(array) => {
                Shape::Array(array.clone().with_element_type(self.kept(array.element_type)))
            }
            Shape::Tuple(elements) => {
                Shape::Tuple(elements.iter().map(|element| self.shape(element)).collect())
            }
            Shape::Token | Shape::Buffer(_) | Shape::Opaque => shape.clone(),
        }
    }

    /// Returns the elements of a constant in their kept form.
    pub(crate) fn constant(self, value: &ArrayLiteral) -> Outcome<Data> {
        match self {
            Self::Floats => Ok(value.data().clone()),
            Self::Field => constant::elements(value.data(), value.element_type()),
        }
    }

    /// Returns the kernel of an op on elements in their kept form.
    pub(crate) fn kernel(
        self,
        op: &Op,
        operands: &[ElementType],
        result: ElementType,
    ) -> Outcome<Option<Kernel>> {
        if self == Self::Field
            && let Some(kernel) = function::kernel(op, operands, result)?
        {
            return Ok(Some(kernel));
        }
        elementwise::kernel(op, operands, result)
    }
}
