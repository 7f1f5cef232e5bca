//! Reduces in their simplest form.
//!
//! `reduce(X, init, D) = f(broadcast(init), reshape(X))` where all dims of D have size 1. The init
//! is still applied once, so not even the sign of a zero changes.

use tilewright_ir::ops::shaping::BroadcastAttrs;
use tilewright_ir::{Dims, EditError, InstId, Module, Op, Patch, Value};

use crate::analysis::reduce::{MonoidReduce, reshape_op};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::simplify::simplify;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceCanonical;

impl Pass for ReduceCanonical {
    fn name(&self) -> &'static str {
        "reduce"
    }

    fn summary(&self) -> &'static str {
        "turn reduces over dims of size 1 into elementwise ops"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn run(&self, module: &mut Module, _: &mut Context<'_>) -> Result<usize, EditError> {
        simplify(module, simpler)
    }
}

fn simpler(module: &Module, id: InstId) -> Option<Patch> {
    // Any float mode: with one element per result, no sum is reordered.
    let reduce = MonoidReduce::of(module, id, FloatMode::default())?;
    let [array, init] = *module.operands(id) else { return None };
    let from = module.array_shape(array)?;
    let is_one = |&dim: &i64| usize::try_from(dim).is_ok_and(|d| from.dims().get(d) == Some(&1));
    if !reduce.dims(module).iter().all(is_one) {
        return None;
    }
    let shape = module.shape(id);
    let mut patch = Patch::new();
    let value = patch.add(id, reshape_op(), shape.clone(), [Value::Old(array)]);
    let everywhere = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Dims::new() }));
    let init = patch.add(id, everywhere, shape.clone(), [Value::Old(init)]);
    let combine = reduce.reducer.monoid()?.op()?;
    let result = patch.add(id, combine, shape.clone(), [init, value]);
    patch.replace(id, result);
    Some(patch)
}
