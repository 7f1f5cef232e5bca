//! What an optimisation did to each layer of a model, and what would let it do more.
//!
//! A layer is the scope in which a framework put instructions: a module of Flax, a function of JAX.
//! Its forward and backward parts are one.

mod advice;
mod pattern;
mod remedies;
mod scope;
mod text;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tilewright::Error;
use tilewright::ir::{InstId, Module, Verified};
use tilewright::report::OptReport;
use tilewright::{Cost, Note, Optimized, Options, Outcome, Reason, run_costs};

use pattern::Pattern;
use scope::scope;

pub use remedies::{Kind, Share};
pub use text::All;

/// What an optimisation did, layer by layer. `Display` fits on a screen; [`Explanation::all`] has
/// everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The name of the target.
    pub target: String,
    /// The modelled cycles of the module before (in its simplest form) and after.
    pub cycles: [f64; 2],
    /// The target's [`ratio_error`](tilewright::Target::ratio_error): what the ratio of cycles is worth.
    pub ratio_error: f64,
    /// Why cycles say little about times, if there is a reason: see [`OptReport::caveat`].
    pub caveat: Option<&'static str>,
    /// The layers that were rewritten, those first that save most cycles.
    pub layers: Vec<Layer>,
    /// Where the modelled cycles go, the largest part first; empty if something was rewritten.
    pub shares: Vec<Share>,
    /// What can be done by hand; empty if something was rewritten.
    pub remedies: Vec<String>,
    /// What kept rewrites from being made, the most frequent first.
    pub obstacles: Vec<Obstacle>,
    /// All notes of passes.
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// The number of rewrites after which the optimisation was told to stop, if that stopped it.
    #[serde(skip)]
    pub stopped_after: Option<u64>,
}

/// A report on an optimisation with its explanation, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedReport {
    /// The report.
    #[serde(flatten)]
    pub report: OptReport,
    /// The rewrites of each layer; `null` unless it was asked for.
    pub explained: Option<Explanation>,
}

/// A layer of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// The scope, such as `UNet/Block_3/GroupNorm_1`; empty for what the framework gave none.
    pub scope: String,
    /// What it computes: `norm of f32[8,32,32,32,10] over {1,2,4}`.
    pub pattern: String,
    /// The file and line in the user's program, `file:line`, of its first rewrite; `null` if that is
    /// not known.
    pub source: Option<String>,
    /// The modelled cycles of its instructions before and after.
    pub cycles: [f64; 2],
    /// The bytes that its instructions read and write, before and after.
    pub bytes: [u64; 2],
    /// The bytes of the largest array that its rewritten instructions read or make.
    pub array_bytes: u64,
    /// The number of rewrites of each pass.
    pub rewrites: BTreeMap<&'static str, usize>,
}

/// A reason for which rewrites were not made that could pay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Obstacle {
    /// The reason.
    pub why: String,
    /// What to change in the program, or in how it is optimised; `null` if nothing is known to help.
    pub advice: Option<&'static str>,
    /// The first place where it was met.
    pub place: String,
    /// The number of places.
    pub count: usize,
}

/// Explains what [`tilewright::optimize`] made of a module with these options.
///
/// # Errors
/// If a pass has a bug.
pub fn explain(
    before: &Verified,
    optimized: &Optimized,
    options: &Options,
) -> Result<Explanation, Error> {
    let report = &optimized.report;
    let mut layers = Layers::default();
    // Code that was put back, because a backend simplifies it by itself, is no cost of the rewrites.
    let forms = tilewright::simplest_forms(before, optimized, options)?;
    for (when, form) in forms.iter().enumerate() {
        layers.count(form, options, when);
    }
    layers.name([&forms[0], &forms[1]], options);
    let notes = report.notes.clone();
    let (shares, remedies) = match report.unchanged && report.stopped_after.is_none() {
        true => remedies::now_what(&forms[0], &options.target, &notes),
        false => Default::default(),
    };
    Ok(Explanation {
        target: report.target.clone(),
        cycles: [report.before.cycles, report.after.cycles],
        ratio_error: report.ratio_error,
        caveat: report.caveat,
        layers: layers.rewritten(&notes),
        shares,
        remedies,
        obstacles: obstacles(&notes),
        notes,
        stopped_after: report.stopped_after,
    })
}

/// The figures of layers by their scopes, before and after.
#[derive(Default)]
struct Layers {
    of: BTreeMap<String, Figures>,
}

#[derive(Default)]
struct Figures {
    costs: [Cost; 2],
    pattern: Pattern,
}

impl Layers {
    /// Adds the costs of a module's instructions, as those before (0) or after (1).
    fn count(&mut self, module: &Module, options: &Options, when: usize) {
        for one in run_costs(module, &options.target) {
            let figures = self.of.entry(layer_of(module, one.id)).or_default();
            figures.costs[when.min(1)] += one.cost;
        }
    }

    /// Finds what each layer computes by its instructions that were rewritten: those that are not in the module
    /// after it as they were.
    fn name(&mut self, [before, after]: [&Module; 2], options: &Options) {
        let instructions =
            |module: &Module| run_costs(module, &options.target).into_iter().map(|one| one.id);
        let operands = |module: &Module, id: InstId| -> Vec<String> {
            module.operands(id).iter().map(|&one| module.name_of(one).to_owned()).collect()
        };
        let kept: FxHashMap<&str, InstId> =
            instructions(after).map(|id| (after.name_of(id), id)).collect();
        for id in instructions(before) {
            let is_kept = kept.get(before.name_of(id)).is_some_and(|&other| {
                before.opcode(id) == after.opcode(other)
                    && before.shape(id) == after.shape(other)
                    && operands(before, id) == operands(after, other)
            });
            if !is_kept {
                self.of.entry(layer_of(before, id)).or_default().pattern.see(before, id);
            }
        }
    }

    /// Returns the layers that notes say were rewritten.
    fn rewritten(mut self, notes: &[Note]) -> Vec<Layer> {
        let mut by_scope: BTreeMap<String, Vec<&Note>> = BTreeMap::new();
        for note in notes.iter().filter(|note| note.outcome == Outcome::Done) {
            by_scope.entry(scope(&note.place.op_name)).or_default().push(note);
        }
        let layer = |(scope, notes): (String, Vec<&Note>)| {
            let figures = self.of.remove(&scope).unwrap_or_default();
            figures.layer(scope, &notes)
        };
        let mut layers: Vec<Layer> = by_scope.into_iter().map(layer).collect();
        layers.sort_by(|a, b| b.saved().total_cmp(&a.saved()));
        layers
    }
}

impl Figures {
    fn layer(self, scope: String, notes: &[&Note]) -> Layer {
        let [before, after] = self.costs;
        let mut rewrites: BTreeMap<&'static str, usize> = BTreeMap::new();
        for note in notes {
            let count = rewrites.entry(note.pass).or_default();
            *count = count.saturating_add(1);
        }
        let source = notes.iter().find_map(|note| note.place.source.as_ref());
        Layer {
            scope,
            pattern: self.pattern.words(),
            source: source.map(|(file, line)| format!("{file}:{line}")),
            cycles: [before.cycles, after.cycles],
            bytes: [before.bytes, after.bytes],
            array_bytes: self.pattern.array_bytes(),
            rewrites,
        }
    }
}

impl Layer {
    /// Returns the modelled cycles that its rewrites save; negative if it takes more.
    pub fn saved(&self) -> f64 {
        self.cycles[0] - self.cycles[1]
    }
}

/// Returns the reasons other than cost for which rewrites were not made.
fn obstacles(notes: &[Note]) -> Vec<Obstacle> {
    let mut places: BTreeMap<Reason, Vec<&Note>> = BTreeMap::new();
    for (note, reason) in notes.iter().filter_map(|note| Some((note, note.reason?))) {
        let found = places.entry(reason).or_default();
        if found.iter().all(|known| known.place.text != note.place.text) {
            found.push(note);
        }
    }
    let obstacle = |(reason, notes): (Reason, Vec<&Note>)| {
        let place = notes.first()?.place.text.clone();
        let (why, advice) = (reason.to_string(), advice::advice(reason));
        Some(Obstacle { why, advice, place, count: notes.len() })
    };
    let mut found: Vec<Obstacle> = places.into_iter().filter_map(obstacle).collect();
    found.sort_by_key(|obstacle| std::cmp::Reverse(obstacle.count));
    found
}

/// Returns the layer of an instruction: the scope in which the framework put it; empty if it gave none.
pub fn layer_of(module: &Module, id: InstId) -> String {
    module.metadata(id).map(|metadata| scope(&metadata.op_name)).unwrap_or_default()
}
