//! Weighs a module as a whole, for rewrites that change when many instructions can run.

use rustc_hash::FxHashSet;
use tilewright_ir::{CompId, EditError, InstId, Module, Moment};

use super::candidate::{Candidate, Cycles, Scope};
use super::pass::{Context, Pass};
use super::report::Place;
use crate::canonicalize::dce::{remove_cascade, remove_unused};
use crate::cost::{Ledger, SweepCount, pays};

/// The number of instructions that may be weighed in all to decide on groups.
const MOST_WEIGHED: usize = 1 << 20;

/// Returns the number of groups that are decided on at once: one, unless the module is large.
pub(crate) fn together(module: &Module, groups: usize) -> usize {
    let asked = (MOST_WEIGHED / module.instruction_count().max(1)).max(1);
    groups.div_ceil(asked).max(1)
}

/// The percentage by which a rewrite may raise the bytes that a module holds at once, beyond what
/// stays in vector memory.
const MORE_MEMORY: u64 = 5;

/// The words for the note of a rewrite: its place and its action.
pub(crate) struct Words {
    pub(crate) place: Place,
    pub(crate) what: String,
}

/// The words for an edit, and the value that it returns.
pub(crate) type Edited<T> = (Words, T);

/// A module whose costs are weighed without its dead code. While it is weighed, only these scales
/// rewrite it; the first rewrite that is kept removes the dead code.
pub(crate) struct Scales<'a> {
    ledger: Ledger<'a>,
    /// The moment of the ledger, without the dead code.
    since: Moment,
    effectful: FxHashSet<CompId>,
    /// Dead code that is still there.
    dead: Vec<InstId>,
    cycles: f64,
    memory_sweeps: SweepCount,
    peak_live_bytes: u64,
}

impl<'a> Scales<'a> {
    /// Begins to weigh a module.
    pub(crate) fn of(module: &mut Module, cx: &mut Context<'a>) -> Result<Self, EditError> {
        let effectful = module.effectful_computations();
        let model = cx.model();
        let (mut ledger, _) = cx.costs.take(module, model);
        module.begin_trial();
        let scales = remove_unused(module, &effectful).map(|_| {
            let tried = module.tried();
            ledger.update(module, &tried);
            ledger.keep();
            // The dead code that is put back after this moment counts as edited.
            let since = module.moment();
            let is_gone = |id: &InstId| module.instruction(*id).parent().is_none();
            Self {
                cycles: ledger.cycles(module),
                memory_sweeps: SweepCount::of(&ledger, module),
                peak_live_bytes: ledger.peak_live_bytes(module),
                dead: tried.into_iter().filter(is_gone).collect(),
                effectful,
                ledger,
                since,
            }
        });
        module.roll_back();
        scales
    }

    /// Ends the weighing.
    pub(crate) fn leave(self, cx: &mut Context<'a>) {
        // Dead code that is still there was put back since.
        cx.costs.give_back((self.ledger, self.since));
    }

    /// Computes the cycles that the module would take after an edit.
    pub(crate) fn cycles_after(
        &mut self,
        module: &mut Module,
        edit: impl FnOnce(&mut Module) -> Result<(), EditError>,
    ) -> Result<f64, EditError> {
        module.begin_trial();
        let done = edit(module).and_then(|()| self.weigh(module));
        self.undo(module);
        done
    }

    /// Makes an edit if it pays. Notes the edit, or why it was not made. Returns the edit's value
    /// if it was made, and nothing if not, or if there was nothing to edit.
    pub(crate) fn attempt<T>(
        &mut self,
        pass: &dyn Pass,
        module: &mut Module,
        cx: &mut Context<'_>,
        edit: impl FnOnce(&mut Module) -> Result<Option<Edited<T>>, EditError>,
    ) -> Result<Option<T>, EditError> {
        module.begin_trial();
        let weighed = edit(module)
            .and_then(|edited| edited.map(|edited| Ok((edited, self.weigh(module)?))).transpose());
        let made = weighed.map(|weighed| {
            let ((words, made), cycles) = weighed?;
            self.is_taken(pass, module, words, cycles, cx).then_some(made)
        });
        if matches!(made, Ok(Some(_))) {
            module.keep();
            self.ledger.keep();
            self.dead.clear();
        } else {
            self.undo(module);
        }
        made
    }

    /// Notes that a rewrite would cost more than it saves, as an earlier trial found.
    pub(crate) fn refuse(&self, pass: &dyn Pass, words: Words, cycles: f64, cx: &mut Context<'_>) {
        cx.accept(pass.name(), self.candidate(words, cycles));
    }

    /// Checks whether a rewrite pays after which the module takes this many cycles.
    pub(crate) fn would_pay(&self, cycles: f64) -> bool {
        pays(self.cycles, cycles)
    }

    fn candidate(&self, Words { place, what }: Words, after: f64) -> Candidate {
        let cycles = Cycles { before: self.cycles, after, of: Scope::Module };
        Candidate { place, done: what.clone(), would: what, also: String::new(), cycles }
    }

    /// Decides whether the module on trial is kept: it must take fewer cycles, and hold no more
    /// bytes at once than allowed. If it is kept, its figures become those of the module.
    fn is_taken(
        &mut self,
        pass: &dyn Pass,
        module: &Module,
        words: Words,
        cycles: f64,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut candidate = self.candidate(words, cycles);
        if !candidate.cycles.pay() {
            return cx.accept(pass.name(), candidate);
        }
        let peak_live_bytes = self.ledger.peak_live_bytes(module);
        let most = u128::from(self.peak_live_bytes) * u128::from(100 + MORE_MEMORY) / 100;
        let on_chip = cx.model().on_chip_bytes();
        if u128::from(peak_live_bytes) > most + u128::from(on_chip) {
            let why = format!(
                "{} would cost {}, but the module would hold {peak_live_bytes} bytes at once \
                 instead of {}",
                candidate.would,
                candidate.cycles.text(&cx.target.name),
                self.peak_live_bytes
            );
            cx.refuse(pass.name(), candidate.place, why);
            return false;
        }
        let traffic = cx.most_traffic.zip(self.ledger.traffic(module));
        if let Some((most, now)) = traffic.filter(|(most, now)| now.exceeds(most, cx.target)) {
            let why = format!(
                "{} would cost {}, but devices would exchange {now} instead of {most}",
                candidate.would,
                candidate.cycles.text(&cx.target.name),
            );
            cx.refuse(pass.name(), candidate.place, why);
            return false;
        }
        let before = self.memory_sweeps.get();
        self.memory_sweeps.update(&self.ledger, module);
        let after = self.memory_sweeps.get();
        if after != before {
            candidate.also.push_str(&format!("; {after} instead of {before} memory sweeps"));
        }
        let is_taken = cx.accept(pass.name(), candidate);
        if is_taken {
            (self.cycles, self.peak_live_bytes) = (cycles, peak_live_bytes);
            self.memory_sweeps.keep();
        } else {
            self.memory_sweeps.roll_back();
        }
        is_taken
    }

    /// Removes the instructions left unused by the edits on trial, and returns the cycles that the
    /// module takes.
    fn weigh(&mut self, module: &mut Module) -> Result<f64, EditError> {
        let mut next: Vec<InstId> = self.dead.clone();
        next.extend(module.tried());
        remove_cascade(module, &self.effectful, next)?;
        self.ledger.update(module, &module.tried());
        Ok(self.ledger.cycles(module))
    }

    fn undo(&mut self, module: &mut Module) {
        module.roll_back();
        self.ledger.roll_back();
    }
}
