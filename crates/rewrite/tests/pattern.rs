//! Patterns: what they match, in which order, and what they say where they do not.

mod common;

use common::{module, pipeline, short};
use tilewright_ir::{InstId, Opcode, Verified};
use tilewright_rewrite::numbers::{Class, FloatMode};
use tilewright_rewrite::pattern::{
    Pattern, Rule, RuleSet, add, any, exp, log, multiply, negate, reduce, reshape, select, subtract,
};
use tilewright_rewrite::{Optimized, Options, PassSelection, Verdict, optimize};

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

/// What the names of a pattern stand for at an instruction.
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

#[test]
fn a_pattern_is_printed_as_the_expression_that_it_matches() {
    let pattern = reduce(reshape(any("x")).named("r").used_once(), any("init")).named("sum");
    assert_eq!(pattern.to_string(), "sum: reduce(r: reshape(x), init)");
    assert_eq!(add(negate(any("x")), any("y")).to_string(), "add(negate(x), y)");
}

/// `log(exp(x)) = x`: on `x` of 2 MiB, which pays.
fn log_of_exp() -> Rule {
    Rule::new("log-of-exp", log(exp(any("x"))))
        .with_law("log(exp(x)) = x")
        .with_class(Class::FastMath)
        .replace(|found, _| found.value("x"))
}

const LOG_OF_EXP: &str = "HloModule m
ENTRY main {
  x = f32[1024,512] parameter(0)
  e = f32[1024,512] exponential(x)
  l = f32[1024,512] log(e)
  ROOT n = f32[1024,512] negate(l)
}";

fn optimized(options: &Options) -> Optimized {
    optimize(module(LOG_OF_EXP), options).expect("an optimised module")
}

#[test]
fn a_rule_runs_in_a_pipeline_and_is_told_of() {
    let options =
        pipeline("default", "linear").with_float_mode(FloatMode::Fast).with_pass(log_of_exp());
    let after = optimized(&options);
    let opcodes: Vec<Opcode> = {
        let entry = after.module.entry().expect("an entry");
        after.module.instructions(entry).map(|id| after.module.opcode(id)).collect()
    };
    assert_eq!(opcodes, [Opcode::Parameter, Opcode::Negate], "{}", short(&after.module));
    let notes = &after.report.notes;
    let note = notes.iter().find(|note| note.pass == "log-of-exp").expect("a note");
    assert_eq!((note.verdict, note.place.as_str()), (Verdict::Done, "`l`"));
    assert!(note.text.starts_with("applied log(exp(x)) = x: "), "{}", note.text);
    assert!(note.text.contains("for these instructions on linear"), "{}", note.text);
}

#[test]
fn a_rule_runs_where_a_list_names_it() {
    let listed = |names: &[&str]| {
        let passes = PassSelection::list(names.iter().copied());
        let options = pipeline("default", "linear").with_float_mode(FloatMode::Fast);
        optimized(&options.with_passes(passes).with_pass(log_of_exp().always()))
    };
    assert_eq!(listed(&["log-of-exp", "dce"]).module.instruction_count(), 2);
    assert!(listed(&["dce"]).report.unchanged || listed(&["dce"]).module.instruction_count() == 4);
}

#[test]
fn a_rule_keeps_to_what_floats_may_become() {
    for mode in [FloatMode::Exact, FloatMode::Regroup] {
        let options = pipeline("default", "linear").with_float_mode(mode).with_pass(log_of_exp());
        assert!(optimized(&options).report.unchanged, "{mode:?}");
    }
    let module = module(LOG_OF_EXP);
    let why = log_of_exp().patch_or_why(&module, named(&module, "l"), FloatMode::Exact);
    let why = why.expect_err("a class").to_string();
    assert_eq!(why, "`l`: a rewrite of class `fast-math` is not allowed");
}

#[test]
fn a_condition_is_told_where_it_fails() {
    let rule = log_of_exp().when("have one row", |found| {
        found.array("x").is_some_and(|shape| shape.dims().first() == Some(&1))
    });
    let module = module(LOG_OF_EXP);
    let why = rule.patch_or_why(&module, named(&module, "l"), FloatMode::Fast);
    assert_eq!(why.expect_err("a condition").to_string(), "`l`: the expression must have one row");
}

#[test]
fn a_replacement_of_another_shape_is_refused() {
    let rule = Rule::new("wrong", log(exp(any("x"))))
        .with_class(Class::Exact)
        .replace(|found, new| new.reshape(found.get("x")?, &[1024 * 512]));
    let module = module(LOG_OF_EXP);
    let why = rule.patch_or_why(&module, named(&module, "l"), FloatMode::Exact);
    let why = why.expect_err("another shape").to_string();
    assert_eq!(why, "`l`: the replacement has another shape");
}

#[test]
fn every_rule_of_this_crate_has_instances_that_it_matches() {
    use tilewright_rewrite::canonicalize::transpose;
    use tilewright_rewrite::canonicalize::{
        algebra, broadcast, convert, reduce_of_reduce, reshape,
    };
    use tilewright_rewrite::reshape_motion::{reduce_of_broadcast, reduce_through_transpose};
    let sets = [
        &*algebra::ALGEBRA,
        &*broadcast::BROADCAST,
        &*convert::CONVERT,
        &*reshape::RESHAPE,
        &*transpose::TRANSPOSE,
    ];
    let single = [
        &*reduce_of_reduce::REDUCE_OF_REDUCE,
        &*reduce_of_broadcast::REDUCE_OF_BROADCAST,
        &*reduce_through_transpose::REDUCE_THROUGH_TRANSPOSE,
    ];
    for rule in sets.into_iter().flat_map(RuleSet::rules).chain(single) {
        let found = (0..40).filter(|&seed| rule.instance(seed).is_some()).count();
        assert!(found > 0, "{rule:?}: no instance");
    }
}
