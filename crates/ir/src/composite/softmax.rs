//! Softmax and its logarithm.

use crate::reducer::Monoid;
use crate::shape::Dims;
use crate::{BuildError, Builder, InstId, Opcode};

use super::operand::{CompositeOperand, convert, with_spread};
use super::statistics::sum;

/// `exp(x - max) / sum(exp(x - max))` over `dims`, with the shape of `x`.
///
/// As `jax.nn.softmax(x, axis=dims)`: for f16 and bf16 only the sum is in f32.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, or `dims` are not distinct
/// dims of it.
pub fn softmax(b: &mut Builder, x: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
    let Parts { exponential, sum, kept, .. } = parts(b, "softmax", x, dims)?;
    with_spread(b, Opcode::Divide, exponential, sum, &kept)
}

/// `x - max - log(sum(exp(x - max)))` over `dims`, with the shape of `x`.
///
/// As `jax.nn.log_softmax(x, axis=dims)`.
///
/// # Errors
/// The errors of [`softmax`].
pub fn log_softmax(b: &mut Builder, x: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
    let Parts { shifted, sum, kept, .. } = parts(b, "log_softmax", x, dims)?;
    let log = b.unary(Opcode::Log, sum)?;
    with_spread(b, Opcode::Subtract, shifted, log, &kept)
}

struct Parts {
    /// `x - max`: at most 0, so that no exponential overflows.
    shifted: InstId,
    exponential: InstId,
    sum: InstId,
    /// The dims of `x` that the sum has.
    kept: Dims,
}

fn parts(
    b: &mut Builder,
    composite: &'static str,
    x: InstId,
    dims: &[i64],
) -> Result<Parts, BuildError> {
    let operand = CompositeOperand::of_floats(b, composite, "x", x)?;
    let dims = operand.dims("dims", dims)?;
    let kept = operand.other_dims(&dims);
    let greatest = greatest(b, &operand, &dims)?;
    let shifted = with_spread(b, Opcode::Subtract, x, greatest, &kept)?;
    let exponential = b.unary(Opcode::Exp, shifted)?;
    let wide = convert(b, exponential, operand.moment_type())?;
    let sum = sum(b, wide, &dims)?;
    let sum = operand.narrowed(b, sum)?;
    Ok(Parts { shifted, exponential, sum, kept })
}

fn greatest(
    b: &mut Builder,
    operand: &CompositeOperand,
    dims: &[i64],
) -> Result<InstId, BuildError> {
    let monoid = Monoid { opcode: Opcode::Maximum, element_type: operand.element_type() };
    let Some(least) = monoid.identity() else {
        return Err(operand.error("x", format!("{} has no least value", operand.shape)));
    };
    let least = b.constant(least)?;
    let maximum = b.reducer(Opcode::Maximum, operand.element_type())?;
    b.reduce(operand.id, least, dims, maximum)
}
