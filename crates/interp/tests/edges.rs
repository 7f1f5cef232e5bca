//! Sizes whose product does not fit 64 bits beside a 0, lengths that are prime,
//! results next to the middle of two floats.

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
most { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] maximum(a, b) }
step { c = s32[] parameter(0)
  one = s32[] constant(1)
  n = s32[] add(c, one)
  ROOT t = (s32[], s32[]) tuple(c, n) }
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

/// A fold of no elements yields its init.
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

/// More elements than a thread folds, along each dim and along both. Expected:
/// ones counted, the initial value once.
#[test]
fn sums_of_many_chunks_miss_none() {
    for (dims, reduced, kept, total) in [
        ("200003", "0", "", 200_003.0),
        ("60000,7", "0", "7", 60_000.0),
        ("7,60000", "1", "7", 60_000.0),
        ("600,7,100", "0,2", "7", 60_000.0),
        ("3,90000", "0", "90000", 3.0),
    ] {
        for ones in ["broadcast(one), dimensions={}", "add(a, b)"] {
            let lines = format!(
                "one = f32[] constant(1)
                 half = f32[] constant(0.5)
                 a = f32[{dims}] broadcast(half), dimensions={{}}
                 b = f32[{dims}] copy(a)
                 x = f32[{dims}] {ones}
                 ROOT r = f32[{kept}] reduce(x, half), dimensions={{{reduced}}}, to_apply=add"
            );
            let found = run(&lines, &[]);
            let found = found.as_array().unwrap().as_slice::<f32>().unwrap();
            assert!(found.iter().all(|&sum| sum == total + 0.5), "{dims}: {found:?}");
        }
    }
}

fn int_array(dims: &[i64], values: &[i32]) -> Literal {
    let array = ArrayLiteral::new(ElementType::S32, dims.to_vec(), Data::S32(values.to_vec()));
    Literal::Array(array.unwrap())
}

#[test]
fn a_scan_may_have_nothing_but_what_it_carries() {
    let lines = "i = s32[] constant(3)
        ROOT r = (s32[4], s32[]) scan(i), dimensions={0}, num_carries=1, to_apply=step";
    let expected = [int_array(&[4], &[3, 4, 5, 6]), int_array(&[], &[7])];
    assert_eq!(run(lines, &[]), Literal::Tuple(expected.to_vec()));
}

/// A dim behind the ragged one: the first row has the first group's factor, the
/// other two the second's.
#[test]
fn a_ragged_dim_need_not_be_the_last_of_its_kind() {
    let lines = "a = s32[3,2,1] parameter(0)
        b = s32[2,1,1] constant({{{10}},{{100}}})
        n = s32[2] constant({1,2})
        ROOT r = s32[3,2,1] ragged-dot(a, b, n), lhs_contracting_dims={2},
          rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";
    let a = int_array(&[3, 2, 1], &[1, 2, 3, 4, 5, 6]);
    assert_eq!(run(lines, &[a]), int_array(&[3, 2, 1], &[10, 20, 300, 400, 500, 600]));
}

#[test]
fn conversions_at_the_edge_of_a_type() {
    // Expected: ml_dtypes keeps the sign of NaN.
    let lines = "a = u8[4] constant({253,125,255,126})
        b = f8e5m2[4] bitcast-convert(a)
        c = f32[4] convert(b)
        ROOT r = u32[4] bitcast-convert(c)";
    let found = run(lines, &[]);
    let found = found.as_array().unwrap().as_slice::<u32>().unwrap();
    let signs: Vec<u32> = found.iter().map(|bits| bits >> 31).collect();
    assert_eq!(signs, [1, 0, 1, 0], "{found:x?}");
    // Expected: NumPy's astype(bool).
    let lines = "a = c64[4] constant({(0,0), (1,0), (0,1), (-0,-0)})
        ROOT r = pred[4] convert(a)";
    let found = run(lines, &[]);
    assert_eq!(found.as_array().unwrap().data(), &Data::Pred(vec![false, true, true, false]));
}

/// Windows that all begin with the first element or all end with the last, of
/// any length, and some that do not. Expected: counted by hand.
#[test]
fn running_totals_take_each_element_once() {
    let sums = |window: &str, count: i64| {
        let lines = format!(
            "a = f32[2,5] constant({{{{1,2,3,4,5}},{{10,20,30,40,50}}}})
             half = f32[] constant(0.5)
             ROOT r = f32[2,{count}] reduce-window(a, half), window={{size=1x{window}}}, to_apply=add"
        );
        let found = run(&lines, &[]);
        found.as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
    };
    let both = |first: &[f32], second: &[f32]| -> Vec<f32> {
        first.iter().chain(second).map(|sum| sum + 0.5).collect()
    };
    let up = both(&[1., 3., 6., 10., 15.], &[10., 30., 60., 100., 150.]);
    assert_eq!(sums("5 pad=0_0x4_0", 5), up);
    let down = both(&[15., 14., 12., 9., 5.], &[150., 140., 120., 90., 50.]);
    assert_eq!(sums("5 pad=0_0x0_4", 5), down);
    // Longer than there are elements, and shorter: with room at both ends.
    let late = both(&[0., 1., 3., 6., 10., 15., 15.], &[0., 10., 30., 60., 100., 150., 150.]);
    assert_eq!(sums("6 pad=0_0x6_1", 7), late);
    let early = both(&[15., 15., 14., 12.], &[150., 150., 140., 120.]);
    assert_eq!(sums("6 pad=0_0x1_3", 4), early);
    assert_eq!(sums("5 pad=0_0x0_0", 1), both(&[15.], &[150.]));
    let pairs = both(&[1., 3., 5., 7., 9.], &[10., 30., 50., 70., 90.]);
    assert_eq!(sums("2 pad=0_0x1_0", 5), pairs);
    let along = "a = s32[3,2] constant({{1,2},{3,4},{5,6}})
        none = s32[] constant(-9)
        ROOT r = s32[3,2] reduce-window(a, none), window={size=3x1 pad=2_0x0_0}, to_apply=most";
    assert_eq!(run(along, &[]), int_array(&[3, 2], &[1, 2, 3, 4, 5, 6]));
}
