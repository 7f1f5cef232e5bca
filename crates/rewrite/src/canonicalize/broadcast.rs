//! Broadcasts in their simplest form.

use std::sync::LazyLock;

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{ArrayShape, Dims, Op, Value};

use crate::analysis::reduce::reshape_op;
use crate::driver::numbers::Class;
use crate::pattern::{Match, Replacement, Rule, RuleSet, any, broadcast, reshape};

/// The rules of the pass `broadcast`.
pub static BROADCAST: LazyLock<RuleSet> = LazyLock::new(|| {
    let of = |inner| broadcast(inner).named("root").static_dims();
    let rules = [
        Rule::new("broadcast-to-its-own-dims", of(any("x").static_dims()))
            .with_law("broadcast(x) = x, where nothing changes")
            .when("keep every dim in its place", |found| {
                let in_place = |(i, &d): (usize, &i64)| usize::try_from(d) == Ok(i);
                places(found, "root").is_some_and(|p| p.iter().enumerate().all(in_place))
            })
            .replace(|found, _| found.value("x")),
        Rule::new("broadcast-of-broadcast", of(broadcast(any("x")).named("inner").static_dims()))
            .with_law("broadcast(broadcast(x)) = broadcast(x)")
            .replace(|found, new| {
                let outer = places(found, "root")?;
                let through = |&d: &i64| outer.get(usize::try_from(d).ok()?).copied();
                merged(
                    found,
                    new,
                    places(found, "inner")?.iter().map(through).collect::<Option<_>>()?,
                )
            }),
        Rule::new(
            "broadcast-that-adds-ones",
            broadcast(any("x").row_major()).named("root").row_major(),
        )
        .with_law("broadcast(x) = reshape(x), where it only adds dims of size 1")
        .when("keep the number of elements of an array, and the order of its dims", |found| {
            let (from, to) = (found.array("x"), found.array("root"));
            let in_order = places(found, "root").is_some_and(|places| places.is_sorted());
            from.zip(to).is_some_and(|(from, to)| {
                in_order && from.rank() > 0 && from.num_elements() == to.num_elements()
            })
        })
        .replace(|found, new| new.op_like_root(reshape_op(), [found.get("x")?])),
        Rule::new("broadcast-of-added-ones", of(reshape(any("x")).named("inner").static_dims()))
            .with_law("broadcast(reshape(x)) = broadcast(x), where the reshape adds dims of size 1")
            .replace(|found, new| {
                let (from, to) = (found.array("x")?, found.array("inner")?);
                merged(found, new, through_added_ones(from, to, places(found, "root")?)?)
            }),
    ];
    let rules = rules.map(|rule| rule.with_class(Class::Exact).always());
    RuleSet::new("broadcast", "merge broadcasts and drop those that change nothing", rules)
});

/// Returns the dims of a broadcast's result that the dims of its operand map to.
fn places<'m>(found: &Match<'m>, name: &str) -> Option<&'m Dims> {
    match found.op(name)? {
        Op::Broadcast(attrs) => Some(&attrs.dimensions),
        _ => None,
    }
}

fn merged(found: &Match<'_>, new: &mut Replacement<'_>, dimensions: Dims) -> Option<Value> {
    let op = Op::Broadcast(Box::new(BroadcastAttrs { dimensions }));
    new.op_like_root(op, [found.get("x")?])
}

/// Returns the dims that the dims of `source` map to, if `reshaped` is `source` with added dims
/// of size 1 and its dims map to `dimensions`.
fn through_added_ones(
    source: &ArrayShape,
    reshaped: &ArrayShape,
    dimensions: &[i64],
) -> Option<Dims> {
    let mut places = reshaped.dims().iter().zip(dimensions).peekable();
    let mut mapped = Dims::new();
    for &size in source.dims() {
        let (_, &place) = loop {
            let (&candidate, place) = places.next()?;
            if candidate == size {
                break (candidate, place);
            }
            if candidate != 1 {
                return None;
            }
        };
        mapped.push(place);
    }
    places.all(|(&size, _)| size == 1).then_some(mapped)
}
