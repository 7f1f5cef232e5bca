//! Makes rewrites of single instructions where they pay.

use smallvec::SmallVec;
use tilewright_ir::{EditError, InstId, Module, Opcode, Patch};

use super::candidate::{Candidate, Cycles, Scope};
use super::numbers::FloatMode;
use super::pass::{Context, Pass};
use super::reason::Refusal;
use super::report::Place;

/// A rewrite that could be made, with the words for its note.
pub(crate) struct Attempt {
    /// The edits.
    pub(crate) patch: Patch,
    /// The values that the patch does not read, each once. They become unused with the instruction
    /// itself, unless others use them.
    pub(crate) frees: SmallVec<[InstId; 2]>,
    /// The words for the rewrite that was made: `reduced f32[8] before it is transposed`.
    pub(crate) done: String,
    /// The words for the rewrite that is not made: `reducing f32[8] before it is transposed`.
    pub(crate) would: String,
}

/// Visits each used instruction with one of these opcodes (any opcode if the list is empty) once,
/// and makes the rewrites found that cost less than the code that they replace. Notes each rewrite
/// made, and each refused one with the reason. Returns the number of rewrites.
pub(crate) fn attempt_each(
    pass: &dyn Pass,
    opcodes: &[Opcode],
    module: &mut Module,
    cx: &mut Context<'_>,
    find: impl Fn(&Module, InstId, FloatMode) -> Option<Result<Attempt, Refusal>>,
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
            let place = Place::of(module, id);
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

/// Returns a rewrite of an instruction with its savings, and its edits.
pub(crate) fn weigh(
    module: &Module,
    id: InstId,
    attempt: Attempt,
    place: Place,
    cx: &Context<'_>,
) -> (Candidate, Patch) {
    let Attempt { patch, frees, done, would } = attempt;
    let model = cx.model();
    let mut before = model.of(module, id);
    for freed in unused_without(module, id, frees) {
        before += model.of(module, freed);
    }
    let after = model.patch(module, &patch).cycles;
    let cycles = Cycles { before: before.cycles, after, of: Scope::Instructions };
    (Candidate { place, done, would, also: String::new(), cycles }, patch)
}

/// Returns the instructions in `left` that become unused with `id`: only `id` and other such
/// instructions use them.
fn unused_without(
    module: &Module,
    id: InstId,
    mut left: SmallVec<[InstId; 2]>,
) -> SmallVec<[InstId; 2]> {
    let mut gone: SmallVec<[InstId; 2]> = SmallVec::new();
    // Users stand after their operands, but `left` may hold them in any order.
    loop {
        let is_used = |&mut other: &mut InstId| {
            let goes = |user: InstId| user == id || gone.contains(&user);
            module.is_root(other) || !module.uses(other).all(|one| goes(one.user))
        };
        let mut still = left.clone();
        still.retain(is_used);
        if still.len() == left.len() {
            return gone;
        }
        gone.extend(left.iter().copied().filter(|other| !still.contains(other)));
        left = still;
    }
}
