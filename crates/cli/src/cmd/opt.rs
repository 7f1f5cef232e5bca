//! `tilewright opt`: rewrite a module so that it costs less.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use tilewright::ir::Module;
use tilewright::report::{LeftOut, OptReport};
use tilewright::{
    Blame, CheckOptions, Error, FloatMode, Guarded, Loaded, Optimized, Options, PrintOptions,
    Recording, Verified,
};

use crate::args::{Explain, Opt};
use crate::io;
use crate::progress::{self, Passes};

pub(crate) fn run(args: Opt) -> Result<ExitCode> {
    let output = io::Output::of(args.output.clone());
    let emit = output.form(args.form.emit())?;
    let mut options = options(&args.optimisation)?;
    options.stop_after = args.stop_after;
    let Loaded { module: before, recording, .. } = load(&args)?;
    let dump = args.dump_dir.as_deref().map(Dump::new).transpose()?.map(Arc::new);
    if let Some(dump) = &dump {
        dump.write("before", &before);
    }
    let passes = Arc::new(Passes::default());
    let observers = (Arc::clone(&passes), dump.clone());
    options = options.with_observer(move |pass, module| {
        observers.0.pass(pass);
        if let Some(dump) = &observers.1 {
            dump.write(pass, module);
        }
    });
    let given = args.explain.map(|_| before.clone());
    let work = || {
        let (optimized, blamed, doubts) = optimized(&args, before, recording, &options)?;
        let explain = |given: Verified| tilewright::explain(&given, &optimized, &options);
        let explanation = given.map(explain).transpose()?;
        Ok::<_, Error>((optimized, blamed, doubts, explanation))
    };
    let (optimized, blamed, doubts, explanation) = progress::shown(|| Some(passes.line()), work)?;
    drop(options);
    dump.map_or(Ok(()), |dump| dump.finish())?;
    let bytes = tilewright::write(&optimized.module, emit, &args.form.options())?;
    output.write(&bytes)?;
    let report = &optimized.report;
    if args.json {
        let left_out = blamed.iter().map(LeftOut::from).collect();
        let report = OptReport { left_out, explained: explanation, ..OptReport::from(report) };
        io::to_stderr(&io::json(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    io::warn(&tilewright::losses(&optimized.module, emit));
    io::warn(&doubts);
    io::warn(&blamed.iter().map(ToString::to_string).collect::<Vec<_>>());
    if let Some(explanation) = &explanation {
        let text = match args.explain {
            Some(Explain::All) => explanation.all().to_string(),
            _ => explanation.to_string(),
        };
        io::to_stderr(&format!("{text}\n"));
    }
    if args.stats {
        let gap = if args.explain.is_some() { "\n" } else { "" };
        io::to_stderr(&format!("{gap}{report}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the module, and says if it is not of the kind that can be improved. With `--json`, stderr
/// has nothing but the report.
fn load(args: &Opt) -> Result<Loaded, Error> {
    if args.json {
        return io::load_quietly(&args.input.path);
    }
    let loaded = io::load(&args.input.path)?;
    if let Some(note) = tilewright::after_optimization(&loaded.module) {
        io::note(&note);
    }
    Ok(loaded)
}

/// Optimises a module, with a check if that is asked for: the result, the rewrites that were left
/// out since they changed it, and the outputs that differ over the reals.
fn optimized(
    args: &Opt,
    module: Verified,
    recording: Option<Recording>,
    options: &Options,
) -> Result<(Optimized, Vec<Blame>, Vec<String>), Error> {
    if !args.check {
        return Ok((tilewright::optimize(module, options)?, Vec::new(), Vec::new()));
    }
    let guarded = guarded(args, &module, recording, options)?;
    let doubts = guarded.agreement.differ_by_algebra();
    let doubts = doubts.map(|(index, verdict)| format!("out{index} {verdict} over the reals"));
    let doubts: Vec<String> = doubts.collect();
    Ok((guarded.optimized, guarded.blamed, doubts))
}

/// Optimises with a check, on the inputs of the recording if there is one.
fn guarded(
    args: &Opt,
    module: &Verified,
    recording: Option<Recording>,
    options: &Options,
) -> Result<Guarded, Error> {
    let mut how = CheckOptions::default()
        .with_exact(options.float_mode == FloatMode::Exact)
        .with_limits(args.bounds.limits());
    how.devices = recording.as_ref().and_then(|of| tilewright::recorded_devices(module, of));
    let recorded = recording.map(|recording| recording.inputs());
    if let Some(recorded) = &recorded {
        how = how.with_inputs(recorded);
    }
    tilewright::optimize_guarded(module, options, &how)
}

/// Returns the options of the library for those of the command.
pub(super) fn options(args: &crate::args::Optimisation) -> Result<Options, Error> {
    let mut options = Options::new(tilewright::target(args.target())?);
    options.float_mode = match (args.exact, args.fast_math) {
        (true, _) => FloatMode::Exact,
        (false, true) => FloatMode::Fast,
        (false, false) => FloatMode::default(),
    };
    if let Some(name) = &args.pipeline {
        options.passes = tilewright::PassSelection::Pipeline(name.clone());
    }
    if let Some(names) = &args.passes {
        options.passes = tilewright::PassSelection::List(names.clone());
    }
    Ok(options)
}

/// A folder that gets the module as it was after each pass.
struct Dump {
    folder: PathBuf,
    state: Mutex<Dumped>,
}

struct Dumped {
    /// The number of the next file.
    next: usize,
    /// The first error.
    failed: Result<()>,
}

impl Dump {
    fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let state = Mutex::new(Dumped { next: 0, failed: Ok(()) });
        Ok(Self { folder: folder.to_owned(), state })
    }

    fn state(&self) -> MutexGuard<'_, Dumped> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, stage: &str, module: &Module) {
        let mut state = self.state();
        if state.failed.is_ok() {
            state.failed = self.try_write(state.next, stage, module);
            state.next += 1;
        }
    }

    fn try_write(&self, number: usize, stage: &str, module: &Module) -> Result<()> {
        let path = self.folder.join(format!("{number:03}-{stage}.hlo"));
        let text = tilewright::print(module, &PrintOptions::default())?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the first error, if there was one.
    fn finish(&self) -> Result<()> {
        std::mem::replace(&mut self.state().failed, Ok(()))
    }
}
