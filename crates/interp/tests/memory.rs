//! Tests that the counted memory is the used memory: an evaluation within `max_bytes` allocates
//! at most that much and a little more.
//!
//! The allocator counts for the whole process, so there is one test here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it counted"
)]

use peak_alloc::PeakAlloc;
use tilewright_interp::{EvalError, Limits, evaluate};
use tilewright_ir::Verified;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const COMPUTATIONS: &str = "
add_f32 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
add_s32 { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
later { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] subtract(b, a) }
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
lt { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
odd_lt { a = f32[] parameter(0)
  b = f32[] parameter(1)
  n = f32[] negate(a)
  m = f32[] negate(b)
  ROOT c = pred[] compare(n, m), direction=GT }
";

/// Names of computations with their lines; `i` is `s32[]` 1, `x` is `f32[]` 0.5.
const CASES: &[(&str, &str)] = &[
    ("iota of bytes", "ROOT r = s8[200000] iota(), iota_dimension=0"),
    ("iota of rows", "ROOT r = f32[100,2000] iota(), iota_dimension=1"),
    ("iota of columns", "ROOT r = u8[2000,100] iota(), iota_dimension=0"),
    ("broadcast", "ROOT r = f32[100000] broadcast(x), dimensions={}"),
    (
        "concatenate",
        "a = f32[50000] broadcast(x), dimensions={}
  ROOT r = f32[100000] concatenate(a, a), dimensions={0}",
    ),
    (
        "pad",
        "a = f32[50000] broadcast(x), dimensions={}
  ROOT r = f32[100000] pad(a, x), padding=25000_25000",
    ),
    (
        "transpose",
        "a = f32[300,400] iota(), iota_dimension=0
  ROOT r = f32[400,300] transpose(a), dimensions={1,0}",
    ),
    (
        "convert",
        "a = f32[100000] iota(), iota_dimension=0
  ROOT r = s8[100000] convert(a)",
    ),
    (
        "clamp",
        "a = f32[100000] iota(), iota_dimension=0
  ROOT r = f32[100000] clamp(x, a, x)",
    ),
    (
        "map",
        "a = f32[100000] iota(), iota_dimension=0
  ROOT r = pred[100000] map(a, a), dimensions={0}, to_apply=odd_lt",
    ),
    (
        "bitcast to another layout",
        "a = f32[300,400]{1,0} iota(), iota_dimension=0
  ROOT r = f32[400,300]{0,1} bitcast(a)",
    ),
    (
        "bitcast to bytes",
        "a = f32[300,400]{0,1} iota(), iota_dimension=0
  ROOT r = s8[300,1600]{1,0} bitcast(a)",
    ),
    (
        "bitcast-convert",
        "a = f32[100000] iota(), iota_dimension=0
  ROOT r = u8[100000,4] bitcast-convert(a)",
    ),
    (
        "dynamic-slice",
        "a = f32[100000] iota(), iota_dimension=0
  ROOT r = f32[90000] dynamic-slice(a, i), dynamic_slice_sizes={90000}",
    ),
    (
        "gather",
        "a = f32[10] iota(), iota_dimension=0
  n = s32[100000,1] iota(), iota_dimension=0
  ROOT r = f32[100000] gather(a, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    ),
    (
        "gather by indices without entries",
        "a = f32[10] iota(), iota_dimension=0
  n = s32[100000,0] iota(), iota_dimension=0
  ROOT r = f32[100000] gather(a, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={}, index_vector_dim=1, slice_sizes={1}",
    ),
    (
        "gather of many dims",
        "a = f32[2,2,2,2,2,2,2,2] broadcast(x), dimensions={}
  n = s32[20000,1] iota(), iota_dimension=0
  ROOT r = f32[20000] gather(a, n), offset_dims={}, collapsed_slice_dims={0,1,2,3,4,5,6,7}, start_index_map={7}, index_vector_dim=1, slice_sizes={1,1,1,1,1,1,1,1}",
    ),
    (
        "scatter of sums",
        "a = f32[10] iota(), iota_dimension=0
  n = s32[50000,1] iota(), iota_dimension=0
  u = f32[50000] iota(), iota_dimension=0
  ROOT r = f32[10] scatter(a, n, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_f32",
    ),
    (
        "scatter by indices without entries",
        "a = f32[10] iota(), iota_dimension=0
  n = s32[50000,0] iota(), iota_dimension=0
  u = f32[50000] iota(), iota_dimension=0
  ROOT r = f32[10] scatter(a, n, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=later",
    ),
    (
        "scatter of a large window",
        "a = f32[50000] iota(), iota_dimension=0
  n = s32[1,1] iota(), iota_dimension=0
  u = f32[1,50000] iota(), iota_dimension=1
  ROOT r = f32[50000] scatter(a, n, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=later",
    ),
    (
        "reduce of rows",
        "a = f32[500,200] iota(), iota_dimension=0
  ROOT r = f32[500] reduce(a, x), dimensions={1}, to_apply=add_f32",
    ),
    (
        "reduce by a computation",
        "a = f32[50000,2] iota(), iota_dimension=0
  ROOT r = f32[50000] reduce(a, x), dimensions={1}, to_apply=later",
    ),
    (
        "reduce-window with many taps",
        "a = s8[50000] iota(), iota_dimension=0
  b = s32[50000] convert(a)
  ROOT r = s32[1] reduce-window(b, i), window={size=50000}, to_apply=add_s32",
    ),
    (
        "reduce-window by a computation",
        "a = f32[50000] iota(), iota_dimension=0
  ROOT r = f32[49999] reduce-window(a, x), window={size=2}, to_apply=later",
    ),
    (
        "select-and-scatter",
        "a = f32[50000] iota(), iota_dimension=0
  s = f32[25000] iota(), iota_dimension=0
  ROOT r = f32[50000] select-and-scatter(a, s, x), window={size=2 stride=2}, select=ge, scatter=add_f32",
    ),
    (
        "dot",
        "a = f32[300,20] iota(), iota_dimension=0
  b = f32[20,300] iota(), iota_dimension=0
  ROOT r = f32[300,300] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    (
        "dot of a long sum",
        "a = f32[50000] iota(), iota_dimension=0
  ROOT r = f32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    ),
    (
        "convolution",
        "a = f32[1,50000,1] iota(), iota_dimension=1
  k = f32[3,1,2] iota(), iota_dimension=0
  ROOT r = f32[1,50000,2] convolution(a, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
    ),
    (
        "sort",
        "a = f32[50000] iota(), iota_dimension=0
  ROOT r = f32[50000] sort(a), dimensions={0}, to_apply=lt",
    ),
    (
        "sort by a computation",
        "a = f32[20000] iota(), iota_dimension=0
  ROOT r = f32[20000] sort(a), dimensions={0}, to_apply=odd_lt",
    ),
    (
        "topk",
        "a = f32[50000] iota(), iota_dimension=0
  ROOT r = (f32[20000], s32[20000]) topk(a), k=20000",
    ),
    (
        "batch norm of an image",
        "a = f32[50000,2] iota(), iota_dimension=0
  f = f32[2] broadcast(x), dimensions={}
  ROOT r = (f32[50000,2], f32[2], f32[2]) batch-norm-training(a, f, f), epsilon=0.001, feature_index=1",
    ),
    (
        "a product in the storage of a larger one",
        "a = f32[400,400] iota(), iota_dimension=0
  b = f32[400,400] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[250,400] slice(b), slice={[0:250], [0:400]}
  r = f32[250,400] dot(c, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[1500,1000] iota(), iota_dimension=0
  ROOT t = (f32[250,400], f32[1500,1000]) tuple(r, y)",
    ),
    (
        "batch norm of many features",
        "a = f32[2,20000] iota(), iota_dimension=0
  f = f32[20000] broadcast(x), dimensions={}
  ROOT r = (f32[2,20000], f32[20000], f32[20000]) batch-norm-grad(a, f, f, f, a), epsilon=0.001, feature_index=1",
    ),
    (
        "fft of a length of small factors",
        "a = c64[30000] iota(), iota_dimension=0
  ROOT r = c64[30000] fft(a), fft_type=FFT, fft_length={30000}",
    ),
    (
        "fft of a prime length",
        "a = c64[30011] iota(), iota_dimension=0
  ROOT r = c64[30011] fft(a), fft_type=FFT, fft_length={30011}",
    ),
    (
        "fft of a safe prime's length",
        "a = c64[30323] iota(), iota_dimension=0
  ROOT r = c64[30323] fft(a), fft_type=FFT, fft_length={30323}",
    ),
    (
        "fft of real rows",
        "a = f32[100,400] iota(), iota_dimension=1
  ROOT r = c64[100,201] fft(a), fft_type=RFFT, fft_length={100,400}",
    ),
    (
        "fft to real rows",
        "a = c64[100,201] iota(), iota_dimension=1
  ROOT r = f32[100,400] fft(a), fft_type=IRFFT, fft_length={100,400}",
    ),
    (
        "cholesky",
        "a = f32[5000,3,3] broadcast(x), dimensions={}
  ROOT r = f32[5000,3,3] cholesky(a), lower=true",
    ),
    (
        "triangular-solve",
        "a = f32[5000,3,3] broadcast(x), dimensions={}
  ROOT r = f32[5000,3,3] triangular-solve(a, a), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    ),
];

fn module(lines: &str) -> Verified {
    let head = "i = s32[] constant(1)\n  x = f32[] constant(0.5)";
    let text = format!("HloModule m\n{COMPUTATIONS}\nENTRY e {{\n  {head}\n  {lines}\n}}");
    tilewright_text::parse_and_verify(&text).map_err(|e| format!("{lines}: {e:?}")).unwrap()
}

/// Returns the most bytes allocated at one time by an evaluation, and whether it was within its
/// limit.
fn run(module: &Verified, max_bytes: u64) -> (u64, bool) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = evaluate(module, &[], &Limits { max_bytes, ..Limits::NONE });
    let used = ALLOCATOR.peak_usage().saturating_sub(before) as u64;
    let within = match result {
        Ok(_) => true,
        Err(EvalError::Memory { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    (used, within)
}

/// Plans, small tables, names.
const BESIDES: u64 = 48 << 10;

/// The most that is counted for a byte that is used.
const MOST_COUNTED: u64 = 8;

#[test]
fn no_more_is_used_than_is_counted() {
    let mut failures = Vec::new();
    for (name, lines) in CASES {
        let module = module(lines);
        let (mut least, mut most) = (0, 1 << 32);
        while most - least > 1 << 10 {
            let middle = u64::midpoint(least, most);
            let (used, within) = run(&module, middle);
            if used > middle + BESIDES {
                failures.push(format!("{name}: {used} bytes of {middle}, within: {within}"));
                break;
            }
            if within { most = middle } else { least = middle }
        }
        // The least limit that suffices is what is counted.
        let (used, within) = run(&module, most);
        println!("{name}: {used} bytes used, {most} counted");
        if !within || most > MOST_COUNTED * used + BESIDES {
            failures.push(format!("{name}: {used} bytes of {most} counted, within: {within}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
