//! Runs the passes of a plan on a module.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::verify::verify;
use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use super::candidate::{Cycles, Scope};
use super::costs::Costs;
use super::cycle_guard::Trail;
use super::error::OptimizeError;
use super::figures::Figures;
use super::judged::Judged;
use super::options::Options;
use super::pass::{Context, Pass};
use super::plan::{PassList, Plan};
use super::report::{Note, PassReport, StopReason, Verdict};
use super::swept::Swept;
use super::turns::{Refusals, Turn};
use crate::analysis::sharding::Traffic;
use crate::cost::{CostModel, Ledger, Memo, pays};

/// No calls are inlined once the module has grown to this many times its first size in
/// instructions.
const GROWTH: usize = 4;

/// Small modules may always grow to this many instructions.
const ALWAYS: usize = 10_000;

/// A module in its simplest form, between two runs of cost-gated passes.
#[derive(Clone)]
pub(super) struct Snapshot<'a> {
    pub(super) module: Module,
    pub(super) cycles: f64,
    ledger: Ledger<'a>,
    notes: Vec<Note>,
    /// The rewrites that cost-gated groups judged in this state and left.
    left: Vec<Note>,
    /// Whether a pass of these groups left a place without a judgement.
    is_remembered: bool,
    /// The turns of groups in this state that were not kept.
    refused: Vec<Refused>,
    /// The version of the module.
    version: usize,
    swept: Swept,
    /// The number of changes that each pass had made.
    changes: Vec<(&'static str, usize)>,
    cost_gated: usize,
}

/// A turn that a group repeats whenever it runs in one state of the module.
#[derive(Clone)]
struct Refused {
    turn: Turn,
    /// The rewrites that the group judged and left before it made the first.
    left: Vec<Note>,
}

/// The notes of a pass on a version of the module that it left as it was.
struct Settled {
    version: usize,
    notes: Vec<Note>,
}

/// An optimisation under way.
pub(super) struct Run<'a> {
    pub(super) module: Module,
    options: &'a Options,
    memo: &'a Memo,
    most_instructions: usize,
    least_bytes: u64,
    fuel: u64,
    /// The traffic of the module as it was given, if the result may not exceed it.
    most_traffic: Option<Traffic>,
    /// The instructions that rewrites gave another layout.
    laid_out: FxHashSet<InstId>,
    pub(super) passes: Vec<PassReport>,
    pub(super) notes: Vec<Note>,
    /// The notes on rewrites that were made and rolled back.
    pub(super) rolled_back: Vec<Note>,
    pub(super) cost_gated: usize,
    /// The module in its simplest form, before any cost-gated rewrite.
    pub(super) simplest: Option<(Module, Figures)>,
    /// The costs of the module.
    costs: Costs<'a>,
    /// The places that passes judged and left.
    judged: Judged,
    /// Whether passes may leave such places without a judgement.
    remembers: bool,
    /// The times when passes went over the module.
    swept: Swept,
    /// Tells the states of the module apart: the number of changes when this one was reached.
    version: usize,
    /// The number of times that the module was changed.
    versions: usize,
    /// The last version that each pass left as it was, after it judged all places.
    settled: FxHashMap<&'static str, Settled>,
    observe: &'a mut dyn FnMut(&'static str, &Module),
}

impl<'a> Run<'a> {
    pub(super) fn new(
        module: &Module,
        plan: &Plan<'_>,
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
            most_traffic: if plan.keeps_result { None } else { Traffic::of(module) },
            laid_out: FxHashSet::default(),
            passes: Vec::new(),
            notes: Vec::new(),
            rolled_back: Vec::new(),
            cost_gated: 0,
            simplest: None,
            costs: Costs::default(),
            judged: Judged::default(),
            remembers: false,
            swept: Swept::default(),
            version: 0,
            versions: 0,
            settled: FxHashMap::default(),
            observe,
        }
    }

    /// Cleans up and runs the cost-gated passes, until neither changes anything. A round of
    /// cost-gated passes is rolled back if the module does not cost less after it, so that rewrites
    /// which pay one by one cannot repeat forever.
    pub(super) fn rounds(&mut self, plan: &Plan<'_>) -> Result<StopReason, OptimizeError> {
        let mut best: Option<Snapshot<'a>> = None;
        let mut trail = Trail::default();
        // The turn of the last cost-gated group, and the turns that were rolled back.
        let (mut turn, mut refusals) = (Turn::default(), Refusals::default());
        if plan.cleanup.iter().any(|pass| pass.is_cost_gated()) {
            trail.leads_back_to(self.snapshot());
        }
        for round in 1..=self.options.max_rounds {
            // A rewrite that was left out may have become possible, so only the last round's
            // reasons stay.
            self.notes.retain(|note| note.verdict == Verdict::Done);
            let made = self.cost_gated;
            let cleaned = self.all(&plan.cleanup)?;
            if self.cost_gated > made {
                let now = self.snapshot();
                let cycles = now.cycles;
                if let Some(best) = trail.leads_back_to(now) {
                    self.roll_back(best, cycles);
                    return Ok(StopReason::Fixpoint);
                }
            }
            // Cost-gated passes wait for the fixpoint of the cleanup.
            let changes = if plan.cost_gated.is_empty() || cleaned > 0 {
                cleaned
            } else {
                if self.simplest.is_none() {
                    let figures = self.figures();
                    self.simplest = Some((self.module.clone(), figures));
                }
                let (mut kept, first) = self.judge(best.take(), turn, &mut refusals);
                let remembers = self.may_remember(round);
                turn = self.next_turn(&plan.cost_gated, first, &mut kept, &refusals, remembers)?;
                if turn.changes == 0 && refusals.expire() {
                    turn = self.next_turn(&plan.cost_gated, 0, &mut kept, &refusals, remembers)?;
                }
                best = Some(kept);
                turn.changes
            };
            if self.fuel == 0 {
                self.all(&plan.cleanup)?;
                return Ok(StopReason::StopAfter);
            }
            if changes == 0 {
                if self.clean_up_all(&plan.cleanup)? == 0 {
                    return Ok(StopReason::Fixpoint);
                }
                // This state is not one that a turn led to.
                best = None;
            }
        }
        Ok(StopReason::Budget)
    }

    /// Has the cleanup go over the whole module once more, if passes left out what nobody had
    /// edited. Returns the number of changes.
    pub(super) fn clean_up_all(&mut self, cleanup: &[&dyn Pass]) -> Result<usize, OptimizeError> {
        if self.swept.spared() == 0 {
            return Ok(0);
        }
        self.swept.forget_all();
        self.all(cleanup)
    }

    /// Keeps the last turn if the module costs less after it than in its best state, and otherwise
    /// rolls it back. Returns the best state and the group that is next.
    fn judge(
        &mut self,
        best: Option<Snapshot<'a>>,
        turn: Turn,
        refusals: &mut Refusals,
    ) -> (Snapshot<'a>, usize) {
        let cycles = self.cycles();
        match best {
            Some(best) if !pays(best.cycles, cycles) => {
                self.roll_back(best.clone(), cycles);
                let next = turn.group + 1;
                refusals.refuse(turn);
                (best, next)
            }
            _ => {
                refusals.keep();
                (self.snapshot(), 0)
            }
        }
    }

    /// Checks whether passes may leave places without a judgement, and so without a note. The notes
    /// of the last round say what is left.
    fn may_remember(&self, round: usize) -> bool {
        round < self.options.max_rounds && self.options.stop_after.is_none()
    }

    fn model(&self) -> CostModel<'a> {
        CostModel::new(&self.options.target, self.memo)
    }

    /// Checks whether no pass has changed the module.
    pub(super) fn is_unchanged(&self) -> bool {
        self.version == 0
    }

    /// Returns the modelled figures of the module in its present state.
    pub(super) fn figures(&mut self) -> Figures {
        let model = self.model();
        let ledger = self.costs.ledger(&mut self.module, model);
        Figures::from_ledger(&self.module, ledger)
    }

    fn cycles(&mut self) -> f64 {
        let model = self.model();
        self.costs.ledger(&mut self.module, model).cycles(&self.module)
    }

    fn snapshot(&mut self) -> Snapshot<'a> {
        let model = self.model();
        let ledger = self.costs.ledger(&mut self.module, model);
        Snapshot {
            cycles: ledger.cycles(&self.module),
            ledger: ledger.clone(),
            module: self.module.clone(),
            notes: self.notes.clone(),
            left: Vec::new(),
            is_remembered: false,
            refused: Vec::new(),
            version: self.version,
            swept: self.swept.clone(),
            changes: self.passes.iter().map(|report| (report.name, report.changes)).collect(),
            cost_gated: self.cost_gated,
        }
    }

    /// Undoes the changes since a snapshot, and notes that.
    fn roll_back(&mut self, best: Snapshot<'a>, cycles: f64) {
        self.rolled_back.push(whole_left(best.cycles, cycles, best.cycles, &self.options.target));
        self.restore(best);
    }

    /// Undoes the changes since a snapshot.
    fn restore(&mut self, best: Snapshot<'a>) {
        self.notes = best.notes;
        self.notes.extend(best.left);
        self.module = best.module;
        self.costs = Costs::of(&mut self.module, best.ledger);
        self.version = best.version;
        self.swept = best.swept;
        self.cost_gated = best.cost_gated;
        for report in &mut self.passes {
            let before = best.changes.iter().find(|(name, _)| *name == report.name);
            report.changes = before.map_or(0, |&(_, changes)| changes);
        }
    }

    pub(super) fn all(&mut self, passes: &[&dyn Pass]) -> Result<usize, OptimizeError> {
        passes.iter().try_fold(0, |changes, &pass| Ok(changes + self.pass(pass)?))
    }

    /// Runs the groups from `first` on, up to the first one that changes the module from its state
    /// in `now` by a turn that is not refused, and returns that turn. If `remembers`, passes first
    /// leave what they left before; if then nothing changes, every group judges all places.
    fn next_turn(
        &mut self,
        groups: &[PassList<'_>],
        first: usize,
        now: &mut Snapshot<'a>,
        refusals: &Refusals,
        remembers: bool,
    ) -> Result<Turn, OptimizeError> {
        if !remembers {
            return self.turn(groups, first, now, refusals);
        }
        let spared = self.judged.spared();
        self.remembers = true;
        let turn = self.turn(groups, first, now, refusals);
        self.remembers = false;
        now.is_remembered |= self.judged.spared() > spared;
        if !now.is_remembered || turn.as_ref().map_or(true, |turn| turn.changes > 0) {
            return turn;
        }
        now.is_remembered = false;
        self.turn(groups, 0, now, refusals)
    }

    /// Runs the groups from `first` on as [`Self::next_turn`] does, and adds what they leave to the
    /// state.
    fn turn(
        &mut self,
        groups: &[PassList<'_>],
        first: usize,
        now: &mut Snapshot<'a>,
        refusals: &Refusals,
    ) -> Result<Turn, OptimizeError> {
        if first == 0 {
            now.left.clear();
            self.notes.clone_from(&now.notes);
        }
        for (group, passes) in groups.iter().enumerate().skip(first) {
            if self.repeats(group, now, refusals) {
                continue;
            }
            let (noted, spared) = (self.notes.len(), self.judged.spared());
            let changes = self.all(passes)?;
            let notes = self.notes.get(noted..).unwrap_or_default();
            // After its first rewrite, a group judges another state.
            let left = notes.iter().take_while(|note| note.verdict == Verdict::Left);
            let left: Vec<Note> = left.cloned().collect();
            now.left.extend(left.iter().cloned());
            if changes == 0 {
                continue;
            }
            let made = notes.iter().filter(|note| note.verdict == Verdict::Done);
            let turn = Turn { group, changes, made: made.map(ToString::to_string).collect() };
            if !refusals.cover(&turn) {
                return Ok(turn);
            }
            self.restore(now.clone());
            if self.judged.spared() == spared {
                now.refused.push(Refused { turn, left });
            }
        }
        Ok(Turn { group: groups.len(), ..Turn::default() })
    }

    /// Checks whether a group would repeat a refused turn that it took in this state before. If so,
    /// adds what the group leaves to the state, and to the notes.
    fn repeats(&mut self, group: usize, now: &mut Snapshot<'a>, refusals: &Refusals) -> bool {
        // Each rewrite takes fuel, even if it is rolled back.
        if self.options.stop_after.is_some() {
            return false;
        }
        let is_repeated = |one: &&Refused| one.turn.group == group && refusals.cover(&one.turn);
        let Some(Refused { left, .. }) = now.refused.iter().find(is_repeated) else { return false };
        now.left.extend(left.iter().cloned());
        self.notes.extend(left.iter().cloned());
        true
    }

    /// Checks whether a pass left the present version as it is. If so, adds its notes.
    fn is_settled(&mut self, pass: &dyn Pass) -> bool {
        let settled = self.settled.get(pass.name()).filter(|one| one.version == self.version);
        let Some(Settled { notes, .. }) = settled else { return false };
        self.notes.extend(notes.iter().cloned());
        true
    }

    pub(super) fn pass(&mut self, pass: &dyn Pass) -> Result<usize, OptimizeError> {
        if self.options.is_cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        if self.options.without.contains(&pass.name()) {
            return Ok(0);
        }
        if self.is_settled(pass) {
            return Ok(0);
        }
        let (start, noted) = (Instant::now(), self.notes.len());
        let spared = (self.judged.spared(), self.swept.spared());
        let mut cx = Context {
            least_bytes: self.least_bytes,
            most_instructions: self.most_instructions,
            fuel: self.fuel,
            most_traffic: self.most_traffic,
            laid_out: std::mem::take(&mut self.laid_out),
            notes: std::mem::take(&mut self.notes),
            costs: std::mem::take(&mut self.costs),
            judged: if self.remembers {
                std::mem::take(&mut self.judged)
            } else {
                Judged::default()
            },
            swept: std::mem::take(&mut self.swept),
            ..Context::new(self.options, self.memo)
        };
        let changes = pass
            .run(&mut self.module, &mut cx)
            .map_err(|error| OptimizeError::Edit { pass: pass.name(), error })?;
        self.costs = cx.costs;
        if self.remembers {
            self.judged = cx.judged;
        }
        self.swept = cx.swept;
        self.laid_out = cx.laid_out;
        self.fuel = cx.fuel;
        self.notes = cx.notes;
        let time = start.elapsed();
        match self.passes.iter_mut().find(|report| report.name == pass.name()) {
            Some(report) => {
                report.changes += changes;
                report.time += time;
            }
            None => self.passes.push(PassReport { name: pass.name(), changes, time }),
        }
        // A pass that left places without a judgement has yet to judge them.
        if changes == 0 && (self.judged.spared(), self.swept.spared()) == spared {
            let notes = self.notes.get(noted..).unwrap_or_default().to_vec();
            self.settled.insert(pass.name(), Settled { version: self.version, notes });
        }
        if changes > 0 {
            self.versions += 1;
            self.version = self.versions;
            if pass.is_cost_gated() {
                self.cost_gated += changes;
            }
            self.check(pass)?;
            (self.observe)(pass.name(), &self.module);
        }
        Ok(changes)
    }

    /// Verifies the module that a pass left.
    fn check(&mut self, pass: &dyn Pass) -> Result<(), OptimizeError> {
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

/// Notes that rewrites which paid one by one did not pay together, or did not save enough: a module must take
/// less than `enough`.
pub(super) fn whole_left(before: f64, after: f64, enough: f64, target: &Target) -> Note {
    let name = &target.name;
    let mut why = if pays(before, after) || pays(after, before) {
        format!("the module would take {after:.0} cycles instead of {before:.0} on {name}")
    } else {
        format!("the module would take as many cycles as before on {name}")
    };
    if pays(before, after) {
        why.push_str(&format!("; to be worth it, less than {enough:.0}"));
    }
    Note {
        pass: "pipeline",
        verdict: Verdict::Left,
        place: "the module".into(),
        cycles: Some(Cycles { before, after, of: Scope::Module }),
        text: format!("rolled back rewrites that save cycles one by one: with all of them {why}"),
    }
}

#[cfg(test)]
mod tests;
