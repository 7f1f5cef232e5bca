//! Costs of loops, and of ops that loops read and write parts of arrays by, computed by hand for `tpu-like`: see
//! `cost.rs`.

use crate::common::{cost, module, target};
use tilewright_ir::Opcode;
use tilewright_rewrite::cost::run_costs;
use tilewright_rewrite::{instruction_costs, module_cost};

/// The cycles to move one vector to main memory or back.
const CROSSING: f64 = 4096.0 / 546.0;
/// The cycles that a kernel waits for its first bytes, and for its last ones.
const LATENCY: f64 = 2.0 * 600.0;
/// The cycles to load a vector.
const LOAD: f64 = 0.5;
/// The cycles to compute a vector.
const COMPUTE: f64 = 0.25;
/// The cycles to store a vector in vector memory.
const STORE: f64 = 1.0;

/// Returns a loop that doubles `x` in each turn, and goes on while `more` holds of `i` and `n`.
fn doubling(start: &str, step: &str, more: &str, loop_attributes: &str) -> String {
    format!(
        "HloModule doubling
body {{
  s = (s32[], f32[8,128], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,128] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  step = s32[] constant({step})
  next = s32[] add(i, step)
  double = f32[8,128] add(x, x)
  ROOT result = (s32[], f32[8,128], s32[]) tuple(next, double, n)
}}
condition {{
  s = (s32[], f32[8,128], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=2
  ROOT more = pred[] compare({more}
}}
ENTRY main {{
  x = f32[8,128] parameter(0)
  start = s32[] {start}
  end = s32[] constant(10)
  init = (s32[], f32[8,128], s32[]) tuple(start, x, end)
  loop = (s32[], f32[8,128], s32[]) while(init), condition=condition, body=body{loop_attributes}
  ROOT out = f32[8,128] get-tuple-element(loop), index=1
}}"
    )
}

fn cycles(text: &str) -> f64 {
    module_cost(&module(text), &target("tpu-like")).cycles
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-6, "{actual} cycles, not {expected}");
}

#[test]
fn a_loop_costs_as_much_as_its_turns() {
    let less = "i, n), direction=LT";
    let of = |start: &str, step: &str| cycles(&doubling(start, step, less, ""));
    // The counter and the array are loaded, added to and stored; the condition loads and compares two numbers.
    let turn = (LOAD + COMPUTE + STORE) + (2.0 * LOAD + COMPUTE + STORE);
    let condition = 2.0 * LOAD + COMPUTE;
    let each = turn + condition + 2.0 * LATENCY;
    let ten = of("constant(0)", "1");
    assert_close(ten - of("constant(1)", "1"), each);
    assert_close(ten - of("constant(0)", "5"), 8.0 * each);
    assert_close(ten - of("constant(10)", "1"), 10.0 * each);
}

#[test]
fn turns_are_counted_from_the_condition_whichever_way_it_is_written() {
    let of = |start: &str, step: &str, more: &str| cycles(&doubling(start, step, more, ""));
    let ten = of("constant(0)", "1", "i, n), direction=LT");
    for (start, step, more) in [
        ("constant(0)", "1", "n, i), direction=GT"),
        ("constant(1)", "1", "i, n), direction=LE"),
        ("constant(20)", "-1", "i, n), direction=GT"),
        ("constant(19)", "-1", "n, i), direction=LE"),
        ("constant(-10)", "2", "i, n), direction=NE"),
    ] {
        assert_close(of(start, step, more), ten);
    }
    // Unsigned counters go down by adding a number that wraps around.
    let unsigned = |start: &str, step: &str, more: &str| {
        cycles(&doubling(start, step, more, "").replace("s32", "u32"))
    };
    assert_close(unsigned("constant(20)", "4294967295", "i, n), direction=GT"), ten);
    // A counter that wraps around, or never meets the bound, has no known number of turns.
    let one = of("constant(9)", "1", "i, n), direction=LT");
    assert_close(unsigned("constant(3)", "4294967295", "i, n), direction=LT"), one);
    assert_close(of("constant(2147483000)", "1000", "n, i), direction=LT"), one);
}

#[test]
fn a_loop_of_unknown_length_counts_as_one_turn() {
    let less = "i, n), direction=LT";
    let one = cycles(&doubling("constant(9)", "1", less, ""));
    // It does not end; it ends at once or never; its bound changes.
    let unknown = doubling("constant(9)", "0", less, "");
    assert_close(cycles(&unknown), one);
    let equal = doubling("constant(9)", "1", "i, n), direction=EQ", "");
    assert_close(cycles(&equal), one);
    let doubled_bound =
        doubling("constant(9)", "1", less, "").replace("double, n)", "double, next)");
    // Two elements of the state are stored in place of one.
    assert_close(cycles(&doubled_bound), one + STORE);
    let stated = ", backend_config={\"known_trip_count\":{\"n\":\"7\"},\"dynamic_variables\":[]}";
    let seven = cycles(&doubling("constant(3)", "1", less, ""));
    assert_close(cycles(&doubling("constant(9)", "0", less, stated)), seven);
}

#[test]
fn the_costs_of_what_runs_add_up_to_that_of_the_module() {
    let module = module(&doubling("constant(0)", "1", "i, n), direction=LT", ""));
    let target = target("tpu-like");
    let sum: f64 = run_costs(&module, &target).iter().map(|one| one.cost.cycles).sum();
    let (_, latency) = instruction_costs(&module, &target);
    // The body waits in each of ten turns, the condition once more.
    let total = module_cost(&module, &target).cycles;
    assert_close(sum + latency + 21.0 * LATENCY, total);
}

/// Returns a loop that goes over an array of many rows.
fn over_rows(turns: u32, turn: &str) -> String {
    format!(
        "HloModule over_rows
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}
body {{
  s = (s32[], f32[65536,128], f32[128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[65536,128] get-tuple-element(s), index=1
  sum = f32[128] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = f32[] constant(0)
{turn}
  ROOT result = (s32[], f32[65536,128], f32[128]) tuple(next, rows, sums)
}}
condition {{
  s = (s32[], f32[65536,128], f32[128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({turns})
  ROOT more = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  x = f32[65536,128] parameter(0)
  start = s32[] constant(0)
  zero = f32[] constant(0)
  sums = f32[128] broadcast(zero), dimensions={{}}
  init = (s32[], f32[65536,128], f32[128]) tuple(start, x, sums)
  loop = (s32[], f32[65536,128], f32[128]) while(init), condition=condition, body=body
  ROOT out = f32[128] get-tuple-element(loop), index=2
}}"
    )
}

#[test]
fn each_turn_reads_a_large_array_from_main_memory() {
    let turn = "  sums = f32[128] reduce(x, zero), dimensions={0}, to_apply=add";
    let text = |turns| over_rows(turns, turn).replace("next, rows, sums)", "next, x, sums)");
    let each = cycles(&text(3)) - cycles(&text(2));
    let vectors = 65536.0 / 8.0;
    let crossing = vectors * CROSSING;
    let rest = each - crossing;
    assert!(rest > vectors * LOAD && rest < crossing, "{each} cycles, of which {crossing} cross");
}

#[test]
fn a_large_array_that_is_updated_in_a_loop_is_read_in_each_turn() {
    let turn = "  part = f32[8,128] broadcast(zero), dimensions={}
  rows = f32[65536,128] dynamic-update-slice(x, part, i, one)
  sums = f32[128] reduce(rows, zero), dimensions={0}, to_apply=add";
    let each = cycles(&over_rows(3, turn)) - cycles(&over_rows(2, turn));
    let vectors = 65536.0 / 8.0;
    let crossings = each / (vectors * CROSSING);
    assert!((1.0..1.2).contains(&crossings), "{crossings} crossings");
}

#[test]
fn a_large_array_that_each_turn_makes_anew_crosses_there_and_back() {
    let text = |start: &str| {
        doubling(start, "1", "i, n), direction=LT", "").replace("[8,128]", "[65536,128]")
    };
    let each = cycles(&text("constant(0)")) - cycles(&text("constant(1)"));
    let vectors = 65536.0 / 8.0;
    let crossings = each / (vectors * CROSSING);
    assert!((2.0..2.4).contains(&crossings), "{crossings} crossings");
}

#[test]
fn a_branch_reads_what_its_caller_made() {
    let text = "HloModule branches
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
one {
  s = (f32[65536,128]) parameter(0)
  x = f32[65536,128] get-tuple-element(s), index=0
  part = f32[8,128] slice(x), slice={[0:8], [0:128]}
  ROOT y = f32[8,128] negate(part)
}
other {
  s = (f32[65536,128]) parameter(0)
  x = f32[65536,128] get-tuple-element(s), index=0
  zero = f32[] constant(0)
  sum = f32[128] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT y = f32[8,128] broadcast(sum), dimensions={1}
}
ENTRY main {
  p = pred[] parameter(0)
  x = f32[65536,128] parameter(1)
  s = (f32[65536,128]) tuple(x)
  ROOT y = f32[8,128] conditional(p, s, s), true_computation=one, false_computation=other
}";
    let crossings = cycles(text) / (65536.0 / 8.0 * CROSSING);
    assert!((1.0..1.2).contains(&crossings), "{crossings} crossings");
}

#[test]
fn a_part_that_is_read_or_written_in_a_loop_costs_as_a_part() {
    let update = "  part = f32[8,128] dynamic-slice(x, i, one), dynamic_slice_sizes={8,128}
  rows = f32[65536,128] dynamic-update-slice(x, part, i, one)
  sums = f32[128] negate(sum)";
    let each = cycles(&over_rows(3, update)) - cycles(&over_rows(2, update));
    // An index that is a constant is stored. The part crosses when it is read, and when it is written.
    let part = STORE + CROSSING + LOAD + STORE;
    let negate = LOAD + COMPUTE + STORE;
    let counter = LOAD + COMPUTE + STORE;
    let condition = LOAD + COMPUTE;
    assert_close(each, 2.0 * part + negate + counter + condition + 2.0 * LATENCY);
}

#[test]
fn rows_that_are_looked_up_or_added_to_cost_as_rows() {
    let table = "f32[65536,128]";
    let gather = format!(
        "HloModule looked_up
ENTRY main {{
  table = {table} parameter(0)
  places = s32[8,1] parameter(1)
  ROOT rows = f32[8,128] gather(table, places), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
             start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,128}}
}}"
    );
    assert_close(cost(&gather, Opcode::Gather, "tpu-like").cycles, LOAD + LOAD + CROSSING + STORE);
    let scatter = format!(
        "HloModule added_to
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}
ENTRY main {{
  table = {table} parameter(0)
  places = s32[8,1] parameter(1)
  rows = f32[8,128] parameter(2)
  ROOT out = {table} scatter(table, places, rows), update_window_dims={{1}}, inserted_window_dims={{0}}, \
             scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}"
    );
    // The places and the rows are loaded; the rows of the table are read, added to and written.
    let expected = LOAD + 2.0 * (LOAD + CROSSING) + STORE;
    assert_close(cost(&scatter, Opcode::Scatter, "tpu-like").cycles, expected);
}
