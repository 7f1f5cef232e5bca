//! **Let sums of a convolution of few images share a kernel.**
//!
//! ```text
//! barrier(x) = x
//! ```
//!
//! A compiler may move the spatial dims of a convolution of few images into its batch
//! (`xla/service/space_to_batch_converter.h`). It then computes the users of the result in that
//! form, too, and each sum of the result is a kernel of its own; the same holds for the parts of a
//! gradient. A barrier gives the result its own form again. Sums that wait for the same values then
//! read it once together.
//!
//! Preconditions: the target says below how many images the compiler does this
//! (`space_to_batch_below`); a sum reads the result, possibly through elementwise ops, reshapes and
//! transposes; the module is not divided over devices, since the number of images on one device
//! decides.
//!
//! A cost-gated pass: the next convolution may have to bring its images into the moved form again.

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, EditError, InstId, Module, Opcode, Use};
use tilewright_target::Target;

use super::{add_barrier, outside_of_fusions};
use crate::analysis::sharding::is_partitioned;
use crate::cost::contraction::moves_space;
use crate::driver::module_trial::{Edited, ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::Class;
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
        if is_partitioned(module) {
            return Ok(0);
        }
        let computations = outside_of_fusions(module).into_iter();
        let found: Vec<InstId> =
            computations.flat_map(|computation| summed(module, computation, target)).collect();
        if found.is_empty() {
            return Ok(0);
        }
        let mut trial = ModuleTrial::of(module, cx)?;
        let mut changes = trial.attempt(self, module, cx, |module| add_barriers(module, &found))?;
        // If all barriers together cost more than they save, try them in smaller groups.
        if changes.is_none() && found.len() > 1 {
            for some in classes(module, found, |&id| [id]) {
                let made = trial.attempt(self, module, cx, |module| add_barriers(module, &some))?;
                changes = Some(changes.unwrap_or(0) + made.unwrap_or(0));
            }
        }
        trial.leave(cx);
        Ok(changes.unwrap_or(0))
    }
}

/// Returns the convolutions with space in their batch whose results are summed in that form.
fn summed(module: &Module, computation: CompId, target: &Target) -> Vec<InstId> {
    // The values that a sum reads, directly or through ops that keep the form.
    let mut read: FxHashSet<InstId> = FxHashSet::default();
    for id in module.instructions(computation).rev() {
        let opcode = module.opcode(id);
        if opcode == Opcode::Reduce || keeps_form(opcode) && read.contains(&id) {
            read.extend(module.operands(id));
        }
    }
    let is_summed = |&id: &InstId| read.contains(&id) && moves_space(module, id, target);
    module.instructions(computation).filter(is_summed).collect()
}

/// Checks whether an op keeps the form of its operand: space in the batch.
fn keeps_form(opcode: Opcode) -> bool {
    opcode.is_elementwise() || matches!(opcode, Opcode::Reshape | Opcode::Transpose)
}

/// Puts barriers behind these convolutions. Returns the note and the number of
/// barriers.
fn add_barriers(module: &mut Module, found: &[InstId]) -> Result<Option<Edited<usize>>, EditError> {
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
    Ok(Some((vec![RewriteNote { place, what }], found.len())))
}
