//! Transposes in their simplest form.
//!
//! The rules match row-major arrays only: in other layouts, a transpose may be the instruction that
//! reorders the elements in memory.

use std::sync::LazyLock;

use tilewright_ir::ops::shaping::{BroadcastAttrs, IotaAttrs, TransposeAttrs};
use tilewright_ir::{Dims, Op, Opcode, Value};

use crate::analysis::reduce::reshape_op;
use crate::driver::numbers::Class;
use crate::pattern::{Match, Pattern, Rule, RuleSet, any, any_of, broadcast, transpose};

/// The rules of the pass `transpose`.
pub static TRANSPOSE: LazyLock<RuleSet> = LazyLock::new(|| {
    let of = |inner: Pattern| transpose(inner.row_major()).named("root").row_major();
    let rules = [
        Rule::new("transpose-that-moves-nothing", of(any("x")))
            .with_law("transpose(x) = x, where every dim stays")
            .when("keep every dim in its place", |found| {
                let in_place = |(i, &d): (usize, &i64)| usize::try_from(d) == Ok(i);
                order(found, "root").is_some_and(|order| order.iter().enumerate().all(in_place))
            })
            .replace(|found, _| found.value("x")),
        Rule::new("transpose-of-transpose", of(transpose(any("x").row_major()).named("inner")))
            .with_law("transpose(transpose(x, p), q) = transpose(x, p[q])")
            .replace(|found, new| {
                let inner = order(found, "inner")?;
                let through = |&d: &i64| inner.get(usize::try_from(d).ok()?).copied();
                let dimensions =
                    order(found, "root")?.iter().map(through).collect::<Option<_>>()?;
                let op = Op::Transpose(Box::new(TransposeAttrs { dimensions }));
                new.op_like_root(op, [found.get("x")?])
            }),
        Rule::new("transpose-of-broadcast", of(broadcast(any("x")).named("inner")))
            .with_law(
                "transpose(broadcast(x)) = broadcast(x), where the dims of x keep their order",
            )
            .replace(|found, new| {
                let Op::Broadcast(attrs) = found.op("inner")? else { return None };
                let dimensions = attrs.dimensions.iter().map(|&dim| place(found, dim));
                let dimensions = dimensions.collect::<Option<Dims>>()?;
                dimensions.windows(2).all(|pair| pair[0] < pair[1]).then_some(())?;
                let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
                new.op_like_root(op, [found.get("x")?])
            }),
        Rule::new("transpose-of-iota", of(any_of([Opcode::Iota]).named("inner")))
            .with_law("transpose(iota) = iota")
            .replace(|found, new| {
                let Op::Iota(attrs) = found.op("inner")? else { return None };
                let dimension = place(found, attrs.dimension)?;
                new.op_like_root(Op::Iota(Box::new(IotaAttrs { dimension })), [] as [Value; 0])
            }),
        Rule::new("transpose-of-ones", of(any("x")))
            .with_law("transpose(x) = reshape(x), where only dims of size 1 change places")
            .when("keep the dims in order that are not of size 1", |found| {
                keeps_order(found).unwrap_or(false)
            })
            .replace(|found, new| new.op_like_root(reshape_op(), [found.get("x")?])),
    ];
    let rules = rules.map(|rule| rule.with_class(Class::Exact).always());
    RuleSet::new("transpose", "merge transposes and drop those that move nothing", rules)
});

/// For each dim of a transpose, the dim of its operand.
fn order<'m>(found: &Match<'m>, name: &str) -> Option<&'m Dims> {
    match found.op(name)? {
        Op::Transpose(attrs) => Some(&attrs.dimensions),
        _ => None,
    }
}

/// Returns the dim of the outer transpose's result that a dim of its operand maps to.
fn place(found: &Match<'_>, dim: i64) -> Option<i64> {
    i64::try_from(order(found, "root")?.iter().position(|&d| d == dim)?).ok()
}

/// Checks whether the dims of size other than 1 keep their order.
fn keeps_order(found: &Match<'_>) -> Option<bool> {
    let from = found.array("x")?.dims();
    let size = |&d: &i64| usize::try_from(d).ok().and_then(|d| from.get(d)).copied();
    let mut moved = order(found, "root")?.iter().filter(|dim| size(dim) != Some(1));
    let mut last = -1;
    Some(moved.all(|&dim| std::mem::replace(&mut last, dim) < dim))
}
