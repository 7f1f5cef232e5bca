//! Reshapes in their simplest form.

use std::sync::LazyLock;

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{Dims, Op};

use crate::analysis::reduce::reshape_op;
use crate::driver::numbers::Class;
use crate::pattern::{Pattern, Rule, RuleSet, any, broadcast, reshape};

/// The rules of the pass `reshape`.
pub static RESHAPE: LazyLock<RuleSet> = LazyLock::new(|| {
    let rules = [
        Rule::new("reshape-to-its-own-dims", fixed(reshape(any("x").static_dims())))
            .with_law("reshape(x) = x, where nothing changes")
            .replace(|found, _| found.value("x")),
        Rule::new("reshape-of-reshape", fixed(reshape(fixed(reshape(any("x"))))))
            .with_law("reshape(reshape(x)) = reshape(x)")
            .replace(|found, new| new.op_like_root(reshape_op(), [found.get("x")?])),
        Rule::new("reshape-of-splat", fixed(reshape(broadcast(any("x").scalar()).static_dims())))
            .with_law("reshape(broadcast(scalar)) = broadcast(scalar)")
            .replace(|found, new| {
                let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
                new.op_like_root(op, [found.get("x")?])
            }),
    ];
    let rules = rules.map(|rule| rule.with_class(Class::Exact).always());
    RuleSet::new("reshape", "merge reshapes and drop those that change nothing", rules)
});

/// Returns a pattern of a reshape with static dims, none of them inferred.
fn fixed(reshape: Pattern) -> Pattern {
    let fixed = |op: &Op| matches!(op, Op::Reshape(of) if of.inferred_dimension.is_none());
    reshape.attributes("infer no dim", fixed).static_dims()
}
