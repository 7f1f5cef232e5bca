//! Conversions in their simplest form.
//!
//! Two conversions are one where the type between them, B, holds every value of the first type, A,
//! and the last type, C, converts values of A and B alike: C holds every value of A, or A and B are
//! both integers, or neither is. (An integer too large for C wraps around; one that is first
//! converted to a float is clamped.)
//!
//! Conversions are not moved through broadcasts, reshapes or transposes: they are computed in their
//! readers, so their place does not matter.

use std::sync::LazyLock;

use tilewright_ir::{ElementType, Op};

use crate::analysis::types::holds;
use crate::driver::numbers::Class;
use crate::pattern::{Match, Rule, RuleSet, any, convert};

/// The rules of the pass `convert`.
pub static CONVERT: LazyLock<RuleSet> = LazyLock::new(|| {
    let rules = [
        Rule::new("convert-to-its-own-type", convert(any("x")))
            .with_law("convert(x) = x, where the type stays")
            .replace(|found, _| found.value("x")),
        Rule::new("convert-of-convert", convert(convert(any("x")).named("between")).named("root"))
            .with_law("convert(convert(x)) = convert(x), where the type between loses nothing")
            .when("lose nothing on the way", |found| merges(found).unwrap_or(false))
            .replace(|found, new| {
                let x = found.get("x")?;
                let (from, to) = (found.array("x")?, found.array("root")?);
                let same_layout = from.layout_or_default() == to.layout_or_default();
                (from.same_dims(to) && same_layout).then_some(())?;
                if from.element_type == to.element_type {
                    return Some(x.into());
                }
                new.op_like_root(Op::Convert, [x])
            }),
    ];
    let rules = rules.map(|rule| rule.with_class(Class::Exact).always());
    RuleSet::new("convert", "merge conversions and drop those that change nothing", rules)
});

/// Checks whether converting `a` to `c` directly gives the same values as converting by way of
/// `b`.
fn merges(found: &Match<'_>) -> Option<bool> {
    let [a, b, c] = ["x", "between", "root"].map(|name| Some(found.array(name)?.element_type));
    let (a, b, c) = (a?, b?, c?);
    let alike = a.is_integer() == b.is_integer() && a != ElementType::Pred;
    Some(holds(b, a) && (alike || holds(c, a)))
}
