//! Costs of reductions that a CPU computes without vectors, computed by hand: vectors of 32 bytes, 4
//! loads, 2 stores and 4 operations a cycle.

use crate::common::cost;
use tilewright_ir::Opcode;

#[test]
fn what_a_cpu_reduces_without_vectors_takes_longer_for_each_element() {
    let of = |dims: &str, reduced: &str, result: &str, t: &str, op: &str| {
        let text = format!(
            "HloModule one\nby {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  \
             ROOT r = {t}[] {op}(a, b)\n}}\nENTRY main {{\n  x = {t}[{dims}] parameter(0)\n  \
             init = {t}[] constant(0)\n  \
             ROOT y = {t}[{result}] reduce(x, init), dimensions={{{reduced}}}, to_apply=by\n}}"
        );
        cost(&text, Opcode::Reduce, "cpu").cycles
    };
    // 32,768 elements are 4096 vectors, loaded and combined, whatever the dims.
    let vectors = 4096.0 / 4.0 + 4096.0 / 4.0;
    assert_eq!(of("4096,8", "0", "8", "f32", "add"), vectors + 1.0 / 2.0);
    // Runs of 4 floats, 8192 of them, are shorter than a vector: 0.4 of 12 cycles each.
    let runs = 8192.0 * 0.4 * 12.0;
    assert_eq!(of("8192,4", "0", "4", "f32", "maximum"), vectors + runs + 1.0 / 2.0);
    // Integers along two dims that are not side by side: 0.13 of 12 cycles for each element.
    let nest = 32_768.0 * 0.13 * 12.0;
    assert_eq!(of("32,8,16,8", "0,2", "8,8", "s32", "add"), vectors + nest + 8.0 / 2.0);
    assert_eq!(of("32,8,16,8", "1", "32,16,8", "s32", "add"), vectors + 512.0 / 2.0);
    // Rows of two dims: sums of whole numbers, and others whose inner dim is short, are vectorised as
    // rows of one dim are.
    let rows = |dims: &str, t: &str, op: &str| of(dims, "1,2", "32", t, op);
    assert_eq!(rows("32,64,16", "s32", "add"), of("32,1024", "1", "32", "s32", "add"));
    assert_eq!(rows("32,128,8", "s32", "maximum"), of("32,1024", "1", "32", "s32", "maximum"));
    assert_eq!(rows("32,128,8", "f32", "multiply"), of("32,1024", "1", "32", "f32", "multiply"));
    let nested = of("32,1024", "1", "32", "s32", "maximum") + nest;
    assert_eq!(rows("32,64,16", "s32", "maximum"), nested);
    // Smaller arrays take what vectors take.
    assert_eq!(of("4096,4", "0", "4", "f32", "maximum"), vectors / 2.0 + 1.0 / 2.0);
}

/// Two sums at once.
const TWO_SUMS: &str = "HloModule sums
sums {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  e = f32[] add(a, c)
  f = f32[] add(b, d)
  ROOT pair = (f32[], f32[]) tuple(e, f)
}
ENTRY main {
  x = f32[ROWS,4096] parameter(0)
  y = f32[ROWS,4096] parameter(1)
  zero = f32[] constant(0)
  ROOT pair = (f32[4096], f32[4096]) reduce(x, y, zero, zero), dimensions={0}, to_apply=sums
}";

#[test]
fn pairs_along_a_short_dim_are_unrolled_on_a_cpu() {
    let of = |rows: f64| {
        let text = TWO_SUMS.replace("ROWS", &rows.to_string());
        cost(&text, Opcode::Reduce, "cpu").cycles
    };
    // Two arrays of 512 vectors for each row are loaded and combined, two of 512 are stored.
    let vectors = |rows: f64| 512.0 * (2.0 * rows / 4.0 + 2.0 * rows / 4.0 + 2.0 / 2.0);
    assert_eq!(of(24.0), vectors(24.0));
    assert_eq!(of(25.0), vectors(25.0) + 25.0 * 4096.0 * 12.0);
}
