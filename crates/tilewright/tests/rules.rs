//! Every rule of the optimiser, tried on modules that it matches; and a wrong one, which is
//! found.

use tilewright::ir::reducer::Monoid;
use tilewright::ir::{ArrayLiteral, Data, ElementType, Literal, Op, Opcode};
use tilewright::rewrite::numbers::Class;
use tilewright::rewrite::pattern::{
    Rule, add, any, any_of, broadcast, constant, multiply, negate, reduce, subtract,
};
use tilewright::try_rule;

#[test]
fn the_rules_of_the_optimiser_hold() {
    let rules: Vec<&Rule> = tilewright::passes().flat_map(tilewright::Pass::rules).collect();
    assert!(rules.len() > 30, "{rules:?}");
    for rule in rules {
        let trial = try_rule(rule, 0..30).expect("a trial");
        let [before, after] = trial.wrong.clone().unwrap_or_default();
        assert!(trial.holds(), "{rule:?}, tried {}:\n{before}\n{after}", trial.tried);
    }
}

#[test]
fn a_wrong_rule_is_found() {
    // x - y = y - x holds for x = y alone.
    let rule = Rule::new("turned", subtract(any("x"), any("y")))
        .with_class(Class::Bounded)
        .when("not be turned already", |found| found.get("x") < found.get("y"))
        .replace(|found, new| {
            new.plain(tilewright::ir::Opcode::Subtract, [found.get("y")?, found.get("x")?])
        });
    let trial = try_rule(&rule, 0..20).expect("a trial");
    let [before, after] = trial.wrong.clone().expect("a difference");
    assert!(!trial.holds());
    assert!(before != after, "{before}");
    // A rule that matches nothing was not shown to hold.
    let never = Rule::new("never", multiply(any("x"), any("y"))).with_class(Class::Exact);
    let trial = try_rule(&never, 0..3).expect("a trial");
    assert!(!trial.holds());
    assert_eq!(trial.caveats, never.caveats());
}

#[test]
fn a_rule_is_held_to_the_class_that_it_states_for_a_place() {
    // (x + y) + z = x + (y + z), which rounds differently.
    let regrouped = Rule::new("regrouped", add(add(any("x"), any("y")), any("z")))
        .with_class(Class::Regrouping)
        .replace(|found, new| {
            let last = new.plain(Opcode::Add, [found.value("y")?, found.value("z")?])?;
            new.plain(Opcode::Add, [found.value("x")?, last])
        });
    assert!(try_rule(&regrouped, 0..60).expect("a trial").holds());
    let lies = regrouped.with_class_of(|_| Some(Class::Exact));
    assert!(try_rule(&lies, 0..60).expect("a trial").wrong.is_some());
}

#[test]
fn fast_math_has_a_tolerance_of_its_own() {
    // x becomes 63/64 of it: far from equal in f32, but within 1/32.
    let rule = |class| {
        Rule::new("nearly", negate(any("x").element_type(ElementType::F32)))
            .with_class(class)
            .replace(|found, new| {
                let by =
                    ArrayLiteral::new(ElementType::F32, [], Data::F32(vec![0.984_375])).ok()?;
                let by = new.constant(Literal::Array(by))?;
                let by = new.broadcast(by, found.array("x")?.dims(), &[])?;
                let x = new.plain(Opcode::Multiply, [found.value("x")?, by])?;
                new.plain(Opcode::Negate, [x])
            })
    };
    assert!(try_rule(&rule(Class::Bounded), 0..30).expect("a trial").wrong.is_some());
    assert!(try_rule(&rule(Class::FastMath), 0..30).expect("a trial").holds());
}

#[test]
fn a_rule_that_forgets_arrays_without_elements_is_found() {
    // The largest of n copies of x is x, but of none it is -infinity.
    let rule = Rule::new(
        "maximum-of-copies",
        reduce(broadcast(any("x").scalar()).named("copies"), constant("init")).named("reduce"),
    )
    .with_class(Class::Exact)
    .when("be a maximum", |found| {
        let Some(Op::Reduce(attrs)) = found.op("reduce") else { return false };
        let monoid = Monoid::of(found.module(), attrs.to_apply);
        let neutral = found.get("init").and_then(|init| found.module().constant(init));
        monoid.zip(neutral).is_some_and(|(monoid, init)| {
            monoid.opcode == Opcode::Maximum && monoid.is_neutral(init)
        })
    })
    .replace(|found, new| new.broadcast(found.get("x")?, found.array("reduce")?.dims(), &[]));
    let trial = try_rule(&rule, 0..400).expect("a trial");
    let [before, _] = trial.wrong.expect("an array without elements");
    assert!(before.contains("[0") || before.contains(",0"), "{before}");
}

#[test]
fn ops_of_any_operands_have_instances() {
    let rule = Rule::new("even", any_of([Opcode::Cos, Opcode::Abs]).named("even"))
        .with_class(Class::Exact)
        .replace(|found, new| {
            let &[x] = found.module().operands(found.root()) else { return None };
            let minus = new.plain(Opcode::Negate, [x])?;
            new.op_like_root(found.op("even")?.clone(), [minus])
        });
    assert!(try_rule(&rule, 0..20).expect("a trial").tried > 10);
}
