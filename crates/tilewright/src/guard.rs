//! Optimises with a check: finds rewrites that change the results of a module, and leaves them
//! out.

use std::fmt;

use tilewright_interp::algebra::Verdict;
use tilewright_ir::Verified;
use tilewright_ir::expand::plain;
use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{Note, Optimized, Options, Outcome, Skipped, StopReason};

use crate::agreement::{Agreement, Witness};
use crate::check::{CheckOptions, Fault, Trial, agreement_until_fault};
use crate::error::Error;
use crate::pipeline::optimize;

/// An optimised module that agrees with the original.
#[derive(Debug)]
pub struct Guarded {
    /// The module, with the optimiser's notes.
    pub optimized: Optimized,
    /// The comparison of its outputs with the original's.
    pub agreement: Agreement,
    /// The rewrites that were left out.
    pub blamed: Vec<Blame>,
}

/// The part of an optimisation that is left out because a rewrite changes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The rewrite itself.
    Rewrite,
    /// The whole pass, because another of its rewrites changed results before.
    Pass,
    /// All rewrites: the rewrite is not known, or there were too many.
    Everything,
}

impl Remedy {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rewrite => "rewrite",
            Self::Pass => "pass",
            Self::Everything => "everything",
        }
    }
}

/// A rewrite that changes the results of a module.
#[derive(Clone, Debug)]
pub struct Blame {
    /// The number of the rewrite among those of the cost-gated passes, from 1, as in
    /// `stop_after`.
    pub rewrite: u64,
    /// The rewrite's note; `None` if the rewrite is not known.
    pub note: Option<Note>,
    /// The part of the optimisation that was left out.
    pub left_out: Remedy,
    /// The number of the output that differs.
    pub output: usize,
    /// How it differs.
    pub difference: Difference,
}

/// How an output differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// In an element, on some inputs.
    Element(Witness),
    /// Over the reals.
    OverReals(Verdict),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(witness) => witness.fmt(f),
            Self::OverReals(verdict) => write!(f, "{verdict} over the reals"),
        }
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rewrite, note, left_out, output, difference } = self;
        match note {
            Some(Note { pass, place, .. }) => {
                write!(
                    f,
                    "rewrite {rewrite}, at {place} [{pass}], changes what the module computes"
                )?;
            }
            None => write!(
                f,
                "the rewrites change what the module computes, and it is not known which one does"
            )?,
        }
        match (left_out, note) {
            (Remedy::Rewrite, _) => write!(f, ", so it was left out")?,
            (Remedy::Pass, Some(note)) => write!(f, ", so `{}` was left out", note.pass)?,
            (Remedy::Pass, None) | (Remedy::Everything, _) => write!(f, ", so none was made")?,
        }
        if let Some(Note { text, .. }) = note {
            write!(f, "\n  {text}")?;
        }
        write!(f, "\n  out{output}: {difference}")
    }
}

/// Number of rewrites that are left out before the module is returned unchanged.
const MOST_BLAMED: usize = 4;

/// Optimises a module and compares it with the original. If they differ, the rewrite that causes
/// the difference is found and left out; if a pass has a second such rewrite, the whole pass.
/// An observer in the options is called for the first attempt only.
///
/// # Errors
/// As for [`optimize()`] and [`check()`](crate::check()).
pub fn optimize_guarded(
    module: &Verified,
    options: &Options,
    how: &CheckOptions<'_>,
) -> Result<Guarded, Error> {
    let mut blamed = Vec::new();
    let mut optimized = optimize(module.clone(), options)?;
    let is_fast = options.float_mode == FloatMode::Fast;
    let mut options = options.clone();
    options.observer = None;
    loop {
        let (given, made) = (plain(module), plain(&optimized.module));
        let trial = Trial::new(&given, &made, how)?;
        let (agreement, fault) = agreement_until_fault(&trial)?;
        // `--fast-math` allows functions that differ a little over the reals.
        let allowed = |fault: &Fault| is_fast && matches!(fault, Fault::OverReals);
        let fault = fault.filter(|fault| !allowed(fault));
        let Some((fault, (output, difference))) = fault.zip(difference(&agreement)) else {
            return Ok(Guarded { optimized, agreement, blamed });
        };
        let (rewrite, note) = culprit(module, &options, how, &fault)?;
        let left_out = match &note {
            Some(_) if blamed.len() + 1 >= MOST_BLAMED => Remedy::Everything,
            Some(note) if is_blamed(&blamed, note.pass) => Remedy::Pass,
            Some(_) => Remedy::Rewrite,
            None => Remedy::Everything,
        };
        match (left_out, &note) {
            (Remedy::Rewrite, Some(Note { pass, place, .. })) => {
                options.skipped.push(Skipped { pass, place: place.text.clone() });
            }
            (Remedy::Pass, Some(note)) => options.without.push(note.pass),
            // The cleanup passes may be wrong too.
            _ => options.stop_after = Some(0),
        }
        blamed.push(Blame { rewrite, note, left_out, output, difference });
        optimized = optimize(module.clone(), &options)?;
        if left_out == Remedy::Everything {
            optimized.module = module.clone();
        }
    }
}

/// Returns the first output that differs, and how.
fn difference(agreement: &Agreement) -> Option<(usize, Difference)> {
    let mut outputs = agreement.outputs.iter().enumerate();
    let element = outputs.find_map(|(output, found)| Some((output, found.witness.clone()?)));
    let over_reals = || agreement.disproved().next();
    match element {
        Some((output, witness)) => Some((output, Difference::Element(witness))),
        None => {
            over_reals().map(|(output, verdict)| (output, Difference::OverReals(verdict.clone())))
        }
    }
}

/// Checks whether a rewrite of a pass was blamed.
fn is_blamed(blamed: &[Blame], pass: &str) -> bool {
    blamed.iter().filter_map(|blame| blame.note.as_ref()).any(|note| note.pass == pass)
}

/// Returns the first rewrite after which a module differs on the inputs of a fault, and its
/// note.
fn culprit(
    module: &Verified,
    options: &Options,
    how: &CheckOptions<'_>,
    fault: &Fault,
) -> Result<(u64, Option<Note>), Error> {
    let after = |rewrites: u64| {
        let limit = options.stop_after.map_or(rewrites, |most| most.min(rewrites));
        optimize(module.clone(), &options.clone().with_stop_after(limit))
    };
    let differs = |optimized: &Optimized| {
        let (given, made) = (plain(module), plain(&optimized.module));
        let trial = Trial::new(&given, &made, how)?;
        trial.shows(fault)
    };
    // Invariant: the module agrees after `good` rewrites and differs after `bad`.
    let (mut good, mut bad) = (0u64, 1u64);
    loop {
        let optimized = after(bad)?;
        if differs(&optimized)? {
            break;
        }
        if optimized.report.stopped != StopReason::StopAfter {
            return Ok((bad, None));
        }
        good = bad;
        bad = bad.saturating_mul(2);
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if differs(&after(middle)?)? {
            bad = middle;
        } else {
            good = middle;
        }
    }
    let (before, now) = (after(good)?.report.notes, after(bad)?.report.notes);
    let is_new = |note: &&Note| note.outcome == Outcome::Done && !before.contains(note);
    Ok((bad, now.iter().rev().find(is_new).cloned()))
}
