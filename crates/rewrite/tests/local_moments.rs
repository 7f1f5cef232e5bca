//! `local-moments`: variances are as close to the exact ones as its law says, and what devices
//! exchange never grows.
//!
//! Exact values are those of the formula in f64 about a mean in f64.

use crate::common::{changes, module, optimized, options, passes, short};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Verified};
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{Options, Report};

/// The places of one channel, the first dim of which is divided over 8 devices.
const PLACES: usize = 8 * 16;
const CHANNELS: usize = 4;

/// Returns the mean and the sum of squares about it of each channel, as a program.
fn program(spec: &str) -> Verified {
    module(&format!(
        "HloModule m, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"data\"=4, \"model\"=2]>}}}}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}

ENTRY main {{
  x = f32[8,16,4] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{spec}]>\"}}
  zero = f32[] constant(0)
  sum = f32[4] reduce(x, zero), dimensions={{0,1}}, to_apply=add
  count = f32[] constant(128)
  counts = f32[4] broadcast(count), dimensions={{}}
  mean = f32[4] divide(sum, counts)
  means = f32[8,16,4] broadcast(mean), dimensions={{2}}
  centred = f32[8,16,4] subtract(x, means)
  squared = f32[8,16,4] multiply(centred, centred)
  squares = f32[4] reduce(squared, zero), dimensions={{0,1}}, to_apply=add
  ROOT both = (f32[4], f32[4]) tuple(mean, squares)
}}
"
    ))
}

const BOTH: &str = r#"{\"data\"}, {\"model\"}, {}"#;

/// Returns options under which every round counts.
fn every_round_counts(mut options: Options) -> Options {
    (options.target.round_cycles, options.target.link_bytes_per_cycle) = (1e7, 1.0);
    options.target.least_gain = 1.0;
    options
}

fn rewritten(before: &Verified, float_mode: FloatMode) -> Verified {
    let mut options = every_round_counts(passes(&["local-moments"], "cpu", false));
    options.float_mode = float_mode;
    let after = optimized(before, &options);
    assert_eq!(changes(&after, "local-moments"), 1, "{}", short(&after.module));
    after.module
}

/// Returns the means and sums of squares.
fn results(module: &Verified, x: &[f32]) -> [Vec<f32>; 2] {
    let x = ArrayLiteral::new(ElementType::F32, [8, 16, 4], Data::F32(x.to_vec())).unwrap();
    let Literal::Tuple(found) = evaluate(module, &[Literal::Array(x)], &Limits::default()).unwrap()
    else {
        panic!("two results")
    };
    let floats = |literal: &Literal| match literal.as_array().unwrap().data() {
        Data::F32(values) => values.clone(),
        other => panic!("{other:?}"),
    };
    [floats(&found[0]), floats(&found[1])]
}

/// Returns the mean and the sum of squares about it of one channel.
fn exact(x: &[f32], channel: usize) -> [f64; 2] {
    let own: Vec<f64> = x.iter().skip(channel).step_by(CHANNELS).map(|&x| x.into()).collect();
    let mean = own.iter().sum::<f64>() / own.len() as f64;
    [mean, own.iter().map(|x| (x - mean) * (x - mean)).sum()]
}

/// Returns a number between -1 and 1.
fn draw(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0
}

/// The size of the mean, of what tells devices apart, and of what tells places apart.
const CASES: [[f64; 3]; 11] = [
    [0.0, 0.0, 1.0],
    [1.0, 0.0, 1.0],
    [100.0, 0.0, 1.0],
    [1e4, 0.0, 1.0],
    [1e4, 1.0, 1e-2],
    [1e4, 1e4, 1.0],
    [1e6, 10.0, 1.0],
    [1e6, 0.0, 0.0],
    [0.0, 1e6, 1.0],
    [1e-15, 1e-16, 1e-17],
    [1e15, 1e12, 1e12],
];

/// Returns values of a case.
fn values([mean, apart, spread]: [f64; 3], seed: u64) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let offsets: Vec<f64> = (0..8).map(|_| apart * draw(&mut random)).collect();
    let offset = |at: usize| offsets[at / (PLACES * CHANNELS / 8)];
    (0..PLACES * CHANNELS)
        .map(|at| (mean + offset(at) + spread * draw(&mut random)) as f32)
        .collect()
}

#[test]
fn errors_are_as_small_as_the_law_says() {
    let before = program(BOTH);
    let unit = f64::from(f32::EPSILON) / 2.0;
    for (is_fast, float_mode) in [(false, FloatMode::Guarded), (true, FloatMode::Fast)] {
        let after = rewritten(&before, float_mode);
        for (seed, case) in CASES.into_iter().enumerate() {
            let x = values(case, seed as u64);
            let [means, squares] = results(&after, &x);
            let [old_means, _] = results(&before, &x);
            for channel in 0..CHANNELS {
                let [mean, square] = exact(&x, channel);
                let error = (f64::from(means[channel]) - mean).abs();
                let old = (f64::from(old_means[channel]) - mean).abs();
                assert!(error <= old.max(2.0 * unit * mean.abs()), "{case:?}: {error} was {old}");
                // What rounding may cost: the mean, the sum of squares, and the sum on a device.
                let devices = x.chunks(x.len() / 8).map(|own| exact(own, channel)[0] - mean);
                let apart = devices.map(f64::abs).fold(0.0, f64::max);
                let on_device = if is_fast { 8.0 * apart } else { 0.0 };
                let places = PLACES as f64;
                let most = places * unit * mean.abs() * (4.0 * unit * mean.abs() + on_device)
                    + 64.0 * unit * square;
                let error = (f64::from(squares[channel]) - square).abs();
                assert!(error <= most, "{case:?}, {square}: {error} of {most}");
                assert!(squares[channel] >= 0.0);
            }
        }
    }
}

#[test]
fn infinities_and_overflows_stay() {
    let before = program(BOTH);
    let after = rewritten(&before, FloatMode::Guarded);
    for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e25, f32::MAX] {
        let mut x: Vec<f32> = (0..PLACES * CHANNELS).map(|at| (at % 7) as f32).collect();
        for place in [5, 17, 400] {
            x[place] = special;
        }
        let [old, new] = [results(&before, &x), results(&after, &x)];
        for channel in 0..CHANNELS {
            let case = format!("{special}: {old:?} {new:?}");
            let same = |old: f32, new: f32| {
                old.to_bits() == new.to_bits() || (old.is_nan() && new.is_nan())
            };
            if old[0][channel].is_finite() {
                assert!(
                    (old[0][channel] - new[0][channel]).abs() <= 1e-6 * old[0][channel].abs(),
                    "{case}"
                );
            } else {
                assert!(same(old[0][channel], new[0][channel]), "{case}");
            }
            assert_eq!(old[1][channel].is_finite(), new[1][channel].is_finite(), "{case}");
        }
    }
}

fn reported(before: &Verified) -> Report {
    optimized(before, &every_round_counts(options("cpu"))).report
}

#[test]
fn rounds_are_saved_where_bytes_allow() {
    let report = reported(&program(BOTH));
    let [before, after] = report.traffic.unwrap();
    // XLA sums along one axis after the other; two sums in f64 have as many bytes.
    assert_eq!([before.rounds, after.rounds], [4, 1]);
    assert_eq!([before.bytes, after.bytes], [64, 64]);
}

#[test]
fn rounds_are_kept_where_bytes_take_longer() {
    let program = program(r#"{\"data\"}, {}, {}"#);
    let traffic = |options: &Options| {
        let [before, after] = optimized(&program, options).report.traffic.unwrap();
        assert_eq!((before.rounds, before.bytes), (2, 32));
        (after.rounds, after.bytes)
    };
    let mut options = every_round_counts(options("cpu"));
    assert_eq!(traffic(&options), (1, 64));
    (options.target.round_cycles, options.target.link_bytes_per_cycle) = (1.0, 1e-6);
    assert_eq!(traffic(&options), (2, 32));
}
