//! Batch norms, as in training.

use crate::{BuildError, Builder, Dims, InstId};

use super::norm::{Groups, Norm, Split};
use super::operand::CompositeOperand;
use super::statistics::Normal;

/// The results of a batch norm. Mean and variance are f64 if the operand is, and f32 otherwise;
/// the variance is divided by the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchNorm {
    /// The normalised elements, with shape and type of the operand.
    pub y: InstId,
    /// The means.
    pub mean: InstId,
    /// The variances, without epsilon.
    pub variance: InstId,
}

/// Mean 0 and variance 1 over all dims but `channel`. Scale, bias, mean and
/// variance have one element for each channel.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, `channel` is not a dim of
/// it, or the options are not valid.
pub fn batch_norm(
    b: &mut Builder,
    x: InstId,
    channel: i64,
    norm: &Norm,
) -> Result<BatchNorm, BuildError> {
    let operand = CompositeOperand::of_floats(b, "batch_norm", "x", x)?;
    let channel = operand.dim("channel", channel)?;
    let dims = operand.other_dims(&[channel]);
    let wide = operand.widened(b)?;
    let Normal { y, mean, variance } = norm.normalize(b, &operand, wide, &dims, &[channel])?;
    let y = norm.finish(b, &operand, y, &[channel])?;
    Ok(BatchNorm { y, mean, variance })
}

/// Returns a [`batch_norm`] of each group of the batch separately. Mean and variance have a dim
/// for the groups and one for the channels, in the order of the dim of `batch` and `channel` in
/// `x`.
///
/// # Errors
/// The errors of [`batch_norm`], or if the dim of `batch` is not another dim of `x` or cannot be divided
/// into the groups.
pub fn ghost_batch_norm(
    b: &mut Builder,
    x: InstId,
    batch: Groups,
    channel: i64,
    norm: &Norm,
) -> Result<BatchNorm, BuildError> {
    let operand = CompositeOperand::of_floats(b, "ghost_batch_norm", "x", x)?;
    let groups = batch.count;
    let [batch, channel] = [operand.dim("batch", batch.dim)?, operand.dim("channel", channel)?];
    let kept = operand.distinct("channel", Dims::from_slice(&[batch, channel]))?;
    let split = Split::new(&operand, batch, groups)?;
    let grouped = split.apply(b, &operand)?;
    let (dims, kept) = (split.moved(&operand.other_dims(&kept), true), split.moved(&kept, false));
    let Normal { y, mean, variance } = norm.normalize(b, &operand, grouped, &dims, &kept)?;
    let y = b.reshape(y, operand.shape.dims())?;
    let y = norm.finish(b, &operand, y, &[channel])?;
    Ok(BatchNorm { y, mean, variance })
}
