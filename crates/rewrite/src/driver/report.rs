//! Reports the result of an optimisation: counts, times, costs, explanations.

#[doc(hidden)]
pub mod table;
mod text;

use std::fmt;
use std::time::Duration;

use tilewright_ir::{InstId, Module, Op};

use crate::cost::Cost;

pub use text::Explanation;

/// The report on the optimisation of a module. `Display` writes the costs before and after and
/// the changes of each pass; [`Report::explanation`] has the notes.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the target.
    pub target: String,
    /// The modelled cost before the optimisation, of the module in its simplest form: a backend
    /// finds that form by itself. The figures below are for the simplest form, too.
    pub before: Cost,
    /// The modelled cost after the optimisation.
    pub after: Cost,
    /// The peak number of bytes in use, before and after.
    pub peak_live_bytes: [u64; 2],
    /// The memory sweeps of the entry computation over its largest arrays, before and after:
    /// see [`crate::cost::memory_sweeps`].
    pub memory_sweeps: [usize; 2],
    /// Each pass of the pipeline, in order of first run.
    pub passes: Vec<PassReport>,
    /// The reason why it stopped.
    pub stopped: StopReason,
    /// Notes on what was found, rewritten and left, in plain words.
    pub notes: Vec<Note>,
    /// Whether the module was returned unchanged, because no rewrite that pays was found.
    pub unchanged: bool,
    /// The reason, if any, why the ratio of the costs may differ from the ratio of the times:
    /// the cost model does not know the trip counts of loops, and only one branch of a
    /// conditional runs.
    pub caveat: Option<&'static str>,
}

/// Returns the [`Report::caveat`] of a module.
pub(super) fn caveat(module: &Module) -> Option<&'static str> {
    let mut all = module.computations().iter().flat_map(|&id| module.instructions(id));
    let repeats = all.any(|id| matches!(module.op(id), Op::While(_) | Op::Conditional(_)));
    repeats.then_some("bodies of loops count once, and so does every branch of a conditional")
}

/// The work of one pass, summed over all its runs.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// Its name.
    pub name: &'static str,
    /// The number of changes.
    pub changes: usize,
    /// The time it took.
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

/// The outcome of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The code was rewritten.
    Done,
    /// The code was left as it is.
    Left,
}

/// A finding of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The pass that found it.
    pub pass: &'static str,
    /// The outcome.
    pub verdict: Verdict,
    /// The place in the user's words: framework names and source lines.
    pub place: String,
    /// The finding, what was done or why nothing was done, and the savings.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Done => "rewritten",
            Verdict::Left => "left",
        };
        write!(f, "{verdict} [{}] at {}: {}", self.pass, self.place, self.text)
    }
}

/// Names an instruction as its user knows it: by its framework name and source line, or else by
/// its name in the text.
pub(crate) fn place_of(module: &Module, id: InstId) -> String {
    let name = module.name_of(id);
    let Some(metadata) = module.metadata(id) else { return format!("`{name}`") };
    let tables = module.header.stack_tables.as_ref();
    let source = match tables.and_then(|t| t.source_of(metadata.stack_frame_id)) {
        Some((file, line)) => Some((file, line)),
        None if !metadata.source_file.is_empty() => {
            Some((metadata.source_file.as_str(), metadata.source_line))
        }
        None => None,
    };
    match (metadata.op_name.as_str(), source) {
        ("", None) => format!("`{name}`"),
        ("", Some((file, line))) => format!("`{name}` ({file}:{line})"),
        (op, None) => format!("`{op}`"),
        (op, Some((file, line))) => format!("`{op}` ({file}:{line})"),
    }
}
