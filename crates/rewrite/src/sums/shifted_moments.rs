//! **T4: rewrite sums about the mean so that they need not wait for the mean.**
//!
//! ```text
//! sum (x-c)*q   = sum (x-k)*q   - (c-k) * sum q                c, k constant along the sum
//! sum (x-c)^2*q = sum (x-k)^2*q - 2*(c-k) * sum (x-k)*q + (c-k)^2 * sum q
//! sum x         = sum (x-k) + n*k
//! ```
//!
//! A normalisation sums an array for its mean, then sums the squares of the centred array, and its
//! gradient sums products with the centred array: one memory sweep after the other, each waiting
//! for the previous one. With a *shift* k, the mean of a small sample (`shift.rs`), in place of the
//! mean, one sweep yields the mean, the variance and all sums of the gradient. Because k lies among
//! the data, the sums about k are hardly larger than those about c, so the differences above lose
//! little precision; where all data are far from zero and close together, the mean even gains.
//!
//! A sum over one of these arrays that is no moment may wait for the mean as well, such as
//! `sum dy*r`, r the reciprocal deviation. Then the rewrite alone saves no sweep, so it also pulls the
//! factors out of such sums, `sum dy*r = r * sum dy` ([`super::factored_sums`]).
//!
//! Preconditions: those of [`super::factored_sums`]; sums in `f32` or `f64`; `--fast-math`, since
//! `inf - inf` may replace a single infinity, so float sums change by more than their order, or a guard
//! that tests the sums when the program runs (`guard.rs`). The sample takes all of a dim that is divided
//! over devices: each device takes its part of the sample from its part of the array. The other factors q
//! must not wait for c themselves, and not all of them divide. A cost-gated pass for sums of arrays in main
//! memory, because it saves memory sweeps. See `docs/numerics.md`.

mod guard;
mod moments;
mod sample;
mod shift;

use tilewright_ir::{EditError, InstId, Module, Op, Value};

use super::build::{At, Build, Placed, Replaced, replaced_by};
use super::factored_sums::pulled_out;
use super::guard::Guards;
use super::product::Factor;
use crate::analysis::index_range::{Cuts, IndexRange};
use crate::analysis::sharding::{DeviceMesh, Flow};
use crate::analysis::whole_number::whole_number;
use crate::driver::Place;
use crate::driver::module_trial::{Edited, ModuleTrial, RewriteNote, classes};
use crate::driver::numbers::{Class, FloatMode};
use crate::driver::{Context, Pass};
use moments::{Group, Moment, groups};
use shift::Shift;

/// See the module.
pub struct ShiftedMoments;

impl Pass for ShiftedMoments {
    fn name(&self) -> &'static str {
        "shifted-moments"
    }

    fn summary(&self) -> &'static str {
        "T4: sums about a sample's mean, which need not wait for the mean (guarded, or --fast-math)"
    }

    fn class(&self) -> Class {
        Class::FastMath
    }

    fn is_cost_gated(&self) -> bool {
        true
    }

    fn run(&self, module: &mut Module, cx: &mut Context<'_>) -> Result<usize, EditError> {
        let target = cx.target;
        let is_guarded = !cx.float_mode.allow(Class::FastMath);
        if is_guarded && !super::guard::are_made(cx) {
            return Ok(0);
        }
        let (mut found, mut work) = (Vec::new(), moments::MOST_GONE_OVER);
        for computation in module.computations().to_vec() {
            found.extend(groups(module, computation, cx.model(), &mut work));
        }
        if let Some(mesh) = DeviceMesh::of(module) {
            let flow = Flow::of(module, &mesh);
            found.retain_mut(|group| divide(group, &flow).is_some());
        }
        let guards = is_guarded.then(|| {
            let moments = found.iter().flat_map(|group| &group.moments);
            Guards::of(module, target, moments.map(|moment| moment.sum.id))
        });
        if let Some(guards) = &guards {
            for group in &mut found {
                group.moments.retain(|moment| guard::has_guard(module, moment, guards));
            }
            found.retain(|group| !group.moments.is_empty());
        }
        if found.is_empty() {
            return Ok(0);
        }
        let mut trial = ModuleTrial::of(module, cx)?;
        let (mut changes, mut replaced) = (0, Replaced::default());
        for mut groups in classes(module, found, Group::members) {
            groups.iter_mut().for_each(|group| group.follow(&replaced));
            let way = if let Some(guards) = &guards {
                Way::Guarded(guards)
            } else if cx.target.shares_sweeps && pulls(module, &groups, &mut trial)? {
                Way::Pulling
            } else {
                Way::Plain
            };
            let made =
                trial.attempt(self, module, cx, |module| rewrite(module, &mut groups, way))?;
            if let Some((moved, now)) = made {
                changes += moved;
                replaced.extend(now);
            }
        }
        trial.leave(cx);
        Ok(changes)
    }
}

/// The way in which sums are written about a shift.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// Whatever the data.
    Plain,
    /// The same, and factors are pulled out of the sums of the same arrays.
    Pulling,
    /// Where a test holds when the program runs.
    Guarded(&'a Guards<'a>),
}

/// Says which dims of a group's array devices have parts of; `None` if that is not known.
fn divide(group: &mut Group, flow: &Flow<'_>) -> Option<()> {
    let spread = flow.spread(group.x.value)?;
    group.divided = spread.iter().map(|axes| !axes.is_empty()).collect();
    Some(())
}

/// Checks whether the rewrite pays only if factors are also pulled out of the sums that share arrays
/// with the moments. Where sums share sweeps, another sum over one of these arrays that waits for
/// the mean, such as `sum dy*r`, would keep the sweep that the rewrite saves.
fn pulls(
    module: &mut Module,
    groups: &[Group],
    trial: &mut ModuleTrial<'_>,
) -> Result<bool, EditError> {
    let mut pays = |way| {
        // The trial is rolled back, and with it what its groups would follow.
        let edit = |module: &mut Module| rewrite(module, &mut groups.to_vec(), way).map(|_| ());
        trial.cycles_after(module, edit).map(|cycles| trial.would_pay(cycles))
    };
    Ok(!pays(Way::Plain)? && pays(Way::Pulling)?)
}

/// Rewrites the moments of these groups; returns the number of groups and the replaced sums.
fn rewrite(
    module: &mut Module,
    groups: &mut [Group],
    way: Way<'_>,
) -> Result<Option<Edited<(usize, Replaced)>>, EditError> {
    let mut now = Replaced::default();
    let mut moved: Vec<&Group> = Vec::new();
    for group in groups {
        group.follow(&now);
        let is_moved = match way {
            Way::Guarded(guards) => guard::guarded(module, group, guards, &mut now)?,
            Way::Plain | Way::Pulling => move_centre(module, group, &mut now)?,
        };
        if is_moved {
            moved.push(group);
        }
    }
    let pulled = matches!(way, Way::Pulling) && pull_out(module, &moved, &mut now)?;
    let also = match way {
        Way::Guarded(_) => super::guard::WHERE,
        _ if pulled => ", with factors pulled out of sums of the same arrays",
        _ => "",
    };
    let notes: Vec<RewriteNote> =
        moved.iter().filter_map(|group| note(module, group, also)).collect();
    Ok((!notes.is_empty()).then_some((notes, (moved.len(), now))))
}

/// Pulls factors out of the sums that share arrays with these groups; returns whether there are any.
fn pull_out(
    module: &mut Module,
    groups: &[&Group],
    replaced: &mut Replaced,
) -> Result<bool, EditError> {
    let mut changed = false;
    for group in groups {
        let Some(first) = group.moments.first() else { continue };
        let Some(computation) = module.instruction(first.sum.id).parent() else { continue };
        let others = group.moments.iter().flat_map(|moment| &moment.others);
        let arrays: Vec<InstId> = others.map(|factor| factor.value).collect();
        let Some(patch) = pulled_out(module, computation, &arrays, FloatMode::Fast) else {
            continue;
        };
        let made = patch.apply(module)?;
        replaced.extend(replaced_by(&patch, &made));
        changed = true;
    }
    Ok(changed)
}

/// Returns a note: which sums get another centre, and what `also` says.
fn note(module: &Module, group: &Group, also: &str) -> Option<RewriteNote> {
    let first = group.moments.first()?.sum.id;
    let sums = group.moments.len();
    let plural = if sums == 1 { "" } else { "s" };
    let what = format!(
        "{sums} sum{plural} of `{}` about a sample's mean in place of `{}`{also}",
        module.name_of(group.x.value),
        module.name_of(group.c.value)
    );
    Some(RewriteNote { place: Place::of(module, first), what })
}

/// The fewest values of a sample where no test decides.
const LEAST_SAMPLED: i64 = 16;

/// Gives the moments of a group another centre; returns whether that was possible.
fn move_centre(
    module: &mut Module,
    group: &Group,
    replaced: &mut Replaced,
) -> Result<bool, EditError> {
    // Earlier rewrites may have left a moment dead.
    let is_used = |id| module.is_live(id);
    if !group.moments.iter().all(|moment| is_used(moment.sum.id)) {
        return Ok(false);
    }
    let Some(first) = group.moments.first() else { return Ok(false) };
    let Some(shift) = shift::add(module, group, &first.sum, LEAST_SAMPLED)? else {
        return Ok(false);
    };
    let mut build = Build::new(module);
    for moment in &group.moments {
        if about(&mut build, module, moment, group, &shift).is_none() {
            return Ok(false);
        }
    }
    let patch = build.patch;
    let made = patch.apply(module)?;
    replaced.extend(replaced_by(&patch, &made));
    Ok(true)
}

/// Sums about a shift: the count of values, or the sum of the other factors, and the sums of each power
/// up to that of a moment, at least the first.
struct Sums {
    values: Vec<Value>,
    /// The dims of the values.
    digits: Vec<IndexRange>,
}

/// Writes a moment as sums about the shift.
fn about(
    build: &mut Build<'_>,
    module: &Module,
    moment: &Moment,
    group: &Group,
    shift: &Shift,
) -> Option<()> {
    let at = At::new(module, &moment.sum)?;
    let sums = sums_about(build, at, moment, group, shift)?;
    let value = recentred(build, at, moment, [&group.c, &shift.shift], &sums)?;
    build.finish(at, Placed { value, digits: sums.digits });
    Some(())
}

/// Plans the sums about the shift of a moment.
fn sums_about(
    build: &mut Build<'_>,
    at: At<'_>,
    moment: &Moment,
    group: &Group,
    shift: &Shift,
) -> Option<Sums> {
    let sum = &moment.sum;
    let mut powers = Vec::new();
    for power in 0..=moment.power.max(1) {
        let mut factors = moment.others.clone();
        factors.extend(std::iter::repeat_n(shift.rest.clone(), power));
        powers.push(if factors.is_empty() { None } else { Some(build.sum_of(at, factors)?) });
    }
    let ends = powers.iter().flatten().flat_map(|placed| placed.digits.clone());
    let ends = ends.chain(sum.kept.iter().copied());
    let ends = ends.chain(group.c.ranges.iter().chain(&shift.shift.ranges).copied());
    let digits = Cuts::of(sum.elements, ends.chain(sum.summed.clone()))?.digits();
    let digits: Vec<IndexRange> = digits.into_iter().filter(|digit| !sum.sums(*digit)).collect();
    let mut values: Vec<Value> = Vec::new();
    for placed in powers {
        values.push(match placed {
            Some(placed) => build.cut(at, placed, digits.clone()).value,
            None => {
                let count = whole_number(sum.monoid.element_type, sum.count()?)?;
                build.number(at, count, &digits)?
            }
        });
    }
    Some(Sums { values, digits })
}

/// Plans the distance of the centre from the shift.
fn offset(
    build: &mut Build<'_>,
    at: At<'_>,
    centres: [&Factor; 2],
    digits: &[IndexRange],
) -> Option<Value> {
    let [centre, shift] = centres;
    let shift = build.spread(at, shift, digits)?;
    let centre = build.spread(at, centre, digits)?;
    Some(build.op(at, Op::Subtract, digits, [centre, shift]))
}

/// Returns the moment about the first of these centres, computed from the sums about the second, a shift, of
/// each power up to its own.
fn recentred(
    build: &mut Build<'_>,
    at: At<'_>,
    moment: &Moment,
    centres: [&Factor; 2],
    Sums { values: sums, digits }: &Sums,
) -> Option<Value> {
    if let (0, [count, one]) = (moment.power, sums.as_slice()) {
        let shift = build.spread(at, centres[1], digits)?;
        let shifts = build.op(at, Op::Multiply, digits, [*count, shift]);
        return Some(build.op(at, Op::Add, digits, [*one, shifts]));
    }
    let offset = offset(build, at, centres, digits)?;
    match *sums.as_slice() {
        [none, one] => {
            let less = build.op(at, Op::Multiply, digits, [offset, none]);
            Some(build.op(at, Op::Subtract, digits, [one, less]))
        }
        [none, one, two] => {
            // ((x-k) - s)^2 = (x-k)^2 - s*(2*(x-k) - s)
            let less = build.op(at, Op::Multiply, digits, [offset, none]);
            let twice = build.op(at, Op::Add, digits, [one, one]);
            let inner = build.op(at, Op::Subtract, digits, [twice, less]);
            let less = build.op(at, Op::Multiply, digits, [offset, inner]);
            Some(build.op(at, Op::Subtract, digits, [two, less]))
        }
        _ => None,
    }
}
