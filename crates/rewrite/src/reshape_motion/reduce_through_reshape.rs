//! **T1: reduce before a reshape the dims along which the result does not vary.**
//!
//! ```text
//! reduce(reshape(X), D) = reduce(reshape(reduce(X, S), small), R)
//!
//! group norm  X[B,H,W,C] ── reshape [B,H,W,G,C/G] ── reduce {1,2,4} ── [B,G]
//! becomes     X[B,H,W,C] ── reduce {1,2} ── [B,C] ── reshape [B,G,C/G] ── reduce {2} ── [B,G]
//! ```
//!
//! S are the dims of X along which the result does not vary. Dims with one part kept and another
//! part reduced still need a reshape, but of the tensor already reduced: more arithmetic, far fewer
//! elements to realign. Without such dims no reshape is left.
//!
//! A reduce of several arrays qualifies if one of them is such a reshape. The others come to the
//! dims of X as the operand of a reshape or a broadcast, or by a new reshape, whose cost counts. An
//! argmax reduces values and an iota, which is reshaped or, if that is cheaper, computed anew along
//! the dims of X.
//!
//! Preconditions: a computation that is a [`Reducer`] (associative and commutative), static
//! row-major shapes. A first stage of sums or products starts from the identity, which must be
//! known, so that the init is still applied once; if the init is neutral, or the monoid is
//! idempotent (maxima, choices), both stages start from it. Sums and products of floats are
//! regrouped, as HLO allows, unless `--exact` is given; so are choices by floats, where the order
//! decides which NaN's index and which zero's sign is kept.
//!
//! If dims are reduced in part (`H/k` of H), [`super::reduce_as_window`] may do better.
//!
//! [`Reducer`]: tilewright_ir::reducer::Reducer
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reduce(reshape(X))`; generalised from unchanged dims to all dims whose
//! digits are all reduced.

use tilewright_ir::{EditError, Module, Opcode};

use super::reduce_of_reshape::{ReduceOfReshape, Way};
use crate::analysis::reduce::{MonoidReduce, first_stage};
use crate::driver::attempt::attempt_each;
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};

/// See the module.
pub struct ReduceThroughReshape;

/// Stages apply if some input dim can be reduced whole.
const STAGES: Way = Way {
    starts: |digits, dims| first_stage(digits, dims).is_some(),
    plan: MonoidReduce::through,
    how: "before it becomes",
};

impl Pass for ReduceThroughReshape {
    fn name(&self) -> &'static str {
        "reduce-through-reshape"
    }

    fn summary(&self) -> &'static str {
        "T1: reduce before a reshape what it leaves alone, so that less is reshaped"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let (model, laid_out) = (cx.model(), cx.laid_out.clone());
        attempt_each(self, &[Opcode::Reduce], module, cx, |module, id, float_mode| {
            let found = ReduceOfReshape::at(module, id, &STAGES)?.unless_laid_out(&laid_out)?;
            Some(found.plan(module, &model, float_mode))
        })
    }
}
