//! **T3: pull factors out of sums, so that sums with equal cores become one sum.**
//!
//! ```text
//! sum_{D1 u D2} p*q = sum_{D2} p * sum_{D1} q        p constant along D1
//!
//! sum_{hw} dy*s*r,  sum_{nhw} dy          both from  sum_{hw} dy
//! sum_{hw} d*(dy*s), sum_{nhw} d*r*dy     both from  sum_{hw} d*dy
//!
//! max(x + c) = max(x) + c      max(c*x) = c * max(x), c >= 0      (and minima; floats)
//! any(x and c) = any(x) and c  all(x or c) = all(x) or c
//! ```
//!
//! The gradient of a normalisation sums an array several times, each time multiplied by other small
//! arrays. A factor that is constant along some summed dims is pulled out of the sum along these.
//! The remaining factors are sorted, so that equal cores are found, and summed once. A factor
//! pulled out need not be computed before the sum, which may then share a memory sweep over the
//! array with others.
//!
//! Preconditions: sums with a neutral init, in one type; static row-major shapes; nothing attached.
//! Quotients and signs are pulled out likewise, and exact conversions are seen through. Floats only
//! if their sums may be regrouped (not under `--exact`), and not in `f16` or narrower, where a sum
//! may overflow without a factor that kept it small. The scale of a maximum must be known not to be
//! negative, and the term added to one must be a float: integers wrap around. See
//! `docs/numerics.md`.
//!
//! A cost-gated pass.

mod words;

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, EditError, ElementType, InstId, Module, Opcode, Patch};

use super::build::{Build, Replaced, replaced_by};
use super::factor::{Form, Sum, share};
use super::product::{Factor, Law};
use crate::cost::{CostModel, pays};
use crate::driver::Place;
use crate::driver::module_trial::{ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass, byte_size};

/// See the module.
pub struct FactoredSums;

impl Pass for FactoredSums {
    fn name(&self) -> &'static str {
        "factored-sums"
    }

    fn summary(&self) -> &'static str {
        "T3: pull factors out of sums, so that sums of one core are one"
    }

    fn class(&self) -> Class {
        Class::Bounded
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let mut found: Vec<Vec<Sum>> = Vec::new();
        for &computation in module.computations() {
            let mut groups = groups(sums(module, computation, cx.float_mode));
            groups.retain(|group| {
                let bytes = |sum: &Sum| {
                    module.operands(sum.id).first().map(|&a| byte_size(module.shape(a)))
                };
                group.iter().filter_map(bytes).any(|bytes| bytes >= cx.least_bytes)
                    && share(group, true).iter().any(Option::is_some)
            });
            found.extend(groups);
        }
        let mut begun: Option<FactoringRun<'_>> = None;
        let mut changes = 0;
        for mut groups in classes(module, found, |group| members(group)) {
            let run = match &mut begun {
                Some(run) => run,
                None => begun.insert(FactoringRun {
                    trial: ModuleTrial::of(module, cx)?,
                    replaced: Replaced::default(),
                }),
            };
            changes += factor(module, &mut groups, run, cx)?;
        }
        if let Some(FactoringRun { trial, .. }) = begun {
            trial.leave(cx);
        }
        Ok(changes)
    }
}

/// Returns the sums of a group and their factors.
fn members(group: &[Sum]) -> Vec<InstId> {
    let of = |sum: &Sum| {
        let factors = sum.product.factors.iter().map(|factor| factor.value);
        [sum.id].into_iter().chain(factors).collect::<Vec<_>>()
    };
    group.iter().flat_map(of).collect()
}

/// The most sums in one group.
const MOST_SUMS: usize = 256;

/// Returns the live sums of a computation that may be pulled apart, in order.
pub(crate) fn sums(module: &Module, computation: CompId, float_mode: FloatMode) -> Vec<Sum> {
    let reduces = module
        .instructions(computation)
        .filter(|&id| module.opcode(id) == Opcode::Reduce && module.is_live(id));
    let sums = reduces.filter_map(|id| Sum::of(module, id, float_mode));
    sums.filter(|sum| sum.law != Law::Times || has_room(sum.monoid.element_type)).collect()
}

/// Checks whether sums of a type may lose a factor that kept them small: the type has a wide
/// range, or its overflow wraps around.
fn has_room(element_type: ElementType) -> bool {
    matches!(element_type, ElementType::BF16 | ElementType::F32 | ElementType::F64)
        || element_type.is_integer()
}

/// Groups of sums that share a factor which varies along summed ranges.
fn groups(sums: Vec<Sum>) -> Vec<Vec<Sum>> {
    let mut joined = UnionFind::<usize>::new(sums.len());
    let mut first: FxHashMap<InstId, usize> = FxHashMap::default();
    for (i, sum) in sums.iter().enumerate() {
        let varying = |factor: &&Factor| sum.summed.iter().any(|&range| factor.varies_along(range));
        for factor in sum.product.factors.iter().filter(varying) {
            joined.union(*first.entry(factor.value).or_insert(i), i);
        }
    }
    let mut places: FxHashMap<usize, usize> = FxHashMap::default();
    let mut groups: Vec<Vec<Sum>> = Vec::new();
    for (i, sum) in sums.into_iter().enumerate() {
        let place = places.entry(joined.find(i)).or_insert(groups.len());
        if groups.get(*place).is_some_and(|group| group.len() == MOST_SUMS) {
            *place = groups.len();
        }
        match groups.get_mut(*place) {
            Some(group) => group.push(sum),
            None => groups.push(vec![sum]),
        }
    }
    groups
}

/// Returns the edits that pull all factors out of the sums of these arrays, and out of sums that share
/// another array with one of them, whatever that costs; `None` if there are none.
pub(super) fn pulled_out(
    module: &Module,
    computation: CompId,
    arrays: &[InstId],
    float_mode: FloatMode,
) -> Option<Patch> {
    let has = |sum: &Sum| sum.product.factors.iter().any(|factor| arrays.contains(&factor.value));
    let mut groups = groups(sums(module, computation, float_mode));
    groups.retain(|group| group.iter().any(has));
    let forms: Vec<_> = groups.iter().flat_map(|group| share(group, true)).collect();
    patch(module, groups.iter().flatten().zip(&forms))
}

/// The state of one run of the pass.
struct FactoringRun<'a> {
    trial: ModuleTrial<'a>,
    /// The replacements of sums so far.
    replaced: Replaced,
}

/// Rewrites the sums of these groups in the cheapest way, if that pays.
fn factor(
    module: &mut Module,
    groups: &mut [Vec<Sum>],
    FactoringRun { trial, replaced }: &mut FactoringRun<'_>,
    cx: &mut Context<'_>,
) -> Result<usize, EditError> {
    for group in groups.iter_mut() {
        // Earlier rewrites may have removed a sum.
        group.retain(|sum| module.instruction(sum.id).parent().is_some());
        for factor in group.iter_mut().flat_map(|sum| &mut sum.product.factors) {
            factor.value = replaced.get(&factor.value).copied().unwrap_or(factor.value);
        }
    }
    let mut best: Option<(f64, Patch, Vec<Option<Form>>)> = None;
    // A factor pulled out of a lone sum may save a memory sweep.
    let ways: &[bool] =
        if is_large(module, groups, &cx.model()) { &[false, true] } else { &[false] };
    for &alone in ways {
        let forms: Vec<_> = groups.iter().flat_map(|group| share(group, alone)).collect();
        if best.as_ref().is_some_and(|(.., same)| *same == forms) {
            continue;
        }
        if let Some(patch) = patch(module, groups.iter().flatten().zip(&forms)) {
            let cycles = trial.cycles_after(module, |module| patch.apply(module).map(|_| ()))?;
            if best.as_ref().is_none_or(|(best, ..)| pays(*best, cycles)) {
                best = Some((cycles, patch, forms));
            }
        }
    }
    let Some((cycles, patch, forms)) = best else { return Ok(0) };
    let (mut notes, mut left) = (Vec::new(), forms.as_slice());
    for group in groups.iter() {
        let Some((of_group, rest)) = left.split_at_checked(group.len()) else { break };
        left = rest;
        let what = words::explain(module, group.iter().zip(of_group));
        if let Some(first) = group.first().filter(|_| !what.is_empty()) {
            notes.push(RewriteNote { place: Place::of(module, first.id), what });
        }
    }
    let changes = notes.len();
    if !trial.would_pay(cycles) {
        trial.refuse(&FactoredSums, notes, cycles, cx);
        return Ok(0);
    }
    let made = trial.attempt(&FactoredSums, module, cx, |module| {
        let ids = patch.apply(module)?;
        Ok(Some((notes, replaced_by(&patch, &ids))))
    })?;
    let changes = if made.is_some() { changes } else { 0 };
    replaced.extend(made.into_iter().flatten());
    Ok(changes)
}

/// Checks whether any of these sums reads from main memory.
fn is_large(module: &Module, groups: &[Vec<Sum>], model: &CostModel<'_>) -> bool {
    groups.iter().flatten().any(|sum| sum.is_large(module, model))
}

/// Returns the edits that give the sums these forms; `None` if there are none.
fn patch<'a>(
    module: &Module,
    sums: impl Iterator<Item = (&'a Sum, &'a Option<Form>)>,
) -> Option<Patch> {
    let mut build = Build::new(module);
    for (sum, form) in sums {
        if let Some(form) = form {
            build.add(sum, form)?;
        }
    }
    Some(build.patch).filter(|patch| !patch.is_empty())
}
