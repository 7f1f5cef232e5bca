//! Compares modules that front ends build with plain arithmetic.

use super::{F32, f32_of, floats, integers, printed, value};
use crate::common::shape;
use tilewright_interp::{Devices, Evaluation};
use tilewright_ir::ops::collective::AllReduceAttrs;
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::ops::dims::{ConvDims, WindowDim};
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::sharding::{LeafSharding, Placement};
use tilewright_ir::{
    BuildError, Builder, CompId, ElementType, InstId, Literal, OpMetadata, Opcode, Shape, Sharding,
    dims,
};
use tilewright_text::parse_and_verify;

type Made = Result<InstId, BuildError>;

/// Numbers between -1 and 1 that repeat nowhere near.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(state >> 8) / f64::from(1 << 23) - 1.0) as f32
    };
    (0..count).map(|_| next()).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

#[track_caller]
fn assert_near(found: &Literal, expected: &[f64]) {
    let found: &[f32] = found.as_array().unwrap().as_slice().unwrap();
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let off = (f64::from(found) - expected).abs();
        assert!(off <= 1e-5 * expected.abs().max(1.0), "{found} at {at}, not {expected}");
    }
}

// ---- A transformer block: rows of a sequence, two heads.

const ROWS: i64 = 3;
const WIDTH: i64 = 4;
const HEADS: i64 = 2;
const DEPTH: i64 = 2;
const HIDDEN: i64 = 5;
const EPSILON: f32 = 1e-3;

/// Returns a number in every place.
fn filled(b: &mut Builder, number: f32, sizes: &[i64]) -> Made {
    let number = f32_of(b, number)?;
    b.broadcast(number, sizes, [])
}

/// Returns the mean of each row.
fn row_means(b: &mut Builder, x: InstId, add: CompId) -> Made {
    let zero = f32_of(b, 0.0)?;
    let sums = b.reduce(x, zero, [1], add)?;
    let width = filled(b, WIDTH as f32, &[ROWS])?;
    b.binary(Opcode::Divide, sums, width)
}

fn layer_norm(b: &mut Builder, x: InstId, scale: InstId, add: CompId) -> Made {
    let means = row_means(b, x, add)?;
    let means = b.broadcast(means, [ROWS, WIDTH], [0])?;
    let centred = b.binary(Opcode::Subtract, x, means)?;
    let squares = b.binary(Opcode::Multiply, centred, centred)?;
    let variances = row_means(b, squares, add)?;
    let epsilon = filled(b, EPSILON, &[ROWS])?;
    let variances = b.binary(Opcode::Add, variances, epsilon)?;
    let inverse = b.unary(Opcode::Rsqrt, variances)?;
    let inverse = b.broadcast(inverse, [ROWS, WIDTH], [0])?;
    let normal = b.binary(Opcode::Multiply, centred, inverse)?;
    let scale = b.broadcast(scale, [ROWS, WIDTH], [1])?;
    b.binary(Opcode::Multiply, normal, scale)
}

/// `f32[ROWS, WIDTH]` times weights, as `f32[ROWS, HEADS, DEPTH]`.
fn heads(b: &mut Builder, x: InstId, weights: InstId) -> Made {
    let product = b.dot(x, weights)?;
    b.reshape(product, [ROWS, HEADS, DEPTH])
}

fn softmax(b: &mut Builder, scores: InstId, add: CompId) -> Made {
    let sizes = [HEADS, ROWS, ROWS];
    let max = b.reducer(Opcode::Maximum, F32)?;
    let least = f32_of(b, f32::NEG_INFINITY)?;
    let greatest = b.reduce(scores, least, [2], max)?;
    let greatest = b.broadcast(greatest, sizes, [0, 1])?;
    let shifted = b.binary(Opcode::Subtract, scores, greatest)?;
    let powers = b.unary(Opcode::Exp, shifted)?;
    let zero = f32_of(b, 0.0)?;
    let sums = b.reduce(powers, zero, [2], add)?;
    let sums = b.broadcast(sums, sizes, [0, 1])?;
    b.binary(Opcode::Divide, powers, sums)
}

fn attention(b: &mut Builder, x: InstId, [wq, wk, wv, wo]: [InstId; 4], add: CompId) -> Made {
    let [queries, keys, values] = [heads(b, x, wq)?, heads(b, x, wk)?, heads(b, x, wv)?];
    let by_head = DotAttrs {
        lhs_batch_dims: dims([1]),
        lhs_contracting_dims: dims([2]),
        rhs_batch_dims: dims([1]),
        rhs_contracting_dims: dims([2]),
        ..DotAttrs::default()
    };
    let scores = b.dot_general(queries, keys, by_head, None)?;
    let scale = filled(b, (DEPTH as f32).sqrt().recip(), &[HEADS, ROWS, ROWS])?;
    let scores = b.binary(Opcode::Multiply, scores, scale)?;
    let shares = softmax(b, scores, add)?;
    let of_values = DotAttrs {
        lhs_batch_dims: dims([0]),
        lhs_contracting_dims: dims([2]),
        rhs_batch_dims: dims([1]),
        rhs_contracting_dims: dims([0]),
        ..DotAttrs::default()
    };
    let mixed = b.dot_general(shares, values, of_values, None)?; // heads, rows, depth
    let mixed = b.transpose(mixed, [1, 0, 2])?;
    let mixed = b.reshape(mixed, [ROWS, WIDTH])?;
    b.dot(mixed, wo)
}

/// `x * (1 + erf(x / sqrt(2))) / 2`
fn gelu(b: &mut Builder, x: InstId) -> Made {
    let sizes = [ROWS, HIDDEN];
    let root = filled(b, std::f32::consts::FRAC_1_SQRT_2, &sizes)?;
    let scaled = b.binary(Opcode::Multiply, x, root)?;
    let erf = b.unary(Opcode::Erf, scaled)?;
    let one = filled(b, 1.0, &sizes)?;
    let sum = b.binary(Opcode::Add, erf, one)?;
    let half = filled(b, 0.5, &sizes)?;
    let share = b.binary(Opcode::Multiply, sum, half)?;
    b.binary(Opcode::Multiply, x, share)
}

#[test]
fn transformer_block() -> Result<(), BuildError> {
    let mut b = Builder::new("transformer_block");
    let x = b.parameter("x", shape("f32[3,4]"))?;
    let scale = b.parameter("scale", shape("f32[4]"))?;
    let mut weights = [x; 4];
    for (weight, name) in weights.iter_mut().zip(["wq", "wk", "wv", "wo"]) {
        *weight = b.parameter(name, shape("f32[4,4]"))?;
    }
    let up = b.parameter("up", shape("f32[4,5]"))?;
    let down = b.parameter("down", shape("f32[5,4]"))?;
    let add = b.reducer(Opcode::Add, F32)?;

    let place = |op_name: &str| OpMetadata { op_name: op_name.into(), ..OpMetadata::default() };
    let attended = b.with_metadata(place("block/attention"), |b| {
        let normal = layer_norm(b, x, scale, add)?;
        let attended = attention(b, normal, weights, add)?;
        b.binary(Opcode::Add, x, attended)
    })?;
    let result = b.with_metadata(place("block/mlp"), |b| {
        let normal = layer_norm(b, attended, scale, add)?;
        let hidden = b.dot(normal, up)?;
        let hidden = gelu(b, hidden)?;
        let out = b.dot(hidden, down)?;
        b.binary(Opcode::Add, attended, out)
    })?;
    let module = b.finish(result)?;
    assert!(printed(&module).contains("metadata={op_name=\"block/mlp\"}"));

    let sizes: [&[i64]; 8] = [&[3, 4], &[4], &[4, 4], &[4, 4], &[4, 4], &[4, 4], &[4, 5], &[5, 4]];
    let inputs: Vec<Vec<f32>> = (1..)
        .zip(sizes)
        .map(|(seed, sizes)| numbers(usize::try_from(sizes.iter().product::<i64>()).unwrap(), seed))
        .collect();
    let literals: Vec<Literal> =
        inputs.iter().zip(sizes).map(|(numbers, sizes)| floats(sizes, numbers)).collect();
    let inputs: Vec<Vec<f64>> = inputs.iter().map(|numbers| wide(numbers)).collect();
    assert_near(&value(&module, &literals), &plain::transformer_block(&inputs));
    Ok(())
}

/// The same, without a compiler's eye.
mod plain {
    pub(super) fn matmul(a: &[f64], b: &[f64], inner: usize) -> Vec<f64> {
        let (rows, columns) = (a.len() / inner, b.len() / inner);
        let mut result = vec![0.0; rows * columns];
        for row in 0..rows {
            for column in 0..columns {
                for k in 0..inner {
                    result[row * columns + column] += a[row * inner + k] * b[k * columns + column];
                }
            }
        }
        result
    }

    fn layer_norm(x: &[f64], scale: &[f64]) -> Vec<f64> {
        let mut result = Vec::new();
        for row in x.chunks(4) {
            let mean = row.iter().sum::<f64>() / 4.0;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4.0;
            let deviation = (variance + 1e-3).sqrt();
            result.extend(row.iter().zip(scale).map(|(v, scale)| (v - mean) / deviation * scale));
        }
        result
    }

    fn attention(x: &[f64], [wq, wk, wv, wo]: [&[f64]; 4]) -> Vec<f64> {
        let [q, k, v] = [wq, wk, wv].map(|weights| matmul(x, weights, 4));
        let mut mixed = vec![0.0; 12];
        for head in 0..2 {
            for row in 0..3 {
                let score = |other: usize| {
                    let at = |d: usize| q[row * 4 + head * 2 + d] * k[other * 4 + head * 2 + d];
                    ((at(0) + at(1)) / 2.0_f64.sqrt()).exp()
                };
                let total = score(0) + score(1) + score(2);
                for d in 0..2 {
                    let share = |other: usize| score(other) / total * v[other * 4 + head * 2 + d];
                    mixed[row * 4 + head * 2 + d] = share(0) + share(1) + share(2);
                }
            }
        }
        matmul(&mixed, wo, 4)
    }

    /// Simpson's rule on the integral that defines it.
    fn erf(x: f64) -> f64 {
        let steps = 2000;
        let width = x / f64::from(steps);
        let f = |at: i32| (-(f64::from(at) * width).powi(2)).exp();
        let inner: f64 = (1..steps).map(|at| f(at) * if at % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (f(0) + inner + f(steps)) * width / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
    }

    pub(super) fn transformer_block(inputs: &[Vec<f64>]) -> Vec<f64> {
        let [x, scale, wq, wk, wv, wo, up, down] = inputs else { panic!("eight inputs") };
        let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
        let attended = add(x, &attention(&layer_norm(x, scale), [wq, wk, wv, wo]));
        let hidden = matmul(&layer_norm(&attended, scale), up, 4);
        let gelu = |&v: &f64| v * (1.0 + erf(v / 2.0_f64.sqrt())) / 2.0;
        let hidden: Vec<f64> = hidden.iter().map(gelu).collect();
        add(&attended, &matmul(&hidden, down, 5))
    }

    /// `image` is 4x4 pixels of `channels`, `kernel` 3x3 of so many to so many.
    pub(super) fn same_convolution(
        image: &[f64],
        kernel: &[f64],
        channels: usize,
        features: usize,
    ) -> Vec<f64> {
        let mut result = Vec::new();
        for y in 0..4 {
            for x in 0..4 {
                for feature in 0..features {
                    let mut sum = 0.0;
                    for (ky, kx) in (0..3).flat_map(|ky| (0..3).map(move |kx| (ky, kx))) {
                        let inside = (1..5).contains(&(y + ky)) && (1..5).contains(&(x + kx));
                        for channel in (0..channels).filter(|_| inside) {
                            let pixel = (y + ky - 1) * 4 + x + kx - 1;
                            let weight = ((ky * 3 + kx) * channels + channel) * features + feature;
                            sum += image[pixel * channels + channel] * kernel[weight];
                        }
                    }
                    result.push(sum);
                }
            }
        }
        result
    }
}

// ---- A block of a ResNet: convolutions, a norm of known moments, a shortcut, a pool.

/// Returns a convolution of 3x3 that keeps the size of an image.
fn same_convolution(b: &mut Builder, image: InstId, kernel: InstId) -> Made {
    let window = WindowDim { padding_low: 1, padding_high: 1, ..WindowDim::new(3) };
    let attrs = ConvolutionAttrs {
        window: [window, window].into(),
        dim_labels: ConvDims::nhwc(2),
        ..ConvolutionAttrs::default()
    };
    b.convolution(image, kernel, attrs, None)
}

#[test]
fn residual_block() -> Result<(), BuildError> {
    let mut b = Builder::new("residual_block");
    let image = b.parameter("image", shape("f32[1,4,4,2]"))?;
    let first = b.parameter("first", shape("f32[3,3,2,3]"))?;
    let second = b.parameter("second", shape("f32[3,3,3,2]"))?;
    let scale = b.parameter("scale", shape("f32[3]"))?;
    let bias = b.parameter("bias", shape("f32[3]"))?;

    let hidden = same_convolution(&mut b, image, first)?;
    let scale = b.broadcast(scale, [1, 4, 4, 3], [3])?;
    let bias = b.broadcast(bias, [1, 4, 4, 3], [3])?;
    let hidden = b.binary(Opcode::Multiply, hidden, scale)?;
    let hidden = b.binary(Opcode::Add, hidden, bias)?;
    let (zero, infinity) = (f32_of(&mut b, 0.0)?, f32_of(&mut b, f32::INFINITY)?);
    let hidden = b.clamp(zero, hidden, infinity)?;
    let hidden = same_convolution(&mut b, hidden, second)?;
    let sum = b.binary(Opcode::Add, hidden, image)?;
    let relu = b.clamp(zero, sum, infinity)?;
    let max = b.reducer(Opcode::Maximum, F32)?;
    let by_two = WindowDim { stride: 2, ..WindowDim::new(2) };
    let window = [WindowDim::new(1), by_two, by_two, WindowDim::new(1)];
    let pooled = b.reduce_window(relu, zero, window, max)?;
    let module = b.finish(pooled)?;
    assert_eq!(module.shape(pooled).to_string(), "f32[1,2,2,2]");

    let (image, first, second) = (numbers(32, 11), numbers(54, 12), numbers(54, 13));
    let (scale, bias) = (numbers(3, 14), numbers(3, 15));
    let inputs = [
        floats(&[1, 4, 4, 2], &image),
        floats(&[3, 3, 2, 3], &first),
        floats(&[3, 3, 3, 2], &second),
        floats(&[3], &scale),
        floats(&[3], &bias),
    ];
    let [image, first, second, scale, bias] =
        [&image, &first, &second, &scale, &bias].map(|numbers| wide(numbers));
    let mut hidden = plain::same_convolution(&image, &first, 2, 3);
    for pixel in hidden.chunks_mut(3) {
        for ((value, scale), bias) in pixel.iter_mut().zip(&scale).zip(&bias) {
            *value = (*value * scale + bias).max(0.0);
        }
    }
    let hidden = plain::same_convolution(&hidden, &second, 3, 2);
    let result: Vec<f64> = hidden.iter().zip(&image).map(|(a, b)| (a + b).max(0.0)).collect();
    let pool = |y: usize, x: usize, channel: usize| {
        let at = |dy, dx| result[((2 * y + dy) * 4 + 2 * x + dx) * 2 + channel];
        at(0, 0).max(at(0, 1)).max(at(1, 0)).max(at(1, 1))
    };
    let expected: Vec<f64> = (0..8).map(|at: usize| pool(at / 4, at / 2 % 2, at % 2)).collect();
    assert!(expected.iter().any(|&v| v > 0.0), "not all is cut off");
    assert_near(&value(&module, &inputs), &expected);
    Ok(())
}

/// Fibonacci numbers: the loop's state is a counter and two neighbours.
#[test]
fn loop_of_fibonacci_numbers() -> Result<(), BuildError> {
    let s32 = || Shape::scalar(ElementType::S32);
    let state = || Shape::Tuple(vec![s32(), s32(), s32()]);
    let number =
        |b: &mut Builder, value: i32| b.constant(Literal::scalar(ElementType::S32, value)?);
    let mut b = Builder::new("fibonacci");
    let count = b.parameter("count", s32())?;
    let condition = b.computation("more", |b| {
        let state = b.parameter("state", state())?;
        let left = b.get_tuple_element(state, 0)?;
        let zero = number(b, 0)?;
        b.compare(Direction::Gt, left, zero)
    })?;
    let body = b.computation("step", |b| {
        let state = b.parameter("state", state())?;
        let [left, last, next] = [0, 1, 2].map(|index| b.get_tuple_element(state, index));
        let (left, last, next) = (left?, last?, next?);
        let one = number(b, 1)?;
        let left = b.binary(Opcode::Subtract, left, one)?;
        let sum = b.binary(Opcode::Add, last, next)?;
        b.tuple([left, next, sum])
    })?;
    let (zero, one) = (number(&mut b, 0)?, number(&mut b, 1)?);
    let init = b.tuple([count, zero, one])?;
    let end = b.while_loop(condition, body, init)?;
    let result = b.get_tuple_element(end, 1)?;
    let module = b.finish(result)?;
    let (mut last, mut next) = (0, 1);
    for count in 0..20 {
        assert_eq!(value(&module, &[integers(&[], &[count])]), integers(&[], &[last]));
        (last, next) = (next, last + next);
    }
    Ok(())
}

/// The greater of two numbers is divided by the other one.
#[test]
fn conditional_division() -> Result<(), BuildError> {
    let pair = || Shape::Tuple(vec![Shape::scalar(F32), Shape::scalar(F32)]);
    let quotient = |b: &mut Builder, name: &str, order: [i64; 2]| {
        b.computation(name, |b| {
            let both = b.parameter("both", pair())?;
            let [over, under] = order.map(|index| b.get_tuple_element(both, index));
            b.binary(Opcode::Divide, over?, under?)
        })
    };
    let mut b = Builder::new("conditional");
    let x = b.parameter("x", shape("f32[]"))?;
    let y = b.parameter("y", shape("f32[]"))?;
    let x_over_y = quotient(&mut b, "x_over_y", [0, 1])?;
    let y_over_x = quotient(&mut b, "y_over_x", [1, 0])?;
    let greater = b.compare(Direction::Gt, x, y)?;
    let both = b.tuple([x, y])?;
    let result = b.conditional(greater, both, x_over_y, both, y_over_x)?;
    let module = b.finish(result)?;
    for (x, y) in [(6.0, 1.5), (1.5, 6.0), (3.0, 3.0)] {
        let found = value(&module, &[floats(&[], &[x]), floats(&[], &[y])]);
        assert_eq!(found, floats(&[], &[x.max(y) / x.min(y)]));
    }
    Ok(())
}

/// Data parallel training: the mean of gradients over four replicas, sharded as a
/// front end says.
#[test]
fn mean_over_replicas() -> Result<(), BuildError> {
    let mut b = Builder::new("mean_gradient");
    b.header_mut().replica_count = Some(4);
    let x = b.parameter("x", shape("f32[2,3]"))?;
    let replicated = Sharding::Leaf(LeafSharding::from(Placement::Replicated));
    b.set_sharding(x, replicated.clone())?;
    let mean = b.with_sharding(replicated, |b| {
        let add = b.reducer(Opcode::Add, F32)?;
        let sum = b.all_reduce(x, AllReduceAttrs::new(add))?;
        let four = f32_of(b, 4.0)?;
        let fours = b.broadcast(four, [2, 3], [])?;
        b.binary(Opcode::Divide, sum, fours)
    })?;
    let module = b.finish(mean)?;
    let text = printed(&module);
    assert_eq!(text.matches("sharding={replicated}").count(), 5, "{text}");
    assert_eq!(printed(&parse_and_verify(&text).unwrap()), text);

    let gradients: Vec<Vec<f32>> = (21..25).map(|seed| numbers(6, seed)).collect();
    let inputs: Vec<[Literal; 1]> = gradients.iter().map(|g| [floats(&[2, 3], g)]).collect();
    let expected: Vec<f64> = (0..6)
        .map(|at| gradients.iter().map(|gradient| f64::from(gradient[at])).sum::<f64>() / 4.0)
        .collect();
    let devices = Devices { replicas: 4, partitions: 1 };
    let outputs = Evaluation::new(&module).devices(devices).run(&inputs).unwrap();
    assert_eq!(outputs.len(), 4);
    for outputs in outputs {
        assert_near(&outputs.output, &expected);
    }
    Ok(())
}
