//! Rewrites of single instructions, made where they pay.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Opcode, Patch};

use super::candidate::{Candidate, Cycles, Scope};
use super::numbers::FloatMode;
use super::pass::{Context, Pass};
use super::report::place_of;

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

/// Goes once over the used instructions of these ops, all if there are none, and makes the rewrites
/// found that cost less than what they replace; says what was done, and what was
/// not and why. The number of rewrites.
pub(crate) fn attempt_each(
    pass: &dyn Pass,
    opcodes: &[Opcode],
    module: &mut Module,
    cx: &mut Context<'_>,
    find: impl Fn(&Module, InstId, FloatMode) -> Option<Result<Attempt, String>>,
) -> Result<usize, EditError> {
    let mut changes = 0;
    for computation in module.computations().to_vec() {
        let instructions = module.instructions(computation);
        let is_one = |&id: &InstId| opcodes.is_empty() || opcodes.contains(&module.opcode(id));
        let candidates: Vec<InstId> = instructions.filter(is_one).collect();
        for id in candidates {
            if module.instruction(id).use_count() == 0 && !module.is_root(id) {
                continue;
            }
            let Some(found) = find(module, id, cx.float_mode) else { continue };
            if found.as_ref().is_ok_and(|found| !cx.is_worthwhile(module, &found.patch)) {
                continue;
            }
            let place = place_of(module, id);
            let patch = match found {
                Ok(attempt) => {
                    let (candidate, patch) = weigh(module, id, attempt, place, cx);
                    cx.accept(pass.name(), candidate).then_some(patch)
                }
                Err(why) => {
                    cx.refuse(pass.name(), place, why);
                    None
                }
            };
            if let Some(patch) = patch {
                patch.apply(module)?;
                changes += 1;
            }
        }
    }
    Ok(changes)
}

/// A rewrite of an instruction with what it saves, and its edits.
pub(crate) fn weigh(
    module: &Module,
    id: InstId,
    attempt: Attempt,
    place: String,
    cx: &Context<'_>,
) -> (Candidate, Patch) {
    let Attempt { patch, frees, done, would } = attempt;
    let model = cx.model();
    let mut before = model.of(module, id);
    let mut uses: FxHashMap<InstId, usize> = FxHashMap::default();
    for &operand in module.operands(id) {
        *uses.entry(operand).or_default() += 1;
    }
    for &operand in &frees {
        let only = uses.get(&operand) == Some(&module.instruction(operand).use_count());
        if only && !module.is_root(operand) {
            before += model.of(module, operand);
        }
    }
    let after = model.patch(module, &patch).cycles;
    let cycles = Cycles { before: before.cycles, after, of: Scope::Instructions };
    (Candidate { place, done, would, also: String::new(), cycles }, patch)
}
