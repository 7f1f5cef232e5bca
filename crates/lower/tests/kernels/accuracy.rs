//! How exact float sums are: no worse than what pairwise summation promises, which
//! is an error of at most `log2(n) * 2^-24` of the sum of all magnitudes (Higham,
//! Accuracy and Stability of Numerical Algorithms, 4.2).

use half::bf16;
use tilewright_ir::{ArrayLiteral, Data, ElementType};
use tilewright_lower::Strategy;
use tilewright_target::Target;
use tilewright_testkit::effort::Turns;

use super::harness::{TARGETS, reduce, simulated_by};

/// Numbers that look random.
fn noise(mut state: u64) -> impl FnMut() -> f32 {
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Inputs that are hard on sums: ever the same rounding, cancellation, growth,
/// decay, and none of that.
fn patterns(n: usize) -> Vec<(&'static str, Vec<f32>)> {
    let mut noise = noise(1);
    vec![
        ("constant", vec![0.1; n]),
        ("noise", (0..n).map(|_| noise() - 0.5).collect()),
        ("positive noise", (0..n).map(|_| noise()).collect()),
        ("cancelling", (0..n).map(|i| [1e8, 1.0, -1e8][i % 3]).collect()),
        ("growing", (0..n).map(|i| i as f32).collect()),
        ("decaying", (0..n).map(|i| 1.0 / (i + 1) as f32).collect()),
    ]
}

fn sums(shape: &str, axes: &str, result: &str, values: &[f32], target: &Target) -> Vec<f32> {
    sums_by(Strategy::Fused, [shape, axes, result], values, target)
}

fn sums_by(
    strategy: Strategy,
    [shape, axes, result]: [&str; 3],
    values: &[f32],
    target: &Target,
) -> Vec<f32> {
    let module = reduce(&format!("f32{shape}"), axes, &format!("f32{result}"), "add", "0");
    let entry = module.entry().unwrap();
    let x = module.computation(entry).parameters()[0];
    let dims = module.array_shape(x).unwrap().dims().to_vec();
    let x = ArrayLiteral::new(ElementType::F32, dims, Data::F32(values.to_vec())).unwrap();
    let (results, _) = simulated_by(strategy, &module, target, &[x.into()]).unwrap();
    results[0].as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// Returns the error of a sum in units of 2^-24 of the sum of all magnitudes.
fn error(sum: f32, values: impl Iterator<Item = f32> + Clone) -> f64 {
    let exact: f64 = values.clone().map(f64::from).sum();
    let magnitudes: f64 = values.map(|value| f64::from(value.abs())).sum();
    (f64::from(sum) - exact).abs() / magnitudes * f64::from(1u32 << 24)
}

#[test]
fn sums_are_as_exact_as_pairwise_ones() {
    let n = 1_000_000;
    let bound = (n as f64).log2();
    let mut turns = Turns::of(5);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (pattern, values) in patterns(n).into_iter().filter(|_| turns.is_next()) {
            for (shape, axes) in
                [("[1000000]", "0"), ("[1000,1000]", "0,1"), ("[125,8,1000]", "0,1,2")]
            {
                let sum = sums(shape, axes, "[]", &values, &target)[0];
                let error = error(sum, values.iter().copied());
                assert!(error <= bound, "{pattern} {shape} on {name}: {error} beyond {bound}");
            }
            // Columns and rows.
            let columns = sums("[125000,8]", "0", "[8]", &values, &target);
            for (column, &sum) in columns.iter().enumerate() {
                let error = error(sum, values[column..].iter().copied().step_by(8));
                let bound = 125_000f64.log2();
                assert!(error <= bound, "{pattern} column on {name}: {error} beyond {bound}");
            }
            let rows = sums("[8,125000]", "1", "[8]", &values, &target);
            for (row, &sum) in rows.iter().enumerate() {
                let error = error(sum, values[row * 125_000..][..125_000].iter().copied());
                let bound = 125_000f64.log2();
                assert!(error <= bound, "{pattern} row on {name}: {error} beyond {bound}");
            }
        }
    }
}

/// Also where what is summed up along one axis is summed up along another.
#[test]
fn sums_along_two_axes_are_as_exact() {
    let bound = 125_000f64.log2();
    let mut turns = Turns::of(5);
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (pattern, values) in patterns(1_000_000).into_iter().filter(|_| turns.is_next()) {
            for strategy in Strategy::ALL {
                let sums = sums_by(strategy, ["[125,8,1000]", "0,2", "[8]"], &values, &target);
                for (row, &sum) in sums.iter().enumerate() {
                    let rows = values[row * 1000..]
                        .chunks(8000)
                        .flat_map(|rows| &rows[..1000.min(rows.len())]);
                    let error = error(sum, rows.copied());
                    assert!(error <= bound, "{pattern} by {strategy} on {name}: {error}");
                }
            }
        }
    }
}

/// Narrow floats are added and multiplied in `f32` and rounded once: within half a
/// unit of the last place, 2^-8, and little more. So it is if arrays lie in between.
#[test]
fn narrow_floats_are_rounded_once() {
    let n = 3000;
    let mut noise = noise(2);
    let values: Vec<bf16> = (0..n).map(|_| bf16::from_f32(0.75 + noise() / 2.0)).collect();
    let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
    let product: f64 = values.iter().map(|&value| f64::from(value)).product();
    assert!(product > 1e-38, "{product}");
    // One axis, and two with a dim between them of which every second entry changes nothing.
    let spread = |nothing: f32| {
        let rows = values.chunks(100).flat_map(move |row| {
            row.iter().copied().chain(std::iter::repeat_n(bf16::from_f32(nothing), 100))
        });
        rows.collect::<Vec<bf16>>()
    };
    for name in TARGETS {
        let target = Target::builtin(name).unwrap();
        for (op, init, exact) in [("add", "0", sum), ("multiply", "1", product)] {
            let spread = spread(init.parse().unwrap());
            for (dims, axes, kept, values) in
                [(vec![n], "0", "", &values), (vec![30, 2, 100], "0,2", "2", &spread)]
            {
                let sizes: Vec<String> = dims.iter().map(ToString::to_string).collect();
                let shape = format!("bf16[{}]", sizes.join(","));
                let module = reduce(&shape, axes, &format!("bf16[{kept}]"), op, init);
                for strategy in Strategy::ALL {
                    let x = ArrayLiteral::new(
                        ElementType::BF16,
                        dims.clone(),
                        Data::BF16(values.clone()),
                    );
                    let inputs = [x.unwrap().into()];
                    let (results, _) = simulated_by(strategy, &module, &target, &inputs).unwrap();
                    let result = results[0].as_array().unwrap().as_slice::<bf16>().unwrap()[0];
                    let error = (f64::from(result) - exact).abs() / exact * 256.0;
                    assert!(error < 1.02, "{op} by {strategy} on {name}: {result} for {exact}");
                }
            }
        }
    }
}
