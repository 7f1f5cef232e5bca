//! Sizes whose product does not fit 64 bits beside a 0, lengths that are prime,
//! results next to the middle of two floats.

#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

use half::f16;
use num_complex::Complex;
use tilewright_interp::{EvalError, Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};

const COMPUTATIONS: &str = "
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
later { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] subtract(b, a) }
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
";

fn run_within(lines: &str, inputs: &[Literal], limits: &Limits) -> Result<Literal, EvalError> {
    let text = format!("HloModule m\n{COMPUTATIONS}\nENTRY e {{\n  {lines}\n}}");
    let parsed = tilewright_text::parse_and_verify(&text);
    evaluate(&parsed.map_err(|e| format!("{lines}: {e:?}")).unwrap(), inputs, limits)
}

fn run(lines: &str, inputs: &[Literal]) -> Literal {
    run_within(lines, inputs, &Limits::default()).map_err(|e| format!("{lines}: {e}")).unwrap()
}

/// 2^62 twice: the product of both does not fit 64 bits.
const HUGE: &str = "4611686018427387904,4611686018427387904";

#[test]
fn arrays_without_elements_may_have_any_sizes() {
    let empty = [
        "ROOT r = f32[H,0] concatenate(a, a), dimensions={2}",
        "ROOT r = f32[H,0] reverse(a), dimensions={0,1}",
        "ROOT r = f32[4611686018427387903,4611686018427387902,0] slice(a), slice={[1:4611686018427387904], [2:4611686018427387904], [0:0]}",
        "ROOT r = f32[0,H] transpose(a), dimensions={2,0,1}",
        "ROOT r = f32[3,H,0] broadcast(a), dimensions={1,2,3}",
        "ROOT r = f32[H,0] pad(a, x), padding=0_0x0_0x0_0",
        "ROOT r = f32[H,0] negate(a)",
        "ROOT r = f32[0,5] reshape(a)",
        "ROOT r = f32[H,0] sort(a), dimensions={2}, to_apply=ge",
        "ROOT r = f32[H,0] iota(), iota_dimension=1",
        "ROOT r = f32[H,0] dynamic-slice(a, i, i, i), dynamic_slice_sizes={H,0}",
        "ROOT r = f32[H,0] dynamic-update-slice(a, a, i, i, i)",
        "ROOT r = f32[H,0,0] dot(a, a), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}",
        "ROOT r = f32[4611686018427387904,0] reduce(a, x), dimensions={0}, to_apply=add",
        "ROOT r = f32[4611686018427387904,0] reduce(a, x), dimensions={1}, to_apply=later",
        "b = f32[H,0,0] reshape(a)
  ROOT r = f32[H,0,0] cholesky(b), lower=true",
        "b = f32[H,0,0] reshape(a)
  ROOT r = f32[H,0,0] triangular-solve(b, b), left_side=true, transpose_a=NO_TRANSPOSE",
        "c = c64[H,0] iota(), iota_dimension=0
  ROOT r = c64[H,0] fft(c), fft_type=FFT, fft_length={0}",
        "n = s32[H,0] iota(), iota_dimension=0
  t = f32[3] broadcast(x), dimensions={}
  ROOT r = f32[H,0] gather(t, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=3, slice_sizes={1}",
        "n = s32[1] constant({0})
  ROOT r = f32[H,0] scatter(a, n, x), update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add",
        "ROOT r = f32[H,0] reduce-window(a, x), window={size=1x1x1}, to_apply=add",
        "ROOT r = f32[H,0] select-and-scatter(a, a, x), window={size=1x1x1}, select=ge, scatter=add",
        "b = f32[0,3,H] reshape(a)
  f = f32[3] broadcast(x), dimensions={}
  t = (f32[0,3,H], f32[3], f32[3]) batch-norm-training(b, f, f), epsilon=1, feature_index=1
  ROOT r = f32[0,3,H] get-tuple-element(t), index=0",
    ];
    for lines in empty {
        let lines = lines.replace('H', HUGE);
        let head = format!(
            "x = f32[] constant(7)\n  i = s32[] constant(0)\n  a = f32[{HUGE},0] broadcast(x), dimensions={{}}"
        );
        let value = run(&format!("{head}\n  {lines}"), &[]);
        assert_eq!(value.as_array().unwrap().len(), 0, "{lines}");
    }
}

/// What is folded out of nothing is what it began with.
#[test]
fn results_of_arrays_without_elements() {
    let folded = [
        ("ROOT r = f32[] reduce(a, x), dimensions={0,1,2}, to_apply=add", 7.0),
        ("ROOT r = f32[] reduce(a, x), dimensions={0,1,2}, to_apply=later", 7.0),
        (
            "ROOT r = f32[] dot(a, a), lhs_contracting_dims={0,1,2}, rhs_contracting_dims={0,1,2}",
            0.0,
        ),
        // All of it is cut off, and one element put before.
        (
            "ROOT r = f32[1,1,1] pad(a, x), padding=1_-4611686018427387904x1_-4611686018427387904x1_0",
            7.0,
        ),
        (
            "ROOT r = f32[1,1,1] reduce-window(a, x), window={size=4611686018427387904x4611686018427387904x1 pad=0_0x0_0x1_0}, to_apply=add",
            7.0,
        ),
    ];
    for (lines, expected) in folded {
        let head =
            format!("x = f32[] constant(7)\n  a = f32[{HUGE},0] broadcast(x), dimensions={{}}");
        let limits = Limits { max_steps: 1000, max_bytes: 1000 };
        let value = run_within(&format!("{head}\n  {lines}"), &[], &limits);
        let value = value.map_err(|e| format!("{lines}: {e}")).unwrap();
        assert_eq!(value.as_array().unwrap().as_slice::<f32>(), Some(&[expected][..]), "{lines}");
    }
}

/// A convolution over no features sums nothing.
#[test]
fn a_convolution_of_no_features_is_zero() {
    let value = run(
        "a = f32[1,8,0] iota(), iota_dimension=1
  k = f32[3,0,2] iota(), iota_dimension=0
  ROOT r = f32[1,6,2] convolution(a, k), window={size=3}, dim_labels=b0f_0io->b0f",
        &[],
    );
    assert_eq!(value.as_array().unwrap().as_slice::<f32>(), Some(&[0.0; 12][..]));
}

/// The transform of 0, 1 ... n-1 is n(n-1)/2 and then, at m,
/// -n/2 + i n/2 cot(pi m / n).
#[test]
fn transforms_of_prime_lengths() {
    for n in [2usize, 3, 7, 1009, 100_003] {
        let lines = format!(
            "x = c128[{n}] iota(), iota_dimension=0
  ROOT r = c128[{n}] fft(x), fft_type=FFT, fft_length={{{n}}}"
        );
        let value = run(&lines, &[]);
        let found = value.as_array().unwrap().as_slice::<Complex<f64>>().unwrap();
        let size = n as f64;
        let allowed = 1e-14 * size * size;
        let first = Complex::new(size * (size - 1.0) / 2.0, 0.0);
        assert!((found[0] - first).norm() <= allowed, "{n}: {}", found[0]);
        for m in [1, 2, n / 2, n - 1] {
            let m = m.clamp(1, n - 1);
            // Near pi the cotangent is that of the angle on the other side.
            let (near, sign) = if 2 * m > n { (n - m, -1.0) } else { (m, 1.0) };
            let angle = std::f64::consts::PI * near as f64 / size;
            let expected = Complex::new(-size / 2.0, sign * size / 2.0 / angle.tan());
            assert!((found[m] - expected).norm() <= allowed, "{n} at {m}: {}", found[m]);
        }
    }
}

/// A line of a length with large factors is not counted as cheap as it is
/// not: the work of each is bounded by the steps that are counted for it.
#[test]
fn transforms_are_counted() {
    let lines = "x = c64[65537] iota(), iota_dimension=0
  ROOT r = c64[65537] fft(x), fft_type=FFT, fft_length={65537}";
    // 17 rounds over 65537 numbers, and more for a prime: 512 numbers a step.
    let few = Limits { max_steps: 17 * 65537 / 512, ..Limits::default() };
    assert!(matches!(run_within(lines, &[], &few), Err(EvalError::Steps { .. })));
    let enough = Limits { max_steps: 20 * 17 * 65537 / 512, ..Limits::default() };
    assert!(run_within(lines, &[], &enough).is_ok());
}

/// Where the function's value, rounded to `f32` first, would end in the middle
/// of two halves. Expected: NumPy's `f64` functions, rounded to `f16` once.
#[test]
fn functions_of_halves_are_rounded_once() {
    let table: [(&str, &[(u16, u16)]); 9] = [
        ("exponential", &[(0x1f79, 0x3c07), (0x25cf, 0x3c17)]),
        ("log", &[(0x1d78, 0xc53b)]),
        ("sine", &[(0x32b3, 0x32a7), (0x5cb0, 0xbbff)]),
        ("cosine", &[(0x2b7c, 0x3bfd)]),
        ("cbrt", &[(0x0551, 0x298b), (0x1151, 0x2d8b)]),
        ("exponential-minus-one", &[(0x11a8, 0x11a9)]),
        ("log-plus-one", &[(0x1e03, 0x1dff), (0x9dfd, 0x9e01)]),
        ("logistic", &[(0x1a00, 0x3801), (0x1f00, 0x3803)]),
        ("tan", &[(0x2894, 0x2895), (0x55ed, 0x3911)]),
    ];
    let half = |bits| Data::F16(vec![f16::from_bits(bits)]);
    for (a, b, expected) in [(0x5e63, 0x0bfa, 0x3c01), (0x612e, 0x24ba, 0x3c83)] {
        let inputs = [a, b].map(|bits| {
            Literal::Array(ArrayLiteral::new(ElementType::F16, [], half(bits)).unwrap())
        });
        let lines =
            "a = f16[] parameter(0)\n  b = f16[] parameter(1)\n  ROOT r = f16[] power(a, b)";
        let found = run(lines, &inputs);
        assert_eq!(found.as_array().unwrap().data(), &half(expected), "{a:04x} to {b:04x}");
    }
    for (op, pairs) in table {
        let elements = pairs.iter().map(|p| f16::from_bits(p.0)).collect();
        let n = pairs.len() as i64;
        let input = ArrayLiteral::new(ElementType::F16, [n], Data::F16(elements)).unwrap();
        let lines = format!("a = f16[{n}] parameter(0)\n  ROOT r = f16[{n}] {op}(a)");
        let value = run(&lines, &[Literal::Array(input)]);
        let found = value.as_array().unwrap().as_slice::<f16>().unwrap();
        let bits: Vec<u16> = found.iter().map(|x| x.to_bits()).collect();
        let expected: Vec<u16> = pairs.iter().map(|p| p.1).collect();
        assert_eq!(bits, expected, "{op}: {bits:04x?}");
    }
}
