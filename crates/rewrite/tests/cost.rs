//! Costs computed by hand, on small modules.
//!
//! `tpu-like`: vectors of 8x128 lanes of 32 bits (4096 bytes), 546 bytes a
//! cycle to main memory, 2 loads, 1 store and 4 operations a cycle; up to 2 MiB
//! stay in vector memory.
//! `linear`: vectors of 32 bytes, 16 bytes a cycle, 2 loads, 1 store and 2
//! operations a cycle; up to 16 KiB stay in vector memory.
//! `cpu`: vectors of 32 bytes, 4 loads, 2 stores and 4 operations a cycle; up to
//! 512 KiB stay in vector memory.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{cost, module, target};
use tilewright_ir::{Module, Opcode, Verified};
use tilewright_rewrite::cost::pays;
use tilewright_rewrite::{Cost, ModuleCosts, instruction_costs, module_cost};

#[track_caller]
fn assert_cost(actual: Cost, expected: Cost) {
    let close = (actual.cycles - expected.cycles).abs() < 1e-9 * expected.cycles.max(1.0);
    assert!(close, "{} cycles, not {}", actual.cycles, expected.cycles);
    assert_eq!(Cost { cycles: 0.0, ..actual }, Cost { cycles: 0.0, ..expected });
}

/// Vectors loaded and stored on `tpu-like`, and the bytes without padding.
fn tpu(cycles: f64, vectors: u64, bytes: u64) -> Cost {
    Cost { cycles, vectors, bytes, padded_bytes: vectors * 4096, ..Cost::default() }
}

/// The cycles to move one vector to main memory or back.
const CROSSING: f64 = 4096.0 / 546.0;
/// The cycles that a kernel waits for its first bytes, and for its last ones.
const LATENCY: f64 = 2.0 * 600.0;
/// The cycles to store a vector in vector memory.
const STORED: f64 = 1.0;

const ADD: &str = "HloModule add
ENTRY main {
  x = f32[8,128] parameter(0)
  y = f32[8,128] parameter(1)
  ROOT sum = f32[8,128] add(x, y)
}";

#[test]
fn an_add_loads_two_vectors_and_stores_one() {
    let add = cost(ADD, Opcode::Add, "tpu-like");
    let expected = tpu(2.0 * 0.5 + 0.25 + STORED, 3, 3 * 4096);
    assert_cost(add, Cost { flops: 1024, ..expected });
    // Parameters come from main memory; their loads are counted with their readers.
    let parameter = cost(ADD, Opcode::Parameter, "tpu-like");
    assert_cost(parameter, Cost { cycles: CROSSING, ..Cost::default() });
    let total = module_cost(&module(ADD), &target("tpu-like"));
    let cycles = expected.cycles + 2.0 * CROSSING + LATENCY;
    assert_cost(total, Cost { cycles, flops: 1024, ..expected });
}

#[test]
fn an_add_on_linear_memory() {
    let add = cost(ADD, Opcode::Add, "linear");
    let vectors = 4096.0 / 32.0;
    let stored = vectors;
    let expected = Cost {
        cycles: 2.0 * vectors / 2.0 + vectors / 2.0 + stored,
        vectors: 3 * 128,
        bytes: 3 * 4096,
        padded_bytes: 3 * 4096,
        flops: 1024,
        ..Cost::default()
    };
    assert_cost(add, expected);
}

#[test]
fn what_is_large_crosses_main_memory_once_each_way() {
    // 512 vectors are 2 MiB, 513 are more. A value that nothing reads again crosses once.
    for (rows, crossings) in [(4096u32, 0.0), (4104, 1.0)] {
        let text = ADD.replace("[8,128]", &format!("[{rows},128]"));
        let vectors = f64::from(rows / 8);
        let cycles = vectors * (2.0 * 0.5 + 0.25 + STORED + crossings * CROSSING);
        let add = cost(&text, Opcode::Add, "tpu-like");
        assert!((add.cycles - cycles).abs() < 1e-9 * cycles, "{} not {cycles}", add.cycles);
    }
}

#[test]
fn a_result_that_is_read_again_crosses_main_memory_twice() {
    let text = |more: &str, results: &str, types: &str| {
        format!(
            "HloModule m
ENTRY main {{
  x = f32[4104,128] parameter(0)
  y = f32[128,4104] transpose(x), dimensions={{1,0}}{more}
  ROOT r = ({types}) tuple({results})
}}"
        )
    };
    let (one, other) = ("f32[4104,128]", "f32[128,4104]");
    let back = format!("\n  z = {one} transpose(y), dimensions={{1,0}}");
    let first = |text: &str| cost(text, Opcode::Transpose, "tpu-like").cycles;
    let (twice, once) = (first(&text(&back, "z", one)), first(&text("", "y", other)));
    // 33 columns of vectors cover 4104 lanes.
    assert!((twice - once - 16.0 * 33.0 * CROSSING).abs() < 1e-6, "{twice}, {once}");
    // Named twice, it is stored once, and read for z.
    let both = first(&text(&back, "y, y, z", &format!("{other}, {other}, {one}")));
    assert!((both - twice).abs() < 1e-6, "{both}, {twice}");
}

#[test]
fn what_is_fused_is_neither_stored_nor_loaded() {
    let text = "HloModule chain
ENTRY main {
  x = f32[8,128] parameter(0)
  y = f32[8,128] negate(x)
  ROOT z = f32[8,128] abs(y)
}";
    let negate = cost(text, Opcode::Negate, "tpu-like");
    assert_cost(negate, Cost { flops: 1024, ..tpu(0.5 + 0.25, 1, 4096) });
    let abs = cost(text, Opcode::Abs, "tpu-like");
    assert_cost(abs, Cost { flops: 1024, ..tpu(0.25 + STORED, 1, 4096) });
}

#[test]
fn a_root_takes_longer_to_compute_than_a_sum() {
    let text = "HloModule root
ENTRY main {
  x = f32[8,128] parameter(0)
  y = f32[8,128] rsqrt(x)
  ROOT z = f32[8,128] abs(y)
}";
    let rsqrt = cost(text, Opcode::Rsqrt, "tpu-like");
    assert_cost(rsqrt, Cost { flops: 1024, ..tpu(0.5 + 2.0, 1, 4096) });
}

#[test]
fn a_broadcast_computes_no_elements_of_its_own() {
    let text = "HloModule spread
ENTRY main {
  x = f32[128] parameter(0)
  y = f32[16,128] broadcast(x), dimensions={1}
  ROOT z = f32[16,128] abs(y)
}";
    let broadcast = cost(text, Opcode::Broadcast, "tpu-like");
    assert_cost(broadcast, tpu(0.5 + 2.0 * 0.25, 1, 128 * 4));
}

#[test]
fn a_reshape_that_realigns_moves_every_row_of_the_wider_side() {
    let text = "HloModule split
ENTRY main {
  x = f32[8,32] parameter(0)
  ROOT y = f32[8,8,4] reshape(x)
}";
    // One vector in, eight out: each row of the eight is moved by itself.
    let reshape = cost(text, Opcode::Reshape, "tpu-like");
    let expected = tpu(0.5 + 8.0 * STORED + 8.0 * 8.0, 1 + 8, 2 * 1024);
    assert_cost(reshape, Cost { realigned_vectors: 8, ..expected });
    // On linear memory it is free.
    assert_cost(cost(text, Opcode::Reshape, "linear"), Cost::default());
}

#[test]
fn a_reshape_of_major_dims_pins_layouts() {
    let text = "HloModule split
ENTRY main {
  x = f32[64,8,128] parameter(0)
  ROOT y = f32[8,8,8,128] reshape(x)
}";
    let reshape = cost(text, Opcode::Reshape, "tpu-like");
    assert_cost(reshape, Cost { cycles: 64.0 * 2.0, ..Cost::default() });
}

#[test]
fn a_reshape_by_dims_of_size_one_is_free() {
    let text = "HloModule ones
ENTRY main {
  x = f32[64,8,128] parameter(0)
  ROOT y = f32[64,1,8,128] reshape(x)
}";
    assert_cost(cost(text, Opcode::Reshape, "tpu-like"), Cost::default());
}

#[test]
fn a_realigning_reshape_computes_its_fused_operand_in_place() {
    let text = "HloModule split
ENTRY main {
  x = f32[8,32] parameter(0)
  y = f32[8,32] negate(x)
  ROOT z = f32[8,8,4] reshape(y)
}";
    let reshape = cost(text, Opcode::Reshape, "tpu-like");
    // 8 vectors with 8 rows each.
    let expected = tpu(8.0 * STORED + 64.0, 8, 1024);
    assert_cost(reshape, Cost { realigned_vectors: 8, ..expected });
}

const ADD_F32: &str = "
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
";

fn reduce(dims: &str, result: &str) -> String {
    format!(
        "HloModule sum
{ADD_F32}
ENTRY main {{
  x = f32[2,16,128] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{result}] reduce(x, zero), dimensions={{{dims}}}, to_apply=add_f32
}}"
    )
}

#[test]
fn a_reduce_along_the_lanes_costs_a_cross_lane_step_per_eight_results() {
    // Four vectors in; 32 results take one vector of rank 1, and 4 groups.
    let along = cost(&reduce("0,2", "16"), Opcode::Reduce, "tpu-like");
    let expected = tpu(4.0 * 0.5 + 4.0 * 0.25 + STORED + 2.0 * 4.0, 5, 4 * 4096 + 16 * 4);
    assert_cost(along, Cost { flops: 4096, ..expected });
}

#[test]
fn a_reduce_across_rows_costs_none() {
    let across = cost(&reduce("0,1", "128"), Opcode::Reduce, "tpu-like");
    let expected = tpu(4.0 * 0.5 + 4.0 * 0.25 + STORED, 5, 4 * 4096 + 128 * 4);
    assert_cost(across, Cost { flops: 4096, ..expected });
}

/// A sum over `dims` of an array on `cpu`, where arrays of some KiB stay.
fn sum_on_cpu(array: &str, dims: &str, result: &str) -> f64 {
    let text = reduce(dims, result).replace("2,16,128", array);
    cost(&text, Opcode::Reduce, "cpu").cycles
}

#[test]
fn a_reduce_on_a_cpu_starts_anew_on_each_run() {
    // 512 vectors are loaded and added, 2 results take a vector each; each
    // result takes a step across lanes.
    let rest = |results: f64| 512.0 / 4.0 + 512.0 / 4.0 + 0.5 + results * 6.0;
    assert_eq!(sum_on_cpu("2,16,128", "1,2", "2"), rest(2.0) + 2.0 * 25.0);
    assert_eq!(sum_on_cpu("2,16,32,4", "1,3", "2,32"), rest(64.0) + 3.5 + 1024.0 * 25.0);
    // Dims of size 1 do not end a run; that of the lanes is kept here.
    assert_eq!(sum_on_cpu("2,16,128,1", "1,2", "2,1"), rest(0.0) + 2.0 * 25.0);
    // Where the minor dim is kept, whole rows are added.
    let kept = 512.0 / 4.0 + 512.0 / 4.0 + 16.0 / 2.0;
    assert_eq!(sum_on_cpu("2,16,128", "0,1", "128"), kept);
}

/// 16 numbers, each spread over 8 elements of 32 rows, directly or through a
/// reshape.
const SPREAD: &str = "HloModule spread
ENTRY main {
  x = f32[16] parameter(0)
  y = f32[16,8] broadcast(x), dimensions={0}
  z = f32[128] reshape(y)
  ROOT w = f32[32,128] broadcast(z), dimensions={1}
}";

#[test]
fn a_reshape_within_a_loop_takes_indices_apart_on_a_cpu() {
    let module = module(SPREAD);
    let (costs, _) = instruction_costs(&module, &target("cpu"));
    let cycles = |name: &str| {
        let found = costs.iter().find(|cost| module.name_of(cost.id) == name);
        found.expect("an instruction of this name").cost.cycles
    };
    // 16 vectors pass the reshape; 512 vectors are computed, 8 cycles each for
    // the indices, and stored as the result.
    assert_eq!(cycles("z"), 16.0 * 10.0);
    assert_eq!(cycles("w"), 512.0 / 4.0 + 512.0 * 8.0 + 512.0 / 2.0);
}

#[test]
fn a_reshape_of_what_is_stored_is_free_on_a_cpu() {
    let stored = SPREAD.replace("f32[16,8] broadcast(x), dimensions={0}", "f32[16,8] parameter(1)");
    assert_cost(cost(&stored, Opcode::Reshape, "cpu"), Cost::default());
    // A reshape that only adds dims of size 1 changes no index.
    let ones = SPREAD.replace("f32[128] reshape", "f32[16,1,8] reshape");
    let ones = ones.replace("broadcast(z), dimensions={1}", "broadcast(x), dimensions={}");
    let ones = ones.replace("x = f32[16] parameter(0)", "x = f32[] parameter(0)");
    let ones = ones.replace("broadcast(x), dimensions={0}", "broadcast(x), dimensions={}");
    assert_cost(cost(&ones, Opcode::Reshape, "cpu"), Cost::default());
}

#[test]
fn a_reshape_of_major_dims_is_free_on_a_cpu() {
    let text = "HloModule spread
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4,4,8] broadcast(x), dimensions={0}
  z = f32[16,8] reshape(y)
  ROOT w = f32[16,8] negate(z)
}";
    assert_cost(cost(text, Opcode::Reshape, "cpu"), Cost::default());
}

#[test]
fn a_matrix_product_counts_a_multiplication_and_an_addition_each() {
    let text = "HloModule product
ENTRY main {
  x = f32[8,64] parameter(0)
  y = f32[64,128] parameter(1)
  ROOT z = f32[8,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}";
    let flops = 2 * 8 * 128 * 64;
    // One vector of x, eight of y, one of the result.
    let cycles = 0.5 + 8.0 * 0.5 + STORED + f64::from(flops) / 131_072.0;
    let expected = tpu(cycles, 10, 4 * (8 * 64 + 64 * 128 + 8 * 128));
    let flops = u64::try_from(flops).expect("a small number");
    assert_cost(cost(text, Opcode::Dot, "tpu-like"), Cost { flops, ..expected });
}

/// A sum over the windows of an array, of these results.
fn window(array: &str, result: &str, window: &str) -> String {
    format!(
        "HloModule pool
{ADD_F32}
ENTRY main {{
  x = f32[{array}] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[{result}] reduce-window(x, zero), window={{{window}}}, to_apply=add_f32
}}"
    )
}

fn window_cost(array: &str, result: &str, size: &str, target_name: &str) -> Cost {
    cost(&window(array, result, size), Opcode::ReduceWindow, target_name)
}

#[test]
fn a_window_along_major_dims_combines_whole_vectors() {
    // 32 vectors in, each combined once; 8 out.
    let pool = window_cost("8,4,8,128", "4,2,8,128", "size=2x2x1x1 stride=2x2x1x1", "tpu-like");
    let expected = tpu(32.0 * 0.5 + 32.0 * 0.25 + 8.0 * STORED, 40, 40 * 4096);
    assert_cost(pool, Cost { flops: 32 * 1024, ..expected });
}

#[test]
fn a_window_along_rows_shifts_them_and_gathers_what_is_left() {
    // 32 vectors are shifted by one row and combined; each of 128 rows is moved to
    // its place among 16 vectors.
    let pool = window_cost("16,16,128", "16,8,128", "size=1x2x1 stride=1x2x1", "tpu-like");
    let cycles = 32.0 * 0.5 + 32.0 * 0.25 + 32.0 * (0.25 + 0.25) + 128.0 + 16.0 * STORED;
    assert_cost(pool, Cost { flops: 32 * 1024, ..tpu(cycles, 48, 48 * 4096) });
    // For windows of 16 rows, the rows of two vectors are combined before any is shifted.
    let pool = window_cost("16,64,128", "16,4,128", "size=1x16x1 stride=1x16x1", "tpu-like");
    let shifts = 64.0 * 3.0 * (0.25 + 0.25);
    let cycles = 128.0 * 0.5 + 128.0 * 0.25 + shifts + 64.0 + 16.0 * STORED;
    let bytes = 128 * 4096 + 64 * 512;
    assert_cost(pool, Cost { flops: 128 * 1024, ..tpu(cycles, 144, bytes) });
}

#[test]
fn a_window_along_lanes_rotates_them_and_sifts_what_is_left() {
    // Two vectors are rotated by 1, 2 and 4 lanes and combined; then each is
    // sifted in seven steps, and its rows are moved.
    let pool = window_cost("16,128", "16,16", "size=1x8 stride=1x8", "tpu-like");
    let cycles = 2.0 * 0.5 + 2.0 * 0.25 + 2.0 * (3.0 + 7.0) * (4.0 + 0.25) + 16.0 + 2.0 * STORED;
    assert_cost(pool, Cost { flops: 2048, ..tpu(cycles, 4, 2 * 4096 + 16 * 64) });
    // Elements 16 apart leave the first 16 lanes, side by side.
    let pool = window_cost("16,128", "16,16", "size=1x8 rhs_dilate=1x16", "tpu-like");
    let cycles = 2.0 * 0.5 + 2.0 * 0.25 + 2.0 * 3.0 * (4.0 + 0.25) + 2.0 * STORED;
    assert_cost(pool, Cost { flops: 2048, ..tpu(cycles, 4, 2 * 4096 + 16 * 64) });
    // Those a vector apart are combined as they are.
    let pool = window_cost("16,256", "16,128", "size=1x2 rhs_dilate=1x128", "tpu-like");
    let cycles = 4.0 * 0.5 + 4.0 * 0.25 + 2.0 * STORED;
    assert_cost(pool, Cost { flops: 4096, ..tpu(cycles, 6, 4 * 4096 + 2 * 4096) });
}

#[test]
fn windows_that_overlap_load_what_they_share_again() {
    // Three taps for each of 16 vectors, of which 18 loads are the first ones.
    let pool = window_cost("18,8,128", "16,8,128", "size=3x1x1", "tpu-like");
    let cycles = 18.0 * 0.5 + 30.0 * 0.5 + 48.0 * 0.25 + 16.0 * STORED;
    assert_cost(pool, Cost { flops: 48 * 1024, ..tpu(cycles, 34, 34 * 4096) });
}

#[test]
fn windows_on_a_cpu_cost_what_a_reduce_of_the_reshape_does() {
    let of = |array: &str, result: &str, size: &str| window_cost(array, result, size, "cpu").cycles;
    // 512 vectors are loaded and added, results stored.
    let rows = 512.0 / 4.0 + 512.0 / 4.0;
    assert_eq!(of("32,128", "8,128", "size=4x1 stride=4x1"), rows + 128.0 / 2.0);
    // A run of 8 for each of 512 results, of which a vector takes 8.
    let runs = 512.0 * 6.0 + 512.0 * 25.0;
    assert_eq!(of("32,128", "32,16", "size=1x8 stride=1x8"), rows + runs + 64.0 / 2.0);
    assert_eq!(of("32,128", "32,16", "size=1x8 rhs_dilate=1x16"), rows + 64.0 / 2.0);
}

#[test]
fn what_is_windowed_is_computed_in_place_where_it_is_read_once() {
    let fused = |target_name: &str, size: &str, result: &str| {
        let text = window("16,8,128", result, size);
        let text = text.replace("x = f32", "w = f32").replace("reduce-window(x", "reduce-window(v");
        let v = "  v = f32[16,8,128] negate(w)\n  ROOT";
        cost(&text.replacen("  ROOT y", &format!("{v} y"), 1), Opcode::ReduceWindow, target_name)
    };
    let disjoint = fused("tpu-like", "size=2x1x1 stride=2x1x1", "8,8,128");
    assert_eq!((disjoint.vectors, disjoint.cycles), (8, 16.0 * 0.25 + 8.0));
    let on_cpu = fused("cpu", "size=2x1x1 stride=2x1x1", "8,8,128");
    assert_eq!((on_cpu.vectors, on_cpu.cycles), (1024, 2048.0 / 4.0 + 1024.0 / 2.0));
    // Otherwise it is stored first.
    assert_eq!(fused("tpu-like", "size=2x1x1", "15,8,128").vectors, 16 + 16 + 15);
}

#[test]
fn scalar_constants_are_free_and_larger_ones_are_read() {
    let scalar = "HloModule scalar
ENTRY main {
  c = f32[] constant(3)
  ROOT x = f32[8,128] broadcast(c), dimensions={}
}";
    assert_cost(cost(scalar, Opcode::Constant, "tpu-like"), Cost::default());
    let larger = "HloModule larger
ENTRY main {
  c = f32[4] constant({1, 2, 3, 4})
  ROOT x = f32[8,4] broadcast(c), dimensions={1}
}";
    let constant = cost(larger, Opcode::Constant, "tpu-like");
    assert_cost(constant, Cost { cycles: CROSSING, ..Cost::default() });
}

#[test]
fn a_tuple_stores_what_is_not_stored_yet() {
    let text = "HloModule pair
ENTRY main {
  x = f32[8,128] parameter(0)
  y = f32[8,128] negate(x)
  ROOT t = (f32[8,128], f32[8,128]) tuple(x, y)
}";
    assert_cost(cost(text, Opcode::Tuple, "tpu-like"), tpu(STORED, 1, 4096));
}

fn total(module: &Verified, name: &str) -> Cost {
    module_cost(module, &target(name))
}

#[test]
fn calls_cost_what_they_call_and_reducers_nothing() {
    let called = module(
        "HloModule called
double {
  x = f32[8,128] parameter(0)
  ROOT y = f32[8,128] add(x, x)
}
ENTRY main {
  x = f32[8,128] parameter(0)
  ROOT y = f32[8,128] call(x), to_apply=double
}",
    );
    // The addition, and the call, which hands over stored values.
    let call = cost_of(&called, Opcode::Call);
    assert_eq!(call.flops, 1024);
    assert!(call.cycles > 0.25 + STORED);
    let reduced = module(&reduce("0,1", "128"));
    assert_eq!(total(&reduced, "tpu-like").flops, 4096);
}

fn cost_of(module: &Module, opcode: Opcode) -> Cost {
    let (costs, _) = instruction_costs(module, &target("tpu-like"));
    costs.iter().find(|c| module.opcode(c.id) == opcode).expect("an instruction").cost
}

#[test]
fn the_whole_is_the_sum_of_its_instructions() {
    let module = module(include_str!("../../../fixtures/models/unet_block_grad.hlo"));
    for name in tilewright_target::Target::builtin_names() {
        let (costs, latency) = instruction_costs(&module, &target(name));
        let sum: Cost = costs.iter().map(|c| c.cost).sum();
        assert_cost(total(&module, name), Cost { cycles: sum.cycles + latency, ..sum });
    }
}

#[test]
fn every_pass_over_main_memory_waits_for_it() {
    let latency = |text: &str| instruction_costs(&module(text), &target("tpu-like")).1;
    assert_eq!(latency(ADD), LATENCY);
    let nothing = "HloModule same ENTRY main { ROOT x = f32[8,128] parameter(0) }";
    assert_eq!(latency(nothing), 0.0);
    // One pass for the sum, and one for what needs it.
    let centred = |n: u64| {
        format!(
            "HloModule centred
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[{n},128] parameter(0)
  zero = f32[] constant(0)
  sum = f32[128] reduce(x, zero), dimensions={{0}}, to_apply=add
  sums = f32[{n},128] broadcast(sum), dimensions={{1}}
  ROOT y = f32[{n},128] subtract(x, sums)
}}"
        )
    };
    assert_eq!(latency(&centred(65536)), 2.0 * LATENCY);
    assert_eq!(latency(&centred(8)), LATENCY);
    // A matrix product is a kernel of its own, before the one that adds.
    let product = "HloModule product
ENTRY main {
  x = f32[128,128] parameter(0)
  y = f32[128,128] parameter(1)
  d = f32[128,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[128,128] add(d, x)
}";
    assert_eq!(latency(product), 2.0 * LATENCY);
}

/// XLA:CPU takes 225 times as long for a sort as for a copy of its bytes, which cross memory at 6 bytes a cycle.
#[test]
fn an_op_that_is_known_to_be_slow_costs_what_was_measured() {
    let sort = "HloModule sorted
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[1024,2048] parameter(0)
  s = f32[1024,2048] sort(x), dimensions={1}, to_apply=less
  ROOT n = f32[1024,2048] negate(s)
}";
    let copies = f64::from(2 * 1024 * 2048 * 4) / 6.0;
    let cycles = cost(sort, Opcode::Sort, "xla-cpu-0.12").cycles;
    assert!((cycles / (225.0 * copies) - 1.0).abs() < 1e-9, "{cycles}");
    // An operand that is stored for it first is no further copy.
    let of_sum = sort
        .replace("sort(x)", "sort(twice)")
        .replace("  s =", "  twice = f32[1024,2048] add(x, x)\n  s =");
    assert_eq!(cost(&of_sum, Opcode::Sort, "xla-cpu-0.12").cycles, cycles);
    assert!(cost(sort, Opcode::Sort, "tpu-like").cycles < copies);
}

#[test]
fn packed_types_take_fewer_vectors() {
    let add = |element: &str| {
        let text = ADD.replace("f32[8,128]", &format!("{element}[32,128]"));
        cost(&text, Opcode::Add, "tpu-like").vectors
    };
    assert_eq!((add("f32"), add("bf16"), add("s8"), add("f64")), (12, 6, 3, 24));
}

#[test]
fn a_saving_within_rounding_is_none() {
    assert!(pays(100.0, 99.0));
    assert!(!pays(100.0, 100.0));
    assert!(!pays(100.0, 100.0 - 1e-10));
    assert!(!pays(0.0, 0.0));
    assert!(!pays(100.0, 101.0));
}

#[test]
fn another_thread_can_cancel_costs() {
    let text = "HloModule m
ENTRY e {
  x = f32[64,256] parameter(0)
  y = f32[64,256] exponential(x)
  ROOT z = f32[256,64] transpose(y), dimensions={1,0}
}";
    let (module, target) = (module(text), target("tpu-like"));
    let cancel = AtomicBool::new(false);
    let costs = ModuleCosts::with_cancel(&module, &target, &cancel).expect("nobody cancelled it");
    assert_eq!(costs, ModuleCosts::new(&module, &target));
    assert_eq!(costs.total, module_cost(&module, &target));
    assert_eq!(costs.instructions.len(), 3);
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(ModuleCosts::with_cancel(&module, &target, &cancel), None);
}
