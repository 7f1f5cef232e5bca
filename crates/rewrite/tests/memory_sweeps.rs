//! The memory sweeps of modules, counted by hand, and the cost of reading a large array
//! again.
//!
//! On `tpu-like`, instructions that wait for the same value share a sweep; on `cpu`, each sum
//! and each result reads its arrays in a sweep of its own.

use crate::common::{changes, module, optimized, passes, target};
use tilewright_ir::{Opcode, Verified};
use tilewright_rewrite::cost::memory_sweeps;
use tilewright_rewrite::instruction_costs;

/// The memory sweeps on `tpu-like` and on `cpu`.
fn counted(module: &Verified) -> [usize; 2] {
    ["tpu-like", "cpu"].map(|name| memory_sweeps(module, &target(name)))
}

fn with_reducers(entry: &str) -> Verified {
    let reducer = |op: &str| {
        format!(
            "{op} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
             ROOT r = f32[] {op}(a, b)\n}}\n"
        )
    };
    module(&format!(
        "HloModule m\n{}{}ENTRY main {{\n{entry}\n}}",
        reducer("add"),
        reducer("maximum")
    ))
}

fn softmax(dims: &str, kept: &str, places: &str, along: &str) -> Verified {
    with_reducers(&format!(
        "x = f32[{dims}] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  m = f32[{kept}] reduce(x, low), dimensions={{{along}}}, to_apply=maximum
  wm = f32[{dims}] broadcast(m), dimensions={{{places}}}
  d = f32[{dims}] subtract(x, wm)
  e = f32[{dims}] exponential(d)
  s = f32[{kept}] reduce(e, zero), dimensions={{{along}}}, to_apply=add
  ws = f32[{dims}] broadcast(s), dimensions={{{places}}}
  ROOT r = f32[{dims}] divide(e, ws)"
    ))
}

#[test]
fn a_softmax_of_rows_has_its_row_at_hand() {
    // On `cpu`: the maximum, the sum and the result.
    assert_eq!(counted(&softmax("8,512,1024", "8,512", "0,1", "2")), [1, 3]);
    // Two dims side by side are a row as well.
    assert_eq!(counted(&softmax("64,32,16,16", "64,32", "0,1", "2,3")), [1, 3]);
}

#[test]
fn a_softmax_of_columns_waits_twice() {
    assert_eq!(counted(&softmax("8,512,1024", "8,1024", "0,2", "1")), [3, 3]);
}

#[test]
fn a_softmax_of_rows_that_are_too_long_waits_twice() {
    // A row of 16 MiB, where 2 MiB stay in vector memory.
    assert_eq!(counted(&softmax("4,4194304", "4", "0", "1")), [3, 3]);
}

#[test]
fn rows_are_at_hand_for_results_of_their_dims_alone() {
    // The simulated machine reads rows twice for statistics alone: once for the mean, once for the
    // variance.
    let statistics = with_reducers(
        "x = f32[64,32,1024] parameter(0)
  zero = f32[] constant(0)
  s = f32[64,32] reduce(x, zero), dimensions={2}, to_apply=add
  w = f32[64,32,1024] broadcast(s), dimensions={0,1}
  d = f32[64,32,1024] subtract(x, w)
  q = f32[64,32,1024] multiply(d, d)
  ROOT v = f32[64,32] reduce(q, zero), dimensions={2}, to_apply=add",
    );
    assert_eq!(counted(&statistics), [2, 2]);
    // A kernel that goes from row to row does so along the dims of its result.
    let cut = |last: &str| {
        with_reducers(&format!(
            "x = f32[64,32,8,1024] parameter(0)
  zero = f32[] constant(0)
  s = f32[64,32,8] reduce(x, zero), dimensions={{3}}, to_apply=add
  {last}"
        ))
    };
    let same = cut("w = f32[64,32,8,1024] broadcast(s), dimensions={0,1,2}
  ROOT d = f32[64,32,8,1024] subtract(x, w)");
    assert_eq!(counted(&same)[0], 1);
    let other = cut("w = f32[64,32,8,1024] broadcast(s), dimensions={0,1,2}
  d = f32[64,32,8,1024] subtract(x, w)
  ROOT r = f32[64,256,1024] reshape(d)");
    assert_eq!(counted(&other)[0], 2);
    // Sums of rows keep their order in a small reshape, and are then as many rows.
    let flat = cut("f = f32[16384] reshape(s)
  e = f32[16384] exponential(f)
  n = f32[64,32,8] reshape(e)
  w = f32[64,32,8,1024] broadcast(n), dimensions={0,1,2}
  ROOT d = f32[64,32,8,1024] subtract(x, w)");
    assert_eq!(counted(&flat)[0], 1);
}

#[test]
fn rows_of_rows_are_not_at_hand() {
    let norm = with_reducers(
        "x = f32[4,320,4096] parameter(0)
  zero = f32[] constant(0)
  rows = f32[4,320] reduce(x, zero), dimensions={2}, to_apply=add
  cut = f32[4,32,10] reshape(rows)
  s = f32[4,32] reduce(cut, zero), dimensions={2}, to_apply=add
  back = f32[4,32,10] broadcast(s), dimensions={0,1}
  flat = f32[4,320] reshape(back)
  w = f32[4,320,4096] broadcast(flat), dimensions={0,1}
  ROOT r = f32[4,320,4096] subtract(x, w)",
    );
    assert_eq!(counted(&norm), [2, 2]);
}

/// A batch norm's mean and variance of the result of a convolution, along these dims.
fn of_convolution(kept: &str, place: &str, along: &str) -> Verified {
    with_reducers(&format!(
        "image = f32[32,32,32,128] parameter(0)
  kernel = f32[1,1,128,128] parameter(1)
  x = f32[32,32,32,128] convolution(image, kernel), window={{size=1x1}}, dim_labels=b01f_01io->b01f
  n = f32[32,32,32,128] negate(x)
  zero = f32[] constant(0)
  s = f32[{kept}] reduce(n, zero), dimensions={{{along}}}, to_apply=add
  w = f32[32,32,32,128] broadcast(s), dimensions={{{place}}}
  d = f32[32,32,32,128] subtract(n, w)
  q = f32[32,32,32,128] multiply(d, d)
  v = f32[{kept}] reduce(q, zero), dimensions={{{along}}}, to_apply=add
  ROOT out = (f32[{kept}], f32[{kept}]) tuple(s, v)"
    ))
}

#[test]
fn the_kernel_of_a_contraction_has_sums_of_each_feature() {
    // The image is read for the convolution, and its result for the variance.
    assert_eq!(counted(&of_convolution("128", "3", "0,1,2"))[0], 2);
    assert_eq!(counted(&of_convolution("32,128", "0,3", "1,2"))[0], 2);
    // A sum over the features is not part of it: the result is read for the mean, too.
    assert_eq!(counted(&of_convolution("32,32,32", "0,1,2", "3"))[0], 3);
    // On `cpu`, a library multiplies.
    assert_eq!(counted(&of_convolution("128", "3", "0,1,2"))[1], 3);
}

#[test]
fn a_part_of_an_array_is_read_for_itself() {
    let with = |part: &str| {
        with_reducers(&format!(
            "x = f32[32,32,32,128] parameter(0)
  zero = f32[] constant(0)
  s = f32[128] reduce(x, zero), dimensions={{0,1,2}}, to_apply=add
  {part}"
        ))
    };
    let sliced = with(
        "p = f32[8,32,32,128] slice(x), slice={[0:8], [0:32], [0:32], [0:128]}
  q = f32[128] reduce(p, zero), dimensions={0,1,2}, to_apply=add
  ROOT out = (f32[128], f32[128]) tuple(s, q)",
    );
    let (costs, _) = instruction_costs(&sliced, &target("tpu-like"));
    let slice = costs.iter().find(|cost| sliced.opcode(cost.id) == Opcode::Slice);
    // A quarter of 16 MiB: 1024 vectors, read from main memory, loaded, stored, and moved to main
    // memory and back.
    let expected = 3.0 * 1024.0 * 4096.0 / 546.0 + 1024.0 / 2.0 + 1024.0;
    let cycles = slice.map_or(0.0, |slice| slice.cost.cycles);
    assert!((cycles - expected).abs() < 1e-9 * expected, "{cycles} and not {expected}");
}

/// A slice that is computed where it is used is read by its users, and the array is not.
#[test]
fn users_of_an_inlined_slice_read_the_part_alone() {
    let mut target = target("tpu-like");
    target.fuses_slices = true;
    let later = "w = f32[8,32,32,128] broadcast(s), dimensions={3}
  d = f32[8,32,32,128] subtract(p, w)
  q = f32[128] reduce(d, zero), dimensions={0,1,2}, to_apply=add
  ROOT out = (f32[128], f32[128]) tuple(s, q)";
    let stored = "ROOT out = (f32[128], f32[8,32,32,128]) tuple(s, p)";
    for rest in [later, stored] {
        let sliced = with_reducers(&format!(
            "x = f32[32,32,32,128] parameter(0)
  zero = f32[] constant(0)
  s = f32[128] reduce(x, zero), dimensions={{0,1,2}}, to_apply=add
  p = f32[8,32,32,128] slice(x), slice={{[0:8], [0:32], [0:32], [0:128]}}
  {rest}"
        ));
        let (costs, _) = instruction_costs(&sliced, &target);
        let array = costs.iter().find(|cost| sliced.opcode(cost.id) == Opcode::Parameter);
        // 4096 vectors, read from main memory once.
        let expected = 4096.0 * 4096.0 / 546.0;
        let cycles = array.map_or(0.0, |array| array.cost.cycles);
        assert!((cycles - expected).abs() < 1e-9 * expected, "{cycles} and not {expected}");
    }
}

#[test]
fn batch_norm_waits_for_its_mean_and_then_for_its_variance() {
    let norm = with_reducers(
        "x = f32[32,32,32,128] parameter(0)
  zero = f32[] constant(0)
  s = f32[128] reduce(x, zero), dimensions={0,1,2}, to_apply=add
  w = f32[32,32,32,128] broadcast(s), dimensions={3}
  d = f32[32,32,32,128] subtract(x, w)
  q = f32[32,32,32,128] multiply(d, d)
  v = f32[128] reduce(q, zero), dimensions={0,1,2}, to_apply=add
  r = f32[128] rsqrt(v)
  wr = f32[32,32,32,128] broadcast(r), dimensions={3}
  ROOT y = f32[32,32,32,128] multiply(d, wr)",
    );
    assert_eq!(counted(&norm), [3, 3]);
}

/// The output and the gradients of a batch norm with a scale, as JAX writes them. Values multiplied
/// by the deviation's inverse wait for it, and the gradient of the mean waits for that of the
/// variance.
fn batch_norm_vjp() -> Verified {
    let large = "f32[32,32,32,128]";
    let wide = |name: &str, of: &str| format!("{name} = {large} broadcast({of}), dimensions={{3}}");
    let sum = |name: &str, of: &str| {
        format!("{name} = f32[128] reduce({of}, zero), dimensions={{0,1,2}}, to_apply=add")
    };
    let op = |name: &str, op: &str| format!("{name} = {large} {op}");
    let lines = [
        op("x", "parameter(0)"),
        op("dy", "parameter(1)"),
        "scale = f32[128] parameter(2)".into(),
        "zero = f32[] constant(0)".into(),
        sum("mean", "x"),
        wide("wmean", "mean"),
        op("d", "subtract(x, wmean)"),
        op("dd", "multiply(d, d)"),
        sum("variance", "dd"),
        "r = f32[128] rsqrt(variance)".into(),
        wide("wr", "r"),
        wide("wscale", "scale"),
        op("normed", "multiply(d, wr)"),
        op("y", "multiply(normed, wscale)"),
        sum("doffset", "dy"),
        op("ndy", "multiply(normed, dy)"),
        sum("dscale", "ndy"),
        op("sdy", "multiply(dy, wscale)"),
        op("dsdy", "multiply(d, sdy)"),
        sum("dr", "dsdy"),
        op("direct", "multiply(sdy, wr)"),
        op("minus", "negate(direct)"),
        sum("dmean", "minus"),
        "dvariance = f32[128] multiply(dr, r)".into(),
        wide("wdvariance", "dvariance"),
        op("by_variance", "multiply(wdvariance, d)"),
        op("minus_by_variance", "negate(by_variance)"),
        sum("more", "minus_by_variance"),
        "all = f32[128] add(dmean, more)".into(),
        wide("wall", "all"),
        op("two", "add(direct, by_variance)"),
        op("dx", "add(two, wall)"),
        format!("ROOT out = ({large}, {large}, f32[128], f32[128]) tuple(y, dx, dscale, doffset)"),
    ];
    with_reducers(&lines.join("\n"))
}

#[test]
fn gradients_of_batch_norm_wait_for_less_once_their_sums_are_pulled_apart() {
    let before = batch_norm_vjp();
    // `tpu-like`: mean, doffset | variance, dr | y, dscale, dmean, more | dx.
    // `cpu`: seven sums, y and dx.
    assert_eq!(counted(&before), [4, 9]);
    // One sum of `dy`, one of `d * dy`, and `more` is a multiple of the sum of `d`.
    // `tpu-like`: mean, doffset | variance, dr, the sum of `d` | y, dx.
    // `cpu`: five sums, y and dx.
    for (place, name) in ["tpu-like", "cpu"].into_iter().enumerate() {
        let after = optimized(&before, &passes(&["factored-sums", "dce"], name, false));
        assert!(changes(&after, "factored-sums") > 0, "{:?}", after.report.notes);
        assert_eq!(counted(&after.module)[place], [3, 7][place], "{:?}", after.report.notes);
    }
}

/// Returns the cycles of the first parameter.
fn parameter_cost(module: &Verified, target_name: &str) -> f64 {
    let (costs, _) = instruction_costs(module, &target(target_name));
    let mut parameters = costs.iter().filter(|cost| module.opcode(cost.id) == Opcode::Parameter);
    parameters.next().expect("a parameter").cost.cycles
}

#[test]
fn an_array_in_main_memory_is_read_once_for_each_pass_or_reader() {
    // 4 MiB: more than stays in vector memory on either target.
    let module = with_reducers(
        "x = f32[1024,1024] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  s = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add
  m = f32[1024] reduce(x, low), dimensions={0}, to_apply=maximum
  w = f32[1024,1024] broadcast(s), dimensions={1}
  d = f32[1024,1024] subtract(x, w)
  q = f32[1024] reduce(d, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[1024], f32[1024]) tuple(m, q)",
    );
    let bytes = 4.0 * 1024.0 * 1024.0;
    // Both sums share a sweep, before the value that waits for one of them.
    assert_eq!(parameter_cost(&module, "tpu-like"), 2.0 * bytes / 546.0);
    assert_eq!(parameter_cost(&module, "cpu"), 3.0 * (bytes / 6.0));
}

#[test]
fn a_small_array_is_read_once() {
    let module = with_reducers(
        "x = f32[64,128] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  s = f32[128] reduce(x, zero), dimensions={0}, to_apply=add
  m = f32[128] reduce(x, low), dimensions={0}, to_apply=maximum
  ROOT r = (f32[128], f32[128]) tuple(m, s)",
    );
    assert_eq!(parameter_cost(&module, "cpu"), 64.0 * 128.0 * 4.0 / 6.0);
}

#[test]
fn what_is_stored_for_a_reader_is_read_there_and_not_where_it_comes_from() {
    // A product cannot compute its operand in place, so `n` is stored, which reads `x` once, and
    // the product reads `n`.
    let module = module(
        "HloModule m
ENTRY main {
  x = f32[1024,1024] parameter(0)
  w = f32[1024,8] parameter(1)
  n = f32[1024,1024] negate(x)
  ROOT r = f32[1024,8] dot(n, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}",
    );
    let bytes = 4.0 * 1024.0 * 1024.0;
    assert_eq!(parameter_cost(&module, "tpu-like"), bytes / 546.0);
    assert_eq!(parameter_cost(&module, "cpu"), bytes / 6.0);
}

/// How often the parameter x is read on `tpu-like`, where the target's numbers say so.
fn readings(module: &Verified, bytes: f64) -> f64 {
    let (costs, _) = instruction_costs(module, &target("tpu-like"));
    let x = costs.iter().find(|cost| module.name_of(cost.id) == "x").expect("x");
    x.cost.cycles / (bytes / 546.0)
}

/// 4 MiB, which do not stay in vector memory.
const LARGE: f64 = 8192.0 * 128.0 * 4.0;

fn waiting(rest: &str) -> Verified {
    with_reducers(&format!(
        "x = f32[8192,128] parameter(0)
  y = f32[8192,128] parameter(1)
  zero = f32[] constant(0)
  early = f32[128] reduce(x, zero), dimensions={{0}}, to_apply=add
  m = f32[128] reduce(y, zero), dimensions={{0}}, to_apply=add
  mb = f32[8192,128] broadcast(m), dimensions={{1}}
  product = f32[8192,128] multiply(x, mb)
  late = f32[128] reduce(product, zero), dimensions={{0}}, to_apply=add
  {rest}"
    ))
}

fn assert_readings(module: &Verified, bytes: f64, expected: f64) {
    let readings = readings(module, bytes);
    assert!((readings - expected).abs() < 1e-6, "{readings} readings, not {expected}");
}

#[test]
fn a_sum_waits_for_one_that_has_to() {
    // Both in pass 1, that of the result.
    let result = "scaled = f32[8192,128] multiply(y, mb)
  ROOT r = (f32[128], f32[128], f32[8192,128]) tuple(early, late, scaled)";
    assert_readings(&waiting(result), LARGE, 1.0);
    // With a pass more, in which neither has to be.
    let two = "scaled = f32[8192,128] multiply(y, mb)
  n = f32[128] reduce(scaled, zero), dimensions={0}, to_apply=add
  nb = f32[8192,128] broadcast(n), dimensions={1}
  rest = f32[8192,128] subtract(y, nb)
  ROOT r = (f32[128], f32[128], f32[8192,128]) tuple(early, late, rest)";
    assert_readings(&waiting(two), LARGE, 1.0);
}

#[test]
fn a_sum_that_is_needed_does_not_wait() {
    let needed = "w = f32[8192,128] broadcast(early), dimensions={1}
  rest = f32[8192,128] subtract(y, w)
  ROOT r = (f32[128], f32[8192,128]) tuple(late, rest)";
    assert_readings(&waiting(needed), LARGE, 2.0);
}

#[test]
fn what_is_small_is_computed_of_what_is_large_all_the_same() {
    // A result of 1.5 MiB stays on chip; the 3 MiB that it is computed of do not.
    let narrow = with_reducers(
        "x = f32[6144,128] parameter(0)
  zero = f32[] constant(0)
  c = f32[128] reduce(x, zero), dimensions={0}, to_apply=add
  cb = f32[6144,128] broadcast(c), dimensions={1}
  d = f32[6144,128] subtract(x, cb)
  ROOT y = bf16[6144,128] convert(d)",
    );
    assert_readings(&narrow, LARGE * 0.75, 2.0);
}

#[test]
fn many_sums_that_may_wait_do_not_hide_who_cannot() {
    let sums: Vec<String> = (0..100)
        .map(|i| format!("s{i}_ = f32[128] reduce(x, zero), dimensions={{0}}, to_apply=add"))
        .collect();
    let names: Vec<String> = (0..100).map(|i| format!("s{i}_")).collect();
    let module = with_reducers(&format!(
        "x = f32[8192,128] parameter(0)
  zero = f32[] constant(0)
  c = f32[128] reduce(x, zero), dimensions={{0}}, to_apply=add
  cb = f32[8192,128] broadcast(c), dimensions={{1}}
  d = f32[8192,128] subtract(x, cb)
  {}
  ROOT r = (f32[8192,128]{}) tuple(d, {})",
        sums.join("\n  "),
        ", f32[128]".repeat(100),
        names.join(", ")
    ));
    assert_readings(&module, LARGE, 2.0);
}
