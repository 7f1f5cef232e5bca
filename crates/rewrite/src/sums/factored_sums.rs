//! **T3: pull sums of products apart, so that those with one core are one sum.**
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
//! The gradient of a normalisation sums an image several times over, each time
//! multiplied by other small arrays. What does not vary along some summed dims comes
//! out of the sum along these; what is left is sorted, so that equal cores are found
//! to be equal, and is summed once. What comes out also need not be there before the
//! sum: it may then run beside others, in the same pass over the image.
//!
//! Preconditions: sums from an init that adds nothing, in one type; static row-major
//! shapes; nothing attached. Quotients and signs come out likewise; a conversion is
//! seen through where it is exact. Floats only where their sums may be regrouped
//! (not under `--exact`), and not in `f16` or narrower, where a sum may overflow once
//! what kept it small is pulled out. What scales a maximum must be known not to be
//! negative, and what is added to one be a float: integers wrap around. See
//! `docs/numerics.md`.
//!
//! Made where the module costs less for it on the target.

mod words;

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, EditError, ElementType, InstId, Module, Opcode, Patch};

use super::build::{Build, Replaced, replaced_by};
use super::factor::{Form, Sum, share};
use super::product::{Factor, Law};
use crate::cost::{CostModel, pays};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::place_of;
use crate::driver::scales::{Scales, Words, together};
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
        let mut found: Vec<Vec<Vec<Sum>>> = Vec::new();
        for &computation in module.computations() {
            let mut groups = groups(sums(module, computation, cx.float_mode));
            groups.retain(|group| {
                let bytes = |sum: &Sum| {
                    module.operands(sum.id).first().map(|&a| byte_size(module.shape(a)))
                };
                group.iter().filter_map(bytes).any(|bytes| bytes >= cx.least_bytes)
                    && share(group, true).iter().any(Option::is_some)
            });
            found.push(groups);
        }
        let together = together(module, found.iter().map(Vec::len).sum());
        found.retain(|groups| !groups.is_empty());
        if found.is_empty() {
            return Ok(0);
        }
        let mut state = State { scales: Scales::of(module, cx)?, replaced: Replaced::default() };
        let mut changes = 0;
        for groups in found.iter_mut().flat_map(|groups| groups.chunks_mut(together)) {
            changes += factor(module, groups, &mut state, cx)?;
        }
        Ok(changes)
    }
}

/// No more sums are looked at together.
const MOST_SUMS: usize = 256;

/// The sums of a computation that may be pulled apart, in order.
pub(super) fn sums(module: &Module, computation: CompId, float_mode: FloatMode) -> Vec<Sum> {
    let reduces = module
        .instructions(computation)
        .filter(|&id| module.opcode(id) == Opcode::Reduce && module.is_live(id));
    let sums = reduces.filter_map(|id| Sum::of(module, id, float_mode));
    sums.filter(|sum| sum.law != Law::Times || has_room(sum.monoid.element_type)).collect()
}

/// Whether sums of a type do not overflow once what kept them small is pulled out, or
/// may: integers wrap around.
fn has_room(element_type: ElementType) -> bool {
    matches!(element_type, ElementType::BF16 | ElementType::F32 | ElementType::F64)
        || element_type.is_integer()
}

/// Sums that have a factor in common, which varies along what they sum.
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

/// What was made so far.
struct State<'a> {
    scales: Scales<'a>,
    /// What sums became.
    replaced: Replaced,
}

/// Pulls the sums of these groups apart in the best way, if that pays.
fn factor(
    module: &mut Module,
    groups: &mut [Vec<Sum>],
    State { scales, replaced }: &mut State<'_>,
    cx: &mut Context<'_>,
) -> Result<usize, EditError> {
    for group in groups.iter_mut() {
        // What other sums became may have left one without use.
        group.retain(|sum| module.instruction(sum.id).parent().is_some());
        for factor in group.iter_mut().flat_map(|sum| &mut sum.product.factors) {
            factor.value = replaced.get(&factor.value).copied().unwrap_or(factor.value);
        }
    }
    let mut best: Option<(f64, Patch, Vec<Option<Form>>)> = None;
    // What comes out of a sum that stays alone may save a pass over main memory.
    let ways: &[bool] =
        if is_large(module, groups, &cx.model()) { &[false, true] } else { &[false] };
    for &alone in ways {
        let forms: Vec<_> = groups.iter().flat_map(|group| share(group, alone)).collect();
        if best.as_ref().is_some_and(|(.., same)| *same == forms) {
            continue;
        }
        if let Some(patch) = patch(module, groups.iter().flatten().zip(&forms)) {
            let cycles = scales.cycles_after(module, |module| patch.apply(module).map(|_| ()))?;
            if best.as_ref().is_none_or(|(best, ..)| pays(*best, cycles)) {
                best = Some((cycles, patch, forms));
            }
        }
    }
    let first = groups.iter().flatten().next();
    let (Some((cycles, patch, forms)), Some(first)) = (best, first) else { return Ok(0) };
    let what = words::explain(module, groups.iter().flatten().zip(&forms));
    let words = Words { place: place_of(module, first.id), what };
    if !scales.would_pay(cycles) {
        scales.refuse(&FactoredSums, words, cycles, cx);
        return Ok(0);
    }
    let made = scales.attempt(&FactoredSums, module, cx, |module| {
        let ids = patch.apply(module)?;
        Ok(Some((words, replaced_by(&patch, &ids))))
    })?;
    let changes = usize::from(made.is_some());
    replaced.extend(made.into_iter().flatten());
    Ok(changes)
}

/// Whether any of these sums reads from main memory.
fn is_large(module: &Module, groups: &[Vec<Sum>], model: &CostModel<'_>) -> bool {
    groups.iter().flatten().any(|sum| sum.is_large(module, model))
}

/// The edits that give sums these forms, if there are any.
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
