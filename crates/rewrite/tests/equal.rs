//! The computations that count as equal.

use crate::common::module;
use tilewright_ir::Verified;
use tilewright_rewrite::analysis::equivalence::representatives;

/// Returns the representative of each computation but the entry, by name.
fn represented(module: &Verified) -> Vec<(String, String)> {
    let name = |id| module.computation(id).name().to_owned();
    let same = representatives(module);
    let others = module.computations().iter().filter(|&&id| module.entry() != Some(id));
    others.map(|&id| (name(id), name(same[&id]))).collect()
}

/// Checks whether two computations, called by nobody, count as the same.
fn same(first: &str, second: &str) -> bool {
    let text = format!(
        "HloModule two\n{first}\n{second}\nENTRY main {{\n  ROOT x = f32[] parameter(0)\n}}"
    );
    let pairs = represented(&module(&text));
    assert_eq!(pairs.len(), 2);
    assert_eq!(pairs[0].0, pairs[0].1, "the first stands for itself");
    pairs[1].1 == pairs[0].0
}

const SUM: &str = "f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}";

#[test]
fn names_and_metadata_do_not_matter() {
    let other = "g {
  Arg_0.1 = f32[] parameter(0), metadata={op_name=\"x\"}
  Arg_1.2 = f32[] parameter(1)
  ROOT add.3 = f32[] add(Arg_0.1, Arg_1.2), metadata={op_name=\"y\" source_line=3}
}";
    assert!(same(SUM, other));
}

#[test]
fn ops_types_operands_and_roots_do() {
    let g = |body: &str| format!("g {{\n{body}\n}}");
    let parameters = "  a = f32[] parameter(0)\n  b = f32[] parameter(1)";
    let others = [
        format!("{parameters}\n  ROOT r = f32[] multiply(a, b)"),
        format!("{parameters}\n  ROOT r = f32[] add(a, a)"),
        format!("{parameters}\n  s = f32[] add(a, b)\n  ROOT r = f32[] negate(s)"),
        format!("{parameters}\n  s = f32[] add(a, b)"),
        "  a = f64[] parameter(0)\n  b = f64[] parameter(1)\n  ROOT r = f64[] add(a, b)".into(),
    ];
    let expected = [false, false, false, true, false];
    for (other, expected) in others.iter().zip(expected) {
        assert_eq!(same(SUM, &g(other)), expected, "{other}");
    }
    let root_first =
        "  ROOT a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  r = f32[] add(a, b)";
    assert!(!same(SUM, &g(root_first)));
}

#[test]
fn constants_are_compared_by_their_bits() {
    let f = |name: &str, value: &str| format!("{name} {{\n  ROOT c = f32[] constant({value})\n}}");
    assert!(same(&f("f", "1"), &f("g", "1")));
    assert!(!same(&f("f", "0"), &f("g", "-0")));
    assert!(!same(&f("f", "nan"), &f("g", "nan(0x1)")));
}

#[test]
fn what_is_attached_makes_a_computation_unlike_all_others() {
    let f = |name: &str| {
        format!(
            "{name} {{\n  a = f32[] parameter(0)\n  ROOT r = f32[] negate(a), sharding={{replicated}}\n}}"
        )
    };
    assert!(!same(&f("f"), &f("g")));
}

#[test]
fn a_thread_of_its_own_makes_a_computation_unlike_all_others() {
    let threads = |name: &str| {
        format!("{name} {{\n  ROOT a = f32[] parameter(0)\n}}, execution_thread=\"host\"")
    };
    assert!(!same(&threads("f"), &threads("g")));
}

#[test]
fn callees_count_as_what_stands_for_them() {
    let text = format!(
        "HloModule nested
{SUM}
{}
f_caller {{
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={{0}}, to_apply=f
}}
g_caller {{
  y = f32[2] parameter(0)
  nought = f32[] constant(0)
  ROOT r = f32[] reduce(y, nought), dimensions={{0}}, to_apply=g
}}
ENTRY main {{
  ROOT x = f32[] parameter(0)
}}",
        SUM.replace("f {", "g {")
    );
    let expected = [("f", "f"), ("g", "f"), ("f_caller", "f_caller"), ("g_caller", "f_caller")];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(represented(&module(&text)), expected);
}

#[test]
fn large_computations_are_not_compared() {
    let long = |name: &str, length: usize| {
        let ops = (1..length).map(|i| format!("  v{i} = f32[] negate(v{})\n", i - 1));
        format!("{name} {{\n  v0 = f32[] parameter(0)\n{}}}", ops.collect::<String>())
    };
    assert!(same(&long("f", 64), &long("g", 64)));
    assert!(!same(&long("f", 65), &long("g", 65)));
}
