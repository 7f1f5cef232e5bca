//! Norms of neural networks, softmax, and their gradients, each as one [`Program`].
//!
//! ```
//! use tilewright_native::fused::Values;
//! use tilewright_native::norms::Norm;
//! use tilewright_native::{Serial, View};
//!
//! let x = [1.0f32, 3.0, 5.0, 7.0];
//! let x = View::row_major(&x, &[2, 2])?.into();
//! let normed = Norm::layer(1, 0.0).forward(&x, None, None, &Serial)?;
//! assert_eq!(normed.y.values, Values::F32(vec![-1.0, 1.0, -1.0, 1.0]));
//! # Ok::<(), tilewright_native::Error>(())
//! ```

use crate::error::Error;
use crate::fused::{Binary, Id, Kind, Operand, Output, Program, Reduction, Unary};
use crate::pool::Pool;

/// A norm of an array: `y = (x - mean) / sqrt(variance + epsilon) * scale + bias`.
///
/// The mean is 0 if the norm is not `centered`; the variance is the mean of `(x - mean)^2`.
#[derive(Clone, Debug)]
pub struct Norm {
    over: Over,
    centered: bool,
    epsilon: f64,
}

/// The dims along which the statistics, mean and variance, are taken.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// The last dims, this many. The parameters, scale and bias, have these dims.
    Last(usize),
    /// All dims but this one. The parameters have this one.
    AllBut(usize),
    /// All dims but dim 0 and this one. The parameters have this one.
    AllButFirstAnd(usize),
    /// The dim of the first number is split into as many groups as the second number says. All dims
    /// but dim 0 and the groups; the parameters have the dim that is split.
    Groups(usize, usize),
}

/// The results of a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The normalised array, of the type of the input.
    pub y: Output,
    /// The means; zeros if the norm is not centred. Statistics are `f64` for an `f64` array, else
    /// `f32`. They have the dims along which they were not taken, with groups as a dim.
    pub mean: Output,
    /// The variances: the mean squares of `x - mean`.
    pub variance: Output,
}

/// The gradients of a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// The gradient of the input, in its type.
    pub x: Output,
    /// The gradient of the scale, in the type of statistics.
    pub scale: Output,
    /// The gradient of the bias, in the type of statistics.
    pub bias: Output,
}

/// A norm for an array of given dims.
struct Shaped {
    /// The dims of the array, with groups as a dim.
    dims: Vec<usize>,
    /// The dims along which statistics are taken.
    axes: Vec<i64>,
    /// The dims that parameters have, and the other dims.
    parameters: Vec<usize>,
    others: Vec<i64>,
    /// The dim that is split, and the number of its parts.
    split: Option<(usize, usize)>,
    /// The number of elements of which each statistic is made.
    count: f64,
}

/// The statistics of a norm in a program.
struct Statistics {
    mean: Id,
    variance: Id,
    inverse: Id,
    normed: Id,
}

impl Norm {
    /// A layer norm along the last `dims` dims, which scale and bias have, too.
    pub fn layer(dims: usize, epsilon: f64) -> Self {
        Self { over: Over::Last(dims), centered: true, epsilon }
    }

    /// An RMS norm along the last `dims` dims, which scale and bias have, too.
    pub fn rms(dims: usize, epsilon: f64) -> Self {
        Self { over: Over::Last(dims), centered: false, epsilon }
    }

    /// A batch norm: each channel has statistics over all other dims.
    pub fn batch(channel: usize, epsilon: f64) -> Self {
        Self { over: Over::AllBut(channel), centered: true, epsilon }
    }

    /// An instance norm: each channel of each element of the batch, which is dim 0, has statistics.
    pub fn instance(channel: usize, epsilon: f64) -> Self {
        Self { over: Over::AllButFirstAnd(channel), centered: true, epsilon }
    }

    /// A group norm: each group of channels of each element of the batch, which is dim 0, has
    /// statistics.
    pub fn group(channel: usize, groups: usize, epsilon: f64) -> Self {
        Self { over: Over::Groups(channel, groups), centered: true, epsilon }
    }

    /// Normalises an array. `scale` and `bias` have the channel's dim; for layer and RMS norms, the
    /// last dims.
    ///
    /// # Errors
    /// If dims do not fit the norm, statistics would be of no elements, results do not fit in
    /// memory, or the pool caught the panic of a task.
    pub fn forward(
        &self,
        x: &Operand<'_>,
        scale: Option<&Operand<'_>>,
        bias: Option<&Operand<'_>>,
        pool: &dyn Pool,
    ) -> Result<Forward, Error> {
        let shaped = self.shaped(x.dims())?;
        let mut program = Program::new(&shaped.dims)?;
        let mut operands = vec![shaped.whole(x)?];
        let input = program.input();
        let Statistics { mean, variance, normed: mut y, .. } =
            self.statistics(&mut program, input, &shaped)?;
        for (parameter, op) in [(scale, Binary::Multiply), (bias, Binary::Add)] {
            if let Some(parameter) = parameter {
                operands.push(shaped.parameter(parameter)?);
                let parameter = program.input();
                y = program.binary(op, y, parameter)?;
            }
        }
        program.output(y, &[], x.kind())?;
        program.output(mean, &shaped.axes, statistics_of(x))?;
        program.output(variance, &shaped.axes, statistics_of(x))?;
        let [mut y, mean, variance] = three(program.run(&operands, pool)?)?;
        y.dims = x.dims().to_vec();
        Ok(Forward { y, mean, variance })
    }

    /// Returns the gradients of input, scale and bias, given the gradient `dy` of the result. The
    /// statistics are computed again, since `x` is read anyway.
    ///
    /// # Errors
    /// Fails as [`Norm::forward`] does, and if `dy` does not have the dims of `x`.
    pub fn vjp(
        &self,
        dy: &Operand<'_>,
        x: &Operand<'_>,
        scale: Option<&Operand<'_>>,
        pool: &dyn Pool,
    ) -> Result<Gradients, Error> {
        let shaped = self.shaped(x.dims())?;
        let mut p = Program::new(&shaped.dims)?;
        let mut operands = vec![shaped.whole(x)?, shaped.whole(dy)?];
        let (x_in, dy_in) = (p.input(), p.input());
        let mut scale_in = None;
        if let Some(scale) = scale {
            operands.push(shaped.parameter(scale)?);
            scale_in = Some(p.input());
        }
        let [dx, dscale, dbias] = self.gradients(&mut p, [x_in, dy_in], scale_in, &shaped)?;
        p.output(dx, &[], x.kind())?;
        p.output(dscale, &shaped.others, statistics_of(x))?;
        p.output(dbias, &shaped.others, statistics_of(x))?;
        let [mut dx, mut scale, mut bias] = three(p.run(&operands, pool)?)?;
        dx.dims = x.dims().to_vec();
        for parameter in [&mut scale, &mut bias] {
            parameter.dims = shaped.parameter_dims();
        }
        Ok(Gradients { x: dx, scale, bias })
    }

    /// Adds the gradients of the input, of the scale and of the bias to a program.
    fn gradients(
        &self,
        p: &mut Program,
        [x, dy]: [Id; 2],
        scale: Option<Id>,
        shaped: &Shaped,
    ) -> Result<[Id; 3], Error> {
        let Statistics { inverse, normed, .. } = self.statistics(p, x, shaped)?;
        let scaled = |p: &mut Program, value: Id| match scale {
            Some(scale) => p.binary(Binary::Multiply, value, scale),
            None => Ok(value),
        };
        let mut left = scaled(p, dy)?;
        let products = p.binary(Binary::Multiply, dy, normed)?;
        // If one scale serves all elements of a statistic, it multiplies their sums, and the
        // gradients of the parameters are made of the same sums.
        let is_same = shaped.axes.iter().all(|axis| shaped.others.contains(axis));
        let (mut means, sums, axes) = if is_same {
            let sums = [
                p.reduce(Reduction::Sum, dy, &shaped.axes)?,
                p.reduce(Reduction::Sum, products, &shaped.axes)?,
            ];
            let means = [scaled(p, sums[0])?, scaled(p, sums[1])?];
            let rest = shaped.others.iter().filter(|axis| !shaped.axes.contains(axis));
            (means, sums, rest.copied().collect::<Vec<i64>>())
        } else {
            let along = p.binary(Binary::Multiply, left, normed)?;
            let means = [
                p.reduce(Reduction::Sum, left, &shaped.axes)?,
                p.reduce(Reduction::Sum, along, &shaped.axes)?,
            ];
            (means, [dy, products], shaped.others.clone())
        };
        let count = p.constant(shaped.count);
        for mean in &mut means {
            *mean = p.binary(Binary::Divide, *mean, count)?;
        }
        // With `scaled = dy scale`,
        // `dx = inverse (scaled - mean(scaled) - normed mean(scaled normed))`. Only a centred norm
        // subtracts `mean(scaled)`, which is the gradient through the mean of `x`.
        if self.centered {
            left = p.binary(Binary::Subtract, left, means[0])?;
        }
        let along = p.binary(Binary::Multiply, normed, means[1])?;
        let left = p.binary(Binary::Subtract, left, along)?;
        let dx = p.binary(Binary::Multiply, left, inverse)?;
        let [dbias, dscale] = match axes.as_slice() {
            [] => sums,
            axes => {
                [p.reduce(Reduction::Sum, sums[0], axes)?, p.reduce(Reduction::Sum, sums[1], axes)?]
            }
        };
        Ok([dx, dscale, dbias])
    }

    fn statistics(&self, p: &mut Program, x: Id, shaped: &Shaped) -> Result<Statistics, Error> {
        let count = p.constant(shaped.count);
        let (mean, squares, left) = if self.centered {
            let mean = p.reduce(Reduction::Moments, x, &shaped.axes)?;
            (mean, p.deviations(mean)?, p.binary(Binary::Subtract, x, mean)?)
        } else {
            let squares = p.binary(Binary::Multiply, x, x)?;
            (p.constant(0.0), p.reduce(Reduction::Sum, squares, &shaped.axes)?, x)
        };
        let variance = p.binary(Binary::Divide, squares, count)?;
        let epsilon = p.constant(self.epsilon);
        let inverse = p.binary(Binary::Add, variance, epsilon)?;
        let inverse = p.unary(Unary::Rsqrt, inverse)?;
        let normed = p.binary(Binary::Multiply, left, inverse)?;
        Ok(Statistics { mean, variance, inverse, normed })
    }

    fn shaped(&self, dims: &[usize]) -> Result<Shaped, Error> {
        let rank = dims.len();
        let (has_dims, split) = match self.over {
            Over::Last(last) => (last <= rank, None),
            Over::AllBut(channel) | Over::AllButFirstAnd(channel) => (channel < rank, None),
            Over::Groups(channel, groups) => (channel < rank, Some((channel, groups))),
        };
        if !has_dims {
            let axis = match self.over {
                Over::Last(last) => i64::try_from(last).unwrap_or(i64::MAX).saturating_neg(),
                Over::AllBut(channel)
                | Over::AllButFirstAnd(channel)
                | Over::Groups(channel, _) => i64::try_from(channel).unwrap_or(i64::MAX),
            };
            return Err(Error::AxisOutOfRange { axis, rank });
        }
        if matches!(self.over, Over::AllButFirstAnd(0) | Over::Groups(0, _)) {
            return Err(Error::ChannelIsBatch);
        }
        let mut dims = dims.to_vec();
        if let Some((channel, groups)) = split {
            if groups == 0 || !dims[channel].is_multiple_of(groups) {
                return Err(Error::Groups { groups, channels: dims[channel] });
            }
            dims[channel] /= groups;
            dims.insert(channel, groups);
        }
        let is_reduced = |dim: &usize| match self.over {
            Over::Last(last) => *dim >= rank - last,
            Over::AllBut(channel) => *dim != channel,
            Over::AllButFirstAnd(channel) | Over::Groups(channel, _) => {
                *dim != 0 && *dim != channel
            }
        };
        let is_parameter = |dim: &usize| match self.over {
            Over::Last(last) => *dim >= rank - last,
            Over::AllBut(channel) | Over::AllButFirstAnd(channel) => *dim == channel,
            Over::Groups(channel, _) => *dim == channel || *dim == channel + 1,
        };
        let signed = |dim: usize| i64::try_from(dim).map_err(|_| Error::TooLarge);
        let axes: Vec<usize> = (0..dims.len()).filter(is_reduced).collect();
        let (parameters, others): (Vec<usize>, Vec<usize>) =
            (0..dims.len()).partition(is_parameter);
        #[expect(clippy::cast_precision_loss, reason = "the mean is rounded anyway")]
        let count: f64 = axes.iter().map(|&dim| dims[dim] as f64).product();
        if count == 0.0 {
            return Err(Error::Empty);
        }
        Ok(Shaped {
            axes: axes.into_iter().map(signed).collect::<Result<_, _>>()?,
            others: others.into_iter().map(signed).collect::<Result<_, _>>()?,
            dims,
            parameters,
            split,
            count,
        })
    }
}

impl Shaped {
    fn whole<'a>(&self, operand: &Operand<'a>) -> Result<Operand<'a>, Error> {
        match self.split {
            Some((dim, parts)) => operand.split(dim, parts),
            None => Ok(operand.clone()),
        }
    }

    fn parameter<'a>(&self, operand: &Operand<'a>) -> Result<Operand<'a>, Error> {
        let operand = match self.split {
            Some((_, parts)) => operand.split(0, parts)?,
            None => operand.clone(),
        };
        operand.broadcast(&self.dims, &self.parameters)
    }

    fn parameter_dims(&self) -> Vec<usize> {
        let dims = self.parameters.iter().map(|&dim| self.dims[dim]);
        if self.split.is_some() { vec![dims.product()] } else { dims.collect() }
    }
}

/// Returns the softmax along a dim, in the type of the input: `e^(x - max x) / sum e^(x - max x)`.
///
/// # Errors
/// If the axis is out of range or has no indices, or the pool caught the panic of a task.
pub fn softmax(x: &Operand<'_>, axis: i64, pool: &dyn Pool) -> Result<Output, Error> {
    let mut p = Program::new(x.dims())?;
    let input = p.input();
    let most = p.reduce(Reduction::Max, input, &[axis])?;
    let below = p.binary(Binary::Subtract, input, most)?;
    let power = p.unary(Unary::Exp, below)?;
    let sum = p.reduce(Reduction::Sum, power, &[axis])?;
    let y = p.binary(Binary::Divide, power, sum)?;
    p.output(y, &[], x.kind())?;
    only(p.run(std::slice::from_ref(x), pool)?)
}

/// Returns the gradient of a softmax's input, given its result `y` and the gradient `dy` of the
/// result: `y (dy - sum y dy)`, in the type of `y`.
///
/// # Errors
/// If the dims of `y` and `dy` differ, the axis is out of range, or the pool caught the panic of a
/// task.
pub fn softmax_vjp(
    dy: &Operand<'_>,
    y: &Operand<'_>,
    axis: i64,
    pool: &dyn Pool,
) -> Result<Output, Error> {
    let mut p = Program::new(y.dims())?;
    let (dy_in, y_in) = (p.input(), p.input());
    let both = p.binary(Binary::Multiply, dy_in, y_in)?;
    let sum = p.reduce(Reduction::Sum, both, &[axis])?;
    let left = p.binary(Binary::Subtract, dy_in, sum)?;
    let dx = p.binary(Binary::Multiply, y_in, left)?;
    p.output(dx, &[], y.kind())?;
    only(p.run(&[dy.clone(), y.clone()], pool)?)
}

fn statistics_of(x: &Operand<'_>) -> Kind {
    if x.kind() == Kind::F64 { Kind::F64 } else { Kind::F32 }
}

fn three(outputs: Vec<Output>) -> Result<[Output; 3], Error> {
    outputs.try_into().map_err(|_| Error::Unfinished)
}

fn only(outputs: Vec<Output>) -> Result<Output, Error> {
    outputs.into_iter().next().ok_or(Error::Unfinished)
}
