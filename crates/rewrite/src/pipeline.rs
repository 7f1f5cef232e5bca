//! Which passes run, in which order, and when a result is kept.

mod figures;
mod named;
mod restore;
mod trail;

use std::time::Instant;

use rustc_hash::FxHashSet;
use tilewright_ir::verify::{Rejected, Verified, verify};
use tilewright_ir::{EditError, InstId, Module};
use tilewright_target::Target;

use crate::analysis::cost::{CostModel, Ledger, Memo, pays as cost_pays};
use crate::evaluate::Evaluate;
use crate::numbers::Numbers;
use crate::pass::{Context, Pass, Skipped, byte_size};
use crate::registry;
use crate::report::{Note, PassReport, Report, StopReason, Verdict, place_of};
use figures::{Done, Figures};
pub use named::{PIPELINES, Pipeline, pipeline};
use restore::restored;
use trail::Trail;

/// How a module is optimised.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine that costs are weighed on.
    pub target: Target,
    /// Forbids all that changes the order of float sums and products.
    pub exact: bool,
    /// Allows rewrites of floats whose error has no bound that holds for all data: sums
    /// of differences as differences of sums, and factors out of sums that may overflow
    /// without them. See `docs/numerics.md`.
    pub fast_math: bool,
    /// Which passes run.
    pub passes: Passes,
    /// Stops after this many rewrites of the heart passes.
    pub stop_after: Option<u64>,
    /// These passes do not run, whatever list or pipeline names them.
    pub without: Vec<&'static str>,
    /// These rewrites of the heart passes are not made.
    pub skipped: Vec<Skipped>,
    /// How often the passes are gone through at most.
    pub max_rounds: usize,
    /// A module that would save less than this part of its modelled cycles is left as it
    /// is: the model is not as exact as that, and the backend fuses what it recognises.
    pub least_saving: f64,
    /// What computes constants; without it, none are folded.
    pub evaluator: Option<&'static dyn Evaluate>,
}

/// Which passes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passes {
    /// A pipeline by name: a module where its heart finds nothing that pays
    /// comes back untouched.
    Pipeline(String),
    /// These passes, by name, in this order, until none changes anything.
    List(Vec<String>),
}

impl Options {
    /// The default pipeline for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            exact: false,
            fast_math: false,
            passes: Passes::Pipeline("default".into()),
            stop_after: None,
            without: Vec::new(),
            skipped: Vec::new(),
            max_rounds: 100,
            least_saving: 0.02,
            evaluator: None,
        }
    }
}

impl Options {
    /// How far floats may change.
    pub fn numbers(&self) -> Numbers {
        match self {
            Self { exact: true, .. } => Numbers::Exact,
            Self { fast_math: true, .. } => Numbers::FastMath,
            Self { .. } => Numbers::Bounded,
        }
    }
}

/// Past this many times the instructions that it began with, no calls are
/// inlined.
const GROWTH: usize = 4;

/// Small modules may always grow to this many instructions.
const ALWAYS: usize = 10_000;

/// Arrays of less than this part of the largest one that the entry takes or returns do not
/// count, unless they are too large to stay in vector memory.
const LEAST_PART: u64 = 64;

/// Costs that differ by no more than this part are the same.
const SAME: f64 = 1e-3;

/// Why a module could not be optimised.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OptimizeError {
    /// There is no pass of this name.
    #[error("there is no pass `{0}`; `tilewright passes` lists them")]
    UnknownPass(String),
    /// There is no pipeline of this name.
    #[error("there is no pipeline `{0}`; there are: {names}", names = pipeline_names())]
    UnknownPipeline(String),
    /// A pass asked for an edit that cannot be made.
    #[error("pass `{pass}` failed, which is a bug of it: {error}")]
    Edit {
        /// The pass.
        pass: &'static str,
        /// The edit.
        error: EditError,
    },
    /// A pass made floats of different precision meet.
    #[error("pass `{pass}` mixed precisions in `{instruction}`, which is a bug of it")]
    Mixed {
        /// The pass.
        pass: &'static str,
        /// The instruction.
        instruction: String,
    },
    /// A pass left a module that does not verify.
    #[error("pass `{pass}` broke the module, which is a bug of it: {rejected}")]
    Broken {
        /// The pass.
        pass: &'static str,
        /// The module with what is wrong.
        rejected: Box<Rejected>,
    },
}

fn pipeline_names() -> String {
    PIPELINES.iter().map(|pipeline| pipeline.name).collect::<Vec<_>>().join(", ")
}

/// An optimised module and what was done to it.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The module.
    pub module: Verified,
    /// What was done.
    pub report: Report,
}

/// Optimises a module.
///
/// # Errors
/// If a pass or pipeline does not exist, or a pass has a bug.
pub fn optimize(module: Verified, options: &Options) -> Result<Optimized, OptimizeError> {
    optimize_observed(module, options, &mut |_, _| {})
}

/// Optimises a module, showing it to `observe` after every pass that changed
/// it, and, as `put-back`, once what gained nothing is again as it was.
///
/// # Errors
/// If a pass or pipeline does not exist, or a pass has a bug.
pub fn optimize_observed(
    module: Verified,
    options: &Options,
    observe: &mut dyn FnMut(&'static str, &Module),
) -> Result<Optimized, OptimizeError> {
    let plan = Plan::of(&options.passes)?;
    let memo = Memo::default();
    let model = CostModel::new(&options.target, &memo);
    if let Some(mixed) = module.mixes_precision() {
        let figures = Figures::of(&module, model);
        let notes = vec![mixed_left(&module, mixed)];
        let report =
            figures.report(&figures, Done { notes, stopped: StopReason::Fixpoint, passes: vec![] });
        return Ok(Optimized { module, report });
    }
    let mut run = Run::new(&module, &plan, options, &memo, observe);
    for pass in &plan.first {
        run.pass(*pass)?;
    }
    let stopped = run.rounds(&plan)?;
    // A backend finds simpler forms by itself: only what is saved beyond them counts.
    let given = Figures::of(&module, model);
    let simplest = run.simplest.take();
    let before = simplest.as_ref().map(|(_, simplest)| *simplest);
    let before = before.filter(|simplest| simplest.cost.cycles < given.cost.cycles);
    let before = before.unwrap_or(given);
    let after = Figures::of(&run.module, model);
    let [least, reached] = [&before, &after].map(|figures| figures.cost.cycles);
    let enough = least * (1.0 - options.least_saving);
    let pays = run.heart > 0 && cost_pays(enough, reached);
    let Run { module: changed, passes, mut notes, taken_back, heart, .. } = run;
    notes.extend(taken_back);
    let mut notes = relevant(notes);
    if plan.heart.is_empty() || pays {
        let around = match simplest {
            Some((simplest, _)) if pays => around_gains(
                (&module, &given),
                &simplest,
                (&changed, reached),
                options,
                (&plan, &memo),
            )?,
            _ => None,
        };
        let (module, after) = match around {
            Some((module, figures)) => {
                observe("put-back", &module);
                (module, figures)
            }
            None => {
                let broken = |rejected| OptimizeError::Broken { pass: "pipeline", rejected };
                (verify(changed).map_err(broken)?, after)
            }
        };
        let report =
            Report { unchanged: false, ..before.report(&after, Done { notes, stopped, passes }) };
        return Ok(Optimized { module, report });
    }
    notes.retain(|note| note.verdict == Verdict::Left);
    if heart > 0 {
        notes.push(whole_left(least, reached, options));
    }
    Ok(Optimized { module, report: before.report(&before, Done { notes, stopped, passes }) })
}

/// The original module with the changes alone in which the heart had a part, and the figures
/// of that in its simplest form; `None` if it then costs more cycles than the changed module,
/// or as it is more than the original: what was put back may do again what the heart made.
fn around_gains(
    (original, given): (&Module, &Figures),
    simplest: &Module,
    (changed, reached): (&Module, f64),
    options: &Options,
    (plan, memo): (&Plan, &Memo),
) -> Result<Option<(Verified, Figures)>, OptimizeError> {
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
    let figures = Figures::of(&run.module, model);
    let as_it_is = Ledger::of(&around, model).cycles(&around);
    let costs_more = figures.cost.cycles > reached * (1.0 + SAME);
    if costs_more || cost_pays(as_it_is, given.cost.cycles) {
        return Ok(None);
    }
    Ok(verify(around).ok().map(|module| (module, figures)))
}

type PassList = Vec<&'static dyn Pass>;

/// The passes of a pipeline, found. A list of passes is all cleanup: it runs
/// to its fixpoint, and the result is kept whatever it costs.
#[derive(Default)]
struct Plan {
    first: PassList,
    cleanup: PassList,
    heart: Vec<PassList>,
    last: PassList,
}

impl Plan {
    fn of(passes: &Passes) -> Result<Self, OptimizeError> {
        match passes {
            Passes::List(names) => {
                Ok(Self { cleanup: find(names.iter().map(String::as_str))?, ..Self::default() })
            }
            Passes::Pipeline(name) => {
                let pipeline =
                    pipeline(name).ok_or_else(|| OptimizeError::UnknownPipeline(name.clone()))?;
                Ok(Self {
                    first: find(pipeline.first.iter().copied())?,
                    cleanup: find(pipeline.cleanup.iter().copied())?,
                    heart: pipeline
                        .heart
                        .iter()
                        .map(|group| find(group.iter().copied()))
                        .collect::<Result<_, _>>()?,
                    last: find(pipeline.last.iter().copied())?,
                })
            }
        }
    }
}

impl Plan {
    /// How large an array must be for a rewrite of it to be worthwhile; any is where passes
    /// were named one by one. What the entry takes and returns decides, which no rewrite
    /// changes.
    fn least_bytes(&self, module: &Module, model: CostModel<'_>) -> u64 {
        let Some(entry) = module.entry().filter(|_| !self.heart.is_empty()) else { return 0 };
        let taken = module.computation(entry).parameters().iter().copied();
        let kept = taken.chain(module.computation(entry).root());
        let leaves = kept.flat_map(|id| module.shape(id).leaves()).map(byte_size);
        let largest = leaves.max().unwrap_or(0);
        (largest / LEAST_PART).min(model.on_chip_bytes())
    }
}

fn find<'a>(names: impl Iterator<Item = &'a str>) -> Result<PassList, OptimizeError> {
    let find = |name: &str| {
        registry::pass(name).ok_or_else(|| OptimizeError::UnknownPass(name.to_owned()))
    };
    names.map(find).collect()
}

/// A module in its simplest form, between two runs of the heart.
#[derive(Clone)]
struct Snapshot {
    module: Module,
    cycles: f64,
    notes: Vec<Note>,
    /// What each pass had done.
    changes: Vec<(&'static str, usize)>,
    heart: usize,
}

/// An optimisation under way.
struct Run<'a> {
    module: Module,
    options: &'a Options,
    memo: &'a Memo,
    most_instructions: usize,
    least_bytes: u64,
    fuel: u64,
    passes: Vec<PassReport>,
    notes: Vec<Note>,
    /// What was done and undone.
    taken_back: Vec<Note>,
    heart: usize,
    /// The module in its simplest form, before the heart did anything.
    simplest: Option<(Module, Figures)>,
    observe: &'a mut dyn FnMut(&'static str, &Module),
}

impl<'a> Run<'a> {
    fn new(
        module: &Module,
        plan: &Plan,
        options: &'a Options,
        memo: &'a Memo,
        observe: &'a mut dyn FnMut(&'static str, &Module),
    ) -> Self {
        Self {
            module: module.clone(),
            options,
            memo,
            most_instructions: module.instruction_count().saturating_mul(GROWTH).max(ALWAYS),
            least_bytes: plan.least_bytes(module, CostModel::new(&options.target, memo)),
            fuel: options.stop_after.unwrap_or(u64::MAX),
            passes: Vec::new(),
            notes: Vec::new(),
            taken_back: Vec::new(),
            heart: 0,
            simplest: None,
            observe,
        }
    }

    /// Cleans up and runs the heart, until neither changes anything. What the
    /// heart did in a round is undone where the whole does not cost less for
    /// it, so that moves which pay one by one cannot go round in circles.
    fn rounds(&mut self, plan: &Plan) -> Result<StopReason, OptimizeError> {
        let mut best: Option<Snapshot> = None;
        let mut trail = Trail::default();
        // The group of the heart that had its turn.
        let mut turn = 0;
        if plan.cleanup.iter().any(|pass| pass.is_heart()) {
            trail.leads_back_to(self.snapshot());
        }
        for _ in 0..self.options.max_rounds {
            // What was left may have become possible: only the last word counts.
            self.notes.retain(|note| note.verdict == Verdict::Done);
            let made = self.heart;
            let cleaned = self.all(&plan.cleanup)?;
            if self.heart > made {
                let now = self.snapshot();
                let cycles = now.cycles;
                if let Some(best) = trail.leads_back_to(now) {
                    self.take_back(best, cycles);
                    return Ok(StopReason::Fixpoint);
                }
            }
            // The heart waits for the fixpoint of the cleanup.
            let changes = if plan.heart.is_empty() || cleaned > 0 {
                cleaned
            } else {
                let now = self.snapshot();
                if self.simplest.is_none() {
                    let figures = Figures::of(&self.module, self.model());
                    self.simplest = Some((self.module.clone(), figures));
                }
                // Roll back an unprofitable group and continue with the next.
                let (kept, first) = match best.take() {
                    Some(best) if !cost_pays(best.cycles, now.cycles) => {
                        self.take_back(best.clone(), now.cycles);
                        (best, turn + 1)
                    }
                    _ => (now, 0),
                };
                best = Some(kept);
                let changes;
                (turn, changes) = self.first_that_changes(&plan.heart, first)?;
                changes
            };
            if self.fuel == 0 {
                self.all(&plan.cleanup)?;
                return Ok(StopReason::StopAfter);
            }
            if changes == 0 {
                return Ok(StopReason::Fixpoint);
            }
        }
        Ok(StopReason::Budget)
    }

    fn model(&self) -> CostModel<'a> {
        CostModel::new(&self.options.target, self.memo)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            module: self.module.clone(),
            cycles: Ledger::of(&self.module, self.model()).cycles(&self.module),
            notes: self.notes.clone(),
            changes: self.passes.iter().map(|report| (report.name, report.changes)).collect(),
            heart: self.heart,
        }
    }

    /// Undoes what was done since, and says so; what was left stays said.
    fn take_back(&mut self, best: Snapshot, cycles: f64) {
        let left = self.notes.drain(..).filter(|note| note.verdict == Verdict::Left);
        let mut notes = best.notes;
        notes.extend(left);
        self.taken_back.push(whole_left(best.cycles, cycles, self.options));
        self.notes = notes;
        self.module = best.module;
        self.heart = best.heart;
        for report in &mut self.passes {
            let before = best.changes.iter().find(|(name, _)| *name == report.name);
            report.changes = before.map_or(0, |&(_, changes)| changes);
        }
    }

    fn all(&mut self, passes: &[&'static dyn Pass]) -> Result<usize, OptimizeError> {
        passes.iter().try_fold(0, |changes, &pass| Ok(changes + self.pass(pass)?))
    }

    /// Which of these groups, from the `first` on, was the first to change anything,
    /// and how much.
    fn first_that_changes(
        &mut self,
        groups: &[PassList],
        first: usize,
    ) -> Result<(usize, usize), OptimizeError> {
        for (turn, group) in groups.iter().enumerate().skip(first) {
            let changes = self.all(group)?;
            if changes > 0 {
                return Ok((turn, changes));
            }
        }
        Ok((groups.len(), 0))
    }

    fn pass(&mut self, pass: &'static dyn Pass) -> Result<usize, OptimizeError> {
        if self.options.without.contains(&pass.name()) {
            return Ok(0);
        }
        let start = Instant::now();
        let mut cx = Context {
            target: &self.options.target,
            memo: self.memo,
            numbers: self.options.numbers(),
            least_bytes: self.least_bytes,
            evaluator: self.options.evaluator,
            most_instructions: self.most_instructions,
            skipped: &self.options.skipped,
            fuel: &mut self.fuel,
            notes: &mut self.notes,
        };
        let changes = pass
            .run(&mut self.module, &mut cx)
            .map_err(|error| OptimizeError::Edit { pass: pass.name(), error })?;
        let time = start.elapsed();
        match self.passes.iter_mut().find(|report| report.name == pass.name()) {
            Some(report) => {
                report.changes += changes;
                report.time += time;
            }
            None => self.passes.push(PassReport { name: pass.name(), changes, time }),
        }
        if changes > 0 {
            if pass.is_heart() {
                self.heart += changes;
            }
            self.check(pass)?;
            (self.observe)(pass.name(), &self.module);
        }
        Ok(changes)
    }

    /// Every pass is held to the verifier.
    fn check(&mut self, pass: &'static dyn Pass) -> Result<(), OptimizeError> {
        let module = std::mem::take(&mut self.module);
        match verify(module) {
            Ok(verified) => {
                if let Some(mixed) = verified.mixes_precision() {
                    let instruction = verified.name_of(mixed).to_owned();
                    return Err(OptimizeError::Mixed { pass: pass.name(), instruction });
                }
                self.module = verified.into_inner();
                Ok(())
            }
            Err(rejected) => Err(OptimizeError::Broken { pass: pass.name(), rejected }),
        }
    }
}

/// Says why a module is left alone whose floats differ in precision: passes
/// take the type of a result from its operands.
fn mixed_left(module: &Module, mixed: InstId) -> Note {
    Note {
        pass: "pipeline",
        verdict: Verdict::Left,
        place: place_of(module, mixed),
        text: format!(
            "floats of different precision meet in this `{}`, so the module is left as it is; \
             put a `convert` there",
            module.opcode(mixed)
        ),
    }
}

/// Says that rewrites which paid one by one did not pay together.
fn whole_left(before: f64, after: f64, options: &Options) -> Note {
    let why = if cost_pays(after, before) {
        format!("would cost {after:.0} cycles instead of {before:.0}")
    } else if cost_pays(before, after) {
        format!("save less than {:.0} % of the module's cycles", options.least_saving * 100.0)
    } else {
        "save nothing".into()
    };
    let target = &options.target.name;
    Note {
        pass: "pipeline",
        verdict: Verdict::Left,
        place: "the module".into(),
        text: format!(
            "rewrites that pay one by one were taken back: together they {why} on {target}"
        ),
    }
}

/// Each note once.
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

#[cfg(test)]
mod tests;
