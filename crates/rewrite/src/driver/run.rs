//! Runs the passes of a plan on a module.

use std::time::Instant;

use rustc_hash::FxHashSet;
use tilewright_ir::verify::verify;
use tilewright_ir::{InstId, Module};
use tilewright_target::Target;

use super::candidate::{Cycles, Scope};
use super::costs::Costs;
use super::cycle_guard::Trail;
use super::error::OptimizeError;
use super::figures::Figures;
use super::options::Options;
use super::pass::{Context, Pass};
use super::plan::{PassList, PassPlan};
use super::report::{Note, Outcome, PassReport, StopReason};
use crate::analysis::sharding::Traffic;
use crate::cost::{CostModel, Ledger, Memo, pays};

/// No calls are inlined once the module has grown to this many times its first size in
/// instructions.
const GROWTH: usize = 4;

/// Small modules may always grow to this many instructions.
const ALWAYS: usize = 10_000;

/// A state of a module between two runs of cost-gated groups.
#[derive(Clone)]
pub(super) struct Snapshot<'a> {
    pub(super) module: Module,
    pub(super) cycles: f64,
    ledger: Ledger<'a>,
    notes: Vec<Note>,
    /// The notes of the rewrites that cost-gated groups judged in this state and left.
    left: Vec<Note>,
    /// The number of changes that each pass had made.
    changes: Vec<(&'static str, usize)>,
    cost_gated: usize,
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
    observe: &'a mut dyn FnMut(&'static str, &Module),
}

impl<'a> Run<'a> {
    pub(super) fn new(
        module: &Module,
        plan: &PassPlan<'_>,
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
            observe,
        }
    }

    /// Cleans up and runs the cost-gated groups, until neither changes anything. The changes of a
    /// group are rolled back if the module does not cost less after them, so that rewrites which
    /// pay one by one cannot repeat forever; the next group then runs on the state before.
    pub(super) fn rounds(&mut self, plan: &PassPlan<'_>) -> Result<StopReason, OptimizeError> {
        let mut best: Option<Snapshot<'a>> = None;
        let mut trail = Trail::default();
        // The last group that changed anything.
        let mut group = 0;
        if plan.cleanup.iter().any(|pass| pass.is_cost_gated()) {
            trail.leads_back_to(self.snapshot());
        }
        for _ in 0..self.options.max_rounds {
            // A rewrite that was left out may have become possible, so only the last round's
            // reasons stay.
            self.notes.retain(|note| note.outcome == Outcome::Done);
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
            // Cost-gated groups wait for the fixpoint of the cleanup.
            let changes = if plan.cost_gated.is_empty() || cleaned > 0 {
                cleaned
            } else {
                if self.simplest.is_none() {
                    let figures = self.figures();
                    self.simplest = Some((self.module.clone(), figures));
                }
                let (mut now, first) = self.judge(best.take(), group);
                let changes;
                (group, changes) = self.first_change(&plan.cost_gated, first, &mut now)?;
                best = Some(now);
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

    /// Keeps the changes of a group if the module costs less than in its best state, and otherwise
    /// rolls them back. Returns the best state and the group that is next.
    fn judge(&mut self, best: Option<Snapshot<'a>>, group: usize) -> (Snapshot<'a>, usize) {
        let cycles = self.cycles();
        match best {
            Some(best) if !pays(best.cycles, cycles) => {
                self.roll_back(best.clone(), cycles);
                (best, group + 1)
            }
            _ => (self.snapshot(), 0),
        }
    }

    fn model(&self) -> CostModel<'a> {
        CostModel::new(&self.options.target, self.memo)
    }

    /// Checks whether no pass has changed the module.
    pub(super) fn is_unchanged(&self) -> bool {
        self.passes.iter().all(|report| report.changes == 0)
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
            changes: self.passes.iter().map(|report| (report.name, report.changes)).collect(),
            cost_gated: self.cost_gated,
        }
    }

    /// Undoes the changes since a snapshot, and notes that.
    fn roll_back(&mut self, best: Snapshot<'a>, cycles: f64) {
        self.rolled_back.push(whole_left(best.cycles, cycles, best.cycles, &self.options.target));
        self.notes = best.notes;
        self.notes.extend(best.left);
        self.module = best.module;
        self.costs = Costs::of(&mut self.module, best.ledger);
        self.cost_gated = best.cost_gated;
        for report in &mut self.passes {
            let before = best.changes.iter().find(|(name, _)| *name == report.name);
            report.changes = before.map_or(0, |&(_, changes)| changes);
        }
    }

    pub(super) fn all(&mut self, passes: &[&dyn Pass]) -> Result<usize, OptimizeError> {
        passes.iter().try_fold(0, |changes, &pass| Ok(changes + self.pass(pass)?))
    }

    /// Runs the groups from `first` on, up to the first that changes the module, and adds the notes of
    /// what they leave to the state. Returns the group and the number of its changes.
    fn first_change(
        &mut self,
        groups: &[PassList<'_>],
        first: usize,
        now: &mut Snapshot<'a>,
    ) -> Result<(usize, usize), OptimizeError> {
        for (group, passes) in groups.iter().enumerate().skip(first) {
            let noted = self.notes.len();
            let changes = self.all(passes)?;
            // After its first rewrite, a group judges another state.
            let notes = self.notes.get(noted..).unwrap_or_default();
            let left = notes.iter().take_while(|note| note.outcome == Outcome::Left);
            now.left.extend(left.cloned());
            if changes > 0 {
                return Ok((group, changes));
            }
        }
        Ok((groups.len(), 0))
    }

    pub(super) fn pass(&mut self, pass: &dyn Pass) -> Result<usize, OptimizeError> {
        if self.options.is_cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        if self.options.without.contains(&pass.name()) {
            return Ok(0);
        }
        let start = Instant::now();
        let mut cx = Context {
            least_bytes: self.least_bytes,
            most_instructions: self.most_instructions,
            fuel: self.fuel,
            most_traffic: self.most_traffic,
            laid_out: std::mem::take(&mut self.laid_out),
            notes: std::mem::take(&mut self.notes),
            costs: std::mem::take(&mut self.costs),
            ..Context::new(self.options, self.memo)
        };
        let changes = pass
            .run(&mut self.module, &mut cx)
            .map_err(|error| OptimizeError::Edit { pass: pass.name(), error })?;
        self.costs = cx.costs;
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
        if changes > 0 {
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
        outcome: Outcome::Left,
        place: "the module".into(),
        cycles: Some(Cycles { before, after, of: Scope::Module }),
        reason: None,
        text: format!("rolled back rewrites that save cycles one by one: with all of them {why}"),
    }
}

#[cfg(test)]
mod tests;
