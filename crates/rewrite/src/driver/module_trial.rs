//! Weighs a module as a whole, for rewrites that change when many instructions can run.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{CompId, EditError, InstId, Module, Moment};

use super::candidate::{Candidate, Cycles, Scope};
use super::pass::{Context, Pass};
use super::reason::{Reason, Refusal};
use super::report::Place;
use crate::analysis::likeness::Likeness;
use crate::canonicalize::dce::{remove_cascade, remove_unused};
use crate::cost::{Ledger, SweepCount, pays};

/// The number of instructions that may be weighed in all to decide on groups.
const MOST_WEIGHED: usize = 1 << 20;

/// Returns the candidates in the classes that are decided on at once, in the order of their first
/// members: candidates of one computation whose `members` look alike, as those of a model's layers do. In
/// a module with so many classes that weighing each would take long, several classes are one.
pub(crate) fn classes<T, I: IntoIterator<Item = InstId>>(
    module: &Module,
    candidates: Vec<T>,
    members: impl Fn(&T) -> I,
) -> Vec<Vec<T>> {
    if candidates.len() < 2 {
        return candidates.into_iter().map(|one| vec![one]).collect();
    }
    let likeness = Likeness::of(module);
    let mut places: FxHashMap<(Option<CompId>, Vec<u64>), usize> = FxHashMap::default();
    let mut classes: Vec<(Option<CompId>, Vec<T>)> = Vec::new();
    for candidate in candidates {
        let key = likeness.key(module, members(&candidate).into_iter());
        let computation = key.0;
        let place = *places.entry(key).or_insert(classes.len());
        match classes.get_mut(place) {
            Some((_, class)) => class.push(candidate),
            None => classes.push((computation, vec![candidate])),
        }
    }
    let most = (MOST_WEIGHED / module.instruction_count().max(1)).max(1);
    let merged = classes.len().div_ceil(most);
    let mut decided: Vec<Vec<T>> = Vec::new();
    let mut last = (None, merged);
    for (computation, class) in classes {
        match decided.last_mut() {
            Some(all) if last.0 == computation && last.1 < merged => {
                all.extend(class);
                last.1 += 1;
            }
            _ => {
                decided.push(class);
                last = (computation, 1);
            }
        }
    }
    decided
}

/// The percentage by which a rewrite may raise the bytes that a module holds at once, beyond what
/// stays in vector memory.
const MORE_MEMORY: u64 = 5;

/// The note of a rewrite: its place and its action.
pub(crate) struct RewriteNote {
    pub(crate) place: Place,
    pub(crate) what: String,
}

/// The note of each rewrite of an edit, and the value that the edit returns.
pub(crate) type Edited<T> = (Vec<RewriteNote>, T);

/// A module whose costs are weighed without its dead code. While it is weighed, only this trial
/// rewrites it; the first rewrite that is kept removes the dead code.
pub(crate) struct ModuleTrial<'a> {
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

impl<'a> ModuleTrial<'a> {
    /// Begins to weigh a module.
    pub(crate) fn of(module: &mut Module, cx: &mut Context<'a>) -> Result<Self, EditError> {
        let effectful = module.effectful_computations();
        let model = cx.model();
        let (mut ledger, _) = cx.costs.take(module, model);
        module.begin_trial();
        let trial = remove_unused(module, &effectful).map(|_| {
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
        trial
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
            let ((notes, made), cycles) = weighed?;
            self.is_taken(pass, module, notes, cycles, cx).then_some(made)
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

    /// Notes that rewrites would cost more than they save, as an earlier trial found.
    pub(crate) fn refuse(
        &self,
        pass: &dyn Pass,
        notes: Vec<RewriteNote>,
        cycles: f64,
        cx: &mut Context<'_>,
    ) {
        cx.accept_all(pass.name(), self.candidates(notes, cycles));
    }

    /// Checks whether a rewrite pays after which the module takes this many cycles.
    pub(crate) fn would_pay(&self, cycles: f64) -> bool {
        pays(self.cycles, cycles)
    }

    fn candidates(&self, notes: Vec<RewriteNote>, after: f64) -> Vec<Candidate> {
        let cycles = Cycles { before: self.cycles, after, of: Scope::Module };
        let one = |RewriteNote { place, what }| Candidate {
            place,
            done: what.clone(),
            would: what,
            also: String::new(),
            cycles,
        };
        notes.into_iter().map(one).collect()
    }

    /// Decides whether the module on trial is kept: it must take fewer cycles, and hold no more
    /// bytes at once than allowed. If it is kept, its figures become those of the module.
    fn is_taken(
        &mut self,
        pass: &dyn Pass,
        module: &Module,
        notes: Vec<RewriteNote>,
        cycles: f64,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut candidates = self.candidates(notes, cycles);
        if !self.would_pay(cycles) {
            return cx.accept_all(pass.name(), candidates);
        }
        let peak_live_bytes = self.ledger.peak_live_bytes(module);
        let most = u128::from(self.peak_live_bytes) * u128::from(100 + MORE_MEMORY) / 100;
        let on_chip = cx.model().on_chip_bytes();
        if u128::from(peak_live_bytes) > most + u128::from(on_chip) {
            let text = format!(
                "the module would hold {peak_live_bytes} bytes at once instead of {}",
                self.peak_live_bytes
            );
            let why = Refusal { reason: Reason::Memory, text };
            return cx.refuse_all(pass.name(), candidates, &why);
        }
        let traffic = cx.most_traffic.zip(self.ledger.traffic(module));
        if let Some((most, now)) = traffic.filter(|(most, now)| now.exceeds(most, cx.target)) {
            let text = format!("devices would exchange {now} instead of {most}");
            let why = Refusal { reason: Reason::Traffic, text };
            return cx.refuse_all(pass.name(), candidates, &why);
        }
        let before = self.memory_sweeps.get();
        self.memory_sweeps.update(&self.ledger, module);
        let after = self.memory_sweeps.get();
        if after != before {
            let also = format!("; {after} instead of {before} memory sweeps");
            candidates.iter_mut().for_each(|candidate| candidate.also.push_str(&also));
        }
        let is_taken = cx.accept_all(pass.name(), candidates);
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
