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

use super::region_move::same_but_ones;
use crate::analysis::cost::{CostModel, pays};
use crate::analysis::digits::Digits;
use crate::analysis::reduce::{MonoidReduce, is_plain};
use crate::pass::{Context, Pass};
use crate::report::{Note, Verdict, place_of};

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
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let reduces: Vec<InstId> = module
                .instructions(computation)
                .filter(|&id| module.opcode(id) == Opcode::Reduce)
                .collect();
            for id in reduces {
                changes += usize::from(self.rewrite(module, id, cx)?);
            }
        }
        Ok(changes)
    }
}

impl ReduceThroughReshape {
    fn rewrite(
        &self,
        module: &mut Module,
        id: InstId,
        cx: &mut Context<'_>,
    ) -> Result<bool, EditError> {
        let Some((reshape, source)) = reshaped_operand(module, id) else { return Ok(false) };
        let mut note = |module: &Module, verdict, text: String| {
            cx.notes.push(Note {
                pass: "reduce-through-reshape",
                verdict,
                place: place_of(module, id),
                text,
            });
        };
        let Some(reduce) = MonoidReduce::of(module, id, cx.exact) else {
            let text = match MonoidReduce::of(module, id, false) {
                Some(_) => {
                    "its sum could start before the reshape, but --exact keeps the order of float sums"
                }
                None => {
                    "it reduces a reshape by a computation that is no plain sum, product, minimum, maximum, and, or, xor"
                }
            };
            note(module, Verdict::Left, text.into());
            return Ok(false);
        };
        let Some(digits) = digits_of(module, reshape, source) else { return Ok(false) };
        if same_but_ones(digits.from_dims(), digits.to_dims()) {
            return Ok(false);
        }
        let mut patch = Patch::new();
        let Some(result) = reduce.through(module, &digits, Value::Old(source), &mut patch) else {
            return Ok(false);
        };
        patch.replace(id, result);
        let model = CostModel { target: cx.target };
        let mut before = model.of(module, id);
        if module.instruction(reshape).use_count() == 1 {
            before += model.of(module, reshape);
        }
        let after = model.patch(module, &patch);
        let (from, to) =
            (module.shape(source).without_layout(), module.shape(reshape).without_layout());
        if !pays(before.cycles, after.cycles) {
            let text = format!(
                "reducing {from} before it becomes {to} would cost {:.0} cycles instead of {:.0} on {}",
                after.cycles, before.cycles, cx.target.name
            );
            note(module, Verdict::Left, text);
            return Ok(false);
        }
        let text = format!(
            "reduced {from} before it becomes {to}: {:.0} cycles instead of {:.0} on {}",
            after.cycles, before.cycles, cx.target.name
        );
        note(module, Verdict::Done, text);
        if !cx.spend() {
            cx.notes.pop();
            return Ok(false);
        }
        patch.apply(module)?;
        Ok(true)
    }
}

/// The reshape that a reduce reads, and its operand.
fn reshaped_operand(module: &Module, id: InstId) -> Option<(InstId, InstId)> {
    let used = module.instruction(id).use_count() > 0 || module.is_root(id);
    let reshape = *module.operands(id).first()?;
    match (module.op(reshape), module.operands(reshape)) {
        (Op::Reshape(_), [source]) if used => Some((reshape, *source)),
        _ => None,
    }
}

/// The digits of a reshape between plain arrays with nothing attached.
fn digits_of(module: &Module, reshape: InstId, source: InstId) -> Option<Digits> {
    let (from, to) = (module.array_shape(source)?, module.array_shape(reshape)?);
    if !is_plain(from) || !is_plain(to) || module.extras(reshape).is_some() {
        return None;
    }
    Digits::of_reshape(from.dims(), to.dims())
}
