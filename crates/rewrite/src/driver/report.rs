//! The report on an optimisation: counts, times, costs, explanations.

mod place;
#[doc(hidden)]
pub mod table;
mod text;

use std::fmt;
use std::time::Duration;

use tilewright_ir::{Module, Opcode};

use crate::analysis::sharding::Traffic;
use crate::analysis::trip_count::trip_count;
use crate::cost::Cost;
use crate::driver::candidate::Cycles;
use crate::driver::reason::Reason;
use crate::guards::is_guard;

pub use place::Place;
pub use text::Notes;

/// The changes made to a module. `Display` writes the costs before and after and the changes of
/// each pass; [`Report::explanation`] has the notes.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the target.
    pub target: String,
    /// The target's [`ratio_error`](tilewright_target::Target::ratio_error).
    pub ratio_error: f64,
    /// The modelled cost before: of the module in its simplest form, which a backend finds by
    /// itself. The other figures before are of that form too.
    pub before: Cost,
    /// The modelled cost after.
    pub after: Cost,
    /// The most bytes in use at once, before and after.
    pub peak_live_bytes: [u64; 2],
    /// The memory sweeps of the entry computation over its largest arrays, before and after: see
    /// [`crate::cost::memory_sweeps`].
    pub memory_sweeps: [usize; 2],
    /// How much the devices communicate, before and after, if the module is divided over several.
    pub traffic: Option<[Traffic; 2]>,
    /// Each pass of the pipeline, in order of first run.
    pub passes: Vec<PassReport>,
    /// The reason why the optimisation stopped.
    pub stopped: StopReason,
    /// The number of rewrites after which the optimisation was told to stop, if that stopped it.
    pub stopped_after: Option<u64>,
    /// The rewrites made and those left out, in plain words.
    pub notes: Vec<Note>,
    /// Whether the module was given back untouched, because no rewrite that pays was found.
    pub unchanged: bool,
    /// The reason why the ratio of the costs may differ from the ratio of the times, if there is
    /// one: the module has loops whose trip counts are not known before the run, or branches, only
    /// one of which runs.
    pub caveat: Option<&'static str>,
}

/// Returns the [`Report::caveat`] of a module.
pub(super) fn caveat(module: &Module) -> Option<&'static str> {
    let all = || module.computations().iter().flat_map(|&id| module.instructions(id));
    let has_unknown_length =
        |id| module.opcode(id) == Opcode::While && trip_count(module, id).is_none();
    let branches = |id| module.opcode(id) == Opcode::Conditional && !is_guard(module, id);
    match (all().any(has_unknown_length), all().any(branches)) {
        (true, true) => Some(
            "bodies of loops of unknown length count once, and every branch of a conditional counts",
        ),
        (true, false) => Some("bodies of loops of unknown length count once"),
        (false, true) => Some("every branch of a conditional counts"),
        (false, false) => None,
    }
}

/// The changes of one pass, over all its runs.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// The name of the pass.
    pub name: &'static str,
    /// The number of changes that it made.
    pub changes: usize,
    /// The time that it took.
    pub time: Duration,
}

/// The reason why an optimisation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// No pass finds anything more to do.
    Fixpoint,
    /// The limit on rounds was reached.
    Budget,
    /// The number of rewrites asked for was made.
    StopAfter,
}

impl StopReason {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixpoint => "fixpoint",
            Self::Budget => "budget",
            Self::StopAfter => "stop-after",
        }
    }
}

/// Whether the code that a note is about was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was rewritten.
    Done,
    /// It was left as it is.
    Left,
}

/// A finding of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The pass that found it.
    pub pass: &'static str,
    /// Whether it was rewritten.
    pub outcome: Outcome,
    /// The place in the user's words: framework names and source lines.
    pub place: Place,
    /// The finding, the change or the reason against it, and the saving.
    pub text: String,
    /// The modelled cycles before and after, where these decided.
    pub cycles: Option<Cycles>,
    /// The reason, if the code was left as it is for another one than its cost.
    pub reason: Option<Reason>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Done => "rewritten",
            Outcome::Left => "left",
        };
        write!(f, "{outcome} [{}] at {}: {}", self.pass, self.place, self.text)
    }
}
