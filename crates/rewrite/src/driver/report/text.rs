//! Reports as text.

use std::fmt;

use super::table::{aligned, count, counted, cycles, ratio_words};
use crate::analysis::sharding::Traffic;

use super::{Note, Outcome, PassReport, Report, StopReason};

/// Writes the costs before and after, and the changes of each pass.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, caveat, .. } = self;
        write!(f, "on {target}. Costs are a model, not a measurement.\n\n{}", self.costs())?;
        writeln!(f, "\n{}", ratio_words(target, self.ratio_error))?;
        if let Some(caveat) = caveat {
            write!(f, "\nThe ratio of times may be another one: {caveat}.\n")?;
        }
        if self.unchanged {
            let why = match self.stopped_after {
                None => "nothing was found that pays on this target".to_owned(),
                Some(0) => "the optimiser was told to stop before the first rewrite".to_owned(),
                Some(rewrites) => format!(
                    "the optimiser was told to stop after {}, and so far nothing pays on this target",
                    counted_rewrites(rewrites)
                ),
            };
            return write!(f, "\nThe module was left as it is: {why}.");
        }
        let stopped = match (self.stopped, self.stopped_after) {
            (StopReason::Fixpoint, _) => "no pass finds anything more to do".to_owned(),
            (StopReason::Budget, _) => "the limit on rounds was reached".to_owned(),
            (StopReason::StopAfter, rewrites) => {
                format!("after {}, as it was told", counted_rewrites(rewrites.unwrap_or_default()))
            }
        };
        self.passes(f)?;
        write!(f, "\nstopped: {stopped}")
    }
}

impl Report {
    /// Returns the notes as text: the rewrites made, then those left out with the reason.
    pub fn explanation(&self) -> Notes<'_> {
        Notes { notes: &self.notes, stopped_after: self.stopped_after }
    }

    /// Writes the table of the passes that changed something, and how many did not.
    fn passes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (useful, idle): (Vec<&PassReport>, Vec<&PassReport>) =
            self.passes.iter().partition(|pass| pass.changes > 0);
        let ms = |pass: &PassReport| pass.time.as_secs_f64() * 1e3;
        let mut rows = vec![["pass", "changes", "ms"].map(str::to_owned)];
        rows.extend(useful.into_iter().map(|pass| {
            [pass.name.to_owned(), pass.changes.to_string(), format!("{:.2}", ms(pass))]
        }));
        write!(f, "\n{}", aligned(&rows, |column| column > 0))?;
        let in_vain: f64 = idle.iter().map(|pass| ms(pass)).sum();
        match idle.len() {
            0 => Ok(()),
            1 => writeln!(f, "1 other pass changed nothing, in {in_vain:.2} ms"),
            count => writeln!(f, "{count} other passes changed nothing, in {in_vain:.2} ms"),
        }
    }

    /// Returns the table of costs.
    fn costs(&self) -> String {
        let Self { before, after, .. } = self;
        let mut rows = vec![["", "before", "after", "before / after"].map(str::to_owned)];
        let mut counted = |name: &str, [before, after]: [u64; 2]| {
            let quotient = ratio(as_f64(before), as_f64(after));
            rows.push([name.to_owned(), count(before), count(after), quotient]);
        };
        counted("vectors loaded and stored", [before.vectors, after.vectors]);
        counted(
            "realigned vectors (by reshapes and transposes)",
            [before.realigned_vectors, after.realigned_vectors],
        );
        counted("bytes loaded and stored", [before.bytes, after.bytes]);
        counted("the same, padded", [before.padded_bytes, after.padded_bytes]);
        counted("operations on elements", [before.flops, after.flops]);
        counted("most bytes in use at once", self.peak_live_bytes);
        let sweeps = self.memory_sweeps.map(|sweeps| u64::try_from(sweeps).unwrap_or(u64::MAX));
        counted("times the largest arrays are read", sweeps);
        if let Some(traffic) = self.traffic {
            let rounds = |traffic: Traffic| u64::try_from(traffic.rounds).unwrap_or(u64::MAX);
            counted("rounds of communication", traffic.map(rounds));
            counted("rounds one after another", traffic.map(|traffic| traffic.chain.into()));
            counted("bytes exchanged per device", traffic.map(|traffic| traffic.bytes));
        }
        let quotient = ratio(before.cycles, after.cycles);
        rows.push(["cycles".to_owned(), cycles(before.cycles), cycles(after.cycles), quotient]);
        aligned(&rows, |column| column > 0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a ratio of two digits")]
fn as_f64(n: u64) -> f64 {
    n as f64
}

fn counted_rewrites(rewrites: u64) -> String {
    counted(usize::try_from(rewrites).unwrap_or(usize::MAX), "rewrite")
}

fn ratio(before: f64, after: f64) -> String {
    if before == after {
        "1.00x".to_owned()
    } else if after == 0.0 {
        "all gone".to_owned()
    } else {
        format!("{:.2}x", before / after)
    }
}

/// The notes of a [`Report`] as numbered text; see [`Report::explanation`].
#[derive(Clone, Copy, Debug)]
pub struct Notes<'a> {
    notes: &'a [Note],
    stopped_after: Option<u64>,
}

impl<'a> Notes<'a> {
    /// The text of these notes.
    pub const fn of(notes: &'a [Note]) -> Self {
        Self { notes, stopped_after: None }
    }
}

impl fmt::Display for Notes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = [(Outcome::Done, "Rewritten"), (Outcome::Left, "Left as it is")];
        let mut gap = "";
        for (outcome, heading) in sections {
            let notes = self.notes.iter().filter(|note| note.outcome == outcome);
            for (number, note) in (1..).zip(notes) {
                if number == 1 {
                    write!(f, "{gap}{heading}:")?;
                    gap = "\n";
                }
                write!(f, "\n  {number}. at {} [{}]", note.place, note.pass)?;
                for line in note.text.lines() {
                    write!(f, "\n     {line}")?;
                }
            }
        }
        match self.stopped_after {
            _ if !gap.is_empty() => Ok(()),
            None => f.write_str("Nothing was found to rewrite."),
            Some(0) => f.write_str("The optimiser was told to stop before the first rewrite."),
            Some(rewrites) => write!(
                f,
                "The optimiser was told to stop after {}, and none was kept.",
                counted_rewrites(rewrites)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Note, Outcome, Report, StopReason};
    use crate::cost::Cost;
    use crate::driver::PassReport;

    fn note(outcome: Outcome, place: &str, text: &str) -> Note {
        Note {
            pass: "reshape",
            outcome,
            place: place.into(),
            text: text.to_owned(),
            cycles: None,
            reason: None,
        }
    }

    fn report() -> Report {
        let before = Cost { cycles: 3000.0, vectors: 1000, bytes: 64, ..Cost::default() };
        let after = Cost { cycles: 1200.0, vectors: 0, bytes: 128, ..Cost::default() };
        let pass = PassReport { name: "reshape", changes: 2, time: Duration::from_micros(1250) };
        let idle = PassReport { name: "broadcast", changes: 0, time: Duration::from_micros(500) };
        Report {
            target: "linear".to_owned(),
            ratio_error: 1.5,
            before,
            after,
            peak_live_bytes: [10, 8],
            memory_sweeps: [3, 1],
            traffic: None,
            passes: vec![pass, idle],
            stopped: StopReason::Fixpoint,
            stopped_after: None,
            notes: vec![
                note(Outcome::Left, "`b`", "too small"),
                note(Outcome::Done, "`a`", "moved it\nby 1"),
            ],
            unchanged: false,
            caveat: Some("bodies of loops of unknown length count once"),
        }
    }

    #[test]
    fn costs_and_passes_are_tables() {
        let expected = "on linear. Costs are a model, not a measurement.

                                                before  after  before / after
vectors loaded and stored                        1_000      0        all gone
realigned vectors (by reshapes and transposes)       0      0           1.00x
bytes loaded and stored                             64    128           0.50x
the same, padded                                     0      0           1.00x
operations on elements                               0      0           1.00x
most bytes in use at once                           10      8           1.25x
times the largest arrays are read                    3      1           3.00x
cycles                                           3_000  1_200           2.50x

A model, not a measurement: for nine programs in ten, linear's own figures give a ratio within 1.5 times the modelled one.

The ratio of times may be another one: bodies of loops of unknown length count once.

pass     changes    ms
reshape        2  1.25
1 other pass changed nothing, in 0.50 ms

stopped: no pass finds anything more to do";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn an_unchanged_module_has_no_passes_to_show() {
        let text = Report { unchanged: true, caveat: None, ..report() }.to_string();
        let end = "modelled one.\n\nThe module was left as it is: \
                   nothing was found that pays on this target.";
        assert!(text.ends_with(end), "{text}");
    }

    fn stopped_after(rewrites: u64) -> Report {
        let (stopped, stopped_after) = (StopReason::StopAfter, Some(rewrites));
        Report { stopped, stopped_after, notes: Vec::new(), ..report() }
    }

    #[test]
    fn who_was_told_to_stop_says_so() {
        let ends = |report: Report, end: &str| {
            let text = report.to_string();
            assert!(text.ends_with(end), "{text}");
        };
        ends(stopped_after(0), "\n\nstopped: after 0 rewrites, as it was told");
        ends(stopped_after(1), "\n\nstopped: after 1 rewrite, as it was told");
        let unchanged = |rewrites| Report { unchanged: true, ..stopped_after(rewrites) };
        ends(unchanged(0), "it is: the optimiser was told to stop before the first rewrite.");
        ends(
            unchanged(2),
            "it is: the optimiser was told to stop after 2 rewrites, \
             and so far nothing pays on this target.",
        );
        let explained = |rewrites| unchanged(rewrites).explanation().to_string();
        assert_eq!(explained(0), "The optimiser was told to stop before the first rewrite.");
        assert_eq!(
            explained(1),
            "The optimiser was told to stop after 1 rewrite, and none was kept."
        );
    }

    #[test]
    fn rewrites_are_explained_before_what_was_left() {
        let expected = "Rewritten:
  1. at `a` [reshape]
     moved it
     by 1
Left as it is:
  1. at `b` [reshape]
     too small";
        assert_eq!(report().explanation().to_string(), expected);
        let none = Report { notes: Vec::new(), ..report() };
        assert_eq!(none.explanation().to_string(), "Nothing was found to rewrite.");
    }
}
