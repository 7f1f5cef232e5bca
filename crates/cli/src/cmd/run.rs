//! `tilewright run`: evaluate a module.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use tilewright::ir::Literal;
use tilewright::native;
use tilewright::report::{GuardReport, RunReport};
use tilewright::simulate::{self, Trace};
use tilewright::{
    BranchCounts, Devices, Loaded, Outputs, Profile, Profiler, Progress, Recording, RunOptions,
};

use crate::args::{Backend, Run};
use crate::progress::{self, Watched};
use crate::shell::usage;
use crate::{io, report};

pub(crate) fn run(args: Run) -> Result<ExitCode> {
    let read = if args.json { io::load_quietly } else { io::load };
    let loaded = read(&args.input.path)?;
    match args.backend {
        Backend::Interp | Backend::Native
            if args.target.is_some() || args.trace.is_some() || args.strategy.is_some() =>
        {
            usage(
                "--target, --strategy and --trace are for the simulated machine: add --backend sim",
            )
        }
        Backend::Interp | Backend::Sim if args.threads.is_some() => {
            usage("--threads is for this CPU: add --backend native")
        }
        Backend::Native => on_this_cpu(&args, &loaded),
        Backend::Interp => interpret(&args, &loaded),
        Backend::Sim => on_the_machine(&args, &loaded),
    }
}

/// Runs a module on the simulated machine.
fn on_the_machine(args: &Run, loaded: &Loaded) -> Result<ExitCode> {
    let module = &loaded.module;
    let devices = devices(args, loaded);
    if args.profile || args.infeed.is_some() || devices != Devices::ONE {
        return usage(
            "the simulated machine is one device without infeed or --profile: use --backend interp",
        );
    }
    let target = tilewright::target(args.target.as_deref().unwrap_or(tilewright::Target::DEFAULT))?;
    let limits = args.bounds.limits();
    let inputs = inputs(args, loaded)?;
    let start = Instant::now();
    let strategy = args.strategy.unwrap_or_default();
    let progress = Progress::new();
    let watched = [Watched { module, progress: &progress }];
    let (result, simulated) = progress::timed("simulate", || {
        progress::shown(progress::of_evaluations(&watched), || {
            simulate::run_with_progress(module, &inputs, &target, strategy, &limits, &progress)
        })
    })?;
    let time = start.elapsed();
    write(args, &result)?;
    if let Some(path) = &args.trace {
        let trace = io::json(&Trace::new(&simulated))?;
        io::Output::of(Some(path.clone())).write(trace.as_bytes())?;
    }
    told(args, &RunReport::simulated(time, &simulated))
}

/// Runs a module on this CPU.
fn on_this_cpu(args: &Run, loaded: &Loaded) -> Result<ExitCode> {
    let module = &loaded.module;
    if args.profile || args.infeed.is_some() || devices(args, loaded) != Devices::ONE {
        return usage("this CPU is one device without infeed or --profile: use --backend interp");
    }
    let inputs = inputs(args, loaded)?;
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, std::num::NonZero::get);
    let limits = args.bounds.limits();
    let progress = Progress::new();
    let watched = [Watched { module, progress: &progress }];
    let start = Instant::now();
    let (result, ran) = progress::timed("run", || {
        progress::shown(progress::of_evaluations(&watched), || {
            native::run(module, &inputs, threads, &limits, &progress)
        })
    })?;
    let time = start.elapsed();
    write(args, &result)?;
    told(args, &RunReport::native(time, &ran))
}

/// Returns the inputs of one device.
fn inputs(args: &Run, loaded: &Loaded) -> Result<Vec<Literal>> {
    let module = &loaded.module;
    Ok(match (&args.inputs, recording(args, loaded)) {
        (Some(path), _) => tilewright::read_inputs(module, path)?,
        (None, Some(recording)) => recording.arguments.clone(),
        (None, None) => tilewright::random_inputs(module, args.seed.unwrap_or(0))?,
    })
}

/// Runs a module in the interpreter.
fn interpret(args: &Run, loaded: &Loaded) -> Result<ExitCode> {
    let module = &loaded.module;
    let options =
        RunOptions::default().with_limits(args.bounds.limits()).with_devices(devices(args, loaded));
    let inputs = match (&args.inputs, recording(args, loaded)) {
        (Some(path), _) => options.read_inputs(module, path)?,
        (None, Some(recording)) => recording.inputs(),
        (None, None) => options.random_inputs(module, args.seed.unwrap_or(0))?,
    };
    let infeed = io::infeed(args.infeed.as_deref())?;
    let profiler = args.profile.then(Profiler::default);
    let progress = Progress::new();
    let watched = [Watched { module, progress: &progress }];
    let branches = BranchCounts::new();
    let mut options =
        options.with_infeed(&infeed).with_progress(&progress).with_branches(&branches);
    if let Some(profiler) = &profiler {
        options = options.with_observer(profiler);
    }
    let start = Instant::now();
    let result = progress::timed("evaluate", || {
        progress::shown(progress::of_evaluations(&watched), || {
            tilewright::run(module, &inputs, &options)
        })
    })?;
    let time = start.elapsed();
    write(args, &result)?;
    let profile = profiler.map(|profiler| Profile::new(module, &profiler));
    let guards = GuardReport::of(module, &branches);
    told(args, &RunReport { profile, guards, ..RunReport::interpreter(time) })
}

/// Returns what a snapshot recorded, if no other inputs were asked for.
fn recording<'a>(args: &Run, loaded: &'a Loaded) -> Option<&'a Recording> {
    loaded.recording.as_ref().filter(|_| args.seed.is_none() && args.inputs.is_none())
}

/// Reports the statistics of a run that were requested.
fn told(args: &Run, summary: &RunReport) -> Result<ExitCode> {
    if args.json {
        io::to_stderr(&io::json(summary)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(profile) = &summary.profile {
        io::to_stderr(&format!("{profile}\n"));
    }
    if args.stats {
        io::to_stderr(&format!("{summary}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the requested devices, or else those that were recorded, or those of the module.
fn devices(args: &Run, loaded: &Loaded) -> Devices {
    let module = &loaded.module;
    let recording = || recording(args, loaded);
    args.devices
        .asked(Devices::of(module))
        .or_else(|| tilewright::recorded_devices(module, recording()?))
        .unwrap_or_else(|| tilewright::devices_of(module))
}

/// Shows or saves the outputs.
fn write(args: &Run, result: &Outputs) -> Result<()> {
    let Outputs { output, outfeed } = result;
    if let Some(path) = &args.outfeed {
        io::Output::of(Some(path.clone())).write(&tilewright::values_to_npz(outfeed)?)?;
    }
    match &args.output {
        Some(path) => {
            io::Output::of(Some(path.clone())).write(&tilewright::outputs_to_npz(output)?)
        }
        None => {
            let mut text = report::outputs("out", [output]);
            if args.outfeed.is_none() {
                text += &report::outputs("outfeed", outfeed);
            }
            io::Output::Stdout.write(text.as_bytes())
        }
    }
}
