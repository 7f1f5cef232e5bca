//! **T1: reduce before the reshape what the reshape leaves alone.**
//!
//! ```text
//! reduce(reshape(X), D) = reduce(reshape(reduce(X, S), small), R)
//!
//! group norm  X[B,H,W,C] ── reshape [B,H,W,G,C/G] ── reduce {1,2,4} ── [B,G]
//! becomes     X[B,H,W,C] ── reduce {1,2} ── [B,C] ── reshape [B,G,C/G] ── reduce {2} ── [B,G]
//! ```
//!
//! S are the dims of X along which the result does not vary; only dims of
//! which one part is kept and another reduced keep a reshape, on the tensor
//! already reduced. More arithmetic, far fewer elements to realign. Where no
//! such dim is left, the reshape is gone.
//!
//! Preconditions: one array, a monoid for a computation (associative,
//! commutative, with a known identity), static row-major shapes. The first
//! stage starts from the identity unless the reduce's init is neutral, so that
//! any other init is still applied once. Sums and products of floats are
//! regrouped, as HLO allows, unless the order must be kept (`--exact`).
//!
//! Source: the patent application "Reshape and broadcast optimizations to avoid
//! unnecessary data movement" (B. A. Hechtman, filed 2020-04-30), the pattern
//! `reduce(reshape(X))`; generalised from unchanged dims to all dims whose
//! digits are all reduced.

use tilewright_ir::{EditError, InstId, Module, Op, Opcode, Patch, Value};

use super::attempt::{Attempt, attempt_each};
use super::region_move::same_but_ones;
use crate::analysis::digits::Digits;
use crate::analysis::reduce::{MonoidReduce, first_stage, is_plain};
use crate::pass::{Context, Pass};

/// See the module.
pub struct ReduceThroughReshape;

impl Pass for ReduceThroughReshape {
    fn name(&self) -> &'static str {
        "reduce-through-reshape"
    }

    fn summary(&self) -> &'static str {
        "T1: reduce before a reshape what it leaves alone, so that less is reshaped"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        attempt_each(self, Opcode::Reduce, module, cx, |module, id, exact| {
            Some(Found::at(module, id)?.plan(module, exact))
        })
    }
}

/// A reduce of a reshape, of which a part could come first.
struct Found {
    reduce: InstId,
    reshape: InstId,
    source: InstId,
    digits: Digits,
}

impl Found {
    fn at(module: &Module, reduce: InstId) -> Option<Self> {
        let (reshape, source) = reshaped_operand(module, reduce)?;
        let digits = digits_of(module, reshape, source)?;
        let Op::Reduce(attrs) = module.op(reduce) else { return None };
        first_stage(&digits, &attrs.dimensions)?;
        let changes = !same_but_ones(digits.from_dims(), digits.to_dims());
        changes.then_some(Self { reduce, reshape, source, digits })
    }

    /// What to do; or why it is left.
    fn plan(&self, module: &Module, exact: bool) -> Result<Attempt, String> {
        let but = |why: &str| format!("it could start before the reshape, but {why}");
        if module.extras(self.reshape).is_some() {
            return Err(but("the reshape has attributes or control edges that would be lost"));
        }
        let plain = |id| module.array_shape(id).is_some_and(is_plain);
        if !plain(self.source) || !plain(self.reshape) {
            return Err(but("what is reshaped does not lie row major"));
        }
        let reduce = MonoidReduce::or_why_not(module, self.reduce, exact)
            .map_err(|why| but(&format!("it {why}")))?;
        let mut patch = Patch::new();
        let result = reduce
            .through(module, &self.digits, Value::Old(self.source), &mut patch)
            .ok_or_else(|| but("its type has no known identity"))?;
        patch.replace(self.reduce, result);
        let shape = |id| module.shape(id).without_layout();
        let (from, to) = (shape(self.source), shape(self.reshape));
        Ok(Attempt {
            patch,
            frees: self.reshape,
            done: format!("reduced {from} before it becomes {to}"),
            would: format!("reducing {from} before it becomes {to}"),
        })
    }
}

/// The reshape that a reduce reads, and its operand.
fn reshaped_operand(module: &Module, id: InstId) -> Option<(InstId, InstId)> {
    let reshape = *module.operands(id).first()?;
    match (module.op(reshape), module.operands(reshape)) {
        (Op::Reshape(_), [source]) => Some((reshape, *source)),
        _ => None,
    }
}

/// The digits of a reshape between arrays of static dims.
fn digits_of(module: &Module, reshape: InstId, source: InstId) -> Option<Digits> {
    let (from, to) = (module.array_shape(source)?, module.array_shape(reshape)?);
    if !from.is_static() || !to.is_static() {
        return None;
    }
    Digits::of_reshape(from.dims(), to.dims())
}
