//! A reduce of a reduce becomes one reduce.
//!
//! ```text
//! reduce(reduce(X, A, i), B, j) = reduce(X, A and what B is in X, j)
//! ```
//!
//! Preconditions: both reduces combine by the same monoid; nothing else reads the first one; the
//! first init changes nothing, because it is neutral or because it equals the second init of an
//! idempotent monoid. In a float sum, `0.0` changes nothing but `-0.0`, so if the first init is
//! `0.0`, the second must be known: if it is `-0.0`, the merged sum begins with the first init,
//! provided that the second reduce has elements: without any, its result is `-0.0`.
//! Float sums and products are regrouped, as HLO allows, unless `--exact` is given.
//!
//! The pass does not undo [`crate::reshape_motion::reduce_through_reshape`], which leaves two
//! reduces only where a reshape between them moves elements.

use std::sync::LazyLock;

use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::reducer::Monoid;
use tilewright_ir::{Dims, InstId, Op};

use crate::analysis::reduce::MonoidReduce;
use crate::driver::numbers::{Class, FloatMode};
use crate::pattern::{Match, Rule, any, reduce};

/// The rule of the pass.
pub static REDUCE_OF_REDUCE: LazyLock<Rule> = LazyLock::new(|| {
    let first = reduce(any("array"), any("first_init")).named("first").used_once();
    Rule::new("reduce-of-reduce", reduce(first, any("last_init")).named("last"))
        .with_summary("reduce once what is reduced in two steps")
        .with_law("reduce(reduce(x, A), B) = reduce(x, A and B)")
        .with_class(Class::Regrouping)
        .with_class_of(|found| {
            let exact = both(found)?.iter().all(|reduce| reduce.reducer.regroups_exactly());
            Some(if exact { Class::Exact } else { Class::Regrouping })
        })
        .always()
        .replace(|found, new| {
            let [first, last] = both(found)?;
            let monoid = first.reducer.monoid().filter(|_| first.reducer == last.reducer)?;
            let init = init(found, &last, monoid)?;
            let Op::Reduce(attrs) = found.op("last")? else { return None };
            let dimensions = dims(found, &first, &last)?;
            let op = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }));
            new.op_like_root(op, [found.get("array")?, init])
        })
});

fn both(found: &Match<'_>) -> Option<[MonoidReduce; 2]> {
    let of = |name| MonoidReduce::of(found.module(), found.get(name)?, FloatMode::Guarded);
    Some([of("first")?, of("last")?])
}

/// Returns the init of the merged reduce, if the first init changes nothing.
fn init(found: &Match<'_>, last: &MonoidReduce, monoid: Monoid) -> Option<InstId> {
    let module = found.module();
    let (first_init, last_init) = (found.get("first_init")?, found.get("last_init")?);
    let constant = module.constant(first_init);
    let is_same =
        first_init == last_init || (constant.is_some() && constant == module.constant(last_init));
    let changes_nothing = constant.is_some_and(|value| monoid.is_neutral(value))
        || (is_same && monoid.is_idempotent());
    changes_nothing.then_some(())?;
    let identity = monoid.identity()?;
    // Only the `0.0` of a sum is neutral without being the identity.
    if constant == Some(&identity) || monoid.is_idempotent() {
        return Some(last_init);
    }
    if *module.constant(last_init)? != identity {
        return Some(last_init);
    }
    let sizes = found.array("first")?.dims();
    let has_elements =
        |&dim: &i64| usize::try_from(dim).is_ok_and(|dim| sizes.get(dim).is_some_and(|&s| s > 0));
    last.dims(module).iter().all(has_elements).then_some(first_init)
}

/// Returns the dims of the array that the two reduces remove together.
fn dims(found: &Match<'_>, first: &MonoidReduce, last: &MonoidReduce) -> Option<Dims> {
    let rank = i64::try_from(found.array("array")?.rank()).ok()?;
    let gone = first.dims(found.module());
    let left: Dims = (0..rank).filter(|dim| !gone.contains(dim)).collect();
    let place = |&dim: &i64| left.get(usize::try_from(dim).ok()?).copied();
    let mut dims = last.dims(found.module()).iter().map(place).collect::<Option<Dims>>()?;
    dims.extend_from_slice(gone);
    dims.sort_unstable();
    Some(dims)
}
