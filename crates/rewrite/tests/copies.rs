//! Copies of shared values: the target's table decides, by what is computed.

use tilewright_target::reductions::Source;

use crate::common::forms::copying;
use crate::common::{changes, module, optimized, passes};

/// The instructions that compute a value `d` of a kind (functions cost too much to be computed twice), from `x`, `y` and small arrays.
const VALUES: [(Source, &str); 8] = [
    (Source::Shared, "d = f32[64,1024] multiply(x, x)"),
    (Source::SharedArrays, "d = f32[64,1024] subtract(x, y)"),
    (
        Source::SharedScalar,
        "c = f32[] parameter(2)\n  s = f32[64,1024] broadcast(c), dimensions={}\n  d = f32[64,1024] add(x, s)",
    ),
    (
        Source::SharedRow,
        "c = f32[1024] parameter(2)\n  s = f32[64,1024] broadcast(c), dimensions={1}\n  d = f32[64,1024] add(x, s)",
    ),
    (
        Source::SharedColumn,
        "c = f32[64] parameter(2)\n  s = f32[64,1024] broadcast(c), dimensions={0}\n  d = f32[64,1024] add(x, s)",
    ),
    (
        Source::SharedChoice,
        "p = pred[64,1024] compare(x, x), direction=GT\n  d = f32[64,1024] select(p, x, x)",
    ),
    (Source::SharedNarrow, "n = bf16[64,1024] parameter(2)\n  d = f32[64,1024] convert(n)"),
    (
        Source::SharedRounded,
        "n = bf16[64,1024] parameter(2)\n  nn = bf16[64,1024] multiply(n, n)\n  d = f32[64,1024] convert(nn)",
    ),
];

/// A module in which two sums and a product read `d`.
fn text(value: &str) -> String {
    format!(
        "HloModule m\n\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}}\n\n\
         ENTRY main {{\n  x = f32[64,1024] parameter(0)\n  y = f32[64,1024] parameter(1)\n  {value}\n  \
         zero = f32[] constant(0)\n  sum = f32[64] reduce(d, zero), dimensions={{1}}, to_apply=add\n  \
         dd = f32[64,1024] multiply(d, d)\n  \
         squares = f32[64] reduce(dd, zero), dimensions={{1}}, to_apply=add\n  \
         out = f32[64,1024] multiply(d, y)\n  \
         ROOT all = (f32[64], f32[64], f32[64,1024]) tuple(sum, squares, out)\n}}\n"
    )
}

/// Whether the value is copied where sums of values of these kinds are faster so.
fn is_copied(text: &str, kinds: &[Source]) -> bool {
    let mut options = passes(&["rematerialize"], "cpu", false);
    options.target = copying(kinds);
    options.target.vector_memory_bytes = 1 << 16;
    changes(&optimized(&module(text), &options), "rematerialize") > 0
}

#[test]
fn a_value_is_copied_where_its_kind_is_measured_so() {
    for (kind, value) in VALUES {
        let text = text(value);
        assert!(is_copied(&text, &[kind]), "{}", kind.name());
        let others: Vec<Source> = Source::ALL.iter().copied().filter(|&one| one != kind).collect();
        assert!(!is_copied(&text, &others), "without {}", kind.name());
    }
}

#[test]
fn the_dearest_part_gives_the_kind() {
    let text = text(
        "c = f32[1024] parameter(2)\n  s = f32[64,1024] broadcast(c), dimensions={1}\n  \
         n = bf16[64,1024] parameter(3)\n  w = f32[64,1024] convert(n)\n  \
         d = f32[64,1024] subtract(w, s)",
    );
    assert!(is_copied(&text, &[Source::SharedNarrow]));
    assert!(!is_copied(&text, &[Source::Shared, Source::SharedRow]));
}

#[test]
fn what_stands_between_a_value_and_its_sum_counts_too() {
    let text = text("d = f32[64,1024] multiply(x, x)")
        .replace("dd = f32[64,1024] multiply(d, d)", "dd = f32[64,1024] exponential(d)");
    assert!(!is_copied(&text, &[Source::Shared]));
    assert!(is_copied(&text, &[Source::Shared, Source::SharedFunction]));
}

#[test]
fn ops_that_nobody_measured_are_not_copied() {
    let text = text("d = f32[64,1024] floor(x)");
    assert!(!is_copied(&text, Source::ALL));
}
