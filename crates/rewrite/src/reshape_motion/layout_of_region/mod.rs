//! **Lay the arrays of a region out along a dim that its reshapes keep.**
//!
//! ```text
//! f = copy f' copy,   f' is f on the same elements in another layout
//!
//!    X[B,T,C]{2,1,0}                           X[B,T,C]{2,1,0}
//!        │ reshape, moves all                      │ copy
//!    [B,T,H,D]{3,2,1,0}                        [B,T,C]{1,2,0}
//!        f  ────── reduce {3}       becomes        │ reshape, moves nothing
//!        │                                     [B,T,H,D]{1,3,2,0}
//!    [B,T,H,D]{3,2,1,0}                            f' ───── reduce {3}, adds whole vectors
//!        │ reshape, moves all                      │ reshape, moves nothing
//!    [B,T,C]{2,1,0}                            [B,T,C]{1,2,0}
//!                                                  │ copy
//!                                              [B,T,C]{2,1,0}
//! ```
//!
//! A reshape that splits or merges the dim along which vectors lie takes every vector apart. Here
//! T lies along the vectors instead, so that the reshape regroups whole vectors. The values are the
//! same, in other places; `f` is any elementwise ops, reshapes, transposes, broadcasts, reduces and
//! products (`dot`), which read and write either layout. All others that read or make a value of the
//! region get it in its old layout, by a copy.
//!
//! Cost-gated: a minimum cut chooses the cheapest part of the instructions around a reshape, and
//! the module is weighed with it. Preconditions: arrays are static and row-major; nothing is
//! attached; the reshape keeps a dim other than the minor one. Under `--exact`, reduces whose order
//! matters keep their layout.
//!
//! XLA assigns layouts anew, and removes such copies before it does
//! (`AlgebraicSimplifierVisitor::HandleCopy` in `xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`),
//! so there the module is as fast as it was. Kernels (`tilewright-lower`) keep the layouts.

mod part;
mod plan;
mod reach;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, EditError, InstId, Module, Op, Patch};

use crate::analysis::digits::Digits;
use crate::driver::Place;
use crate::driver::module_trial::{ModuleTrial, RewriteNote};
use crate::driver::numbers::Class;
use crate::driver::{Context, Pass};
use plan::LayoutPlan;
use reach::{Member, members_around};

/// The most dims tried for one reshape.
const MOST_DIMS: usize = 2;

/// See the module.
pub struct LayoutOfRegion;

impl Pass for LayoutOfRegion {
    fn name(&self) -> &'static str {
        "layout-of-region"
    }

    fn summary(&self) -> &'static str {
        "lay regions out along a dim that their reshapes keep"
    }

    fn class(&self) -> Class {
        Class::Regrouping
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut run = LayoutRun { trial: None, seen: FxHashSet::default() };
        let mut changes = 0;
        for reshape in moving_reshapes(module, cx) {
            if module.is_live(reshape) {
                changes += usize::from(self.lay_out(module, cx, &mut run, reshape)?);
            }
        }
        if let Some(trial) = run.trial {
            trial.leave(cx);
        }
        Ok(changes)
    }
}

/// One run of the pass over the reshapes of a module.
struct LayoutRun<'a> {
    trial: Option<ModuleTrial<'a>>,
    /// The values that were part of a region along a dim of theirs.
    seen: FxHashSet<(InstId, usize)>,
}

impl LayoutOfRegion {
    /// Lays the arrays around a reshape out along the first dim for which that pays. Returns
    /// whether there was one.
    fn lay_out<'a>(
        &self,
        module: &mut Module,
        cx: &mut Context<'a>,
        run: &mut LayoutRun<'a>,
        reshape: InstId,
    ) -> Result<bool, EditError> {
        for kept in kept_dims(module, reshape) {
            if !run.seen.insert((reshape, kept.to)) {
                continue;
            }
            let members = members_around(module, reshape, kept, cx.float_mode);
            run.seen.extend(members.iter().filter_map(|one| Some((one.id, one.result?))));
            let part = part::cheapest(module, &members, &cx.model());
            let patch = LayoutPlan::of(module, &part).patch;
            if !patch.is_empty() && cx.is_worthwhile(module, &patch) {
                let note = note(module, reshape, kept.to, &part);
                if self.attempt(module, cx, run, note, &patch)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn attempt<'a>(
        &self,
        module: &mut Module,
        cx: &mut Context<'a>,
        run: &mut LayoutRun<'a>,
        note: RewriteNote,
        patch: &Patch,
    ) -> Result<bool, EditError> {
        let trial = match &mut run.trial {
            Some(trial) => trial,
            None => run.trial.insert(ModuleTrial::of(module, cx)?),
        };
        let made = trial.attempt(self, module, cx, |module| {
            let made = patch.apply(module)?;
            Ok(Some((vec![note], made)))
        })?;
        let is_made = made.is_some();
        cx.laid_out.extend(made.into_iter().flatten());
        Ok(is_made)
    }
}

/// A dim that a reshape keeps: its number before and after it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: usize,
    to: usize,
}

/// Returns the reshapes that take vectors apart, in order.
fn moving_reshapes(module: &Module, cx: &Context<'_>) -> Vec<InstId> {
    let model = cx.model();
    let moves = |id: &InstId| {
        matches!(module.op(*id), Op::Reshape(_)) && model.of(module, *id).realigned_vectors > 0
    };
    let computations = module.computations().iter();
    computations.flat_map(|&one| module.instructions(one)).filter(moves).collect()
}

/// Returns the largest dims that a reshape keeps and that are not the minor one on both sides.
fn kept_dims(module: &Module, reshape: InstId) -> SmallVec<[Kept; MOST_DIMS]> {
    let dims_of = |id: InstId| module.array_shape(id).map(ArrayShape::dims);
    let from = module.operands(reshape).first().and_then(|&operand| dims_of(operand));
    let Some((from, to)) = from.zip(dims_of(reshape)) else { return SmallVec::new() };
    let Some(digits) = Digits::of_reshape(from, to) else { return SmallVec::new() };
    let kept = (0..to.len()).filter_map(|dim| {
        let kept = Kept { from: digits.from_dim_of_to(dim)?, to: dim };
        let is_minor = kept.from + 1 == from.len() && dim + 1 == to.len();
        (to.get(dim).is_some_and(|&size| size > 1) && !is_minor).then_some(kept)
    });
    let mut kept: SmallVec<[Kept; MOST_DIMS]> = kept.collect();
    kept.sort_by_key(|kept| std::cmp::Reverse(to.get(kept.to).copied()));
    kept.truncate(MOST_DIMS);
    kept
}

fn note(module: &Module, reshape: InstId, dim: usize, members: &[Member]) -> RewriteNote {
    let arrays = members.iter().filter(|one| one.result.is_some()).count();
    let (of, s) = (module.shape(reshape).without_layout(), if arrays == 1 { "" } else { "s" });
    RewriteNote {
        place: Place::of(module, reshape),
        what: format!("laying {arrays} array{s} out along dim {dim} of {of}"),
    }
}
