//! Reports as data: `Display` writes them for people, `Serialize` as JSON. The keys are stable:
//! none is renamed or removed within a major version.

mod meaning;
mod memory;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tilewright_interp::BranchCounts;
use tilewright_interp::algebra::Verdict;
use tilewright_ir::{Module, Verified};
use tilewright_rewrite::analysis::sharding::Traffic;
use tilewright_rewrite::{Cost, ModuleCosts, Note, Options, Place, Report, guards};
// The command line words its own messages with these, too.
#[doc(hidden)]
pub use tilewright_rewrite::table::{
    aligned, bytes, count, counted, cycles, ratio_words, shortened,
};
use tilewright_target::Target;

use crate::agreement::{Agreement, Excuse, OutputDifference};
use crate::bisect::FirstDifference;
use crate::error::Error;
use crate::guard::Blame;
use crate::pipeline::simplest;
use crate::profile::Profile;

pub use meaning::meaning;
pub use memory::{ArrayMemory, ArrayReader, MemoryPeak, MemoryReport};

/// The modelled costs of a module or an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Costs {
    /// Cycles.
    pub cycles: f64,
    /// Vectors loaded and stored.
    pub vectors: u64,
    /// Vectors taken apart and reassembled by reshapes and transposes.
    pub realigned_vectors: u64,
    /// Bytes loaded and stored, without padding.
    pub bytes: u64,
    /// Bytes loaded and stored, padding included.
    pub padded_bytes: u64,
    /// Arithmetic operations on elements.
    pub flops: u64,
}

impl From<Cost> for Costs {
    fn from(cost: Cost) -> Self {
        let Cost { cycles, vectors, realigned_vectors, bytes, padded_bytes, flops } = cost;
        Self { cycles, vectors, realigned_vectors, bytes, padded_bytes, flops }
    }
}

/// The costs of each instruction of a module on a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostReport {
    /// The module's name.
    pub module: String,
    /// The target's name.
    pub target: String,
    /// The whole module.
    pub total: Costs,
    /// The instructions of the entry computation, in order, each including the computations that
    /// it calls.
    pub instructions: Vec<InstructionCosts>,
    /// Cycles in which the kernels of the entry computation wait for main memory. The total is
    /// the sum of these and the instructions' cycles.
    pub latency_cycles: f64,
}

/// The costs of one instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstructionCosts {
    /// Its name.
    pub name: String,
    /// Its op.
    pub opcode: &'static str,
    /// Its effect in words, if it only moves or renames elements: see [`meaning`]; `null` for other ops.
    pub meaning: Option<String>,
    /// The shape of its result.
    pub shape: String,
    /// Its costs.
    #[serde(flatten)]
    pub costs: Costs,
}

impl CostReport {
    /// The costs of a module on a target, in its simplest form: with calls and batch norms as what they stand for.
    /// The total is the one that [`crate::optimize()`] reports before it rewrites.
    ///
    /// # Errors
    /// If a pass has a bug.
    pub fn new(module: &Verified, target: &Target) -> Result<Self, Error> {
        let module = simplest(module, &Options::new(target.clone()))?;
        Ok(Self::of(&module, target, ModuleCosts::new(&module, target)))
    }

    /// As [`Self::new`]; `None` if another thread sets `cancel` meanwhile.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_cancel(
        module: &Verified,
        target: &Target,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, Error> {
        let options = Options::new(target.clone()).with_cancel(Arc::clone(cancel));
        let module = simplest(module, &options)?;
        let costs = ModuleCosts::with_cancel(&module, target, cancel);
        Ok(costs.map(|costs| Self::of(&module, target, costs)))
    }

    fn of(module: &Module, target: &Target, costs: ModuleCosts) -> Self {
        let ModuleCosts { total, instructions, latency: latency_cycles } = costs;
        let instructions = instructions.into_iter().map(|instruction| {
            let id = instruction.id;
            InstructionCosts {
                name: module.name_of(id).to_owned(),
                opcode: module.opcode(id).name(),
                meaning: meaning(module, id),
                shape: format!("{:#}", module.shape(id)),
                costs: instruction.cost.into(),
            }
        });
        Self {
            module: module.name.to_string(),
            target: target.name.clone(),
            total: total.into(),
            instructions: instructions.collect(),
            latency_cycles,
        }
    }
}

/// The result of an optimisation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptReport {
    /// The module's cost before.
    pub before: Costs,
    /// The module's cost after.
    pub after: Costs,
    /// The most bytes in use at once, before and after.
    pub peak_live_bytes: [u64; 2],
    /// Number of memory sweeps over the largest arrays before and after: those of at least half as
    /// many elements as the largest one has.
    pub memory_sweeps: [usize; 2],
    /// How much the devices communicate, before and after; `null` if the module is not divided over
    /// several.
    pub traffic: Option<[TrafficSummary; 2]>,
    /// Each pass, in order of first run.
    pub passes: Vec<PassSummary>,
    /// Why the optimiser stopped: `fixpoint`, `budget` or `stop-after`.
    pub stopped: &'static str,
    /// Whether the module was returned unchanged.
    pub unchanged: bool,
    /// Notes on rewrites, done or not.
    pub notes: Vec<NoteSummary>,
    /// Rewrites that were left out because a check found a difference.
    pub left_out: Vec<LeftOut>,
    /// The reason, if there is one, why the ratio of times may differ from the ratio of costs;
    /// see [`Report::caveat`].
    pub caveat: Option<&'static str>,
    /// The target's [`ratio_error`](Target::ratio_error): what the ratio of cycles is worth.
    pub ratio_error: f64,
}

/// A rewrite that changes the results of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The number of the rewrite among those of the cost-gated passes, from 1.
    pub rewrite: u64,
    /// The rewrite's note; `null` if the rewrite is not known.
    pub note: Option<NoteSummary>,
    /// The part that was left out: `rewrite`, `pass` or `everything`.
    pub what: &'static str,
    /// The output that differs, the element, and the inputs.
    pub difference: String,
}

impl From<&Blame> for LeftOut {
    fn from(blame: &Blame) -> Self {
        let Blame { rewrite, note, left_out, output, difference } = blame;
        Self {
            rewrite: *rewrite,
            note: note.as_ref().map(NoteSummary::from),
            what: left_out.name(),
            difference: format!("out{output}: {difference}"),
        }
    }
}

/// How much the devices of a module communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrafficSummary {
    /// The rounds of communication.
    pub rounds: usize,
    /// The largest number of rounds that wait for each other.
    pub chain: u32,
    /// The bytes that each device hands over.
    pub bytes: u64,
}

impl From<Traffic> for TrafficSummary {
    fn from(Traffic { rounds, chain, bytes }: Traffic) -> Self {
        Self { rounds, chain, bytes }
    }
}

/// A summary of all runs of one pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassSummary {
    /// Its name.
    pub name: &'static str,
    /// Number of changes.
    pub changes: usize,
    /// Time in milliseconds.
    pub ms: f64,
}

/// A note of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoteSummary {
    /// The pass.
    pub pass: &'static str,
    /// `rewritten` or `left`.
    pub verdict: &'static str,
    /// The place, by the framework's names and source lines.
    pub place: String,
    /// The framework's name of the place's first instruction; empty if it has none.
    pub op_name: String,
    /// The file and line in the user's program, `file:line`; `null` if that is not known.
    pub source: Option<String>,
    /// The finding, the rewrite or the reason against it, and the saving.
    pub text: String,
}

impl From<&Report> for OptReport {
    fn from(report: &Report) -> Self {
        let passes = report.passes.iter().map(|pass| PassSummary {
            name: pass.name,
            changes: pass.changes,
            ms: pass.time.as_secs_f64() * 1e3,
        });
        Self {
            before: report.before.into(),
            after: report.after.into(),
            peak_live_bytes: report.peak_live_bytes,
            memory_sweeps: report.memory_sweeps,
            traffic: report.traffic.map(|traffic| traffic.map(TrafficSummary::from)),
            passes: passes.collect(),
            stopped: report.stopped.name(),
            unchanged: report.unchanged,
            notes: report.notes.iter().map(NoteSummary::from).collect(),
            left_out: Vec::new(),
            caveat: report.caveat,
            ratio_error: report.ratio_error,
        }
    }
}

impl From<&Note> for NoteSummary {
    fn from(note: &Note) -> Self {
        let verdict = match note.outcome {
            tilewright_rewrite::Outcome::Done => "rewritten",
            tilewright_rewrite::Outcome::Left => "left",
        };
        let Place { text: place, op_name, source } = &note.place;
        Self {
            pass: note.pass,
            verdict,
            place: place.clone(),
            op_name: op_name.to_string(),
            source: source.as_ref().map(|(file, line)| format!("{file}:{line}")),
            text: note.text.clone(),
        }
    }
}

/// The measurements of a run. Values that a backend does not count are `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// The backend: `interp`, `sim` or `native`.
    pub backend: &'static str,
    /// Wall-clock time in milliseconds.
    pub wall_ms: f64,
    /// Cycles of the machine.
    pub cycles: Option<f64>,
    /// Bytes read from main memory.
    pub hbm_read_bytes: Option<u64>,
    /// Bytes written to main memory.
    pub hbm_write_bytes: Option<u64>,
    /// Bytes of main memory for intermediate arrays.
    pub workspace_bytes: Option<u64>,
    /// The most bytes of vector memory in use at one time.
    pub vmem_peak_bytes: Option<u64>,
    /// Operations on vectors.
    pub vector_ops: Option<u64>,
    /// Operations that take vectors apart.
    pub realign_ops: Option<u64>,
    /// Number of programs and reduces that ran by vector instructions of this CPU; not in JSON of
    /// other backends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<u64>,
    /// Number of instructions that the host ran.
    pub host_calls: Option<u64>,
    /// Number of host calls by op; not in JSON if there is no host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_ops: Option<BTreeMap<&'static str, u64>>,
    /// Reduces that ran in one pass because the requested strategy has no kernels for them; not
    /// in JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// The guards of the module, and how often their tests failed; not in JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<GuardReport>,
    /// The time and bytes of each instruction; not in JSON unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

impl RunReport {
    /// The report of the interpreter, which has no counters.
    pub fn interpreter(time: std::time::Duration) -> Self {
        Self {
            backend: "interp",
            wall_ms: time.as_secs_f64() * 1e3,
            cycles: None,
            hbm_read_bytes: None,
            hbm_write_bytes: None,
            workspace_bytes: None,
            vmem_peak_bytes: None,
            vector_ops: None,
            realign_ops: None,
            programs: None,
            host_calls: None,
            host_ops: None,
            refused: Vec::new(),
            guards: Vec::new(),
            profile: None,
        }
    }
}

/// How often the test of a [guard](tilewright_rewrite::guards) held and failed in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuardReport {
    /// The name of the conditional.
    pub name: String,
    /// How often the test held, so that the first branch was taken.
    pub held: u64,
    /// How often it failed, so that the second one computed the value again.
    pub failed: u64,
}

impl GuardReport {
    /// Returns the guards of a module with the counts of a run.
    pub fn of(module: &Module, counts: &BranchCounts) -> Vec<Self> {
        let guards = guards::guards(module).into_iter();
        let report = guards.map(|id| Self {
            name: module.name_of(id).to_owned(),
            held: counts.of(id, guards::HELD),
            failed: counts.of(id, guards::FAILED),
        });
        report.collect()
    }
}

/// A reduce that its strategy has no kernels for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The name of the instruction.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// The result of a comparison of two modules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// Whether all outputs were equal on all inputs, within the tolerance of their type.
    pub equal: bool,
    /// Each output, with its greatest difference.
    pub outputs: Vec<OutputSummary>,
    /// Number of inputs on which both were evaluated.
    pub seeds: usize,
    /// The first instruction whose values differ; `null` if this was not requested, or all
    /// values with the same name agree.
    pub first_difference: Option<FirstDifference>,
    /// The differences between the first module's outputs and the recorded ones; `null` without
    /// a recording. `equal` covers these too.
    pub recorded: Option<Vec<OutputSummary>>,
}

/// The verdicts of algebra on two modules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AlgebraReport {
    /// Whether no output differs over the reals, as far as algebra can decide.
    pub equal: bool,
    /// The verdict on each output, as in [`OutputSummary::algebra`].
    pub outputs: Vec<String>,
}

impl From<&[Verdict]> for AlgebraReport {
    fn from(verdicts: &[Verdict]) -> Self {
        Self {
            equal: !verdicts.iter().any(Verdict::differs),
            outputs: verdicts.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The difference of one output between two modules.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputSummary {
    /// The number of the output, tuples flattened in order.
    pub index: usize,
    /// The greatest absolute difference; `null` if a value is not finite.
    pub max_abs: Option<f64>,
    /// The greatest difference in units of the last place; `u64::MAX` if only one value is NaN.
    pub max_ulp: u64,
    /// The index of the first element that differs by more than the tolerance; `null`, like all
    /// following fields of the element, if there is none.
    pub at: Option<Vec<i64>>,
    /// The value of the element in the first module.
    pub expected: Option<String>,
    /// The value of the element in the second module.
    pub actual: Option<String>,
    /// The device, if there are several.
    pub device: Option<usize>,
    /// The kind of the inputs on which it differs.
    pub inputs: Option<&'static str>,
    /// Their seed.
    pub seed: Option<u64>,
    /// The greatest difference in units of the largest finite magnitude of the output on the
    /// same inputs; `null` if a value is not finite or that magnitude is 0.
    pub max_relative: Option<f64>,
    /// The kind and the seed of the inputs with that difference, such as `edges 1`; `null`
    /// without a difference.
    pub largest_on: Option<String>,
    /// The weakest reason that excused a difference: `rounding`, `as-near`, `overflow` or
    /// `sensitive`; `null` if there was none.
    pub excuse: Option<&'static str>,
    /// Number of elements.
    pub elements: usize,
    /// Number of elements that were infinite or NaN on all inputs, so that they were not
    /// compared.
    pub not_compared: usize,
    /// The verdict of algebra: `equal`, `agrees, through ...`, `differs at ...` or `undecided:
    /// ...`; `null` for outfeed arrays.
    pub algebra: Option<String>,
}

impl From<&Agreement> for CheckReport {
    fn from(agreement: &Agreement) -> Self {
        Self {
            equal: agreement.equal(),
            outputs: OutputSummary::all(agreement),
            seeds: agreement.inputs_tried,
            first_difference: None,
            recorded: None,
        }
    }
}

impl CheckReport {
    /// The report of two modules, and of the first module and its recorded result.
    pub fn with_recording(agreement: &Agreement, recorded: Option<&Agreement>) -> Self {
        let report = Self::from(agreement);
        Self {
            equal: report.equal && recorded.is_none_or(Agreement::equal),
            recorded: recorded.map(OutputSummary::all),
            ..report
        }
    }
}

impl OutputSummary {
    fn all(agreement: &Agreement) -> Vec<Self> {
        let outputs = agreement.outputs.iter().enumerate();
        let summary = |(index, output)| Self {
            algebra: agreement.algebra.get(index).map(ToString::to_string),
            ..Self::new(index, output)
        };
        outputs.map(summary).collect()
    }

    fn new(index: usize, output: &OutputDifference) -> Self {
        let witness = output.witness.as_ref();
        Self {
            index,
            max_abs: Some(output.max_abs).filter(|difference| difference.is_finite()),
            max_ulp: output.max_ulp,
            at: witness.map(|witness| witness.index.clone()),
            expected: witness.map(|witness| witness.expected.clone()),
            actual: witness.map(|witness| witness.actual.clone()),
            device: witness.and_then(|witness| witness.device),
            inputs: witness.map(|witness| witness.inputs),
            seed: witness.map(|witness| witness.seed),
            max_relative: Some(output.max_relative).filter(|difference| difference.is_finite()),
            largest_on: output.largest_on.map(|(kind, seed)| format!("{kind} {seed}")),
            excuse: output.excuse.map(Excuse::name),
            elements: output.elements,
            not_compared: output.not_compared,
            algebra: None,
        }
    }
}

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The error.
    pub error: ErrorSummary,
}

/// An error, with its kind and place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorSummary {
    /// Its kind: `input` (a file is not valid or does not fit), `usage` (the request names
    /// something that does not exist) or `evaluation` (a module could not be evaluated).
    pub code: &'static str,
    /// The error and its solution.
    pub message: String,
    /// The instruction, or file, line and column; `null` if there is no place.
    pub place: Option<String>,
}

impl From<&Error> for ErrorReport {
    fn from(error: &Error) -> Self {
        let (code, place) = (error.code(), error.place());
        Self { error: ErrorSummary { code, message: error.to_string(), place } }
    }
}

/// Whether modules are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Each module, in the order given.
    pub modules: Vec<VerifySummary>,
}

/// Whether one module is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifySummary {
    /// The file.
    pub path: String,
    /// Whether it is valid.
    pub ok: bool,
    /// The errors, in the order of the text.
    pub errors: Vec<ProblemSummary>,
}

/// An error of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemSummary {
    /// The verifier's code, such as `V012`; `null` if the text is not HLO.
    pub code: Option<String>,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The column in characters, from 1, if it is known.
    pub column: Option<usize>,
    /// The error and the valid alternative.
    pub message: String,
}

impl VerifySummary {
    /// The result of reading a file.
    pub fn new<T>(path: &str, read: &Result<T, Error>) -> Self {
        let errors = read.as_ref().err().map(Error::problems).unwrap_or_default();
        Self { path: path.to_owned(), ok: read.is_ok(), errors }
    }
}
