//! **Accumulate sums of 16-bit floats in 32 bits.**
//!
//! ```text
//! sum x  =  round(sum wide(x))          x in bf16 or f16
//! ```
//!
//! On the left, every partial sum is rounded to 8 or 11 bits; on the right, only the result of the
//! reduce is. Its error bound is smaller for n > 2 values: `u + (n-1)u'` instead of `(n-1)u`, where
//! `u' = 2^-24`. XLA allows this excess precision by default (`xla_allow_excess_precision`).
//! Partial sums that overflow in f16 do not overflow in f32.
//!
//! Preconditions: a plain sum of one static row-major array with nothing attached; not under
//! `--exact`.
//!
//! A cost-gated pass for targets where such sums take longer in their own type
//! (`narrow_sum_cycles`). XLA:CPU leaves sums to a library that has none in bf16 and f16
//! (`IsReduceLikeOpSupportedByYnn` in `xla/backends/cpu/ynn_support.cc`), and adds these up window
//! by window through memory. The pass runs after those that factor sums (a product that is rounded
//! before it is summed is one factor) and those that split sums into stages, each of which rounds.

use smallvec::SmallVec;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::reducer::{Monoid, adder};
use tilewright_ir::{
    CompId, EditError, ElementType, InstId, Module, Op, Opcode, Patch, Shape, Value,
};

use crate::analysis::reduce::{MonoidReduce, of_type};
use crate::cost::reduce_speed::narrow_sum;
use crate::driver::Place;
use crate::driver::attempt::{Attempt, weigh};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};

/// See the module.
pub struct WidenAccumulation;

const WIDE: Monoid = Monoid { opcode: Opcode::Add, element_type: ElementType::F32 };

impl Pass for WidenAccumulation {
    fn name(&self) -> &'static str {
        "widen-accumulation"
    }

    fn summary(&self) -> &'static str {
        "add up 16-bit floats in 32 bits, where the target is faster at it"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.target.narrow_sum_cycles == 0.0 {
            return Ok(0);
        }
        let (mut changes, mut by) = (0, None);
        for computation in module.computations().to_vec() {
            for id in narrow_sums(module, computation, cx.float_mode) {
                changes += usize::from(widen(module, (computation, id), &mut by, cx)?);
            }
            by = by
                .or_else(|| (Monoid::of(module, computation) == Some(WIDE)).then_some(computation));
        }
        Ok(changes)
    }
}

/// Returns the live narrow sums of a computation whose accumulation may change.
fn narrow_sums(module: &Module, computation: CompId, float_mode: FloatMode) -> Vec<InstId> {
    let is_sum = |&id: &InstId| {
        let is_used = module.is_live(id);
        let is_narrow = || narrow_sum(module, module.op(id), module.shape(id));
        is_used
            && is_narrow() == Some(Opcode::Reduce)
            && MonoidReduce::of(module, id, float_mode).is_some()
    };
    module.instructions(computation).filter(is_sum).collect()
}

/// Accumulates a sum in f32, if that pays. `by` is the computation that adds in f32, if there is
/// one before all callers that are still to come.
fn widen(
    module: &mut Module,
    (computation, id): (CompId, InstId),
    by: &mut Option<CompId>,
    cx: &mut Context<'_>,
) -> Result<bool, EditError> {
    let Some(attempt) = plan(module, id, *by) else { return Ok(false) };
    let (candidate, _) = weigh(module, id, attempt, Place::of(module, id), cx);
    if !cx.accept(WidenAccumulation.name(), candidate) {
        return Ok(false);
    }
    if by.is_none() {
        *by = Some(adder(module, WIDE.element_type, computation)?);
    }
    let Some(Attempt { patch, .. }) = plan(module, id, *by) else { return Ok(false) };
    patch.apply(module)?;
    Ok(true)
}

/// Returns the sum in f32. Without `by` it calls the old reducer, which is enough to estimate
/// its cost.
fn plan(module: &Module, id: InstId, by: Option<CompId>) -> Option<Attempt> {
    let (Op::Reduce(attrs), &[array, init]) = (module.op(id), module.operands(id)) else {
        return None;
    };
    let mut patch = Patch::new();
    let mut converted = |value: Value, shape: Shape| patch.add(id, Op::Convert, shape, [value]);
    let wide = |of: InstId| Some(Shape::from(of_type(module.array_shape(of)?, WIDE.element_type)));
    let operands =
        [converted(Value::Old(array), wide(array)?), converted(Value::Old(init), wide(init)?)];
    let to_apply = by.unwrap_or(attrs.to_apply);
    let op = Op::Reduce(Box::new(ReduceAttrs { dimensions: attrs.dimensions.clone(), to_apply }));
    let sum = patch.add(id, op, wide(id)?, operands);
    let narrow = patch.add(id, Op::Convert, module.shape(id).clone(), [sum]);
    patch.replace(id, narrow);
    let shape = module.shape(array).without_layout();
    Some(Attempt {
        patch,
        frees: SmallVec::new(),
        done: format!("added up {shape} in f32"),
        would: format!("adding up {shape} in f32"),
    })
}
