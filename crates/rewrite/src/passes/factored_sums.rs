//! **T3: pull sums of products apart, so that those with one core are one sum.**
//!
//! ```text
//! sum_{D1 u D2} p*q = sum_{D2} p * sum_{D1} q        p constant along D1
//!
//! sum_{hw} dy*s*r,  sum_{nhw} dy          both from  sum_{hw} dy
//! sum_{hw} d*(dy*s), sum_{nhw} d*r*dy     both from  sum_{hw} d*dy
//! ```
//!
//! The gradient of a normalisation sums an image several times over, each time
//! multiplied by other small arrays. What does not vary along some summed dims comes
//! out of the sum along these; what is left is sorted, so that equal cores are found
//! to be equal, and is summed once. What comes out also need not be there before the
//! sum: it may then run beside others, in the same pass over the image.
//!
//! Preconditions: sums from an init that adds nothing, in one type; static row-major
//! shapes; nothing attached. Quotients and signs come out likewise; a conversion is
//! seen through where it is exact. Floats only where their sums may be regrouped
//! (not under `--exact`), and not in `f16`, where a sum may overflow once what kept
//! it small is pulled out. See `docs/numerics.md`.
//!
//! Made where the module costs less for it on the target.

mod words;

use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, EditError, ElementType, InstId, Module, Opcode, Patch};
use tilewright_target::Target;

use super::sum_build::Build;
use super::weight::{Weight, judge};
use crate::analysis::cost::{CostModel, pays};
use crate::analysis::factored::{Form, Sum, share};
use crate::pass::{Context, Pass};
use crate::passes::dce::DeadCode;

/// See the module.
pub struct FactoredSums;

impl Pass for FactoredSums {
    fn name(&self) -> &'static str {
        "factored-sums"
    }

    fn summary(&self) -> &'static str {
        "T3: pull factors out of sums, so that sums of one core are one"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            for group in groups(sums(module, computation, cx.exact)) {
                changes += factor(module, &group, cx)?;
            }
        }
        Ok(changes)
    }
}

/// The sums of a computation that may be pulled apart, in order.
pub(super) fn sums(module: &Module, computation: CompId, exact: bool) -> Vec<Sum> {
    let reduces = module.instructions(computation).filter(|&id| {
        module.opcode(id) == Opcode::Reduce
            && (module.instruction(id).use_count() > 0 || module.is_root(id))
    });
    let sums = reduces.filter_map(|id| Sum::of(module, id, exact));
    sums.filter(|sum| sum.element_type != ElementType::F16).collect()
}

/// Sums that have a factor in common, which varies along what they sum.
fn groups(sums: Vec<Sum>) -> Vec<Vec<Sum>> {
    let mut group_of: FxHashMap<InstId, usize> = FxHashMap::default();
    let mut groups: Vec<Vec<Sum>> = Vec::new();
    for sum in sums {
        let varying = sum
            .product
            .factors
            .iter()
            .filter(|factor| sum.summed.iter().any(|&span| factor.varies_along(span)));
        let values: Vec<InstId> = varying.map(|factor| factor.value).collect();
        let mut found: Vec<usize> =
            values.iter().filter_map(|value| group_of.get(value).copied()).collect();
        found.sort_unstable();
        found.dedup();
        let home = found.first().copied().unwrap_or(groups.len());
        if home == groups.len() {
            groups.push(Vec::new());
        }
        for &other in found.iter().skip(1) {
            let moved = std::mem::take(&mut groups[other]);
            groups[home].extend(moved);
            group_of.values_mut().filter(|group| **group == other).for_each(|group| *group = home);
        }
        groups[home].push(sum);
        group_of.extend(values.into_iter().map(|value| (value, home)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Pulls the sums of a group apart in the best way, if that pays.
fn factor(module: &mut Module, sums: &[Sum], cx: &mut Context<'_>) -> Result<usize, EditError> {
    let mut best: Option<(Weight, Patch, Vec<Option<Form>>)> = None;
    // What comes out of a sum that stays alone may save a pass over main memory.
    let ways: &[bool] = if is_large(module, sums, cx.target) { &[false, true] } else { &[false] };
    for &alone in ways {
        let forms = share(sums, alone);
        if let Some(patch) = patch(module, sums, &forms) {
            let weight = tried(module, &patch, cx)?;
            if best.as_ref().is_none_or(|(best, ..)| pays(best.cycles, weight.cycles)) {
                best = Some((weight, patch, forms));
            }
        }
    }
    let (Some((weight, patch, forms)), Some(first)) = (best, sums.first()) else { return Ok(0) };
    let what = words::explain(module, sums, &forms);
    let made = judge(&FactoredSums, module, first.id, &what, &weight, cx);
    if made {
        patch.apply(module)?;
    }
    Ok(usize::from(made))
}

/// Whether any of these sums reads from main memory.
fn is_large(module: &Module, sums: &[Sum], target: &Target) -> bool {
    let model = CostModel { target };
    sums.iter()
        .filter_map(|sum| module.operands(sum.id).first())
        .any(|&array| !model.stays_on_chip(model.weigh(module.shape(array))))
}

/// The edits that give sums these forms, if there are any.
fn patch(module: &Module, sums: &[Sum], forms: &[Option<Form>]) -> Option<Patch> {
    let mut build = Build::new(module);
    for (sum, form) in sums.iter().zip(forms) {
        if let Some(form) = form {
            build.add(sum, form)?;
        }
    }
    Some(build.patch).filter(|patch| !patch.is_empty())
}

/// What the module would weigh.
fn tried(module: &Module, patch: &Patch, cx: &mut Context<'_>) -> Result<Weight, EditError> {
    let mut module = module.clone();
    patch.apply(&mut module)?;
    DeadCode.run(&mut module, cx)?;
    Ok(Weight::of(&module, cx.target))
}
