//! What reductions cost beyond the work of vectors, by a table, computed by hand.

use crate::common::{module, target};
use tilewright_ir::Opcode;
use tilewright_rewrite::instruction_costs;
use tilewright_target::Target;

/// `cpu` with a table of three cells.
fn measured() -> Target {
    Target::from_toml(
        "base = \"cpu\"\n[reductions]\nmeasured = \"by hand\"\nleast_elements = 32768\n\
         innermost = [2, 8]\nlongest = [2]\ncells = '''\n\
         sum f32 stored columns 2 2 | as-is 0.5\n\
         sum f32 stored columns 8 2 | as-is 0.1\n\
         sum f32 stored mixed-columns nested 2 2 | as-is 0.7\n'''\n",
    )
    .expect("a target")
}

/// The cycles of a sum of f32 beyond those of a target without a table.
fn excess(dims: &str, reduced: &str, result: &str) -> f64 {
    let mut bare = target("cpu");
    bare.reductions = tilewright_target::reductions::Reductions::default();
    cycles(dims, reduced, result, &measured()) - cycles(dims, reduced, result, &bare)
}

/// The cycles of a sum of f32.
fn cycles(dims: &str, reduced: &str, result: &str, target: &Target) -> f64 {
    let text = format!(
        "HloModule one\nby {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT r = f32[] add(a, b)\n}}\nENTRY main {{\n  x = f32[{dims}] parameter(0)\n  \
         init = f32[] constant(0)\n  \
         ROOT y = f32[{result}] reduce(x, init), dimensions={{{reduced}}}, to_apply=by\n}}"
    );
    let module = module(&text);
    let (costs, _) = instruction_costs(&module, target);
    let reduce = costs.iter().find(|cost| module.opcode(cost.id) == Opcode::Reduce);
    reduce.expect("a reduce").cost.cycles
}

#[test]
fn what_a_table_measured_takes_longer_for_each_element() {
    // 5 cycles a nanosecond; 0.4 ns and 0.6 ns more than the fastest.
    let close = |excess: f64, expected: f64| assert!((excess - expected).abs() < 1e-6, "{excess}");
    close(excess("8192,4", "0", "4"), 32_768.0 * 0.4 * 5.0);
    close(excess("4096,8", "0", "8"), 0.0);
    close(excess("32,16,16,2,2", "0,2,3", "16,2"), 32_768.0 * 0.6 * 5.0);
    // Nobody measured these: rows, fewer elements.
    close(excess("4,8192", "1", "4"), 0.0);
    close(excess("4096,4", "0", "4"), 0.0);
}

#[test]
fn sums_of_columns_take_as_long_as_the_processors_that_they_keep_busy() {
    let many = target("xla-gpu-h100");
    let mut one = many.clone();
    one.processors = 1;
    let idle = |dims: &str, reduced: &str, result: &str| {
        cycles(dims, reduced, result, &many) - cycles(dims, reduced, result, &one)
    };
    let close = |excess: f64, expected: f64| {
        assert!((excess - expected).abs() < 1e-6 * expected.max(1.0), "{excess}, not {expected}");
    };
    // 4 * 4096 * 64 floats at 3352 bytes a nanosecond. 4 * 2 vectors of 32 results keep 8 of 264 busy.
    let crossing = 4.0 * 4.0 * 4096.0 * 64.0 / 3352.0;
    close(idle("4,4096,64", "1", "4,64"), crossing * (264.0 / 8.0 - 1.0));
    close(idle("4,64,64,64", "1,2", "4,64"), crossing * (264.0 / 8.0 - 1.0));
    // What lies within columns is summed later.
    close(idle("4,64,64,16,4", "1,2,4", "4,16"), crossing * (264.0 / 8.0 - 1.0));
    // One vector is not full.
    close(idle("4,4096,33", "1", "4,33"), crossing / 64.0 * 33.0 * (264.0 / 8.0 - 1.0));
    // The longer of two axes, with 4 vectors before it and 2 within it.
    close(idle("16,4,64,64", "0,2", "4,64"), crossing / 4.0 * (264.0 / 128.0 - 1.0));
    // As many vectors as processors; columns that the compiler divides; rows.
    close(idle("66,64,128", "1", "66,128"), 0.0);
    close(idle("4,4097,64", "1", "4,64"), 0.0);
    close(idle("64,4096", "1", "64"), 0.0);
}
