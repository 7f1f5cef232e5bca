//! The times of forms, for decisions and for people.

use serde::{Deserialize, Serialize};
use tilewright::report::aligned;

use super::candidates::Candidate;
use super::race::{Race, Standing};

/// The facts about a form that are known before it is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// The name of the form.
    pub name: String,
    /// The cost-gated passes that made it.
    pub passes: Vec<String>,
    /// How many times fewer cycles it takes than the original by the model; `None` for what the model does
    /// not know.
    pub modelled: Option<f64>,
    /// How many cycles fewer that is.
    pub saved_cycles: Option<f64>,
}

/// The times of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The form.
    #[serde(flatten)]
    pub form: Form,
    /// The median of its times; `None` if it was not run.
    pub seconds: Option<f64>,
    /// Half of what the middle half of its times spans, as a fraction of the median.
    pub spread: f64,
    /// How many times faster than the original it is.
    pub measured: Option<f64>,
    /// Whether it won, or why not.
    pub outcome: String,
}

impl Form {
    /// Returns the form in which a program is written.
    pub fn original() -> Self {
        let (name, saved_cycles) = ("original".to_owned(), Some(0.0));
        Self { name, passes: Vec::new(), modelled: Some(1.0), saved_cycles }
    }
}

impl From<&Candidate> for Form {
    fn from(candidate: &Candidate) -> Self {
        Self {
            name: candidate.name.clone(),
            passes: candidate.passes.iter().map(|&pass| pass.to_owned()).collect(),
            modelled: Some(candidate.modelled()),
            saved_cycles: Some(candidate.cycles[0] - candidate.cycles[1]),
        }
    }
}

impl Measured {
    /// Returns the times of the forms of a race, the original first.
    pub fn all(race: &Race, forms: &[Form]) -> Vec<Self> {
        let lanes = race.lanes().into_iter().enumerate().zip(forms);
        let measured = lanes.map(|((number, lane), form)| Self {
            form: form.clone(),
            seconds: lane.seconds,
            spread: lane.spread,
            measured: lane.ratio,
            outcome: race.standing(number).map_or_else(String::new, outcome),
        });
        measured.collect()
    }
}

fn outcome(standing: &Standing) -> String {
    match standing {
        Standing::Won => "fastest".to_owned(),
        Standing::Slower => "slower".to_owned(),
        Standing::Racing => "undecided".to_owned(),
        Standing::Out(why) => why.clone(),
    }
}

/// Returns a text, of a file or an engine, without control characters.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Returns the times of forms as a table.
pub fn table(all: &[Measured]) -> String {
    let heads = ["candidate", "seconds", "spread", "measured", "modelled", "outcome", "passes"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(all.iter().map(|one| {
        let Measured { form, seconds, spread, measured, outcome } = one;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            printable(&form.name),
            or_none(seconds.map(|seconds| format!("{seconds:.3e}"))),
            or_none(seconds.map(|_| format!("{:.1} %", 100.0 * spread))),
            or_none(measured.map(|ratio| format!("{ratio:.2}x"))),
            or_none(form.modelled.map(|ratio| format!("{ratio:.2}x"))),
            printable(outcome),
            printable(&form.passes.join(", ")),
        ]
    }));
    aligned(&rows, |column| (1..=4).contains(&column))
}
