//! Rewrites of single instructions, made where they pay.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Opcode, Patch};

use super::numbers::FloatMode;
use super::pass::{Context, Pass};
use super::report::{Note, Verdict, place_of};
use crate::cost::pays;

/// A rewrite that could be made, and how to speak of it.
pub(crate) struct Attempt {
    /// The edits.
    pub(crate) patch: Patch,
    /// What is unused then, besides the instruction itself, unless others use
    /// it: operands of the instruction, each once.
    pub(crate) frees: SmallVec<[InstId; 2]>,
    /// What was done: `reduced f32[8] before it is transposed`.
    pub(crate) done: String,
    /// What would be: `reducing f32[8] before it is transposed`.
    pub(crate) would: String,
}

/// Goes once over the used instructions of an opcode and makes the rewrites
/// found that cost less than what they replace; says what was done, and what was
/// not and why. The number of rewrites.
pub(crate) fn attempt_each(
    pass: &dyn Pass,
    opcode: Opcode,
    module: &mut Module,
    cx: &mut Context<'_>,
    find: impl Fn(&Module, InstId, FloatMode) -> Option<Result<Attempt, String>>,
) -> Result<usize, EditError> {
    let mut changes = 0;
    for computation in module.computations().to_vec() {
        let instructions = module.instructions(computation);
        let candidates: Vec<InstId> =
            instructions.filter(|&id| module.opcode(id) == opcode).collect();
        for id in candidates {
            if module.instruction(id).use_count() == 0 && !module.is_root(id) {
                continue;
            }
            let Some(found) = find(module, id, cx.float_mode) else { continue };
            if found.as_ref().is_ok_and(|found| !cx.is_worthwhile(module, &found.patch)) {
                continue;
            }
            let (verdict, text) = match &found {
                Ok(attempt) => judge(module, id, attempt, cx),
                Err(why) => (Verdict::Left, why.clone()),
            };
            let note = Note { pass: pass.name(), verdict, place: place_of(module, id), text };
            let patch = found.ok().filter(|_| verdict == Verdict::Done);
            if patch.is_some() && !cx.spend(note.pass, &note.place) {
                continue;
            }
            cx.notes.push(note);
            if let Some(Attempt { patch, .. }) = patch {
                patch.apply(module)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}

/// Whether a rewrite of an instruction pays, and what to say of it.
pub(crate) fn judge(
    module: &Module,
    id: InstId,
    attempt: &Attempt,
    cx: &Context<'_>,
) -> (Verdict, String) {
    let model = cx.model();
    let mut before = model.of(module, id);
    let mut uses: FxHashMap<InstId, usize> = FxHashMap::default();
    for &operand in module.operands(id) {
        *uses.entry(operand).or_default() += 1;
    }
    for &operand in &attempt.frees {
        let only = uses.get(&operand) == Some(&module.instruction(operand).use_count());
        if only && !module.is_root(operand) {
            before += model.of(module, operand);
        }
    }
    let (before, after) = (before.cycles, model.patch(module, &attempt.patch).cycles);
    let costs = format!("{after:.0} cycles instead of {before:.0} on {}", cx.target.name);
    if pays(before, after) {
        (Verdict::Done, format!("{}: {costs}", attempt.done))
    } else {
        (Verdict::Left, format!("{} would cost {costs}", attempt.would))
    }
}
