//! Infers result shapes from ops and operand shapes. Builder, parser and verifier share these
//! rules.

mod mixed;

use smallvec::SmallVec;

pub use mixed::{Inferred, infer_mixed};

use crate::entity::CompId;
use crate::module::Module;
use crate::ops::Op;
use crate::ops::family::Family;
use crate::types::element::ElementType;
use crate::types::shape::{ArrayShape, Shape};

/// The error of an op with invalid operands, attributes or result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ShapeError {
    /// The kind of the error.
    pub kind: ShapeErrorKind,
    /// The error and the valid alternative.
    pub message: String,
}

/// The kinds of [`ShapeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShapeErrorKind {
    /// A wrong number of operands.
    OperandCount,
    /// The op does not accept the shape of an operand.
    Operand,
    /// An attribute's value does not fit the operands.
    Attribute,
    /// The declared result differs from the result of the rule.
    Result,
    /// The result cannot be inferred and none was declared.
    NeedsShape,
    /// A called computation has other parameters or another result.
    Callee,
}

impl ShapeError {
    /// Creates an error of a kind.
    pub fn new(kind: ShapeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn operand(message: impl Into<String>) -> Self {
        Self::new(ShapeErrorKind::Operand, message)
    }

    pub(crate) fn attribute(message: impl Into<String>) -> Self {
        Self::new(ShapeErrorKind::Attribute, message)
    }

    pub(crate) fn result(message: impl Into<String>) -> Self {
        Self::new(ShapeErrorKind::Result, message)
    }

    pub(crate) fn callee(message: impl Into<String>) -> Self {
        Self::new(ShapeErrorKind::Callee, message)
    }
}

/// The input of a shape rule.
pub struct ShapeQuery<'a> {
    /// The op.
    pub op: &'a Op,
    /// The shapes of the operands.
    pub operands: &'a [&'a Shape],
    /// The result shape that was declared, if any. Rules that cannot infer
    /// the result (reshape, convert, iota ...) check and return it.
    pub declared: Option<&'a Shape>,
    /// The module that holds called computations.
    pub module: &'a Module,
    /// Whether floats may differ in precision: see [`infer_mixed`].
    pub mixes_precision: bool,
}

impl<'a> ShapeQuery<'a> {
    /// Returns the declared result shape of a rule that cannot infer it.
    pub(crate) fn declared(&self) -> Result<&'a Shape, ShapeError> {
        self.declared.ok_or_else(|| {
            ShapeError::new(
                ShapeErrorKind::NeedsShape,
                format!("the shape of `{}` cannot be inferred; write it", self.op.opcode()),
            )
        })
    }

    /// Returns the declared result shape as an array.
    pub(crate) fn declared_array(&self) -> Result<&'a ArrayShape, ShapeError> {
        let shape = self.declared()?;
        shape.as_array().ok_or_else(|| {
            ShapeError::result(format!("`{}` yields an array, not {shape}", self.op.opcode()))
        })
    }

    /// Returns the shape of operand `index`.
    pub(crate) fn operand(&self, index: usize) -> Result<&'a Shape, ShapeError> {
        self.operands.get(index).copied().ok_or_else(|| self.arity_error())
    }

    /// Returns the shape of operand `index` as an array.
    pub(crate) fn array(&self, index: usize) -> Result<&'a ArrayShape, ShapeError> {
        let shape = self.operand(index)?;
        shape.as_array().ok_or_else(|| {
            ShapeError::operand(format!(
                "operand {index} of `{}` must be an array, not {shape}",
                self.op.opcode()
            ))
        })
    }

    /// Checks whether two element types are equal, or are both floats if mixed precision is
    /// allowed.
    pub(crate) fn same_type(&self, a: ElementType, b: ElementType) -> bool {
        a == b || self.mixes_precision && a.is_float() && b.is_float()
    }

    /// [`Shape::compatible`], without regard to the precision of floats if mixed precision is
    /// allowed.
    pub(crate) fn compatible(&self, a: &Shape, b: &Shape) -> bool {
        if self.mixes_precision { a.compatible_up_to_precision(b) } else { a.compatible(b) }
    }

    /// Checks the operand count and applies the op's rule.
    fn yielded(&self) -> Result<Shape, ShapeError> {
        if !self.op.opcode().arity().admits(self.operands.len()) {
            return Err(self.arity_error());
        }
        self.op.shape_rule(self)
    }

    fn arity_error(&self) -> ShapeError {
        let opcode = self.op.opcode();
        ShapeError::new(
            ShapeErrorKind::OperandCount,
            format!("`{opcode}` takes {}, not {}", opcode.arity(), self.operands.len()),
        )
    }

    /// Checks that a computation takes these parameters and returns `result`.
    pub(crate) fn check_callee(
        &self,
        callee: CompId,
        parameters: &[&Shape],
    ) -> Result<&'a Shape, ShapeError> {
        let computation = self.module.computation(callee);
        let name = computation.name();
        let actual: SmallVec<[&Shape; 4]> =
            computation.parameters().iter().map(|&p| self.module.shape(p)).collect();
        if actual.len() != parameters.len() {
            return Err(ShapeError::callee(format!(
                "`{name}` takes {} parameters, but `{}` gives it {}",
                actual.len(),
                self.op.opcode(),
                parameters.len()
            )));
        }
        for (i, (actual, given)) in actual.iter().zip(parameters).enumerate() {
            if !self.compatible(actual, given) {
                return Err(ShapeError::callee(format!(
                    "parameter {i} of `{name}` is {actual}, but `{}` gives it {given}",
                    self.op.opcode()
                )));
            }
        }
        let root = computation
            .root()
            .ok_or_else(|| ShapeError::callee(format!("`{name}` has no instructions")))?;
        Ok(self.module.shape(root))
    }

    /// Checks that a computation combines scalar accumulators with scalar elements and returns
    /// accumulators, in a tuple if there are several.
    pub(crate) fn check_reducer(
        &self,
        callee: CompId,
        accumulators: &[ElementType],
        elements: &[ElementType],
    ) -> Result<&'a Shape, ShapeError> {
        let parameters: SmallVec<[Shape; 4]> =
            accumulators.iter().chain(elements).map(|&t| scalar(t)).collect();
        let given: SmallVec<[&Shape; 4]> = parameters.iter().collect();
        let result = self.check_callee(callee, &given)?;
        let yielded = result.as_tuple().unwrap_or(std::slice::from_ref(result));
        // The result becomes the accumulators of the next call.
        let taken = self.module.computation(callee).parameters();
        let next = |(yielded, &taken): (&Shape, _)| yielded.compatible(self.module.shape(taken));
        if yielded.len() == accumulators.len() && yielded.iter().zip(taken).all(next) {
            return Ok(result);
        }
        let expected = match &parameters[..accumulators.len()] {
            [only] => only.clone(),
            several => Shape::Tuple(several.to_vec()),
        };
        Err(ShapeError::callee(format!(
            "the computation of `{}` accumulates {expected}, but yields {result}",
            self.op.opcode()
        )))
    }
}

/// Returns the result shape of an op, checked against `declared` if that is given.
///
/// If the rule cannot infer the result, this is `declared` itself, layout included; otherwise
/// the inferred shape without layouts. The two shapes need only agree: a declared shape may be
/// more or less precise about which dims are dynamic ([`Shape::agrees`]). For ops that return an
/// operand, such as calls and tuples, dynamic dims must be equal too.
///
/// # Errors
/// Returns an error if the operands, attributes or the declared shape break the op's rule.
pub fn infer_shape(
    module: &Module,
    op: &Op,
    operands: &[&Shape],
    declared: Option<&Shape>,
) -> Result<Shape, ShapeError> {
    let query = ShapeQuery { op, operands, declared, module, mixes_precision: false };
    let inferred = query.yielded()?;
    // A value that an op returns unchanged can replace the op, so its whole shape must be kept.
    let hands_on = op.opcode().family() == Family::Control;
    let fits = |declared: &Shape| {
        if hands_on { declared.compatible(&inferred) } else { declared.agrees(&inferred) }
    };
    if let Some(declared) = declared
        && !fits(declared)
    {
        return Err(ShapeError::result(format!(
            "`{}` of these operands yields {inferred}, not {}",
            op.opcode(),
            declared.without_layout()
        )));
    }
    Ok(inferred)
}

/// Checks that `dims` are distinct and within `0..rank`.
pub(crate) fn check_dims(what: &str, dims: &[i64], rank: usize) -> Result<(), ShapeError> {
    if dims.len() > rank {
        return Err(ShapeError::attribute(format!(
            "{what} names {} dims, but the array has rank {rank}",
            dims.len()
        )));
    }
    for (i, &dim) in dims.iter().enumerate() {
        if !usize::try_from(dim).is_ok_and(|d| d < rank) {
            return Err(ShapeError::attribute(format!(
                "{what} names dim {dim}, but the array has rank {rank}"
            )));
        }
        if dims[..i].contains(&dim) {
            return Err(ShapeError::attribute(format!("{what} names dim {dim} twice")));
        }
    }
    Ok(())
}

/// Returns a scalar of an element type.
pub(crate) fn scalar(element_type: ElementType) -> Shape {
    Shape::scalar(element_type)
}
