//! `tilewright reduce`: what is the smallest module for which a command still succeeds?

mod keeper;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use tilewright::report::count;
use tilewright::{Emit, Error, Verified};
use tilewright_tools::{Ended, ReduceOptions, ReduceStep, ReducedSize, Reduction};

use self::keeper::Keeper;
use crate::args::Reduce;
use crate::command::{INTERRUPTED, Outcome, stop_at_ctrl_c};
use crate::io::{self, Output};
use crate::progress;

pub(crate) fn run(args: Reduce) -> Result<ExitCode> {
    let begun = Instant::now();
    let output = Output::of(Some(args.output_path()));
    let emit = output.form(None)?;
    let module = io::load(&args.input.path)?.module;
    let stop = stop_at_ctrl_c()?;
    let keeper = Keeper::new(&args.keep, args.timeout.map(Duration::from_secs_f64), &stop)?;
    let sink = Sink { output: &output, emit, stop: &stop, failure: Mutex::default() };
    let reduction = shown(&args, &module, &keeper, &sink)?;
    if let Some(error) = sink.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    write(&output, emit, &reduction.module)?;
    let report = Report::new(&reduction, begun.elapsed(), &output);
    let text = if args.json { io::json(&report)? } else { report.to_string() };
    match (&output, args.json) {
        (Output::File(_), _) => io::to_stdout(text.as_bytes())?,
        (Output::Stdout, _) => io::to_stderr(&text),
    }
    let is_interrupted = reduction.ended == Ended::Interrupted;
    Ok(if is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

impl Reduce {
    /// Returns where the result goes: beside the input, if nothing else is said.
    fn output_path(&self) -> PathBuf {
        match &self.output {
            Some(path) => path.clone(),
            None if self.input.path.as_os_str() == "-" => "-".into(),
            None => self.input.path.with_extension("reduced.hlo"),
        }
    }
}

/// Reduces, and shows the progress.
fn shown(args: &Reduce, module: &Verified, keeper: &Keeper, sink: &Sink<'_>) -> Result<Reduction> {
    let line = Mutex::new(format!("{}: {} instructions", module.name, module.instruction_count()));
    let step = |step: &ReduceStep<'_>| {
        sink.save(step.module);
        let text = format!(
            "{} instructions after {} runs, the last reduction by {}",
            number(step.size.instructions),
            count(step.runs),
            step.by
        );
        *line.lock().unwrap_or_else(PoisonError::into_inner) = text;
    };
    let mut options = ReduceOptions::default().with_stop(sink.stop).with_progress(&step);
    options.jobs = args.jobs.unwrap_or(options.jobs);
    options.max_runs = args.max_runs;
    options.max_time = args.max_seconds.map(Duration::from_secs_f64);
    let told = || Some(line.lock().unwrap_or_else(PoisonError::into_inner).clone().into());
    let reduced = progress::shown(told, || {
        tilewright_tools::reduce(module, &options, &|candidate| keeper.keeps(candidate))
    });
    if let Some(error) = keeper.failure() {
        return Err(error);
    }
    if let (Err(Error::NotKept), Some(outcome)) = (&reduced, keeper.first()) {
        io::note(&match outcome {
            Outcome::Exited(code) => format!("on the module itself, the command exits with {code}"),
            Outcome::Killed => "on the module itself, a signal ends the command".to_owned(),
            Outcome::Stopped => {
                "on the module itself, the command does not end within --timeout".to_owned()
            }
        });
    }
    Ok(reduced?)
}

fn number(of: usize) -> String {
    count(u64::try_from(of).unwrap_or(u64::MAX))
}

fn write(output: &Output, emit: Emit, module: &Verified) -> Result<()> {
    output.write(&tilewright::write(module, emit, &tilewright::PrintOptions::default())?)
}

/// Where the best module so far is written after each success.
struct Sink<'a> {
    output: &'a Output,
    emit: Emit,
    stop: &'a AtomicBool,
    /// The first error.
    failure: Mutex<Option<anyhow::Error>>,
}

impl Sink<'_> {
    /// Writes a module to a file; what goes to stdout is written at the end.
    fn save(&self, module: &Verified) {
        if matches!(self.output, Output::Stdout) {
            return;
        }
        if let Err(error) = write(self.output, self.emit, module) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The result of a search, for its report.
#[derive(Serialize)]
struct Report {
    before: ReducedSize,
    after: ReducedSize,
    runs: u64,
    seconds: f64,
    ended: Ended,
    /// The file of the result; `None` for stdout.
    output: Option<PathBuf>,
}

impl Report {
    fn new(reduction: &Reduction, elapsed: Duration, output: &Output) -> Self {
        let path = match output {
            Output::File(path) => Some(path.clone()),
            Output::Stdout => None,
        };
        Self {
            before: reduction.before,
            after: reduction.after,
            runs: reduction.runs,
            seconds: elapsed.as_secs_f64(),
            ended: reduction.ended,
            output: path,
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, after, runs, seconds, ended, output } = self;
        let (before, after) = (number(before.instructions), number(after.instructions));
        let path = output.as_deref().map_or("stdout".into(), Path::to_string_lossy);
        let why = match ended {
            Ended::MaxRuns => "; ended by --max-runs",
            Ended::MaxTime => "; ended by --max-seconds",
            Ended::Interrupted => "; interrupted",
            _ => "",
        };
        writeln!(
            f,
            "{before} -> {after} instructions, {} runs, {seconds:.1} s: {path}{why}",
            count(*runs)
        )
    }
}
