//! Every rule of the optimiser, tried on modules that it matches; and a wrong one, which is
//! found.

use tilewright::rewrite::canonicalize::{
    algebra, broadcast, convert, reduce_of_reduce, reshape, transpose,
};
use tilewright::rewrite::numbers::Class;
use tilewright::rewrite::pattern::{Rule, RuleSet, any, multiply, subtract};
use tilewright::rewrite::reshape_motion::{reduce_of_broadcast, reduce_through_transpose};
use tilewright::try_rule;

#[test]
fn the_rules_of_the_optimiser_hold() {
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
    assert!(!try_rule(&never, 0..3).expect("a trial").holds());
}
