//! Judges the rewrites that passes propose, charges fuel for them and reports them.

use super::pass::Context;
use super::reason::Refusal;
use super::report::{Note, Outcome, Place};
use crate::cost::pays;

/// A rewrite that could be made, and the cycles that the target takes with and without it.
pub(crate) struct Candidate {
    /// The place of the rewrite, for its note.
    pub(crate) place: Place,
    /// The action in the past tense: `reduced f32[8] before it is transposed`.
    pub(crate) done: String,
    /// The action as a subject: `reducing f32[8] before it is transposed`.
    pub(crate) would: String,
    /// Further parts of the note of a rewrite that is made, each after a semicolon.
    pub(crate) also: String,
    /// The cycles before and after.
    pub(crate) cycles: Cycles,
}

/// Modelled cycles before and after a rewrite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycles {
    /// The cycles without the rewrite.
    pub before: f64,
    /// The cycles with it.
    pub after: f64,
    /// The code that takes them.
    pub of: Scope,
}

/// The code that the cycles of a candidate are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The instructions that the rewrite replaces, and those that it makes.
    Instructions,
    /// The whole module.
    Module,
}

impl Cycles {
    pub(crate) fn pay(self) -> bool {
        pays(self.before, self.after)
    }

    /// Returns both figures and their scope: `10 cycles instead of 20 for the module on cpu`.
    pub(crate) fn text(self, target: &str) -> String {
        let of = match self.of {
            Scope::Instructions => "these instructions",
            Scope::Module => "the module",
        };
        let Self { before, after, .. } = self;
        // Figures that would look the same are shown to a hundredth.
        let digits = if before.round() == after.round() { 2 } else { 0 };
        format!("{after:.digits$} cycles instead of {before:.digits$} for {of} on {target}")
    }
}

impl Context<'_> {
    /// Checks whether a candidate is to be made: it pays, fuel is left, and it is not one of the
    /// skipped rewrites. Notes that it was made, or why it does not pay.
    pub(crate) fn accept(&mut self, pass: &'static str, candidate: Candidate) -> bool {
        self.accept_all(pass, vec![candidate])
    }

    /// As [`Self::accept`], of candidates that are made together or not at all, and cost the same.
    pub(crate) fn accept_all(&mut self, pass: &'static str, candidates: Vec<Candidate>) -> bool {
        let pay = candidates.iter().all(|candidate| candidate.cycles.pay());
        if pay
            && !self.spend(pass, candidates.iter().map(|candidate| candidate.place.text.as_str()))
        {
            return false;
        }
        for Candidate { place, done, would, also, cycles } in candidates {
            let costs = cycles.text(&self.target.name);
            let (outcome, text) = if pay {
                (Outcome::Done, format!("{done}: {costs}{also}"))
            } else {
                (Outcome::Left, format!("{would} would cost {costs}"))
            };
            let cycles = Some(cycles);
            self.notes.push(Note { pass, outcome, place, text, cycles, reason: None });
        }
        pay
    }

    /// Notes why candidates are not made that pay. Returns `false`.
    pub(crate) fn refuse_all(
        &mut self,
        pass: &'static str,
        candidates: Vec<Candidate>,
        Refusal { reason, text: why }: &Refusal,
    ) -> bool {
        for Candidate { place, would, cycles, .. } in candidates {
            let costs = cycles.text(&self.target.name);
            let text = format!("{would} would cost {costs}, but {why}");
            self.refuse(pass, place, Refusal { reason: *reason, text });
        }
        false
    }

    /// Takes fuel for a rewrite that pays by other figures than the target's cycles, and notes it.
    /// Returns `false` if no fuel is left, or if it is to be skipped.
    pub(crate) fn make(&mut self, pass: &'static str, place: Place, text: String) -> bool {
        let is_made = self.spend(pass, [place.text.as_str()].into_iter());
        if is_made {
            let (outcome, cycles) = (Outcome::Done, None);
            self.notes.push(Note { pass, outcome, place, text, cycles, reason: None });
        }
        is_made
    }

    /// Notes why a rewrite is not made.
    pub(crate) fn refuse(&mut self, pass: &'static str, place: Place, why: Refusal) {
        let Refusal { reason, text } = why;
        let (outcome, reason) = (Outcome::Left, Some(reason));
        self.notes.push(Note { pass, outcome, place, text, cycles: None, reason });
    }

    /// Takes one unit of fuel for a rewrite of a pass at these places. Returns `false` if none is
    /// left, or if a rewrite at one of them is to be skipped.
    fn spend<'p>(&mut self, pass: &str, mut places: impl Iterator<Item = &'p str>) -> bool {
        let is_skipped =
            |place| self.skipped.iter().any(|one| one.pass == pass && one.place == place);
        if places.any(is_skipped) {
            return false;
        }
        match self.fuel.checked_sub(1) {
            Some(left) => {
                self.fuel = left;
                true
            }
            None => false,
        }
    }
}
