//! **T4: sums about the mean that need not wait for the mean.**
//!
//! ```text
//! sum (x-c)*q   = sum (x-k)*q   - (c-k) * sum q                             c, k constant along the sum
//! sum (x-c)^2*q = sum (x-k)^2*q - 2*(c-k) * sum (x-k)*q + (c-k)^2 * sum q
//! sum x         = sum (x-k) + n*k
//! ```
//!
//! A normalisation sums an image for its mean, then sums squares of what the mean
//! leaves, and its gradient sums products with it: pass after pass over the image,
//! each waiting for the one before. With a *pilot* k, the mean of a small sample
//! ([`pilot`]), in place of the mean, mean, variance and all sums of the gradient come
//! out of one pass. Because k lies among the data, the sums about k are hardly larger
//! than those about c, so that little is lost in the differences above; where all data
//! are far from zero and close together, the mean itself gains.
//!
//! Preconditions: those of [`super::factored_sums`], sums in `f32` or `f64`, and leave
//! to change float sums by more than their order (`--fast-math`), since
//! `inf - inf` may be where there was one infinity. The other factors q must not wait
//! for c themselves. Made where the module costs less for it on the target, which is
//! where passes over images are saved. See `docs/numerics.md`.

mod pilot;

use rustc_hash::FxHashSet;
use tilewright_ir::{
    ArrayShape, CompId, EditError, ElementType, InstId, Module, Op, Opcode, Value,
};

use super::factored_sums::sums;
use super::sum_build::{At, Build, Placed};
use super::weight::{Weight, judge};
use crate::analysis::factored::{Core, Sum};
use crate::analysis::monoid::whole_number;
use crate::analysis::product::{Factor, Product};
use crate::analysis::span::{Cuts, Span};
use crate::pass::{Context, Pass};
use crate::report::place_of;
use pilot::Pilot;

/// See the module.
pub struct ShiftedMoments;

impl Pass for ShiftedMoments {
    fn name(&self) -> &'static str {
        "shifted-moments"
    }

    fn summary(&self) -> &'static str {
        "T4: sums about a sample's mean, which need not wait for the mean (--fast-math)"
    }

    fn is_heart(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        if !cx.fast_math || cx.exact {
            return Ok(0);
        }
        let mut changes = 0;
        for computation in module.computations().to_vec() {
            for group in groups(module, computation) {
                changes += shift(module, &group, cx)?;
            }
        }
        Ok(changes)
    }
}

/// A sum of powers of what is left of an array less its mean, times other factors.
struct Moment {
    sum: Sum,
    /// How often `x - c` is a factor: none in a sum of the array itself, 1 or 2 else.
    power: usize,
    /// The other factors.
    others: Vec<Factor>,
}

/// All moments of an array along the same dims.
struct Group {
    x: Factor,
    c: Factor,
    along: Vec<Span>,
    moments: Vec<Moment>,
}

/// The difference that a factor is, of an array and something constant along a sum.
fn difference(module: &Module, factor: &Factor, sum: &Sum) -> Option<(Factor, Factor)> {
    let (Op::Subtract, &[a, b]) = (module.op(factor.value), module.operands(factor.value)) else {
        return None;
    };
    if factor.divides || factor.convert.is_some() || module.extras(factor.value).is_some() {
        return None;
    }
    let sole = |value: InstId| {
        let mut product = Product::of_factor(module, Factor { value, ..factor.clone() });
        let only = product.factors.pop().filter(|factor| !factor.divides)?;
        (product.factors.is_empty() && !product.negative).then_some(only)
    };
    let (x, c) = (sole(a)?, sole(b)?);
    let constant = !sum.summed.iter().any(|&span| c.varies_along(span));
    constant.then_some((x, c))
}

/// The moments of a computation, by array, centre and dims.
fn groups(module: &Module, computation: CompId) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut plain: Vec<Sum> = Vec::new();
    let wide = |sum: &Sum| matches!(sum.element_type, ElementType::F32 | ElementType::F64);
    for sum in sums(module, computation, false).into_iter().filter(wide) {
        let mut others = sum.product.factors.clone();
        let found = others
            .iter()
            .find_map(|factor| Some((factor.clone(), difference(module, factor, &sum)?)));
        let Some((centred, (x, c))) = found else {
            plain.push(sum);
            continue;
        };
        let before = others.len();
        others.retain(|factor| *factor != centred);
        let power = before - others.len();
        if power > 2 || others.iter().any(|other| other.value == x.value) {
            continue;
        }
        let moment = Moment { power, others, sum };
        let same =
            |group: &&mut Group| group.x == x && group.c == c && group.along == moment.sum.summed;
        match groups.iter_mut().find(same) {
            Some(group) => group.moments.push(moment),
            None => {
                let along = moment.sum.summed.clone();
                groups.push(Group { x, c, along, moments: vec![moment] });
            }
        }
    }
    for sum in plain {
        let [only] = sum.product.factors.as_slice() else { continue };
        let same = |group: &&mut Group| group.x == *only && group.along == sum.summed;
        if let Some(group) = groups.iter_mut().find(same) {
            group.moments.push(Moment { power: 0, others: Vec::new(), sum });
        }
    }
    groups.retain_mut(|group| {
        let late = waiting(module, computation, &group.x);
        group.moments.retain(|moment| moment.others.iter().all(|o| !late.contains(&o.value)));
        let place =
            |moment: &Moment| module.instructions(computation).position(|id| id == moment.sum.id);
        group.moments.sort_by_cached_key(place);
        late.contains(&group.c.value) && group.moments.iter().any(|moment| moment.power > 0)
    });
    groups
}

/// What waits for a reduction of an array; of all of it, unlike a sample.
fn waiting(module: &Module, computation: CompId, x: &Factor) -> FxHashSet<InstId> {
    let elements = |id| module.array_shape(id).and_then(ArrayShape::num_elements);
    let mut of: FxHashSet<InstId> = FxHashSet::from_iter([x.value]);
    let mut late: FxHashSet<InstId> = FxHashSet::default();
    for id in module.instructions(computation) {
        let operands = module.operands(id);
        let is_late = operands.iter().any(|operand| late.contains(operand))
            || (module.opcode(id) == Opcode::Reduce && operands.iter().any(|o| of.contains(o)));
        if is_late {
            late.insert(id);
        } else if elements(id) == elements(x.value) && operands.iter().any(|o| of.contains(o)) {
            of.insert(id);
        }
    }
    late
}

/// Gives the moments of a group another centre, if that pays.
fn shift(module: &mut Module, group: &Group, cx: &mut Context<'_>) -> Result<usize, EditError> {
    let Some(first) = group.moments.first() else { return Ok(0) };
    let mut shifted = module.clone();
    let Some(pilot) = pilot::add(&mut shifted, &group.x, &first.sum)? else { return Ok(0) };
    let mut build = Build::new(&shifted);
    for moment in &group.moments {
        if about(&mut build, &shifted, moment, group, &pilot).is_none() {
            return Ok(0);
        }
    }
    let patch = build.patch;
    patch.apply(&mut shifted)?;
    let what = format!(
        "{} sums of `{}` about a sample's mean in place of `{}`",
        group.moments.len(),
        module.name_of(group.x.value),
        module.name_of(group.c.value)
    );
    let weights = [Weight::of(module.clone(), cx)?, Weight::of(shifted.clone(), cx)?];
    let place = place_of(module, first.sum.id);
    let made = judge(&ShiftedMoments, place, &what, weights.each_ref(), cx);
    if made {
        *module = shifted;
    }
    Ok(usize::from(made))
}

/// Writes a moment about the pilot.
fn about(
    build: &mut Build<'_>,
    module: &Module,
    moment: &Moment,
    group: &Group,
    pilot: &Pilot,
) -> Option<()> {
    let at = At::new(module, &moment.sum)?;
    let mut powers = Vec::new();
    for power in 0..=moment.power.max(1) {
        powers.push(match (power, moment.others.is_empty()) {
            (0, true) => None,
            _ => Some(build.core(at, &core(moment, group, pilot, power))?),
        });
    }
    let ends = powers.iter().flatten().flat_map(|placed| placed.digits.clone());
    let ends = ends.chain(moment.sum.kept.iter().copied());
    let ends = ends.chain(group.c.spans.iter().chain(&pilot.pilot.spans).copied());
    let digits = Cuts::of(moment.sum.elements, ends.chain(moment.sum.summed.clone()))?.digits();
    let digits: Vec<Span> = digits.into_iter().filter(|digit| !moment.sum.sums(*digit)).collect();
    let mut values: Vec<Value> = Vec::new();
    for placed in powers {
        values.push(match placed {
            Some(placed) => build.cut(at, placed, digits.clone()).value,
            None => {
                let values = moment.sum.summed.iter().map(|span| span.size()).product();
                let count = whole_number(moment.sum.element_type, values)?;
                build.number(at, count, &digits)?
            }
        });
    }
    let pilot = build.spread(at, &pilot.pilot, &digits)?;
    let value = match values.as_slice() {
        [count, one] if moment.power == 0 => {
            let pilots = build.op(at, Op::Multiply, &digits, [*count, pilot]);
            build.op(at, Op::Add, &digits, [*one, pilots])
        }
        values => {
            let centre = build.spread(at, &group.c, &digits)?;
            let shift = build.op(at, Op::Subtract, &digits, [centre, pilot]);
            let mut times = |value| build.op(at, Op::Multiply, &digits, [shift, value]);
            match *values {
                [none, one] => {
                    let less = times(none);
                    build.op(at, Op::Subtract, &digits, [one, less])
                }
                [none, one, two] => {
                    // ((x-k) - s)^2 = (x-k)^2 - s*(2*(x-k) - s)
                    let less = times(none);
                    let twice = build.op(at, Op::Add, &digits, [one, one]);
                    let inner = build.op(at, Op::Subtract, &digits, [twice, less]);
                    let less = build.op(at, Op::Multiply, &digits, [shift, inner]);
                    build.op(at, Op::Subtract, &digits, [two, less])
                }
                _ => return None,
            }
        }
    };
    build.finish(at, Placed { value, digits });
    Some(())
}

/// The sum of a power of what the pilot leaves, times the other factors.
fn core(moment: &Moment, group: &Group, pilot: &Pilot, power: usize) -> Core {
    let mut factors = moment.others.clone();
    factors.extend(std::iter::repeat_n(pilot.rest.clone(), power));
    factors.sort_unstable();
    let Sum { elements, element_type, .. } = moment.sum;
    Core { factors, along: group.along.clone(), elements, element_type }
}
