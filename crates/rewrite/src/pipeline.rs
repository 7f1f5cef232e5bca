//! Which passes run, in which order, and when a result is kept.

use std::time::Instant;

use tilewright_ir::verify::{Rejected, Verified, verify};
use tilewright_ir::{EditError, Module};
use tilewright_target::Target;

use crate::analysis::cost::{module_cost, pays as cost_pays};
use crate::pass::{Context, Pass};
use crate::registry;
use crate::report::{Note, PassReport, Report, StopReason, Verdict};

/// How a module is optimised.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine that costs are weighed on.
    pub target: Target,
    /// Forbids all that changes the order of float sums and products.
    pub exact: bool,
    /// Which passes run.
    pub passes: Passes,
    /// Stops after this many rewrites of the heart passes.
    pub stop_after: Option<u64>,
    /// How often the passes are gone through at most.
    pub max_rounds: usize,
}

/// Which passes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passes {
    /// A pipeline by name: a module where its heart finds nothing that pays
    /// comes back untouched.
    Pipeline(String),
    /// These passes, by name, in this order, until none changes anything.
    List(Vec<String>),
}

impl Options {
    /// The default pipeline for a target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            exact: false,
            passes: Passes::Pipeline("default".into()),
            stop_after: None,
            max_rounds: 32,
        }
    }
}

/// Pipelines by name: the passes that run first, once, and those that run
/// until none changes anything.
pub const PIPELINES: &[(&str, &[&str], &[&str])] = &[
    (
        "default",
        &["inline", "tuple", "dce"],
        &["reshape", "broadcast", "cse", "reshape-out-of-region", "reduce-through-reshape", "dce"],
    ),
    ("cleanup", &["inline", "tuple", "dce"], &["reshape", "broadcast", "cse", "dce"]),
];

/// Why a module could not be optimised.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OptimizeError {
    /// There is no pass of this name.
    #[error("there is no pass `{0}`; `tilewright passes` lists them")]
    UnknownPass(String),
    /// There is no pipeline of this name.
    #[error("there is no pipeline `{0}`; there are: {names}", names = pipeline_names())]
    UnknownPipeline(String),
    /// A pass asked for an edit that cannot be made.
    #[error("pass `{pass}` failed, which is a bug of it: {error}")]
    Edit {
        /// The pass.
        pass: &'static str,
        /// The edit.
        error: EditError,
    },
    /// A pass left a module that does not verify.
    #[error("pass `{pass}` broke the module, which is a bug of it: {rejected}")]
    Broken {
        /// The pass.
        pass: &'static str,
        /// The module with what is wrong.
        rejected: Box<Rejected>,
    },
}

fn pipeline_names() -> String {
    PIPELINES.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
}

/// An optimised module and what was done to it.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The module.
    pub module: Verified,
    /// What was done.
    pub report: Report,
}

/// Optimises a module.
///
/// # Errors
/// If a pass or pipeline does not exist, or a pass has a bug.
pub fn optimize(module: Verified, options: &Options) -> Result<Optimized, OptimizeError> {
    optimize_observed(module, options, &mut |_, _| {})
}

/// Optimises a module, showing it to `observe` after every pass that changed
/// it.
///
/// # Errors
/// If a pass or pipeline does not exist, or a pass has a bug.
pub fn optimize_observed(
    module: Verified,
    options: &Options,
    observe: &mut dyn FnMut(&'static str, &Module),
) -> Result<Optimized, OptimizeError> {
    let (first, repeated, guarded) = resolve(&options.passes)?;
    let before = module_cost(&module, &options.target);
    let mut run = Run {
        module: (*module).clone(),
        options,
        fuel: options.stop_after.unwrap_or(u64::MAX),
        passes: Vec::new(),
        notes: Vec::new(),
        heart: 0,
        observe,
    };
    for pass in first {
        run.pass(pass)?;
    }
    let stopped = run.rounds(&repeated)?;
    let Run { module: changed, passes, notes, heart, .. } = run;
    let notes = relevant(notes);
    let after = module_cost(&changed, &options.target);
    let pays = !guarded || (heart > 0 && cost_pays(before.cycles, after.cycles));
    let (module, after) = if pays {
        let verified = verify(changed)
            .map_err(|rejected| OptimizeError::Broken { pass: "pipeline", rejected })?;
        (verified, after)
    } else {
        (module, before)
    };
    let report = Report { before, after, passes, stopped, notes, unchanged: !pays };
    Ok(Optimized { module, report })
}

type PassList = Vec<&'static dyn Pass>;

/// The passes that run once, those that repeat, and whether the result is
/// kept only where it pays.
fn resolve(passes: &Passes) -> Result<(PassList, PassList, bool), OptimizeError> {
    let find = |name: &str| {
        registry::pass(name).ok_or_else(|| OptimizeError::UnknownPass(name.to_owned()))
    };
    let list =
        |names: &[&str]| names.iter().map(|name| find(name)).collect::<Result<PassList, _>>();
    match passes {
        Passes::List(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Ok((Vec::new(), list(&names)?, false))
        }
        Passes::Pipeline(name) => {
            let pipeline = PIPELINES.iter().find(|(known, ..)| known == name);
            let (_, first, repeated) =
                pipeline.ok_or_else(|| OptimizeError::UnknownPipeline(name.clone()))?;
            let repeated: PassList = list(repeated)?;
            let guarded = repeated.iter().any(|pass| pass.is_heart());
            Ok((list(first)?, repeated, guarded))
        }
    }
}

/// An optimisation under way.
struct Run<'a> {
    module: Module,
    options: &'a Options,
    fuel: u64,
    passes: Vec<PassReport>,
    notes: Vec<Note>,
    heart: usize,
    observe: &'a mut dyn FnMut(&'static str, &Module),
}

impl Run<'_> {
    /// Goes through the passes until none changes anything.
    fn rounds(&mut self, passes: &[&'static dyn Pass]) -> Result<StopReason, OptimizeError> {
        for _ in 0..self.options.max_rounds {
            // What was left may have become possible: only the last word counts.
            self.notes.retain(|note| note.verdict == Verdict::Done);
            let mut changes = 0;
            for &pass in passes {
                changes += self.pass(pass)?;
            }
            if self.fuel == 0 {
                return Ok(StopReason::StopAfter);
            }
            if changes == 0 {
                return Ok(StopReason::Fixpoint);
            }
        }
        Ok(StopReason::Budget)
    }

    fn pass(&mut self, pass: &'static dyn Pass) -> Result<usize, OptimizeError> {
        let start = Instant::now();
        let mut cx = Context {
            target: &self.options.target,
            exact: self.options.exact,
            fuel: &mut self.fuel,
            notes: &mut self.notes,
        };
        let changes = pass
            .run(&mut self.module, &mut cx)
            .map_err(|error| OptimizeError::Edit { pass: pass.name(), error })?;
        let time = start.elapsed();
        match self.passes.iter_mut().find(|report| report.name == pass.name()) {
            Some(report) => {
                report.changes += changes;
                report.time += time;
            }
            None => self.passes.push(PassReport { name: pass.name(), changes, time }),
        }
        if changes > 0 {
            if pass.is_heart() {
                self.heart += changes;
            }
            self.check(pass)?;
            (self.observe)(pass.name(), &self.module);
        }
        Ok(changes)
    }

    /// Every pass is held to the verifier.
    fn check(&mut self, pass: &'static dyn Pass) -> Result<(), OptimizeError> {
        let module = std::mem::take(&mut self.module);
        match verify(module) {
            Ok(verified) => {
                self.module = verified.into_inner();
                Ok(())
            }
            Err(rejected) => Err(OptimizeError::Broken { pass: pass.name(), rejected }),
        }
    }
}

/// Each note once.
fn relevant(notes: Vec<Note>) -> Vec<Note> {
    let mut kept: Vec<Note> = Vec::with_capacity(notes.len());
    let mut seen = rustc_hash::FxHashSet::default();
    for note in notes {
        if seen.insert(note.to_string()) {
            kept.push(note);
        }
    }
    kept
}
