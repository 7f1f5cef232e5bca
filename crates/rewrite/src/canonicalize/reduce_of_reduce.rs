//! A reduce of a reduce is one reduce.
//!
//! ```text
//! reduce(reduce(X, A, i), B, j) = reduce(X, A and what B is in X, j)
//! ```
//!
//! Preconditions: both combine by the same monoid; the first init changes
//! nothing, being neutral, or being the second one of a monoid where taking it
//! again changes nothing; nothing else reads the first reduce. Of float sums, which
//! `0.0` leaves as they are but for `-0.0`, the second init must be known: if that is
//! `-0.0`, the sum begins with the first one. Float sums and
//! products are added up in another order, as HLO allows, unless the order must
//! be kept (`--exact`).
//!
//! It does not undo [`crate::reshape_motion::reduce_through_reshape`], which leaves two reduces
//! only where a reshape between them moves elements.

use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::MonoidReduce;
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceOfReduce;

impl Pass for ReduceOfReduce {
    fn name(&self) -> &'static str {
        "reduce-of-reduce"
    }

    fn summary(&self) -> &'static str {
        "reduce once what is reduced in two steps"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let float_mode = cx.float_mode;
        simplify(module, |module, id| merged(module, id, float_mode))
    }
}

fn merged(module: &Module, last: InstId, float_mode: FloatMode) -> Option<Patch> {
    let (Op::Reduce(attrs), &[first, last_init]) = (module.op(last), module.operands(last)) else {
        return None;
    };
    let (Op::Reduce(_), &[array, first_init]) = (module.op(first), module.operands(first)) else {
        return None;
    };
    if module.instruction(first).use_count() != 1 {
        return None;
    }
    let (inner, outer) =
        (MonoidReduce::of(module, first, float_mode)?, MonoidReduce::of(module, last, float_mode)?);
    let monoid = inner.reducer.monoid().filter(|_| inner.reducer == outer.reducer)?;
    let constant = module.constant(first_init);
    let is_same =
        first_init == last_init || (constant.is_some() && constant == module.constant(last_init));
    let changes_nothing = constant.is_some_and(|value| monoid.is_neutral(value))
        || (is_same && monoid.is_idempotent());
    if !changes_nothing {
        return None;
    }
    let identity = monoid.identity()?;
    // Only `0.0` for a sum is neutral and yet not the identity.
    let init = if constant == Some(&identity) || monoid.is_idempotent() {
        last_init
    } else {
        let is_identity = *module.constant(last_init)? == identity;
        if is_identity { first_init } else { last_init }
    };
    let rank = i64::try_from(module.array_shape(array)?.rank()).ok()?;
    let gone = inner.dims(module);
    let left: Dims = (0..rank).filter(|dim| !gone.contains(dim)).collect();
    let place = |&dim: &i64| left.get(usize::try_from(dim).ok()?).copied();
    let mut dimensions = outer.dims(module).iter().map(place).collect::<Option<Dims>>()?;
    dimensions.extend_from_slice(gone);
    dimensions.sort_unstable();
    let op = Op::Reduce(Box::new(ReduceAttrs { dimensions, to_apply: attrs.to_apply }));
    let operands = [Value::Old(array), Value::Old(init)];
    let mut patch = Patch::new();
    let value = patch.add(last, op, module.shape(last).clone(), operands);
    patch.replace(last, value);
    Some(patch)
}
