//! Rules: where they apply, what they lose and what they say; how their costs are weighed.

use crate::common::{changes, module, pipeline, short};
use tilewright_ir::{InstId, Op, Opcode, Value, Verified};
use tilewright_rewrite::numbers::{Class, FloatMode};
use tilewright_rewrite::pattern::{
    Match, Pattern, Replacement, Rule, RuleSet, abs, add, any, any_of, broadcast, constant, copy,
    cos, exp, log, multiply, negate, reduce, subtract, transpose,
};
use tilewright_rewrite::{
    OptimizeError, Optimized, Options, Outcome, Pass, PassSelection, Reason, optimize,
};

fn named(module: &Verified, name: &str) -> InstId {
    let entry = module.entry().expect("an entry");
    module.instructions(entry).find(|&id| module.name_of(id) == name).expect("an instruction")
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
    assert_eq!((note.outcome, note.place.text.as_str()), (Outcome::Done, "`l`"));
    assert!(note.text.starts_with("applied log(exp(x)) = x: "), "{}", note.text);
    assert!(note.text.contains("for these instructions on linear"), "{}", note.text);
}

/// Returns the notes about a rule in the default pipeline and float mode.
fn notes_on(rule: Rule) -> Vec<(Option<Reason>, String)> {
    let name = rule.name();
    let notes = optimized(&pipeline("default", "linear").with_pass(rule)).report.notes;
    let of_rule = notes.into_iter().filter(|note| note.pass == name);
    of_rule.map(|note| (note.reason, note.text)).collect()
}

#[test]
fn a_rule_without_effect_is_told_of() {
    let [(Some(Reason::Class), text)] = &notes_on(log_of_exp())[..] else { panic!("one note") };
    assert!(text.contains("--fast-math") && text.contains("with_class"), "{text}");
    let exact = || log_of_exp().with_class(Class::Exact);
    assert_eq!(notes_on(exact()).iter().filter(|(reason, _)| reason.is_some()).count(), 0);
    let [(Some(Reason::PutBack), text)] = &notes_on(exact().always())[..] else { panic!("one") };
    assert!(text.contains("`cleanup`"), "{text}");
    assert_eq!(log_of_exp().always().caveats(), [Reason::Class, Reason::PutBack]);
}

#[test]
fn a_rule_runs_where_a_list_names_it() {
    let listed = |names: &[&str]| {
        let passes = PassSelection::list(names.iter().copied());
        let options = pipeline("default", "linear").with_float_mode(FloatMode::Fast);
        optimized(&options.with_passes(passes).with_pass(log_of_exp().always()))
    };
    assert_eq!(listed(&["log-of-exp", "dce"]).module.instruction_count(), 2);
    assert_eq!(listed(&["dce"]).module.instruction_count(), 4);
}

/// `x * 1`, which `algebra` simplifies, beside `log(exp(x))`.
const BESIDE_TIMES_ONE: &str = "HloModule m
ENTRY main {
  x = f32[1024,512] parameter(0)
  y = f32[1024,512] parameter(1)
  e = f32[1024,512] exponential(x)
  l = f32[1024,512] log(e)
  n = f32[1024,512] negate(l)
  one = f32[] constant(1)
  ones = f32[1024,512] broadcast(one), dimensions={}
  p = f32[1024,512] multiply(y, ones)
  q = f32[1024,512] negate(p)
  ROOT r = (f32[1024,512], f32[1024,512]) tuple(n, q)
}";

/// How many products, and how many logarithms are left.
fn left(pipeline_name: &str, rule: Rule) -> [usize; 2] {
    let options = pipeline(pipeline_name, "linear").with_float_mode(FloatMode::Fast);
    let after = optimize(module(BESIDE_TIMES_ONE), &options.with_pass(rule)).expect("a module");
    let entry = after.module.entry().expect("an entry");
    let count = |opcode: Opcode| {
        after.module.instructions(entry).filter(|&id| after.module.opcode(id) == opcode).count()
    };
    [count(Opcode::Multiply), count(Opcode::Log)]
}

#[test]
fn the_cleanup_pipeline_keeps_its_result_whatever_is_added() {
    let never = || log_of_exp().when("be another", |_| false);
    assert_eq!(left("cleanup", never().always()), [0, 1]);
    assert_eq!(left("cleanup", never()), [0, 1]);
    assert_eq!(left("cleanup", log_of_exp()), [0, 0]);
    assert_eq!(left("cleanup", log_of_exp().always()), [0, 0]);
}

#[test]
fn the_default_pipeline_keeps_what_cost_gated_passes_had_a_part_in() {
    assert_eq!(left("default", log_of_exp()), [1, 0]);
    assert_eq!(left("default", log_of_exp().always()), [1, 1]);
}

#[test]
fn two_passes_of_one_name_are_an_error() {
    let named = |name| Rule::new(name, log(exp(any("x")))).replace(|found, _| found.value("x"));
    let error = |options: Options| {
        let error = optimize(module(LOG_OF_EXP), &options).expect_err("an error");
        assert!(matches!(error, OptimizeError::DuplicatePass(_)), "{error}");
        error.to_string()
    };
    let says = "there are two passes `dce`; give the added one another name (`Options::without` \
                leaves a built-in pass out)";
    assert_eq!(error(pipeline("default", "linear").with_pass(named("dce"))), says);
    let listed = pipeline("default", "linear").with_passes(PassSelection::list(["twice"]));
    let twice = error(listed.with_pass(named("twice")).with_pass(named("twice")));
    assert!(twice.starts_with("there are two passes `twice`"), "{twice}");
}

#[test]
fn a_rule_keeps_to_what_floats_may_become() {
    for mode in [FloatMode::Exact, FloatMode::Guarded] {
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

/// A rule that says `x * ones = x` by a condition, and the other way in the replacement.
#[test]
fn conditions_and_replacements_choose_the_order_of_operands() {
    let text = "HloModule m
ENTRY main {
  x = f32[8,128] parameter(0)
  p = f32[] parameter(1)
  q = f32[8,128] broadcast(p), dimensions={}
  one = f32[] constant(1)
  ones = f32[8,128] broadcast(one), dimensions={}
  m = f32[8,128] multiply(q, ones)
  ROOT r = (f32[8,128], f32[8,128]) tuple(m, x)
}";
    let module = module(text);
    let is_ones = |found: &Match<'_>| found.op("s").is_some_and(|op| matches!(op, Op::Constant(_)));
    let pattern = || multiply(broadcast(any("s")).named("b"), any("x"));
    let by_condition = Rule::new("times-one", pattern())
        .with_class(Class::Exact)
        .when("multiply by ones", is_ones)
        .replace(|found, _| found.value("x"));
    let by_replacement = Rule::new("times-one", pattern())
        .with_class(Class::Exact)
        .replace(move |found, _| if is_ones(found) { found.value("x") } else { None });
    for rule in [by_condition, by_replacement] {
        let patch = rule.patch_or_why(&module, named(&module, "m"), FloatMode::Exact);
        let patch = patch.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(patch.replaced(), [(named(&module, "m"), Value::Old(named(&module, "q")))]);
    }
}

/// Why a rule does not apply at `l` of `log(exp(x))`.
fn why_not(rule: &Rule) -> String {
    let module = module(LOG_OF_EXP);
    let why = rule.patch_or_why(&module, named(&module, "l"), FloatMode::Fast);
    why.expect_err("a reason").to_string()
}

#[test]
fn a_name_that_the_pattern_lacks_is_told() {
    let says = "`l`: the pattern has no name `y`, for which the rule asks: name it with \
                `any(\"y\")` or `.named(\"y\")`";
    assert_eq!(why_not(&log_of_exp().replace(|found, _| found.value("y"))), says);
    let condition = |found: &Match<'_>| found.array("y").is_some_and(|y| y.rank() == 2);
    assert_eq!(why_not(&log_of_exp().when("have two dims", condition)), says);
    // The notes of a pipeline tell it, too.
    let options = pipeline("default", "linear")
        .with_float_mode(FloatMode::Fast)
        .with_pass(log_of_exp().replace(|found, _| found.value("y")));
    let notes = optimized(&options).report.notes;
    let note = notes.iter().find(|note| note.pass == "log-of-exp").expect("a note");
    assert!(note.text.starts_with("the pattern has no name `y`"), "{}", note.text);
}

#[test]
fn what_is_no_replacement_is_refused() {
    let unplanned = log_of_exp().replace(|_, _| Some(Value::New(7)));
    let says = "`l`: the replacement is an instruction that the rule did not plan";
    assert_eq!(why_not(&unplanned), says);
    let of_unplanned = log_of_exp().replace(|_, new| new.plain(Opcode::Negate, [Value::New(7)]));
    assert_eq!(why_not(&of_unplanned), "`l`: it has no replacement here");
    let itself = log_of_exp().replace(|found, _| Some(found.root().into()));
    assert_eq!(why_not(&itself), "`l`: the replacement is the expression itself");
}

#[test]
fn a_class_of_a_place_is_at_most_that_of_the_rule() {
    let rule = log_of_exp().with_class(Class::Bounded).with_class_of(|_| Some(Class::FastMath));
    let says =
        "`l`: a rewrite of class `fast-math` is more than the rule says that it does at most";
    assert_eq!(why_not(&rule), says);
}

const ATTACHED: &str = "HloModule m
ENTRY main {
  x = f32[1024,512] parameter(0)
  y = f32[1024,512] parameter(1)
  e = f32[1024,512] exponential(x), sharding={replicated}
  one = f32[] constant(1), sharding={replicated}
  ones = f32[1024,512] broadcast(one), dimensions={}
  a = f32[1024,512] add(e, ones)
  l = f32[1024,512] log(x), sharding={replicated}, frontend_attributes={mine=\"1\"}
  c = f32[1024,512] cosine(x), control-predecessors={e}
  ROOT r = (f32[1024,512], f32[1024,512], f32[1024,512]) tuple(a, l, c)
}";

#[test]
fn what_the_root_carries_is_not_lost() {
    let module = module(ATTACHED);
    let lost = "it carries a sharding, control dependencies or other attributes that a rewrite \
                would lose";
    let why = |rule: &Rule, at: &str| {
        let why = rule.patch_or_why(&module, named(&module, at), FloatMode::Fast);
        why.map_err(|why| why.to_string())
    };
    fn negated(found: &Match<'_>, new: &mut Replacement<'_>) -> Option<Value> {
        new.plain(Opcode::Negate, [found.get("x")?])
    }
    fn keeps(found: &Match<'_>, new: &mut Replacement<'_>) -> Option<Value> {
        let value = negated(found, new)?;
        new.keep_extras(value)
    }
    let at_l = Err(format!("`l`: {lost}"));
    // Whatever the pattern is of.
    for pattern in [log(any("x")), any_of([Opcode::Log]).named("x"), any("x")] {
        let rule = Rule::new("rule", pattern).replace(negated);
        assert_eq!(why(&rule, "l").map(|_| ()), at_l);
    }
    // A pattern that matches it must have a rule that keeps it.
    let rule = Rule::new("rule", log(any("x")).with_extras());
    assert_eq!(why(&rule.clone().replace(negated), "l").map(|_| ()), at_l);
    let patch = why(&rule.replace(keeps), "l").unwrap_or_else(|why| panic!("{why}"));
    let mut changed = module.clone().into_inner();
    let made = patch.apply(&mut changed).expect("edits");
    let before = module.extras(named(&module, "l")).expect("extras");
    let after = changed.extras(made[0]).expect("extras");
    assert_eq!(after.sharding, before.sharding);
    assert_eq!(after.frontend_attributes, before.frontend_attributes);
    // An instruction with control predecessors is not moved.
    let of_cosine = Rule::new("rule", cos(any("x")).with_extras()).replace(keeps);
    assert_eq!(why(&of_cosine, "c").map(|_| ()), Err("`c`: it has no replacement here".to_owned()));
}

#[test]
fn what_stays_may_carry_what_it_will() {
    let module = module(ATTACHED);
    let rule = |exp: Pattern, keeps: bool| {
        Rule::new("rule", add(exp.named("e"), broadcast(constant("one")).named("ones"))).replace(
            move |found, new| {
                let of = if keeps { "e" } else { "ones" };
                new.plain(Opcode::Negate, [found.get(of)?])
            },
        )
    };
    let why = |rule: Rule| {
        let why = rule.patch_or_why(&module, named(&module, "a"), FloatMode::Fast);
        why.map(|_| ()).map_err(|why| why.instruction)
    };
    // The constant is read and stays; the exponential may go.
    assert_eq!(why(rule(exp(any("x")), true)), Err("e".to_owned()));
    assert_eq!(why(rule(exp(any("x")).with_extras(), true)), Ok(()));
    assert_eq!(why(rule(exp(any("x")).with_extras(), false)), Err("e".to_owned()));
    assert_eq!(why(rule(any("e"), true)), Ok(()));
}

#[test]
fn elementwise_ops_lie_as_their_operands() {
    let text = "HloModule m
ENTRY main {
  x = f32[8,128]{0,1} parameter(0)
  a = f32[8,128]{0,1} abs(x)
  e = f32[8,128]{0,1} exponential(a)
  l = f32[8,128]{0,1} log(e)
  t = f32[8,128]{1,0} copy(x)
  f = f32[8,128]{1,0} exponential(t)
  ROOT r = (f32[8,128]{0,1}, f32[8,128]{1,0}) tuple(l, f)
}";
    let module = module(text);
    let rule = Rule::new("rule", log(exp(abs(any("x")))))
        .replace(|found, new| new.plain(Opcode::Abs, [found.get("x")?]));
    let patch = rule.patch_or_why(&module, named(&module, "l"), FloatMode::Fast);
    let patch = patch.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(patch.planned()[0].shape, *module.shape(named(&module, "l")));
    // No value is moved in memory without a word.
    let wrong = Rule::new("rule", exp(copy(any("x")))).replace(|found, new| {
        let negated = new.plain(Opcode::Negate, [found.get("x")?])?;
        new.plain(Opcode::Negate, [negated])
    });
    let why = wrong.patch_or_why(&module, named(&module, "f"), FloatMode::Fast);
    assert_eq!(why.expect_err("a layout").why, "the replacement has another shape");
    let moves: [fn(InstId, &mut Replacement<'_>) -> Option<Value>; 2] =
        [|x, new| new.reshape(x, &[8, 128]), |x, new| new.transpose(x, &[0, 1])];
    for of in moves {
        let rule = Rule::new("rule", exp(copy(any("x"))))
            .replace(move |found, new| of(found.get("x")?, new));
        let why = rule.patch_or_why(&module, named(&module, "f"), FloatMode::Fast);
        assert_eq!(why.expect_err("a layout").why, "it has no replacement here");
    }
}

/// The cycles that a rule is judged by at an instruction, before and after, if it does not pay; and
/// whether it was applied.
fn judged(text: &str, rule: Rule) -> (bool, String) {
    let name = Pass::name(&rule);
    let options = pipeline("default", "linear")
        .with_float_mode(FloatMode::Fast)
        .with_passes(PassSelection::list([name]))
        .with_pass(rule);
    let after = optimize(module(text), &options).expect("an optimised module");
    let notes: Vec<String> = after.report.notes.iter().map(ToString::to_string).collect();
    (changes(&after, name) > 0, notes.join("\n"))
}

const TWO_TRANSPOSES: &str = "HloModule m
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[1024,512] parameter(0)
  y = f32[1024,512] parameter(1)
  i = f32[] constant(0)
  tx = f32[512,1024] transpose(x), dimensions={1,0}
  ty = f32[512,1024] transpose(y), dimensions={1,0}
  a = f32[512,1024] add(tx, ty)
  s = f32[512] reduce(a, i), dimensions={1}, to_apply=add_f32
  ROOT n = f32[512] negate(s)
}";

/// The sum of two transposed arrays, without transposes.
fn before_transposes() -> Rule {
    let sum = add(transpose(any("x")).named("tx"), transpose(any("y")).named("ty"));
    Rule::new("before-transposes", reduce(sum, any("i")).named("s")).replace(|found, new| {
        let Op::Reduce(attrs) = found.op("s")? else { return None };
        let sum = new.plain(Opcode::Add, [found.get("x")?, found.get("y")?])?;
        new.reduce(sum, found.get("i")?, &[0], attrs.to_apply)
    })
}

#[test]
fn what_goes_below_the_operands_counts_as_saved() {
    let (applied, goes) = judged(TWO_TRANSPOSES, before_transposes());
    assert!(applied, "{goes}");
    // Transposes that another instruction reads stay.
    let read = TWO_TRANSPOSES.replace(
        "ROOT n = f32[512] negate(s)",
        "ROOT n = (f32[512], f32[512,1024], f32[512,1024]) tuple(s, tx, ty)",
    );
    let (_, stays) = judged(&read, before_transposes());
    assert!(cycles_before(&goes) > cycles_before(&stays), "{goes}\n{stays}");
}

/// The cycles of what a note weighs, before the rewrite.
fn cycles_before(notes: &str) -> u64 {
    let digits = notes.split("instead of ").nth(1).and_then(|rest| rest.split(' ').next());
    digits.and_then(|cycles| cycles.parse().ok()).unwrap_or_else(|| panic!("{notes}"))
}

#[test]
fn what_stays_does_not_count_as_saved() {
    // Two transposes, one of which the pattern names and one of which it binds as any value.
    let text = "HloModule m
ENTRY main {
  a = f32[1024,512] parameter(0)
  b = f32[1024,512] parameter(1)
  ta = f32[512,1024] transpose(a), dimensions={1,0}
  tb = f32[512,1024] transpose(b), dimensions={1,0}
  ROOT s = f32[512,1024] subtract(ta, tb)
}";
    let costs = |y: Pattern, reads: &'static str| {
        let pattern = subtract(transpose(any("x")), y).named("s");
        let rule = Rule::new("again", pattern).replace(move |found, new| {
            let mut x = found.value("x")?;
            for _ in 0..3 {
                x = new.transpose(x, &[1, 0])?;
            }
            let y = match reads {
                "y" => found.value("y")?,
                other => new.transpose(found.get(other)?, &[1, 0])?,
            };
            new.plain(Opcode::Subtract, [x, y])
        });
        let (applied, notes) = judged(text, rule);
        assert!(!applied, "{notes}");
        cycles_before(&notes)
    };
    // `tb` is read by the new instruction, whatever matched it.
    let stays = costs(any("y"), "y");
    assert_eq!(stays, costs(transpose(any("z")).named("y"), "y"));
    // Here it goes.
    assert!(costs(transpose(any("z")), "z") > stays);
}

#[test]
fn a_set_of_rules_is_gated_if_one_of_them_is() {
    let set = |rule: Rule| RuleSet::new("set", "a set", [rule]);
    assert!(set(log_of_exp()).is_cost_gated());
    assert!(!set(log_of_exp().always()).is_cost_gated());
    let run = |rule: Rule| {
        let options = pipeline("default", "linear").with_float_mode(FloatMode::Fast);
        optimized(&options.with_passes(PassSelection::list(["set"])).with_pass(set(rule)))
    };
    let after = run(log_of_exp());
    assert_eq!(changes(&after, "set"), 1);
    let note = after.report.notes.first().expect("a note");
    assert!(note.text.starts_with("applied log(exp(x)) = x: "), "{}", note.text);
    assert!(run(log_of_exp().always()).report.notes.is_empty());
    // A rule that does not pay is not applied.
    let worse = Rule::new("worse", log(any("x")).named("l")).replace(|found, new| {
        let x = new.transpose(found.get("x")?, &[1, 0])?;
        let x = new.transpose(x, &[1, 0])?;
        new.plain(Opcode::Log, [x])
    });
    assert_eq!(changes(&run(worse), "set"), 0);
    // Rules that are always applied go before those that are gated.
    let first = Rule::new("first", negate(any("x")))
        .always()
        .with_class(Class::Exact)
        .replace(|found, new| new.plain(Opcode::Abs, [found.get("x")?]));
    let options = pipeline("default", "linear").with_float_mode(FloatMode::Fast);
    let options = options.with_passes(PassSelection::list(["set"]));
    let both = RuleSet::new("set", "a set", [log_of_exp(), first]);
    assert_eq!(changes(&optimized(&options.with_pass(both)), "set"), 2);
}

#[test]
fn rules_of_a_set_have_names_and_laws_of_their_own() {
    use tilewright_rewrite::canonicalize::{algebra, broadcast, convert, reshape, transpose};
    let sets = [
        &*algebra::ALGEBRA,
        &*broadcast::BROADCAST,
        &*convert::CONVERT,
        &*reshape::RESHAPE,
        &*transpose::TRANSPOSE,
    ];
    for set in sets {
        let mut names: Vec<&str> = set.rules().iter().map(Pass::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), set.rules().len(), "{set:?}");
        assert!(set.rules().iter().all(|rule| !rule.law().is_empty()), "{set:?}");
        assert!(!set.is_cost_gated());
    }
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
        &*reduce_through_transpose::REDUCE_THROUGH_TRANSPOSE,
        &*reshape::RESHAPE,
        &*transpose::TRANSPOSE,
    ];
    let single = [&*reduce_of_reduce::REDUCE_OF_REDUCE, &*reduce_of_broadcast::REDUCE_OF_BROADCAST];
    for rule in sets.into_iter().flat_map(RuleSet::rules).chain(single) {
        let found = (0..40).filter(|&seed| rule.instance(seed).is_some()).count();
        assert!(found > 0, "{rule:?}: no instance");
    }
}
