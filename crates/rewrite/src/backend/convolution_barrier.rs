//! **Let sums of a convolution of few images share a kernel.**
//!
//! ```text
//! barrier(x) = x
//! ```
//!
//! A compiler that moves space into the batch of convolutions of few images computes what reads their
//! results in that form, too (`xla/service/space_to_batch_converter.h`): each sum is a kernel of its own
//! there, and so are the parts of a gradient. After a barrier, the result has its own form again, and sums
//! that wait for the same values read it once together.
//!
//! Preconditions: a target that says of how few images it moves the space; a sum reads the result, possibly
//! through elementwise operations, reshapes and transposes. A cost-gated pass: bringing the result back is a copy.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{CompId, EditError, InstId, Module, Opcode, Use};

use super::{add_barrier, outside_of_fusions};
use crate::cost::contraction::moves_space;
use crate::driver::numbers::Class;
use crate::driver::scales::{Edited, Scales, Words, together};
use crate::driver::{Context, Pass, Place};

/// See the module.
pub struct ConvolutionBarrier;

impl Pass for ConvolutionBarrier {
    fn name(&self) -> &'static str {
        "convolution-barrier"
    }

    fn summary(&self) -> &'static str {
        "let sums of a convolution of few images share a kernel"
    }

    fn class(&self) -> Class {
        Class::Exact
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let target = cx.target;
        let is_moved = |module: &Module, id| moves_space(module, id, target);
        let mut found: Vec<InstId> = Vec::new();
        for computation in outside_of_fusions(module) {
            found.extend(summed(module, computation, &is_moved));
        }
        if found.is_empty() {
            return Ok(0);
        }
        let mut scales = Scales::of(module, cx)?;
        let mut changes = scales.attempt(self, module, cx, |module| bar(module, &found))?;
        // Where all together cost more than they save, some may not.
        if changes.is_none() && found.len() > 1 {
            for some in found.chunks(together(module, found.len())) {
                let made = scales.attempt(self, module, cx, |module| bar(module, some))?;
                changes = Some(changes.unwrap_or(0) + made.unwrap_or(0));
            }
        }
        scales.leave(cx);
        Ok(changes.unwrap_or(0))
    }
}

/// Returns the convolutions with space in their batch of which anything is summed in that form.
fn summed(
    module: &Module,
    computation: CompId,
    is_moved: &dyn Fn(&Module, InstId) -> bool,
) -> Vec<InstId> {
    // The convolutions that a value is computed from: few, as a rule.
    let mut from: FxHashMap<InstId, SmallVec<[InstId; 2]>> = FxHashMap::default();
    let mut summed: FxHashSet<InstId> = FxHashSet::default();
    let mut convolutions = Vec::new();
    for id in module.instructions(computation) {
        if is_moved(module, id) {
            from.insert(id, SmallVec::from_slice(&[id]));
            convolutions.push(id);
            continue;
        }
        let mut own: SmallVec<[InstId; 2]> = SmallVec::new();
        for of in module.operands(id).iter().filter_map(|operand| from.get(operand)) {
            let new = of.iter().filter(|one| !own.contains(one)).copied();
            let new: SmallVec<[InstId; 2]> =
                new.take(MOST_SOURCES.saturating_sub(own.len())).collect();
            own.extend(new);
        }
        let opcode = module.opcode(id);
        if opcode == Opcode::Reduce {
            summed.extend(own);
        } else if !own.is_empty() && keeps_form(opcode) {
            from.insert(id, own);
        }
    }
    convolutions.retain(|id| summed.contains(id));
    convolutions
}

/// Checks whether what an op computes from a convolution's result has its form.
fn keeps_form(opcode: Opcode) -> bool {
    opcode.is_elementwise() || matches!(opcode, Opcode::Reshape | Opcode::Transpose)
}

/// The most convolutions that are counted as those that a value is computed from.
const MOST_SOURCES: usize = 8;

/// Puts barriers behind these convolutions; returns their number.
fn bar(module: &mut Module, found: &[InstId]) -> Result<Option<Edited<usize>>, EditError> {
    let Some(&first) = found.first() else { return Ok(None) };
    let place = Place::of(module, first);
    let what = match found {
        [one] => format!("a barrier behind `{}`", module.name_of(*one)),
        _ => format!("barriers behind {} convolutions", found.len()),
    };
    for &id in found {
        let users: Vec<Use> = module.uses(id).collect();
        add_barrier(module, id, &users)?;
    }
    Ok(Some((Words { place, what }, found.len())))
}
