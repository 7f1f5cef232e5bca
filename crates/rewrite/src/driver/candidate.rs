//! Judges the rewrites that passes propose, spends fuel on them and notes them.

use super::pass::Context;
use super::report::{Note, Verdict};
use crate::cost::pays;

/// A rewrite that could be made, and the cycles with and without it.
pub(crate) struct Candidate {
    /// The place of the rewrite, for its note.
    pub(crate) place: String,
    /// The rewrite as done: `reduced f32[8] before it is transposed`.
    pub(crate) done: String,
    /// The rewrite as a subject: `reducing f32[8] before it is transposed`.
    pub(crate) would: String,
    /// Additions to the note of a made rewrite, each after a semicolon.
    pub(crate) also: String,
    /// The cycles before and after.
    pub(crate) cycles: Cycles,
}

/// Modelled cycles before and after a rewrite.
#[derive(Clone, Copy)]
pub(crate) struct Cycles {
    pub(crate) before: f64,
    pub(crate) after: f64,
    pub(crate) of: Scope,
}

/// The code whose cycles a candidate compares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The instructions that the rewrite replaces, and those that it makes.
    Instructions,
    /// The whole module.
    Module,
}

impl Cycles {
    pub(crate) fn pay(self) -> bool {
        pays(self.before, self.after)
    }

    /// Writes both figures and their scope: `10 cycles instead of 20 for the module on cpu`.
    pub(crate) fn text(self, target: &str) -> String {
        let of = match self.of {
            Scope::Instructions => "these instructions",
            Scope::Module => "the module",
        };
        let Self { before, after, .. } = self;
        // Figures that round to the same number are shown to a hundredth.
        let digits = if before.round() == after.round() { 2 } else { 0 };
        format!("{after:.digits$} cycles instead of {before:.digits$} for {of} on {target}")
    }
}

impl Context<'_> {
    /// Decides whether to make a candidate: it must pay, fuel must be left, and the options
    /// must not skip it. Notes that it is made, or why it does not pay.
    pub(crate) fn accept(&mut self, pass: &'static str, candidate: Candidate) -> bool {
        let Candidate { place, done, would, also, cycles } = candidate;
        let costs = cycles.text(&self.target.name);
        if !cycles.pay() {
            self.refuse(pass, place, format!("{would} would cost {costs}"));
            return false;
        }
        if !self.spend(pass, &place) {
            return false;
        }
        let text = format!("{done}: {costs}{also}");
        self.notes.push(Note { pass, verdict: Verdict::Done, place, text });
        true
    }

    /// Notes why a rewrite is not made.
    pub(crate) fn refuse(&mut self, pass: &'static str, place: String, why: String) {
        self.notes.push(Note { pass, verdict: Verdict::Left, place, text: why });
    }

    /// Takes one unit of fuel for a rewrite of a pass at a place. Returns `false` if none is
    /// left or the rewrite is to be skipped.
    fn spend(&mut self, pass: &'static str, place: &str) -> bool {
        if self.skipped.iter().any(|one| one.pass == pass && one.place == place) {
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
