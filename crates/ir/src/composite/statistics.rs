//! Means and variances.

use crate::{BuildError, Builder, InstId, Opcode};

use super::operand::{CompositeOperand, filled, shape_of, with_number, with_spread};

/// The formula of a variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variance {
    /// The mean of the squares of `x - mean`: the mean first, then a second pass over the array.
    #[default]
    TwoPass,
    /// The mean of the squares minus the square of the mean, but at least 0: one pass over the
    /// array. Few digits remain if the mean is large compared to the deviation.
    OnePass,
}

/// Returns the mean over `dims`, which are removed.
///
/// As `jnp.mean(x, axis=dims)`; NaN if there are no elements.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, or `dims` are not distinct
/// dims of it.
pub fn mean(b: &mut Builder, x: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "mean", "x", x)?;
    let dims = operand.dims("dims", dims)?;
    let x = operand.widened(b)?;
    let mean = mean_of(b, x, &dims)?;
    operand.narrowed(b, mean)
}

/// Returns the variance over `dims`, which are removed: the sum of squared deviations divided
/// by `n - correction`, where `n` elements are summed.
///
/// As `jnp.var(x, axis=dims, correction=correction)`; NaN if `n - correction` is not above 0.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, `dims` are not distinct
/// dims of it, or `correction` is not a number.
pub fn variance(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
    correction: f64,
    form: Variance,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "variance", "x", x)?;
    let dims = operand.dims("dims", dims)?;
    if !correction.is_finite() {
        return Err(
            operand.error("correction", format!("the correction {correction} is not finite"))
        );
    }
    let x = operand.widened(b)?;
    let mean = mean_of(b, x, &dims)?;
    let count = count_of(b, x, &dims)?;
    let divisor = count - correction;
    let divisor = if divisor > 0.0 { divisor } else { f64::NAN };
    let variance = match form {
        Variance::TwoPass => {
            let centred = with_spread(b, Opcode::Subtract, x, mean, &operand.other_dims(&dims))?;
            let squares = b.binary(Opcode::Multiply, centred, centred)?;
            sum_divided(b, squares, &dims, divisor)?
        }
        Variance::OnePass => {
            let variance = variance_by_squares(b, x, mean, &dims)?;
            if correction == 0.0 && count > 0.0 {
                variance
            } else {
                with_number(b, Opcode::Multiply, variance, count / divisor)?
            }
        }
    };
    operand.narrowed(b, variance)
}

/// The mean and the factor that normalise an array of f32 or f64.
pub(super) struct Normal {
    /// `(x - mean) * rsqrt(variance + epsilon)`.
    pub(super) y: InstId,
    pub(super) mean: InstId,
    pub(super) variance: InstId,
}

/// Normalises to mean 0 and variance 1 over `dims`.
pub(super) fn normalize(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
    kept: &[i64],
    epsilon: f64,
    form: Variance,
) -> Result<Normal, BuildError> {
    let mean = mean_of(b, x, dims)?;
    let centred = with_spread(b, Opcode::Subtract, x, mean, kept)?;
    let variance = match form {
        Variance::TwoPass => mean_of_squares(b, centred, dims)?,
        Variance::OnePass => variance_by_squares(b, x, mean, dims)?,
    };
    let shifted = with_number(b, Opcode::Add, variance, epsilon)?;
    let factor = b.unary(Opcode::Rsqrt, shifted)?;
    let y = with_spread(b, Opcode::Multiply, centred, factor, kept)?;
    Ok(Normal { y, mean, variance })
}

/// Returns the mean of `x * x` over dims of an array of f32 or f64.
pub(super) fn mean_of_squares(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
) -> Result<InstId, BuildError> {
    let squares = b.binary(Opcode::Multiply, x, x)?;
    mean_of(b, squares, dims)
}

/// Returns the sum over dims of an array of any floats.
pub(super) fn sum(b: &mut Builder, x: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
    let element_type = shape_of(b, x)?.element_type;
    let zero = filled(b, 0.0, element_type, &[])?;
    let add = b.reducer(Opcode::Add, element_type)?;
    b.reduce(x, zero, dims, add)
}

fn mean_of(b: &mut Builder, x: InstId, dims: &[i64]) -> Result<InstId, BuildError> {
    let count = count_of(b, x, dims)?;
    sum_divided(b, x, dims, count)
}

fn sum_divided(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
    divisor: f64,
) -> Result<InstId, BuildError> {
    let sum = sum(b, x, dims)?;
    with_number(b, Opcode::Divide, sum, divisor)
}

fn variance_by_squares(
    b: &mut Builder,
    x: InstId,
    mean: InstId,
    dims: &[i64],
) -> Result<InstId, BuildError> {
    let squares = mean_of_squares(b, x, dims)?;
    let square = b.binary(Opcode::Multiply, mean, mean)?;
    let variance = b.binary(Opcode::Subtract, squares, square)?;
    with_number(b, Opcode::Maximum, variance, 0.0)
}

/// Returns the number of elements that are summed over dims, rounded to a float.
fn count_of(b: &Builder, x: InstId, dims: &[i64]) -> Result<f64, BuildError> {
    let shape = shape_of(b, x)?;
    let reduced = (0..).zip(shape.dims()).filter(|(dim, _)| dims.contains(dim));
    #[expect(clippy::cast_precision_loss, reason = "the nearest number is meant")]
    let count = reduced.map(|(_, &size)| size as f64).product();
    Ok(count)
}
