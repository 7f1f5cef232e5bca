//! The result of a comparison as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tilewright_interp::InputKind;
use tilewright_interp::algebra::Verdict;
use tilewright_rewrite::table::{aligned, counted};

use super::{Agreement, Excuse, OutputDifference, Subject, Witness};

/// The most that rounding explains, in units of the largest magnitude of an output; more is by units in the last
/// place.
const MOST_BY_ROUNDING: f64 = 1.0 / 16.0;

/// Whether the outputs agree and on which inputs, or where they differ, and a table of the
/// outputs that differ at all or were not compared as a whole.
impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.subject, self.equal()) {
            (Subject::Recording, true) => {
                let outputs = counted(self.outputs.len(), "output");
                write!(f, "as recorded: {outputs} of the first module")?;
            }
            (Subject::Recording, false) => {
                f.write_str("the first module does not give what its snapshot recorded")?;
                for (index, Witness { index: at, expected, actual, .. }) in self.witnesses() {
                    write!(
                        f,
                        "\n  out{index}: element {at:?} is {expected} here and {actual} in the snapshot"
                    )?;
                }
            }
            (_, true) => {
                self.write_inputs(f)?;
                self.write_algebra(f)?;
            }
            (_, false) if self.is_within() => self.write_disproof(f)?,
            (_, false) => {
                f.write_str("the outputs differ")?;
                for (index, witness) in self.witnesses() {
                    write!(f, "\n  out{index}: {witness}")?;
                }
            }
        }
        self.write_differences(f)
    }
}

impl Agreement {
    fn witnesses(&self) -> impl Iterator<Item = (usize, &Witness)> {
        let outputs = self.outputs.iter().enumerate();
        outputs.filter_map(|(index, output)| Some((index, output.witness.as_ref()?)))
    }

    /// Writes how many outputs agree, and on which inputs.
    fn write_inputs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.outputs.iter().filter_map(|output| output.excuse).max() {
            _ if self.outputs.iter().all(|output| output.max_ulp == 0) => "equal",
            Some(Excuse::Overflow | Excuse::Sensitive) => "equal but for excused differences",
            _ => "equal but for rounding",
        };
        let outputs = counted(self.outputs.len(), "output");
        let Subject::Random { first_seed, seeds } = self.subject else {
            return write!(f, "{how}: {outputs} on the given inputs");
        };
        let inputs = counted(self.inputs_tried, "set");
        write!(f, "{how}: {outputs} on {inputs} of inputs from ")?;
        match seeds {
            0 | 1 => write!(f, "seed {first_seed}"),
            _ => write!(f, "seeds {first_seed} to {}", first_seed.wrapping_add(seeds - 1)),
        }
    }

    /// Counts the verdicts of algebra, and lists the outputs that differ by it.
    fn write_algebra(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |test: fn(&Verdict) -> bool| self.algebra.iter().filter(|v| test(v)).count();
        let equal = count(|verdict| matches!(verdict, Verdict::Equal));
        let agree = count(|verdict| matches!(verdict, Verdict::Agrees { .. }));
        let undecided = count(|verdict| matches!(verdict, Verdict::Undecided { .. }));
        write!(
            f,
            "\nalgebra: {equal} equal over the reals, {agree} on random elements, {undecided} undecided"
        )?;
        for (index, verdict) in self.doubts() {
            write!(
                f,
                "\nwarning: out{index} {verdict} over the reals; floats differ by no more than rounding"
            )?;
        }
        Ok(())
    }

    /// Writes the outputs that algebra disproves and floats do not tell apart, and what to do.
    fn write_disproof(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = counted(self.inputs_tried, "set");
        write!(
            f,
            "the modules compute different functions, whose values differ by no more than rounding \
             on {inputs} of inputs"
        )?;
        for (index, verdict) in self.disproved() {
            write!(f, "\n  out{index} {verdict} over the reals")?;
        }
        f.write_str(
            "\nif that is meant, say how large differences may be (`--rtol`, `--atol`); \
             if not, other inputs may show more (`--inputs`)",
        )
    }

    /// Writes a row for each output that differs at all, or was not compared as a whole.
    /// Differences are in units of the largest magnitude of the output.
    fn write_differences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADER: [&str; 5] = ["output", "largest difference", "on", "because", "not compared"];
        let outputs = self.outputs.iter().enumerate();
        let listed = outputs.filter(|(_, output)| output.max_ulp > 0 || output.not_compared > 0);
        let rows = listed.map(|(index, output)| output.row(index));
        let rows: Vec<_> = std::iter::once(HEADER.map(str::to_owned)).chain(rows).collect();
        match rows.len() {
            1 => return Ok(()),
            _ => write!(f, "\n{}", aligned(&rows, |_| false).trim_end())?,
        }
        let excuses: BTreeSet<Excuse> =
            self.outputs.iter().filter_map(OutputDifference::excused).collect();
        for excuse in excuses {
            write!(f, "\n{}: {}", excuse.name(), excuse.description())?;
        }
        let kinds = self.outputs.iter().filter_map(|output| output.largest_on);
        for (kind, _) in kinds.collect::<BTreeMap<&str, u64>>() {
            if let Some(known) = InputKind::ALL.iter().find(|known| known.name() == kind) {
                write!(f, "\n{kind}: inputs {}", known.description())?;
            }
        }
        Ok(())
    }
}

impl OutputDifference {
    /// Returns why a difference is excused, if there is one and it is, and units in the last place do not tell.
    fn excused(&self) -> Option<Excuse> {
        let by_units =
            self.excuse == Some(Excuse::Rounding) && self.max_relative > MOST_BY_ROUNDING;
        self.excuse.filter(|_| self.witness.is_none() && !by_units)
    }

    fn row(&self, index: usize) -> [String; 5] {
        let because = match (&self.witness, self.excuse) {
            (Some(_), _) => "it differs".to_owned(),
            (None, Some(Excuse::Rounding)) if self.max_relative > MOST_BY_ROUNDING => {
                // Numbers next to zero have few digits.
                let units = usize::try_from(self.max_ulp).unwrap_or(usize::MAX);
                format!("{} in the last place", counted(units, "unit"))
            }
            (None, Some(excuse)) => excuse.name().to_owned(),
            (None, None) => "-".to_owned(),
        };
        let on = self.largest_on.map(|(kind, seed)| format!("{kind} {seed}"));
        [
            format!("out{index}"),
            self.largest_difference(),
            on.unwrap_or_else(|| "-".to_owned()),
            because,
            format!("{} of {}", self.not_compared, self.elements),
        ]
    }

    /// Returns the greatest difference in units of the largest magnitude, unless that is zero.
    fn largest_difference(&self) -> String {
        if self.max_relative.is_finite() {
            format!("{:.1e}", self.max_relative)
        } else if self.max_abs.is_finite() {
            format!("{:.1e} from 0", self.max_abs)
        } else {
            "not finite".to_owned()
        }
    }
}
