//! The gradients of group norms in `f32`, rewritten by the default pipeline, against the same
//! program in `f64`, on data on which norms lose precision: far from zero, tied, constant, huge,
//! tiny, with outliers. No output may be off by more than the contract allows.

use crate::common::{changes, module, optimized, short, without_latency};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use tilewright_interp::{Limits, evaluate, float_elements, widened, widened_literal};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Verified};
use tilewright_testkit::fixture::fixtures;

/// Gradients as JAX writes them: of variances in two passes and in one, the latter clipped at zero
/// or not, with channels last and first.
const PROGRAMS: [&str; 5] = [
    "group_norm_nhwc_grad",
    "group_norm_clipped_grad",
    "group_norm_nhwc_one_pass_vjp",
    "group_norm_nchw_grad",
    "group_norm_nchw_one_pass_grad",
];

/// The image: its mean, its deviation, and the height of one outlier in a batch.
const IMAGES: [[f64; 3]; 14] = [
    [0.0, 1.0, 0.0],
    [1.0, 1.0, 0.0],
    [30.0, 1.0, 0.0],
    [1e3, 1.0, 0.0],
    [1e3, 1e-2, 0.0],
    [1.0, 0.0, 0.0],
    [0.1, 0.0, 0.0],
    [1000.3, 0.0, 0.0],
    [1e-4, 1e-4, 0.0],
    [1e-3, 1e-6, 0.0],
    [0.0, 1e15, 0.0],
    [0.0, 1e-2, 30.0],
    [1.0, 1e-2, 30.0],
    [1e3, 1.0, -1e3],
];

/// What the gradient of the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cotangent {
    Random,
    Ones,
    /// 1 in the first half of the array, -0.7 in the second. They do not cancel: the interpreter
    /// rounds a sum once, so that its sum in one stage would be exact, and that in two would not.
    Halves,
    /// Zero for two of three values.
    Sparse,
}

const COTANGENTS: [Cotangent; 4] =
    [Cotangent::Random, Cotangent::Ones, Cotangent::Halves, Cotangent::Sparse];

/// Returns a number of mean 0 and deviation 1.
fn draw(random: &mut ChaCha8Rng) -> f64 {
    let uniform = |random: &mut ChaCha8Rng| f64::from(random.next_u32()) / f64::from(u32::MAX);
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

fn image([mean, deviation, outlier]: [f64; 3], len: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let far = |at: usize| if at == len / 3 { outlier } else { 0.0 };
    (0..len).map(|at| (mean + deviation * draw(random) + far(at)) as f32).collect()
}

fn cotangent(kind: Cotangent, len: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let at = |at: usize| match kind {
        Cotangent::Ones => 1.0,
        Cotangent::Halves if at < len / 2 => 1.0,
        Cotangent::Halves => -0.7,
        Cotangent::Sparse if !at.is_multiple_of(3) => 0.0,
        Cotangent::Random | Cotangent::Sparse => draw(random),
    };
    (0..len).map(at).map(|value| value as f32).collect()
}

/// Returns inputs of a program: the first parameter is the image, another one of its rank is the
/// gradient of the output, and all others are near 1.
fn inputs(module: &Verified, image_of: [f64; 3], kind: Cotangent, seed: u64) -> Vec<Literal> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let entry = module.entry().unwrap();
    let parameters = module.computation(entry).parameters().iter().enumerate();
    let made = parameters.map(|(place, &parameter)| {
        let shape = module.array_shape(parameter).unwrap();
        let len = usize::try_from(shape.num_elements().unwrap()).unwrap();
        let values = match (place, shape.rank()) {
            (0, _) => image(image_of, len, &mut random),
            (_, 4) => cotangent(kind, len, &mut random),
            _ => (0..len).map(|_| (1.0 + 0.3 * draw(&mut random)) as f32).collect(),
        };
        let dims = shape.dims().iter().copied();
        Literal::Array(ArrayLiteral::new(ElementType::F32, dims, Data::F32(values)).unwrap())
    });
    made.collect()
}

/// Returns inputs each element of which is moved by at most one unit in the last place.
fn nudged(inputs: &[Literal], seed: u64) -> Vec<Literal> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut moved = |value: f32| match random.next_u32() % 3 {
        0 => value.next_up(),
        1 => value.next_down(),
        _ => value,
    };
    let near = |literal: &Literal| {
        let array = literal.as_array().unwrap();
        let Data::F32(values) = array.data() else { panic!("inputs in f32") };
        let values = values.iter().map(|&value| moved(value)).collect();
        let dims = array.dims().iter().copied();
        Literal::Array(ArrayLiteral::new(ElementType::F32, dims, Data::F32(values)).unwrap())
    };
    inputs.iter().map(near).collect()
}

/// Returns the arrays of a result.
fn results(module: &Verified, inputs: &[Literal]) -> Vec<Vec<f64>> {
    let result = evaluate(module, inputs, &Limits::default()).unwrap();
    let leaves = result.leaves().into_iter();
    leaves.map(|leaf| float_elements(leaf.as_array().unwrap()).unwrap()).collect()
}

/// For one output: the largest error before and after the rewrite over several runs, and the
/// largest value.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    before: f64,
    after: f64,
    largest: f64,
}

/// Returns the errors of each output; `None` if the program itself computes an infinity or a NaN.
fn errors([before, after, wide]: [&Verified; 3], first: &[Literal]) -> Option<Vec<Errors>> {
    let mut errors: Vec<Errors> = Vec::new();
    for run in 0..4 {
        let inputs = if run == 0 { first.to_vec() } else { nudged(first, run) };
        let widely: Vec<Literal> = inputs.iter().map(|i| widened_literal(i).unwrap()).collect();
        let [before, after] = [before, after].map(|module| results(module, &inputs));
        let exact = results(wide, &widely);
        if before.iter().flatten().any(|value| !value.is_finite()) {
            return None;
        }
        errors.resize(exact.len(), Errors::default());
        for (place, errors) in errors.iter_mut().enumerate() {
            let exact = &exact[place];
            let error = |found: &[f64]| {
                let errors = found.iter().zip(exact).map(|(found, exact)| (found - exact).abs());
                errors
                    .fold(0.0, |most: f64, e| if e.is_nan() { f64::INFINITY } else { most.max(e) })
            };
            errors.before = errors.before.max(error(&before[place]));
            errors.after = errors.after.max(error(&after[place]));
            let largest = exact.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            errors.largest = errors.largest.max(largest);
        }
    }
    Some(errors)
}

#[test]
fn errors_of_gradients_stay_within_the_contract() {
    let files = fixtures("models").unwrap();
    let mut compared = 0;
    for name in PROGRAMS {
        let file = files.iter().find(|file| file.name == name);
        let before = module(&file.unwrap_or_else(|| panic!("no {name}")).text().unwrap());
        let optimised = optimized(&before, &without_latency("tpu-like"));
        assert!(changes(&optimised, "factored-sums") > 0, "{name}: {}", short(&optimised.module));
        let wide = widened(&before).unwrap();
        let modules = [&before, &optimised.module, &wide];
        for (seed, image_of) in (1..).zip(IMAGES) {
            for kind in COTANGENTS {
                let inputs = inputs(&before, image_of, kind, seed);
                let Some(errors) = errors(modules, &inputs) else { continue };
                compared += 1;
                for (output, Errors { before, after, largest }) in errors.into_iter().enumerate() {
                    let slack = 4.0 * f64::from(f32::EPSILON) * largest;
                    assert!(
                        after <= 4.0 * before + slack,
                        "{name}, {image_of:?}, {kind:?}: output {output} of at most {largest:e} \
                         was off by {before:e}, is by {after:e}"
                    );
                }
            }
        }
    }
    assert!(compared >= 200, "{compared} inputs without infinities");
}
