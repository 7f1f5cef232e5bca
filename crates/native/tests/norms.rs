//! Norms beside their definitions, evaluated in `f64`; gradients beside differences of the norm.

use proptest::prelude::*;
use tilewright_native::fused::{Operand, Output, Values};
use tilewright_native::norms::{Norm, softmax, softmax_vjp};
use tilewright_native::{Error, Serial, Threads, View};

const CASES: u32 = if cfg!(miri) { 2 } else { 60 };
/// The most indices of a dim; Miri takes a second for some hundred elements.
const MOST: usize = if cfg!(miri) { 4 } else { 60 };

/// Dims `[n, h, c]`, and the way in which they are normalised.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Layer,
    Rms,
    Batch,
    Instance,
    Group(usize),
}

impl Kind {
    fn norm(self) -> Norm {
        match self {
            Self::Layer => Norm::layer(1, EPSILON),
            Self::Rms => Norm::rms(1, EPSILON),
            Self::Batch => Norm::batch(2, EPSILON),
            Self::Instance => Norm::instance(2, EPSILON),
            Self::Group(groups) => Norm::group(2, groups, EPSILON),
        }
    }

    /// The number of the statistics that an element has.
    fn of(self, [_, h, c]: [usize; 3], [i, j, k]: [usize; 3]) -> usize {
        match self {
            Self::Layer | Self::Rms => i * h + j,
            Self::Batch => k,
            Self::Instance => i * c + k,
            Self::Group(groups) => i * groups + k / (c / groups),
        }
    }
}

const EPSILON: f64 = 1e-3;

/// The norm by its definition.
fn forward(kind: Kind, dims: [usize; 3], x: &[f64], scale: &[f64], bias: &[f64]) -> Vec<f64> {
    let index = |n: usize| [n / dims[2] / dims[1], n / dims[2] % dims[1], n % dims[2]];
    let of: Vec<usize> = (0..x.len()).map(|n| kind.of(dims, index(n))).collect();
    let groups = of.iter().max().map_or(0, |most| most + 1);
    let mean_of = |values: &[f64]| {
        let (mut sums, mut counts) = (vec![0.0; groups], vec![0.0; groups]);
        for (&group, x) in of.iter().zip(values) {
            sums[group] += x;
            counts[group] += 1.0;
        }
        sums.iter().zip(counts).map(|(sum, count)| sum / count).collect::<Vec<f64>>()
    };
    let means = if matches!(kind, Kind::Rms) { vec![0.0; groups] } else { mean_of(x) };
    let left: Vec<f64> = x.iter().zip(&of).map(|(x, &group)| x - means[group]).collect();
    let squares: Vec<f64> = left.iter().map(|x| x * x).collect();
    let variances = mean_of(&squares);
    let y = |(n, left): (usize, &f64)| {
        left / (variances[of[n]] + EPSILON).sqrt() * scale[n % dims[2]] + bias[n % dims[2]]
    };
    left.iter().enumerate().map(y).collect()
}

/// The sum of `weights` times the norm changes by this much for each change of an element.
fn slopes(f: impl Fn(&[f64]) -> Vec<f64>, at: &[f64], weights: &[f64]) -> Vec<f64> {
    let step = 1e-5;
    let sum = |x: &[f64]| f(x).iter().zip(weights).map(|(y, w)| y * w).sum::<f64>();
    let slope = |n: usize| {
        let [mut low, mut high] = [at.to_vec(), at.to_vec()];
        low[n] -= step;
        high[n] += step;
        (sum(&high) - sum(&low)) / (2.0 * step)
    };
    (0..at.len()).map(slope).collect()
}

fn values(output: &Output) -> Vec<f64> {
    match &output.values {
        Values::F32(data) => data.iter().map(|&x| f64::from(x)).collect(),
        Values::F64(data) => data.clone(),
        Values::Bf16(data) => data.iter().map(|x| x.to_f64()).collect(),
        other => panic!("{other:?} of a norm"),
    }
}

/// Checks numbers that are rounded about once in so many units.
fn near(found: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(found.len(), expected.len());
    let size = expected.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= bound * size, "{found} is not {expected}");
    }
}

fn numbers(len: usize, seed: u64, mean: f64) -> Vec<f64> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((state >> 33) % 2000) as f64 / 1000.0 - 1.0 + mean
    };
    (0..len).map(|_| next()).collect()
}

fn view<'a, T>(data: &'a [T], dims: &[usize]) -> Operand<'a>
where
    Operand<'a>: From<View<'a, T>>,
{
    View::row_major(data, dims).expect("a view").into()
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Layer),
        Just(Kind::Rms),
        Just(Kind::Batch),
        Just(Kind::Instance),
        (1usize..4).prop_map(Kind::Group)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forward_is_as_defined(kind in kinds(), n in 1usize..5, h in 1..MOST, c in 1..MOST, seed: u64) {
        let c = if let Kind::Group(groups) = kind { c * groups } else { c };
        let dims = [n, h, c];
        let x = numbers(n * h * c, seed, 3.0);
        let (scale, bias) = (numbers(c, 1, 1.0), numbers(c, 2, 0.0));
        let expected = forward(kind, dims, &x, &scale, &bias);
        let run = |x: &Operand<'_>| {
            let (scale, bias) = (view(&scale, &[c]), view(&bias, &[c]));
            let one = kind.norm().forward(x, Some(&scale), Some(&bias), &Serial).expect("a norm");
            let two = kind.norm().forward(x, Some(&scale), Some(&bias), &Threads(2)).expect("a norm");
            assert_eq!(one, two);
            assert_eq!(one.y.dims, dims);
            values(&one.y)
        };
        near(&run(&view(&x, &dims)), &expected, 1e-12);
        let narrow: Vec<half::bf16> = x.iter().map(|&x| half::bf16::from_f64(x)).collect();
        let wide: Vec<f64> = narrow.iter().map(|x| x.to_f64()).collect();
        // The result has 8 bits.
        near(&run(&view(&narrow, &dims)), &forward(kind, dims, &wide, &scale, &bias), 1.0 / 256.0);
    }

    #[test]
    fn gradients_are_slopes(kind in kinds(), n in 1usize..4, h in 1..MOST.min(6), c in 1..MOST.min(6), seed: u64) {
        let c = if let Kind::Group(groups) = kind { c * groups } else { c };
        let dims = [n, h, c];
        let x = numbers(n * h * c, seed, 0.5);
        let dy = numbers(n * h * c, seed ^ 77, 0.2);
        let (scale, bias) = (numbers(c, 1, 1.0), numbers(c, 2, 0.0));
        let (x_view, dy_view, scale_view) = (view(&x, &dims), view(&dy, &dims), view(&scale, &[c]));
        let found = kind.norm().vjp(&dy_view, &x_view, Some(&scale_view), &Serial);
        let found = found.expect("gradients");
        assert_eq!(found.scale.dims, [c]);
        let by_x = slopes(|x| forward(kind, dims, x, &scale, &bias), &x, &dy);
        near(&values(&found.x), &by_x, 1e-5);
        let by_scale = slopes(|scale| forward(kind, dims, &x, scale, &bias), &scale, &dy);
        near(&values(&found.scale), &by_scale, 1e-6);
        let by_bias = slopes(|bias| forward(kind, dims, &x, &scale, bias), &bias, &dy);
        near(&values(&found.bias), &by_bias, 1e-6);
    }

    #[test]
    fn softmax_is_as_defined(rows in 1..MOST, len in 1..5 * MOST, last: bool, seed: u64) {
        let x: Vec<f32> = numbers(rows * len, seed, 0.0).iter().map(|&x| x as f32 * 20.0).collect();
        // Rows lie side by side, or across.
        let strides = if last { [len as isize, 1] } else { [1, rows as isize] };
        let x_view: Operand<'_> = View::new(&x, 0, &[rows, len], &strides).expect("a view").into();
        let at = |r: usize, i: usize| f64::from(x[r * strides[0] as usize + i * strides[1] as usize]);
        let mut expected = Vec::new();
        for r in 0..rows {
            let most = (0..len).map(|i| at(r, i)).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = (0..len).map(|i| (at(r, i) - most).exp()).sum();
            expected.extend((0..len).map(|i| (at(r, i) - most).exp() / sum));
        }
        let y = softmax(&x_view, -1, &Serial).expect("a softmax");
        // The differences from the maximum are below 40, and rounded to 2^-20; so are exponents.
        near(&values(&y), &expected, 4e-6);
        let y: Vec<f64> = expected;
        let dy = numbers(rows * len, seed ^ 5, 0.0);
        let (dy_view, y_view) = (view(&dy, &[rows, len]), view(&y, &[rows, len]));
        let dx = softmax_vjp(&dy_view, &y_view, 1, &Serial).expect("a gradient");
        for r in 0..rows {
            let row = r * len..(r + 1) * len;
            let sum: f64 = row.clone().map(|n| y[n] * dy[n]).sum();
            let expected: Vec<f64> = row.clone().map(|n| y[n] * (dy[n] - sum)).collect();
            near(&values(&dx)[row], &expected, 1e-12);
        }
    }
}

/// A large mean loses no digits of the variance, however long the rows are.
#[test]
fn variances_survive_large_means() {
    let lens: &[usize] = if cfg!(miri) { &[100] } else { &[100, 3000, 200_000] };
    for &len in lens {
        let x: Vec<f32> = (0..2 * len).map(|i| 4096.0 + (i % 7) as f32).collect();
        let normed = Norm::layer(1, 0.0).forward(&view(&x, &[2, len]), None, None, &Serial);
        for (row, variance) in x.chunks(len).zip(values(&normed.expect("a norm").variance)) {
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / len as f64;
            let exact =
                row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / len as f64;
            assert!((variance / exact - 1.0).abs() < 1e-5, "{variance} is not {exact}");
        }
    }
}

#[test]
fn what_is_no_norm_is_an_error() {
    let x = [1.0f32; 12];
    let x = view(&x, &[2, 6]);
    let error = |norm: Norm| norm.forward(&x, None, None, &Serial).expect_err("an error");
    assert_eq!(error(Norm::group(1, 4, 0.0)), Error::Groups { groups: 4, channels: 6 });
    assert_eq!(error(Norm::group(1, 0, 0.0)), Error::Groups { groups: 0, channels: 6 });
    assert_eq!(error(Norm::batch(2, 0.0)), Error::AxisOutOfRange { axis: 2, rank: 2 });
    let scale = [1.0f32; 5];
    let wrong = Norm::layer(1, 0.0).forward(&x, Some(&view(&scale, &[5])), None, &Serial);
    assert_eq!(wrong, Err(Error::OtherDims { given: vec![5], wanted: vec![2, 6] }));
    let none: [f32; 0] = [];
    assert_eq!(softmax(&view(&none, &[2, 0]), 1, &Serial), Err(Error::Empty));
    for norm in [Norm::layer(1, 0.0), Norm::rms(1, 0.0), Norm::batch(0, 0.0)] {
        let of_nothing = norm.forward(&view(&none, &[2, 0]), None, None, &Serial);
        assert_eq!(of_nothing, Err(Error::Empty));
    }
    // Channels and dims that there are not, and channels that are the batch.
    let (most, rank) = (i64::MAX, 2);
    for norm in [Norm::batch, Norm::instance, |channel, epsilon| Norm::group(channel, 1, epsilon)] {
        assert_eq!(error(norm(usize::MAX, 0.0)), Error::AxisOutOfRange { axis: most, rank });
    }
    for norm in [Norm::layer, Norm::rms] {
        assert_eq!(error(norm(3, 0.0)), Error::AxisOutOfRange { axis: -3, rank });
        assert_eq!(error(norm(usize::MAX, 0.0)), Error::AxisOutOfRange { axis: -most, rank });
    }
    assert_eq!(error(Norm::instance(0, 0.0)), Error::ChannelIsBatch);
    assert_eq!(error(Norm::group(0, 1, 0.0)), Error::ChannelIsBatch);
    let scale = view(&[1.0f32], &[]);
    let scalar = Norm::group(1, 2, 0.0).forward(&x, Some(&scale), None, &Serial);
    assert_eq!(scalar, Err(Error::AxisOutOfRange { axis: 0, rank: 0 }));
}

/// The mean of a row with an infinite element, or whose sum is beyond all floats, is infinite wherever
/// the element lies; that of both infinities is NaN.
#[test]
fn means_may_be_infinite() {
    let len = if cfg!(miri) { 100 } else { 20_000 };
    let mean_of = |x: &[f32]| {
        let normed = Norm::layer(1, 0.0).forward(&view(x, &[1, len]), None, None, &Serial);
        values(&normed.expect("a norm").mean)[0]
    };
    let finite: Vec<f32> = (0..len).map(|i| (i % 7) as f32).collect();
    for at in [0, 3, len / 2, len - 1] {
        for infinite in [f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = finite.clone();
            x[at] = infinite;
            assert_eq!(mean_of(&x), f64::from(infinite), "at {at}");
            x[len - 1 - at] = -infinite;
            assert!(mean_of(&x).is_nan(), "at {at}");
        }
    }
    assert_eq!(mean_of(&vec![1e38; len]), f64::INFINITY);
}
