//! Patterns: which expressions they match, in which order, and the reasons why others do not match.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::module;
use tilewright_ir::{InstId, Verified};
use tilewright_rewrite::numbers::{Class, FloatMode};
use tilewright_rewrite::pattern::{
    Pattern, Rule, add, any, exp, multiply, negate, reduce, reshape, select, subtract,
};

const TEXT: &str = "HloModule m
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,128] parameter(0)
  y = f32[8,128] parameter(1)
  zero = f32[] constant(0)
  r = f32[1024] reshape(x)
  sum = f32[] reduce(r, zero), dimensions={0}, to_apply=add_f32
  minus = f32[8,128] negate(x)
  kept = f32[8,128] negate(y), sharding={replicated}
  first = f32[8,128] add(minus, y)
  second = f32[8,128] add(y, minus)
  square = f32[8,128] multiply(x, x)
  mixed = f32[8,128] multiply(x, y)
  both = f32[8,128] add(square, mixed)
  sharded = f32[8,128] subtract(kept, x)
  ROOT all = (f32[], f32[8,128], f32[8,128], f32[8,128], f32[8,128]) tuple(sum, first, second, both, sharded)
}";

fn named(module: &Verified, name: &str) -> InstId {
    let entry = module.entry().expect("an entry");
    module.instructions(entry).find(|&id| module.name_of(id) == name).expect("an instruction")
}

/// Returns the values that the names of a pattern stand for at an instruction.
fn bound(pattern: &Pattern, at: &str, names: &[&str]) -> Option<Vec<String>> {
    let module = module(TEXT);
    let found = pattern.matches(&module, named(&module, at))?;
    let name = |name: &&str| module.name_of(found.get(name).expect("a name")).to_owned();
    Some(names.iter().map(name).collect())
}

fn why(pattern: &Pattern, at: &str) -> String {
    let module = module(TEXT);
    let mismatch = pattern.matches_or_why(&module, named(&module, at)).expect_err("a mismatch");
    mismatch.to_string()
}

#[test]
fn names_stand_for_the_values_in_their_places() {
    let pattern = reduce(reshape(any("x")).named("r").used_once(), any("init"));
    assert_eq!(bound(&pattern, "sum", &["x", "r", "init"]).unwrap(), ["x", "r", "zero"]);
}

#[test]
fn commutative_ops_match_in_either_order() {
    let pattern = add(negate(any("x")), any("y"));
    assert_eq!(bound(&pattern, "first", &["x", "y"]).unwrap(), ["x", "y"]);
    assert_eq!(bound(&pattern, "second", &["x", "y"]).unwrap(), ["x", "y"]);
    // A difference is none.
    let pattern = subtract(any("x"), negate(any("y")).with_extras());
    assert_eq!(bound(&pattern, "sharded", &[]), None);
}

#[test]
fn an_order_that_fails_later_is_given_up_for_the_other() {
    // `x * y` fits the first factor of either product; only one way leaves `x * x` to the other.
    let (x, y) = (|| any("x"), || any("y"));
    let pattern = add(multiply(y(), x()), multiply(x(), x()));
    assert_eq!(bound(&pattern, "both", &["x", "y"]).unwrap(), ["x", "y"]);
}

#[test]
fn one_name_is_one_value() {
    let square = multiply(any("x"), any("x"));
    assert_eq!(bound(&square, "square", &["x"]).unwrap(), ["x"]);
    assert_eq!(bound(&square, "mixed", &[]), None);
}

#[test]
fn a_mismatch_says_where_and_how() {
    let of_reshape = reduce(reshape(any("x")), any("init"));
    assert_eq!(why(&of_reshape, "first"), "`first`: it is `add`, not `reduce`");
    let of_exp = reduce(exp(any("x")), any("init"));
    assert_eq!(why(&of_exp, "sum"), "`r`: it is `reshape`, not `exponential`");
    let unused = add(negate(any("x")).used_once(), any("y"));
    assert_eq!(why(&unused, "first"), "`minus`: it must have no other use");
    let attached = subtract(negate(any("x")), any("y"));
    let says = why(&attached, "sharded");
    assert!(says.starts_with("`kept`: it carries a sharding"), "{says}");
    let same = multiply(any("x"), any("x"));
    assert_eq!(why(&same, "mixed"), "`y`: it is not the value that `x` stands for, `x`");
    let three = select(any("p"), any("x"), any("y"));
    assert_eq!(why(&three, "first"), "`first`: it is `add`, not `select`");
}

/// Among the mismatches in all orders, the one reported is that before which most was matched.
#[test]
fn a_mismatch_behind_two_commutative_ops_is_the_farthest() {
    let text = "HloModule m
ENTRY main {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  e = f32[] exponential(p)
  m = f32[] multiply(p, q)
  ROOT r = f32[] multiply(m, e)
}";
    // `m` is no exponential, but in the other order everything matches up to its operands.
    let pattern = multiply(exp(any("x")), multiply(negate(any("y")), any("z")));
    let module = module(text);
    let why = pattern.matches_or_why(&module, named(&module, "r")).expect_err("a mismatch");
    assert_eq!(why.to_string(), "`p`: it is `parameter`, not `negate`");
}

#[test]
fn a_search_ends_after_so_many_steps() {
    // Two values at each depth, and their two products at the next.
    let text = |depth: usize| {
        let level = |k: usize| format!("  v{} = f32[] multiply(v{k}, w{k})\n", k + 1);
        let other = |k: usize| format!("  w{} = f32[] multiply(w{k}, v{k})\n", k + 1);
        let levels: String = (0..depth).map(|k| level(k) + &other(k)).collect();
        format!(
            "HloModule m\nENTRY main {{\n  v0 = f32[] parameter(0)\n  w0 = f32[] parameter(1)\n\
             {levels}  ROOT r = f32[] multiply(v{depth}, w{depth})\n}}"
        )
    };
    fn tree(depth: usize) -> Pattern {
        if depth == 0 { negate(any("never")) } else { multiply(tree(depth - 1), tree(depth - 1)) }
    }
    let deep = module(&text(14));
    let why = tree(15).matches_or_why(&deep, named(&deep, "r")).expect_err("a mismatch");
    assert_eq!(why.why, "it is `parameter`, not `negate`");
    // A rule that refuses every match is asked only a limited number of times.
    fn all(depth: usize, names: &mut impl Iterator<Item = &'static str>) -> Pattern {
        if depth == 0 {
            return any(names.next().expect("a name"));
        }
        let [a, b] = [all(depth - 1, names), all(depth - 1, names)];
        multiply(a, b)
    }
    let mut names = (0..).map(|k: usize| -> &'static str { format!("n{k}").leak() });
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let rule =
        Rule::new("never", all(4, &mut names)).with_class(Class::Exact).when("be", move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        });
    let why = rule.patch_or_why(&deep, named(&deep, "r"), FloatMode::Exact);
    assert_eq!(why.expect_err("a condition").why, "the expression must be");
    let asked = asked.load(Ordering::Relaxed);
    assert!((500..4096).contains(&asked), "asked {asked} times");
}

#[test]
fn a_pattern_is_printed_as_the_expression_that_it_matches() {
    let pattern = reduce(reshape(any("x")).named("r").used_once(), any("init")).named("sum");
    assert_eq!(pattern.to_string(), "sum: reduce(r: reshape(x), init)");
    assert_eq!(add(negate(any("x")), any("y")).to_string(), "add(negate(x), y)");
}
