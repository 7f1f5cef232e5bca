//! Why a front end's program could not be built.

use std::fmt;

use crate::edit::EditError;
use crate::entity::InstId;
use crate::infer::ShapeError;
use crate::module::Module;
use crate::types::literal::LiteralError;
use crate::types::shape::ArrayShape;
use crate::verify::Rejected;

/// The most operands that an error lists.
const MOST_LISTED: usize = 4;

/// Why a front end's program could not be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Operands, attributes and result do not fit.
    #[error("`{method}`{operands}: {error}")]
    Shape {
        /// The builder's method that was called.
        method: &'static str,
        /// The operands it was given, with their names and shapes.
        operands: OperandList,
        /// The error of the op's shape rule.
        error: ShapeError,
    },
    /// An operand belongs to another computation.
    #[error("`{method}`: {error}")]
    Edit {
        /// The builder's method that was called.
        method: &'static str,
        /// The error in the operand.
        error: EditError,
    },
    /// The finished module does not verify.
    #[error(transparent)]
    Rejected(#[from] Box<Rejected>),
    /// An array was expected.
    #[error("`{method}`: `{name}` is not an array")]
    NotAnArray {
        /// The builder's method, or the composite, that was called.
        method: &'static str,
        /// The name of the value.
        name: String,
    },
    /// An argument does not fit, regardless of the op's shape rule.
    #[error("`{method}`: {why}")]
    Argument {
        /// The builder's method, or the composite, that was called.
        method: &'static str,
        /// The name of its argument.
        argument: &'static str,
        /// The error and its correction.
        why: String,
    },
    /// A constant could not be made.
    #[error(transparent)]
    Literal(#[from] LiteralError),
}

/// The operands of a call that failed, as errors list them: nothing, or
/// `` of `x` f32[2,3] and `y` f32[3]``.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandList(Box<str>);

impl OperandList {
    /// Lists instructions of this module.
    pub(super) fn of(module: &Module, operands: &[InstId]) -> Self {
        let named = |&id: &InstId| format!("`{}` {}", module.name_of(id), module.shape(id));
        let mut listed: Vec<String> = operands.iter().take(MOST_LISTED).map(named).collect();
        if let Some(more @ 1..) = operands.len().checked_sub(MOST_LISTED) {
            listed.push(format!("{more} more"));
        }
        let text = match listed.split_last() {
            None => String::new(),
            Some((only, [])) => format!(" of {only}"),
            Some((last, others)) => format!(" of {} and {last}", others.join(", ")),
        };
        Self(text.into())
    }
}

impl fmt::Display for OperandList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns an argument that does not fit.
pub(super) fn misfit(
    method: &'static str,
    argument: &'static str,
    why: impl Into<String>,
) -> BuildError {
    BuildError::Argument { method, argument, why: why.into() }
}

/// Checks that an array has dims of these numbers.
pub(super) fn check_dims(
    method: &'static str,
    argument: &'static str,
    dims: &[i64],
    of: &ArrayShape,
) -> Result<(), BuildError> {
    let exists = |dim: i64| usize::try_from(dim).is_ok_and(|dim| dim < of.rank());
    let Some(missing) = dims.iter().find(|&&dim| !exists(dim)) else { return Ok(()) };
    let of = of.without_layout();
    let there_are = match of.rank().checked_sub(1) {
        None => "it has no dims".to_owned(),
        Some(0) => "its only dim is 0".to_owned(),
        Some(last) => format!("dims are 0 to {last}"),
    };
    // The message names the argument unless it consists of dims only.
    let named = if matches!(argument, "dimension" | "dimensions") {
        "dimension".to_owned()
    } else {
        format!("{argument}: dimension")
    };
    Err(misfit(method, argument, format!("{named} {missing} of {of} does not exist; {there_are}")))
}

/// Checks that no size is negative. How large they are together, the verifier
/// asks.
pub(super) fn check_sizes(
    method: &'static str,
    argument: &'static str,
    sizes: &[i64],
) -> Result<(), BuildError> {
    match sizes.iter().enumerate().find(|&(_, &size)| size < 0) {
        None => Ok(()),
        Some((dim, size)) => Err(misfit(
            method,
            argument,
            format!("{argument}: size {size} of dim {dim} is negative"),
        )),
    }
}
