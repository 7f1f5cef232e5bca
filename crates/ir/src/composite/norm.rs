//! Norms: layer, root mean square, instance, group and weight norm.

use crate::shape::Dims;
use crate::{BuildError, Builder, InstId, Opcode};

use super::operand::{CompositeOperand, convert, shape_of, with_number, with_spread};
use super::statistics::{Normal, Variance, mean_of_squares, normalize, sum};

/// The options of a norm besides `(x - mean) / sqrt(variance + epsilon)`.
///
/// Scale and bias are arrays of f16, bf16, f32 or f64 whose dims depend on the norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// The number added to the variance, in the squared unit of `x`.
    pub epsilon: f64,
    /// The factor of the result.
    pub scale: Option<InstId>,
    /// The summand after the factor.
    pub bias: Option<InstId>,
    /// The formula of the variance.
    pub variance: Variance,
}

impl Default for Norm {
    fn default() -> Self {
        Self { epsilon: 1e-5, scale: None, bias: None, variance: Variance::TwoPass }
    }
}

/// Mean 0 and variance 1 over `dims`, with the shape of `x`. Scale and bias have the sizes of
/// `dims`, in the order of these in `x`.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, `dims` are not distinct
/// dims of it, or the options are not valid.
pub fn layer_norm(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
    norm: &Norm,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "layer_norm", "x", x)?;
    let dims = operand.dims("dims", dims)?;
    let kept = operand.other_dims(&dims);
    let wide = operand.widened(b)?;
    let Normal { y, .. } = norm.normalize(b, &operand, wide, &dims, &kept)?;
    norm.finish(b, &operand, y, &dims)
}

/// `x * rsqrt(mean(x * x) + epsilon)` over `dims`, with the shape of `x`. Scale and
/// bias are as for [`layer_norm`]; there is no variance.
///
/// # Errors
/// The errors of [`layer_norm`].
pub fn rms_norm(
    b: &mut Builder,
    x: InstId,
    dims: &[i64],
    norm: &Norm,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "rms_norm", "x", x)?;
    let dims = operand.dims("dims", dims)?;
    check_epsilon(&operand, norm.epsilon)?;
    let wide = operand.widened(b)?;
    let square = mean_of_squares(b, wide, &dims)?;
    let shifted = with_number(b, Opcode::Add, square, norm.epsilon)?;
    let factor = b.unary(Opcode::Rsqrt, shifted)?;
    let y = with_spread(b, Opcode::Multiply, wide, factor, &operand.other_dims(&dims))?;
    norm.finish(b, &operand, y, &dims)
}

/// Mean 0 and variance 1 over all dims but `batch` and `channel`, with the shape of
/// `x`. Scale and bias have one element for each channel.
///
/// # Errors
/// Returns an error if `x` is not an array of f16, bf16, f32 or f64, `batch` and `channel` are
/// not distinct dims of it, or the options are not valid.
pub fn instance_norm(
    b: &mut Builder,
    x: InstId,
    batch: &[i64],
    channel: i64,
    norm: &Norm,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "instance_norm", "x", x)?;
    let mut kept = operand.dims("batch", batch)?;
    let channel = operand.dim("channel", channel)?;
    kept.push(channel);
    let kept = operand.distinct("channel", kept)?;
    let dims = operand.other_dims(&kept);
    let wide = operand.widened(b)?;
    let Normal { y, .. } = norm.normalize(b, &operand, wide, &dims, &kept)?;
    norm.finish(b, &operand, y, &[channel])
}

/// A dim of an operand, cut into groups: `count` equal runs of neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The dim; negative dims count from the end.
    pub dim: i64,
    /// The number of groups.
    pub count: i64,
}

/// Mean 0 and variance 1 over each group of channels and all dims but `batch` and the dim of
/// `channels`, with the shape of `x`. Scale and bias have one element
/// for each channel.
///
/// # Errors
/// The errors of [`instance_norm`], or if the channels cannot be divided into the groups.
pub fn group_norm(
    b: &mut Builder,
    x: InstId,
    batch: &[i64],
    channels: Groups,
    norm: &Norm,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "group_norm", "x", x)?;
    let mut kept = operand.dims("batch", batch)?;
    let channel = operand.dim("channels", channels.dim)?;
    kept.push(channel);
    let kept = operand.distinct("channels", kept)?;
    let split = Split::new(&operand, channel, channels.count)?;
    let grouped = split.apply(b, &operand)?;
    let (dims, kept) = (split.moved(&operand.other_dims(&kept), true), split.moved(&kept, false));
    let Normal { y, .. } = norm.normalize(b, &operand, grouped, &dims, &kept)?;
    let y = b.reshape(y, operand.shape.dims())?;
    norm.finish(b, &operand, y, &[channel])
}

/// `v * scale * rsqrt(sum(v * v) + epsilon)`, with the shape of `v`: the length over all dims
/// but `kept` becomes `scale`. The scale has the sizes of `kept`, in the order of these in `v`;
/// without a scale the length is 1.
///
/// # Errors
/// Returns an error if `v` is not an array of f16, bf16, f32 or f64, `kept` are not distinct
/// dims of it, the scale has other dims, or `epsilon` is not a number of 0 or more.
pub fn weight_norm(
    b: &mut Builder,
    v: InstId,
    kept: &[i64],
    epsilon: f64,
    scale: Option<InstId>,
) -> Result<InstId, BuildError> {
    let operand = CompositeOperand::of_floats(b, "weight_norm", "v", v)?;
    let kept = operand.dims("kept", kept)?;
    check_epsilon(&operand, epsilon)?;
    let wide = operand.widened(b)?;
    let squares = b.binary(Opcode::Multiply, wide, wide)?;
    let square = sum(b, squares, &operand.other_dims(&kept))?;
    let shifted = with_number(b, Opcode::Add, square, epsilon)?;
    let mut factor = b.unary(Opcode::Rsqrt, shifted)?;
    if let Some(scale) = scale {
        let scale = parameter(b, &operand, "scale", scale, &kept)?;
        factor = b.binary(Opcode::Multiply, factor, scale)?;
    }
    let w = with_spread(b, Opcode::Multiply, wide, factor, &kept)?;
    operand.narrowed(b, w)
}

impl Norm {
    /// Normalises the widened elements, possibly with other dims, to mean 0 and variance 1 over
    /// some dims.
    pub(super) fn normalize(
        &self,
        b: &mut Builder,
        operand: &CompositeOperand,
        wide: InstId,
        dims: &[i64],
        kept: &[i64],
    ) -> Result<Normal, BuildError> {
        check_epsilon(operand, self.epsilon)?;
        normalize(b, wide, dims, kept, self.epsilon, self.variance)
    }

    /// Computes `y * scale + bias` in the operand's type; scale and bias have the sizes of
    /// `dims`.
    pub(super) fn finish(
        &self,
        b: &mut Builder,
        operand: &CompositeOperand,
        mut y: InstId,
        dims: &[i64],
    ) -> Result<InstId, BuildError> {
        if let Some(scale) = self.scale {
            let scale = parameter(b, operand, "scale", scale, dims)?;
            y = with_spread(b, Opcode::Multiply, y, scale, dims)?;
        }
        if let Some(bias) = self.bias {
            let bias = parameter(b, operand, "bias", bias, dims)?;
            y = with_spread(b, Opcode::Add, y, bias, dims)?;
        }
        operand.narrowed(b, y)
    }
}

/// A dim that is split in two: the group, and the index in the group.
pub(super) struct Split {
    dim: i64,
    sizes: [i64; 2],
}

impl Split {
    pub(super) fn new(
        operand: &CompositeOperand,
        dim: i64,
        groups: i64,
    ) -> Result<Self, BuildError> {
        let size = operand.size(dim);
        let parts = size
            .checked_div(groups)
            .filter(|parts| groups > 0 && parts.checked_mul(groups) == Some(size));
        let Some(parts) = parts else {
            let why =
                format!("the {size} elements of dim {dim} cannot be divided into {groups} groups");
            return Err(operand.error("groups", why));
        };
        Ok(Self { dim, sizes: [groups, parts] })
    }

    /// Returns the widened elements with the dim split.
    pub(super) fn apply(
        &self,
        b: &mut Builder,
        operand: &CompositeOperand,
    ) -> Result<InstId, BuildError> {
        let mut dims = Dims::new();
        for (dim, &size) in (0..).zip(operand.shape.dims()) {
            if dim == self.dim {
                dims.extend(self.sizes);
            } else {
                dims.push(size);
            }
        }
        let wide = operand.widened(b)?;
        b.reshape(wide, &dims)
    }

    /// Returns the numbers of these dims after the split: for the split dim the group and, if
    /// requested, also the index in the group.
    pub(super) fn moved(&self, dims: &[i64], with_place: bool) -> Dims {
        let place = self.dim + 1;
        let moved = dims.iter().map(|&d| if d > self.dim { d + 1 } else { d });
        let mut moved: Dims = moved.chain(with_place.then_some(place)).collect();
        moved.sort_unstable();
        moved
    }
}

fn check_epsilon(operand: &CompositeOperand, epsilon: f64) -> Result<(), BuildError> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        return Ok(());
    }
    Err(operand
        .error("epsilon", format!("epsilon is {epsilon}, and must be a number of 0 or more")))
}

/// Returns a scale or bias with the sizes of dims, in the type of the operand's moments.
fn parameter(
    b: &mut Builder,
    operand: &CompositeOperand,
    name: &'static str,
    id: InstId,
    dims: &[i64],
) -> Result<InstId, BuildError> {
    let (shape, sizes) = (shape_of(b, id)?, operand.sizes(dims));
    if shape.dims() != &*sizes || !shape.is_static() {
        return Err(
            operand.error(name, format!("the {name} is {shape}, and must have dims {sizes:?}"))
        );
    }
    CompositeOperand::of_floats(b, operand.composite, name, id)?;
    convert(b, id, operand.moment_type())
}
