//! Runs the passes of a pipeline or list in order and decides whether the result is kept.

use rustc_hash::FxHashSet;
use tilewright_ir::verify::{Verified, verify};
use tilewright_ir::{InstId, Module};

use super::candidate::{Cycles, Scope};
use super::error::OptimizeError;
use super::figures::{Done, Figures};
use super::numbers::{Class, FloatMode};
use super::options::{Options, PassSelection};
use super::pass::Pass as _;
use super::pipelines::pipeline;
use super::plan::PassPlan;
use super::reason::Reason;
use super::registry;
use super::report::{Note, Outcome, Place, Report, StopReason};
use super::restore::restored;
use super::run::{Run, whole_left};
use crate::analysis::sharding::Traffic;
use crate::cost::{CostModel, Memo, pays};

/// Costs that differ by no more than this fraction count as equal.
const SAME: f64 = 1e-3;

/// An optimised module and the report on its optimisation.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The module.
    pub module: Verified,
    /// The changes, costs and notes.
    pub report: Report,
    /// The module in its simplest form before and after, if a pipeline came to these.
    pub simplest: Option<Simplest>,
}

/// The simplest form of a module, which a backend finds by itself, before and after it was optimised.
#[derive(Clone, Debug)]
pub struct Simplest {
    /// The form of the module that was given.
    pub before: Module,
    /// The form of [`Optimized::module`]; `None` if that is in it, or is the module that was given.
    pub after: Option<Module>,
}

/// Optimises a module.
///
/// # Errors
/// If a pass or pipeline does not exist, or a pass has a bug.
pub fn optimize(module: Verified, options: &Options) -> Result<Optimized, OptimizeError> {
    let mut optimized = in_best_mode(module, options)?;
    let notes = of_added(options, &optimized.report);
    optimized.report.notes.extend(notes);
    Ok(optimized)
}

/// Explains why rules that the caller added are not applied, or leave no trace.
fn of_added(options: &Options, report: &Report) -> Vec<Note> {
    let PassSelection::Pipeline(name) = &options.passes else { return Vec::new() };
    let puts_back = pipeline(name).is_some_and(|pipeline| !pipeline.cost_gated.is_empty());
    let changes = |pass: &str| {
        report.passes.iter().find(|report| report.name == pass).map_or(0, |report| report.changes)
    };
    let mut notes = Vec::new();
    for pass in options.added.iter().map(|added| &*added.0) {
        for rule in pass.rules() {
            let holds = |reason: &Reason| match reason {
                Reason::Class => options.float_mode != FloatMode::Fast,
                _ => puts_back && changes(pass.name()) > 0,
            };
            notes.extend(rule.caveats().into_iter().filter(holds).map(|reason| Note {
                pass: pass.name(),
                outcome: Outcome::Left,
                place: "the module".into(),
                text: format!(
                    "an expression that `{}` matches {}",
                    rule.name(),
                    reason.of_instruction()
                ),
                cycles: None,
                reason: Some(reason),
            }));
        }
    }
    notes
}

/// Optimises a module with the rewrites of the float mode, or without those that `--fast-math`
/// allows if it then costs less.
fn in_best_mode(module: Verified, options: &Options) -> Result<Optimized, OptimizeError> {
    let is_pipeline = matches!(options.passes, PassSelection::Pipeline(_));
    if options.float_mode != FloatMode::Fast || !is_pipeline || options.stop_after.is_some() {
        return in_one_mode(module, options);
    }
    let fast = in_one_mode(module.clone(), options)?;
    let may_differ = |name: &str| {
        registry::pass(name).is_some_and(|p| p.is_cost_gated() && p.class() >= Class::Bounded)
    };
    if !fast.report.passes.iter().any(|pass| pass.changes > 0 && may_differ(pass.name)) {
        return Ok(fast);
    }
    // Rewrites are kept one after the other, so more of them may lead to a module that costs more.
    // Guards would stay.
    let float_mode = FloatMode::Bounded;
    let bounded = Options { float_mode, observer: None, ..options.clone() };
    let mut bounded = in_one_mode(module, &bounded)?;
    let [fast_cycles, cycles] = [&fast, &bounded].map(|made| made.report.after.cycles);
    if !pays(fast_cycles, cycles) {
        return Ok(fast);
    }
    bounded.report.notes.push(fast_left(fast_cycles, cycles, options));
    Ok(bounded)
}

/// Explains why a module is optimised without the rewrites that `--fast-math` allows.
fn fast_left(fast: f64, cycles: f64, options: &Options) -> Note {
    Note {
        pass: "pipeline",
        outcome: Outcome::Left,
        place: "the module".into(),
        cycles: Some(Cycles { before: cycles, after: fast, of: Scope::Module }),
        reason: None,
        text: format!(
            "made no use of --fast-math: the module would take {fast:.0} cycles instead of \
             {cycles:.0} on {}",
            options.target.name
        ),
    }
}

/// Optimises a module with all rewrites that the float mode allows.
fn in_one_mode(module: Verified, options: &Options) -> Result<Optimized, OptimizeError> {
    let plan = PassPlan::of(options)?;
    let memo = Memo::default();
    let model = CostModel::new(&options.target, &memo);
    if let Some(mixed) = module.mixes_precision() {
        let notes = vec![mixed_left(&module, mixed)];
        return Ok(left_alone(module, notes, model, options));
    }
    let observe = &mut |pass: &'static str, module: &Module| options.show(pass, module);
    let mut run = Run::new(&module, &plan, options, &memo, observe);
    for pass in &plan.first {
        run.pass(*pass)?;
    }
    let stopped = run.rounds(&plan)?;
    // A backend simplifies by itself, so only savings beyond the simplest form count.
    let after = run.figures();
    let given = if run.is_unchanged() { after } else { Figures::of(&module, model) };
    let (simplest, figures) = run.simplest.take().unzip();
    let before = figures.filter(|simplest| simplest.cost.cycles < given.cost.cycles);
    let before = before.unwrap_or(given);
    let [least, reached] = [&before, &after].map(|figures| figures.cost.cycles);
    let enough = before.enough(&options.target);
    let gains = run.cost_gated > 0 && pays(enough, reached);
    let Run { module: changed, passes, mut notes, rolled_back, cost_gated, .. } = run;
    notes.extend(rolled_back);
    let mut notes = relevant(notes);
    let (target, stop_after) = (&options.target, options.stop_after);
    if plan.keeps_result || gains {
        let around = match &simplest {
            Some(simplest) if gains && !plan.keeps_result => around_gains(
                (&module, &given),
                simplest,
                (&changed, reached),
                options,
                (&plan, &memo),
            )?,
            _ => None,
        };
        let (rewritten, after, form) = match around {
            Some(Around { module, figures, simplest }) => {
                options.show("put-back", &module);
                (module, figures, Some(simplest))
            }
            None => (verified(changed)?, after, None),
        };
        let traffic = given.traffic.zip(after.traffic);
        let more =
            traffic.filter(|(given, after)| !plan.keeps_result && after.exceeds(given, target));
        let Some((less, more)) = more else {
            let done = Done { target, notes, stopped, stop_after, passes };
            let report = Report { unchanged: false, ..before.report(&after, done) };
            let simplest = simplest.map(|before| Simplest { before, after: form });
            return Ok(Optimized { module: rewritten, report, simplest });
        };
        notes.push(more_traffic(less, more));
    }
    notes.retain(|note| note.outcome == Outcome::Left);
    if cost_gated > 0 && !gains {
        notes.push(whole_left(least, reached, enough, target));
    }
    let done = Done { target, notes, stopped, stop_after, passes };
    let simplest = simplest.map(|before| Simplest { before, after: None });
    Ok(Optimized { module, report: before.report(&before, done), simplest })
}

/// Returns a module that no pass may touch, with the reasons.
fn left_alone(
    module: Verified,
    notes: Vec<Note>,
    model: CostModel<'_>,
    options: &Options,
) -> Optimized {
    let figures = Figures::of(&module, model);
    let (target, stopped) = (&options.target, StopReason::Fixpoint);
    let done = Done { target, notes, stopped, stop_after: None, passes: Vec::new() };
    let report = figures.report(&figures, done);
    Optimized { module, report, simplest: None }
}

fn verified(module: Module) -> Result<Verified, OptimizeError> {
    verify(module).map_err(|rejected| OptimizeError::Broken { pass: "pipeline", rejected })
}

/// The original module with the gains alone.
struct Around {
    module: Verified,
    /// The figures of its simplest form.
    figures: Figures,
    simplest: Module,
}

/// Returns the original module with only those changes in which a cost-gated pass had a part, and
/// the figures of its simplest form. Returns `None` if that form costs more cycles than the changed
/// module, or if the result itself costs more than the original: instructions that are put back may
/// undo a rewrite of such a pass.
fn around_gains(
    (original, given): (&Module, &Figures),
    simplest: &Module,
    (changed, reached): (&Module, f64),
    options: &Options,
    (plan, memo): (&PassPlan<'_>, &Memo),
) -> Result<Option<Around>, OptimizeError> {
    let model = CostModel::new(&options.target, memo);
    let Some(around) = restored(original, simplest, changed) else { return Ok(None) };
    let observe = &mut |_, _: &Module| {};
    let mut run = Run::new(&around, plan, options, memo, observe);
    run.all(&plan.last)?;
    let around = run.module.clone();
    for _ in 0..options.max_rounds {
        if run.all(&plan.cleanup)? == 0 {
            break;
        }
    }
    let figures = run.figures();
    let as_it_is = Figures::of(&around, model).cost.cycles;
    let costs_more = figures.cost.cycles > reached * (1.0 + SAME);
    if costs_more || pays(as_it_is, given.cost.cycles) {
        return Ok(None);
    }
    let simplest = run.module;
    Ok(verify(around).ok().map(|module| Around { module, figures, simplest }))
}

/// Explains why a module with operands of different float precision is left alone: passes take the
/// type of a result from its operands.
fn mixed_left(module: &Module, mixed: InstId) -> Note {
    Note {
        pass: "pipeline",
        outcome: Outcome::Left,
        place: Place::of(module, mixed),
        cycles: None,
        reason: Some(Reason::MixedPrecision),
        text: format!(
            "floats of different precision meet in this `{}`, so the module is left as it is; \
             put a `convert` there",
            module.opcode(mixed)
        ),
    }
}

/// Explains why a module is left alone after whose rewriting devices would communicate more.
fn more_traffic(before: Traffic, after: Traffic) -> Note {
    Note {
        pass: "pipeline",
        outcome: Outcome::Left,
        place: "the module".into(),
        cycles: None,
        reason: Some(Reason::Traffic),
        text: format!(
            "rolled back rewrites after which the devices would communicate more: {after} per \
             device instead of {before}"
        ),
    }
}

/// Returns the notes without duplicates.
fn relevant(notes: Vec<Note>) -> Vec<Note> {
    let mut kept: Vec<Note> = Vec::with_capacity(notes.len());
    let mut seen = FxHashSet::default();
    for note in notes {
        if seen.insert(note.to_string()) {
            kept.push(note);
        }
    }
    kept
}
