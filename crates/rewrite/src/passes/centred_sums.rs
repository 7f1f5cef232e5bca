//! **A sum of what is left of an array less its mean, from the sum of the array.**
//!
//! ```text
//! sum_D (x - c) = sum_D x - n*c        c constant along the n values of D
//! ```
//!
//! The derivative of a variance by its mean is such a sum, which is zero but for
//! rounding; so every gradient of a normalisation reads its image once more for it.
//! Its sum over a part of what the mean is of, a channel of a group, need not be zero.
//!
//! This is T4 with 0 for a pilot. Elsewhere that would not do, as `sum x` and `n*c` may
//! be much larger than what is left of them; but where c is the mean, it was computed
//! from `sum x`, so that `sum (x - c)` is off by n times the error of c already, which
//! is what rounding `sum x` comes to. See `docs/numerics.md`.
//!
//! Preconditions: those of [`super::factored_sums`], in `f32` or `f64` and not under
//! `--exact`; c is the mean of x along some dims, summed in the same type and rounded to
//! no other, and x is summed along D before. Factors that are constant along D come out.
//!
//! Made where the module costs less for it on the target.

use rustc_hash::FxHashMap;
use tilewright_ir::{CompId, EditError, ElementType, Module, Op, Patch, Value};

use super::factored_sums::sums;
use super::sum_build::{At, Build, Placed};
use super::weight::{replace, together};
use crate::analysis::factored::{Core, Form, Sum};
use crate::analysis::mean::is_mean;
use crate::analysis::monoid::whole_number;
use crate::analysis::product::{Factor, Law};
use crate::analysis::span::{Cuts, Span};
use crate::pass::{Context, Pass};
use crate::report::place_of;

/// See the module.
pub struct CentredSums;

impl Pass for CentredSums {
    fn name(&self) -> &'static str {
        "centred-sums"
    }

    fn summary(&self) -> &'static str {
        "sum what an array leaves of its mean from the array's own sum"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if cx.exact {
            return Ok(0);
        }
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            let found = centred(module, computation);
            for some in found.chunks(together(module, found.len())) {
                changes += split(module, some, cx)?;
            }
        }
        Ok(changes)
    }
}

/// A sum of which an array less its mean is the core.
struct Centred {
    sum: Sum,
    form: Form,
    /// The sum of the array along the same.
    whole: Sum,
    mean: Factor,
}

/// The centred sums of a computation, where the array was summed before.
fn centred(module: &Module, computation: CompId) -> Vec<Centred> {
    let mut plain: FxHashMap<Core, Sum> = FxHashMap::default();
    let mut found = Vec::new();
    let is_wide = |t: ElementType| matches!(t, ElementType::F32 | ElementType::F64);
    for sum in sums(module, computation, false) {
        if sum.law != Law::Times || !is_wide(sum.monoid.element_type) {
            continue;
        }
        if let [only] = sum.product.factors.as_slice()
            && !sum.product.negative
        {
            let core = core(&sum, only.clone(), sum.summed.clone());
            plain.entry(core).or_insert_with(|| sum.clone());
        }
        let form = |along: Vec<Span>| of_mean(module, &plain, &sum, &along);
        if let Some((form, whole, mean)) = sum.stages().into_iter().find_map(form) {
            found.push(Centred { sum, form, whole, mean });
        }
    }
    found
}

/// The sum with a first stage in which an array less its mean is summed along these
/// spans, and the sum of the array.
fn of_mean(
    module: &Module,
    plain: &FxHashMap<Core, Sum>,
    sum: &Sum,
    along: &[Span],
) -> Option<(Form, Sum, Factor)> {
    let form = sum.form(along)?;
    let [rest] = form.core.factors.as_slice() else { return None };
    let (x, mean) = rest.less_constant(module, along)?;
    let value = x.value;
    let whole = plain.get(&core(sum, x, along.to_vec()))?;
    let summed_in = sum.monoid.element_type;
    is_mean(module, mean.value, value, summed_in).then(|| (form, whole.clone(), mean))
}

/// The sum of one factor.
fn core(sum: &Sum, factor: Factor, along: Vec<Span>) -> Core {
    let Sum { elements, monoid, law, .. } = *sum;
    Core { factors: vec![factor], along, elements, monoid, law }
}

/// Makes these sums differences, if that pays.
fn split(module: &mut Module, found: &[Centred], cx: &mut Context<'_>) -> Result<usize, EditError> {
    let (Some(patch), Some(first)) = (patch(module, found), found.first()) else { return Ok(0) };
    let mut rewritten = module.clone();
    patch.apply(&mut rewritten)?;
    let (place, what) = (place_of(module, first.sum.id), words(module, found));
    let made = replace(&CentredSums, module, rewritten, (place, &what), cx)?;
    Ok(if made { found.len() } else { 0 })
}

/// Which sums become what.
fn words(module: &Module, found: &[Centred]) -> String {
    let name = |sum: &Sum| module.name_of(sum.id);
    match found {
        [Centred { sum, whole, mean, .. }] => format!(
            "`{}` from `{}` and the mean `{}`",
            name(sum),
            name(whole),
            module.name_of(mean.value)
        ),
        _ => format!("{} sums from sums and means", found.len()),
    }
}

fn patch(module: &Module, found: &[Centred]) -> Option<Patch> {
    let mut build = Build::new(module);
    for centred in found {
        add(&mut build, module, centred)?;
    }
    Some(build.patch).filter(|patch| !patch.is_empty())
}

/// Writes a sum as what the mean leaves of another.
fn add(build: &mut Build<'_>, module: &Module, centred: &Centred) -> Option<()> {
    let Centred { sum, form, whole, mean } = centred;
    let at = At::new(module, sum)?;
    let along = &form.core.along;
    let ends = whole.kept.iter().chain(&mean.spans).chain(along).copied();
    let digits = Cuts::of(sum.elements, ends)?.digits();
    let is_left = |digit: &Span| !along.iter().any(|span| digit.within(*span));
    let digits: Vec<Span> = digits.into_iter().filter(is_left).collect();
    let placed = Placed { value: Value::Old(whole.id), digits: whole.kept.clone() };
    let total = build.cut(at, placed, digits.clone()).value;
    let values = along.iter().map(|span| span.size()).product();
    let count = whole_number(sum.monoid.element_type, values)?;
    let count = build.number(at, count, &digits)?;
    let mean = build.spread(at, mean, &digits)?;
    let means = build.op(at, Op::Multiply, &digits, [count, mean]);
    let value = build.op(at, Op::Subtract, &digits, [total, means]);
    build.know(form.core.clone(), Placed { value, digits });
    build.add(sum, form)
}
