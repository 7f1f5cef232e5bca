//! `tilewright opt`: rewrite a module so that it costs less.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use tilewright::report::{LeftOut, OptReport};
use tilewright::{
    Blame, CheckOptions, Error, FloatMode, Guarded, Loaded, Optimized, Options, Recording, Report,
    Verified,
};
use tilewright_tools::explain::{ExplainedReport, Explanation};

use crate::args::{Explain, Opt, Optimisation};
use crate::dump::Dump;
use crate::io;
use crate::progress::{self, Passes};

pub(crate) fn run(args: Opt) -> Result<ExitCode> {
    let output = io::Output::of(args.output.clone());
    let emit = output.form(args.form.emit())?;
    let mut options = options(&args.optimisation)?;
    options.stop_after = args.stop_after;
    let Loaded { module: before, recording, .. } = load(&args)?;
    let dump = args.dump_dir.as_deref().map(|folder| Dump::new(folder, &before.name));
    let dump = dump.transpose()?.map(Arc::new);
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
        let done = optimized(&args, before, recording, &options, &passes)?;
        let explain =
            |given: Verified| tilewright_tools::explain(&given, &done.optimized, &options);
        let explanation = given.map(explain).transpose()?;
        Ok::<_, Error>((done, explanation))
    };
    let (Done { optimized, blamed, doubts, checked }, explanation) =
        progress::timed("optimise", || progress::shown(|| Some(passes.line()), work))?;
    drop(options);
    if let Some(dump) = dump {
        let written = dump.finish()?;
        if !args.json {
            io::note(&written);
        }
    }
    let bytes = tilewright::write(&optimized.module, emit, &args.form.options())?;
    output.write(&bytes)?;
    if !args.json {
        io::warn(&tilewright::losses(&optimized.module, emit));
        io::warn(&doubts);
        if let Some(checked) = checked {
            io::note(&checked);
        }
    }
    tell(&args, &optimized.report, &blamed, explanation)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports on stderr what was asked for, and which rewrites were left out.
fn tell(
    args: &Opt,
    report: &Report,
    blamed: &[Blame],
    explanation: Option<Explanation>,
) -> Result<()> {
    if args.json {
        let left_out = blamed.iter().map(LeftOut::from).collect();
        let report = OptReport { left_out, ..OptReport::from(report) };
        let report = ExplainedReport { report, explained: explanation };
        io::to_stderr(&io::json(&report)?);
        return Ok(());
    }
    io::warn(&blamed.iter().map(ToString::to_string).collect::<Vec<_>>());
    if report.unchanged
        && blamed.is_empty()
        && weighs_costs(&args.optimisation)
        && report.stopped_after.is_none()
        && args.explain.is_none()
        && !args.stats
    {
        io::note(&format!(
            "nothing was rewritten, since nothing was found that pays on {}; --explain says where its cycles go, and \
             what can be done",
            report.target
        ));
    }
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
    Ok(())
}

/// Checks whether rewrites are kept only if they pay.
fn weighs_costs(args: &Optimisation) -> bool {
    let pipeline = args.pipeline.as_deref().and_then(tilewright::pipeline);
    args.passes.is_none() && pipeline.is_none_or(|pipeline| !pipeline.cost_gated.is_empty())
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

/// An optimised module, and what a check of it found, if that was asked for.
struct Done {
    optimized: Optimized,
    /// The rewrites that were left out since they changed the results.
    blamed: Vec<Blame>,
    /// The outputs that differ over the reals.
    doubts: Vec<String>,
    /// The outcome of a check that found no difference.
    checked: Option<String>,
}

/// Optimises a module, with a check if that is asked for.
fn optimized(
    args: &Opt,
    module: Verified,
    recording: Option<Recording>,
    options: &Options,
    passes: &Passes,
) -> Result<Done, Error> {
    if !args.check {
        let optimized = tilewright::optimize(module, options)?;
        return Ok(Done { optimized, blamed: Vec::new(), doubts: Vec::new(), checked: None });
    }
    let guarded = guarded(args, &module, recording, options, passes)?;
    let doubts = guarded.agreement.disproved().chain(guarded.agreement.doubts());
    let doubts = doubts.map(|(index, verdict)| format!("out{index} {verdict} over the reals"));
    let doubts: Vec<String> = doubts.collect();
    let checked = guarded.agreement.equal().then(|| format!("checked: {}", guarded.agreement));
    Ok(Done { optimized: guarded.optimized, blamed: guarded.blamed, doubts, checked })
}

/// Optimises with a check, on the inputs of the recording if there is one.
fn guarded(
    args: &Opt,
    module: &Verified,
    recording: Option<Recording>,
    options: &Options,
    passes: &Passes,
) -> Result<Guarded, Error> {
    let mut how = CheckOptions::default()
        .with_exact(options.float_mode == FloatMode::Exact)
        .with_limits(args.bounds.limits())
        .with_progress(passes.evaluations.each_ref());
    how.devices = recording.as_ref().and_then(|of| tilewright::recorded_devices(module, of));
    let recorded = recording.map(|recording| recording.inputs());
    if let Some(recorded) = &recorded {
        how = how.with_inputs(recorded);
    }
    tilewright::optimize_guarded(module, options, &how)
}

/// Returns the options of the library for those of the command.
pub(super) fn options(args: &Optimisation) -> Result<Options, Error> {
    let mut options = Options::new(tilewright::target(args.target())?);
    options.float_mode = match args {
        Optimisation { exact: true, .. } => FloatMode::Exact,
        Optimisation { fast_math: true, .. } => FloatMode::Fast,
        Optimisation { no_guards: true, .. } => FloatMode::Bounded,
        _ => FloatMode::default(),
    };
    if let Some(name) = &args.pipeline {
        options.passes = tilewright::PassSelection::Pipeline(name.clone());
    }
    if let Some(names) = &args.passes {
        options.passes = tilewright::PassSelection::List(names.clone());
    }
    Ok(options)
}
