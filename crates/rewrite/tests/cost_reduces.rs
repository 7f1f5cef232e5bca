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
    let text = format!(
        "HloModule one\nby {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT r = f32[] add(a, b)\n}}\nENTRY main {{\n  x = f32[{dims}] parameter(0)\n  \
         init = f32[] constant(0)\n  \
         ROOT y = f32[{result}] reduce(x, init), dimensions={{{reduced}}}, to_apply=by\n}}"
    );
    let module = module(&text);
    let of = |target: &Target| {
        let (costs, _) = instruction_costs(&module, target);
        let reduce = costs.iter().find(|cost| module.opcode(cost.id) == Opcode::Reduce);
        reduce.expect("a reduce").cost.cycles
    };
    let mut bare = target("cpu");
    bare.reductions = tilewright_target::reductions::Reductions::default();
    of(&measured()) - of(&bare)
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
