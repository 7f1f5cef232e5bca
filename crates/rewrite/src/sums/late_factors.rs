//! **T5: sum terms without the factors that they wait for.**
//!
//! ```text
//! sum (p + k*q)  =  sum p + k * sum q            k constant along the sum
//! ```
//!
//! The gradient of a norm sums `r*dy + k*(x-c)`, where r and k are computed from sums of the same arrays, the
//! squares of `x-c` and the products `dy*(x-c)`. So this sum takes another sweep over both arrays. Apart from r
//! and k, its terms are summed in the sweep of the other sums, and where devices hold parts of the arrays, in
//! their round of communication.
//!
//! Where the terms cancel each other, as they do for a `dy` along `x-c`, their sums are larger than what is left
//! of them, and so are the roundings. A guard (`guard.rs`) tests for that when the program runs:
//!
//! ```text
//! 2 * sum over q of |k| * sqrt(n * sum q^2)  <=  |r| * sum |p|
//! ```
//!
//! for one term p and all others q of n elements. Where it holds, the form errs by at most 4 times the bound of the
//! original's error; `docs/numerics.md` has the proof. `--fast-math` leaves the guard out.
//!
//! Preconditions: those of [`super::factored_sums`], and of a guard; a sum of an array in main memory, in `f32` or
//! `f64`, of several terms, one of which has a factor that is constant along the sum and computed from a sum of a
//! large array. A cost-gated pass, because it saves memory sweeps and rounds.

mod terms;

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, Data, EditError, ElementType, InstId, Module, Op, Opcode, Value};

use super::build::{At, Build, Placed, Replaced, replaced_by};
use super::factor::{Form, Sum};
use super::factored_sums::sums;
use super::guard::{self, Guarded, Guards};
use super::product::{Factor, Law, Product};
use crate::analysis::index_range::{Cuts, IndexRange};
use crate::analysis::whole_number::whole_number;
use crate::cost::CostModel;
use crate::driver::Place;
use crate::driver::module_trial::{Edited, ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};
use terms::Terms;

/// The name of the pass.
const NAME: &str = "late-factors";

/// See the module.
pub struct LateFactors;

impl Pass for LateFactors {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "T5: sum terms without the factors that they wait for (guarded, or --fast-math)"
    }

    fn class(&self) -> Class {
        Class::FastMath
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let is_guarded = !cx.float_mode.allow(Class::FastMath);
        if is_guarded && !guard::are_made(cx) {
            return Ok(0);
        }
        let mut found = Vec::new();
        for &computation in module.computations() {
            found.extend(split(module, computation, &cx.model()));
        }
        let sums = found.iter().map(|split| split.sum.id);
        let guards = is_guarded.then(|| Guards::of(module, cx.target, sums));
        if let Some(guards) = &guards {
            found.retain(|split| guards.original(module, split.sum.id).is_some());
        }
        if found.is_empty() {
            return Ok(0);
        }
        let (mut changes, mut replaced) = (0, Replaced::default());
        let mut trial = ModuleTrial::of(module, cx)?;
        for splits in classes(module, found, |split| [split.sum.id]) {
            let mut now = replaced.clone();
            let made = trial.attempt(self, module, cx, |module| {
                rewrite(module, &splits, guards.as_ref(), &mut now)
            })?;
            if let Some(made) = made {
                (changes, replaced) = (changes + made, now);
            }
        }
        trial.leave(cx);
        Ok(changes)
    }
}

/// A sum of several terms, of which late factors come out.
struct Split {
    sum: Sum,
    /// The terms; the guard compares the others with the first one.
    terms: Vec<Term>,
}

/// A term of a sum.
#[derive(Clone)]
struct Term {
    /// Whether it is subtracted.
    negative: bool,
    /// The sum of what stays, times the factors that come out.
    form: Form,
}

impl Split {
    /// Returns a large sum as one of several terms; `None` if no late factor comes out of it.
    fn of(
        module: &Module,
        sum: Sum,
        late: &FxHashSet<InstId>,
        model: &CostModel<'_>,
    ) -> Option<Self> {
        let is_wide = matches!(sum.monoid.element_type, ElementType::F32 | ElementType::F64);
        (is_wide && sum.law == Law::Times && sum.is_large(module, model)).then_some(())?;
        let mut finding = Terms::new(module, &sum, late);
        let products = finding.found().filter(|terms| terms.len() > 1)?;
        let mut comes_out = false;
        let mut term = |product: Product| {
            let stays = product.factors.iter().map(|factor| !finding.comes_out(factor));
            let stays: Vec<bool> = stays.collect();
            comes_out |= stays.contains(&false);
            let negative = product.negative;
            let (tame, bounded) = (Vec::new(), Vec::new());
            let of_term = Sum { product, tame, bounded, ..sum.clone() };
            Some(Term { negative, form: of_term.staged(&sum.summed, &stays)? })
        };
        let mut terms: Vec<Term> = products.into_iter().map(&mut term).collect::<Option<_>>()?;
        // A term that waits for nothing comes first. The squares of the others are sums about a centre, where
        // that is what they wait for.
        terms.sort_by_key(|term| term.form.core.factors.iter().any(|f| late.contains(&f.value)));
        comes_out.then_some(Self { sum, terms })
    }

    /// Replaces factors by their replacements in earlier rewrites.
    fn followed(&self, replaced: &Replaced) -> Self {
        let mut terms = self.terms.clone();
        let forms = terms.iter_mut().map(|term| &mut term.form);
        for factor in
            forms.flat_map(|form| form.core.factors.iter_mut().chain(&mut form.after.factors))
        {
            factor.value = replaced.get(&factor.value).copied().unwrap_or(factor.value);
        }
        Self { sum: self.sum.clone(), terms }
    }

    /// Returns the dims of the results, cut so that every factor that comes out has some of them.
    fn digits(&self) -> Option<Vec<IndexRange>> {
        let Sum { elements, ref kept, ref summed, .. } = self.sum;
        let forms = self.terms.iter().map(|term| &term.form);
        let factors = forms.flat_map(|form| form.core.factors.iter().chain(&form.after.factors));
        let ends = factors.flat_map(|factor| &factor.ranges).chain(kept).chain(summed);
        let digits = Cuts::of(elements, ends.copied())?.digits();
        Some(digits.into_iter().filter(|digit| !self.sum.sums(*digit)).collect())
    }

    /// Plans the sum: what stays of each term is summed, and multiplied by what comes out of it.
    fn value(&self, build: &mut Build<'_>, at: At<'_>, digits: &[IndexRange]) -> Option<Value> {
        let mut total: Option<(bool, Value)> = None;
        for Term { negative, form } in &self.terms {
            let core = build.core(at, &form.core, &form.tree)?;
            let value = times(build, at, core, form, digits)?;
            total = Some(match (total, *negative) {
                (None, negative) => (negative, value),
                (Some((true, first)), false) => {
                    (false, build.op(at, Op::Subtract, digits, [value, first]))
                }
                (Some((sign, first)), negative) => {
                    let op = if sign == negative { Op::Add } else { Op::Subtract };
                    (sign, build.op(at, op, digits, [first, value]))
                }
            });
        }
        let (negative, value) = total?;
        Some(if negative { build.op(at, Op::Negate, digits, [value]) } else { value })
    }

    /// Plans the test: `lead` are the absolute values of the factors that stay in the first term.
    fn guarded(&self, build: &mut Build<'_>, at: At<'_>, lead: &[Factor]) -> Option<Guarded> {
        let digits = self.digits()?;
        let value = self.value(build, at, &digits)?;
        let (first, others) = self.terms.split_first()?;
        let lead = build.sum_of(at, lead.to_vec())?;
        let lead = times(build, at, lead, &first.form, &digits)?;
        let more = build.op(at, Op::Abs, &digits, [lead]);
        let mut less: Option<Value> = None;
        for Term { form, .. } in others {
            let size = size(build, at, form, &digits)?;
            less = Some(match less {
                Some(less) => build.op(at, Op::Add, &digits, [less, size]),
                None => size,
            });
        }
        let less = build.op(at, Op::Add, &digits, [less?, less?]);
        let value = Placed { value, digits };
        Some(Guarded { value, compared: [less, more], finite: more })
    }
}

/// Plans a sum of what stays of a term, times what comes out of it.
fn times(
    build: &mut Build<'_>,
    at: At<'_>,
    sum: Placed,
    form: &Form,
    digits: &[IndexRange],
) -> Option<Value> {
    let sum = build.cut(at, sum, digits.to_vec());
    build.times(at, &sum, &form.after)
}

/// Plans a bound of the sum of the absolute values of a term:
///
/// `|k| * sum |q|  <=  |k| * sqrt(n * (sum q^2 + n*m))`
///
/// by Cauchy and Schwarz, for n values. The squares lose at most the smallest normal number m each below the range
/// of their type. Squares of `x-c` are summed in many programs anyway, and moments, which
/// [`super::shifted_moments`] knows.
fn size(build: &mut Build<'_>, at: At<'_>, form: &Form, digits: &[IndexRange]) -> Option<Value> {
    let Sum { monoid, .. } = at.sum;
    let twice = form.core.factors.iter().chain(&form.core.factors).cloned().collect();
    let squares = build.sum_of(at, twice)?;
    let squares = build.cut(at, squares, digits.to_vec());
    let count = build.number(at, whole_number(monoid.element_type, at.sum.count()?)?, digits)?;
    let least = build.number(at, smallest_normal(monoid.element_type)?, digits)?;
    let lost = build.op(at, Op::Multiply, digits, [count, least]);
    let squares = build.op(at, Op::Add, digits, [squares.value, lost]);
    let squares = build.op(at, Op::Multiply, digits, [count, squares]);
    let root = build.op(at, Op::Sqrt(Box::default()), digits, [squares]);
    let root = Placed { value: root, digits: digits.to_vec() };
    let size = build.times(at, &root, &form.after)?;
    Some(build.op(at, Op::Abs, digits, [size]))
}

fn smallest_normal(element_type: ElementType) -> Option<Data> {
    match element_type {
        ElementType::F32 => Some(Data::F32(vec![f32::MIN_POSITIVE])),
        ElementType::F64 => Some(Data::F64(vec![f64::MIN_POSITIVE])),
        _ => None,
    }
}

/// Returns the large sums of a computation of which late factors come out.
fn split(module: &Module, computation: CompId, model: &CostModel<'_>) -> Vec<Split> {
    let late = late(module, computation, model);
    let sums = sums(module, computation, FloatMode::Fast).into_iter();
    sums.filter_map(|sum| Split::of(module, sum, &late, model)).collect()
}

/// Returns the values that wait for a sum of a large array.
fn late(module: &Module, computation: CompId, model: &CostModel<'_>) -> FxHashSet<InstId> {
    let is_large = |&id: &InstId| !model.stays_on_chip(model.with_footprint(module.shape(id)));
    let mut late = FxHashSet::default();
    for id in module.instructions(computation) {
        let operands = module.operands(id);
        let sums = module.opcode(id) == Opcode::Reduce && operands.iter().any(is_large);
        if sums || operands.iter().any(|operand| late.contains(operand)) {
            late.insert(id);
        }
    }
    late
}

/// Splits a sum, whatever the data; returns what replaced it.
fn plain(module: &mut Module, split: &Split) -> Result<Option<Replaced>, EditError> {
    let mut build = Build::new(module);
    let planned = At::new(module, &split.sum).zip(split.digits()).and_then(|(at, digits)| {
        let value = split.value(&mut build, at, &digits)?;
        build.finish(at, Placed { value, digits });
        Some(build.patch)
    });
    let Some(patch) = planned else { return Ok(None) };
    let made = patch.apply(module)?;
    Ok(Some(replaced_by(&patch, &made)))
}

/// Splits a sum where a test holds when the program runs; returns what replaced it.
fn guarded(
    module: &mut Module,
    split: &Split,
    guards: &Guards<'_>,
) -> Result<Option<Replaced>, EditError> {
    let original = guards.original(module, split.sum.id);
    let Some((original, first)) = original.zip(split.terms.first()) else { return Ok(None) };
    let lead = guard::absolute(module, split.sum.id, first.form.core.factors.iter().cloned())?;
    guards.guard(module, &split.sum, &original, NAME, |build, at| split.guarded(build, at, &lead))
}

/// Rewrites these sums; returns their number.
fn rewrite(
    module: &mut Module,
    splits: &[Split],
    guards: Option<&Guards<'_>>,
    replaced: &mut Replaced,
) -> Result<Option<Edited<usize>>, EditError> {
    let mut made: Vec<RewriteNote> = Vec::new();
    for split in splits {
        if !module.is_live(split.sum.id) {
            continue;
        }
        let followed = split.followed(replaced);
        let now = match guards {
            None => plain(module, &followed)?,
            Some(guards) => guarded(module, &followed, guards)?,
        };
        if let Some(now) = now {
            replaced.extend(now);
            made.push(note(module, split, guards.is_some()));
        }
    }
    let count = made.len();
    Ok((count > 0).then_some((made, count)))
}

/// Returns a note: the sum that is split.
fn note(module: &Module, split: &Split, is_guarded: bool) -> RewriteNote {
    let (sum, also) = (split.sum.id, if is_guarded { guard::WHERE } else { "" });
    let name = module.name_of(sum);
    let what = format!("summing the terms of `{name}` without their late factors{also}");
    RewriteNote { place: Place::of(module, sum), what }
}
