//! `tilewright check`: do two modules give the same outputs?

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::{AlgebraReport, CheckReport};
use tilewright::{
    Agreement, CheckOptions, Devices, Loaded, Progress, RunOptions, Verdict, Within, Witness,
};

use super::opt::options;
use crate::args::Check;
use crate::io;
use crate::progress::{self, Watched};
use crate::report::{counted, differences};

pub(crate) fn run(args: Check) -> Result<ExitCode> {
    io::stdin_once([&args.a].into_iter().chain(&args.b));
    let options = options(&args.optimisation)?;
    let Loaded { module: a, recording, .. } = io::load(&args.a)?;
    let b = match &args.b {
        Some(path) => io::load(path)?.module,
        None => tilewright::optimize(a.clone(), &options)?.module,
    };
    let infeed = match &args.infeed {
        Some(path) => tilewright::read_infeed(path)?,
        None => Vec::new(),
    };
    let devices = args.devices.asked(Devices::of(&a));
    // Inputs that the caller asks for take precedence over recorded ones.
    let is_asked = args.inputs.is_some() || args.seed.is_some() || args.seeds.is_some();
    let recording = recording.filter(|_| !is_asked);
    let inputs = match (&args.inputs, &recording) {
        (Some(path), _) => {
            let devices = devices.unwrap_or_else(|| tilewright::devices_of(&a));
            Some(RunOptions::default().with_devices(devices).read_inputs(&a, path)?)
        }
        (None, Some(recording)) => Some(vec![recording.arguments.clone()]),
        (None, None) => None,
    };
    let mut how = CheckOptions::default()
        .with_first_seed(args.seed.unwrap_or(0))
        .with_seeds(args.seeds.unwrap_or(2))
        .with_exact(options.float_mode == tilewright::FloatMode::Exact)
        .with_limits(args.bounds.limits())
        .with_infeed(&infeed);
    how.devices = devices;
    how.inputs = inputs.as_deref();
    how.within = within(&args);
    if args.algebra {
        return by_algebra(&tilewright::algebra(&a, &b, &how)?, args.json);
    }
    let recorded = match &recording {
        Some(recording) => tilewright::check_recording(&a, recording, &how)?,
        None => None,
    };
    let progress = [Progress::new(), Progress::new()];
    let [of_a, of_b] = &progress;
    let watched = [Watched { module: &a, progress: of_a }, Watched { module: &b, progress: of_b }];
    let agreement =
        progress::shown(&watched, || tilewright::check(&a, &b, &how.with_progress([of_a, of_b])))?;
    let bisection = match first_witness(&agreement) {
        Some(witness) if args.bisect => Some(tilewright::bisect(&a, &b, &how, witness)?),
        _ => None,
    };
    if args.json {
        let mut report = CheckReport::with_recording(&agreement, recorded.as_ref());
        report.first_difference = bisection.and_then(|bisection| bisection.first);
        io::to_stdout(io::json(&report)?.as_bytes())?;
    } else {
        if let Some(recorded) = &recorded {
            told_of_recording(recorded)?;
        }
        let table = differences(&CheckReport::from(&agreement).outputs);
        if agreement.equal() {
            io::to_stdout((agreed(&agreement, &how) + &table).as_bytes())?;
        } else {
            io::to_stderr(&(disagreement(&agreement) + &table));
            io::to_stderr(
                &bisection.map_or_else(String::new, |bisection| format!("{bisection}\n")),
            );
        }
    }
    let is_as_recorded = recorded.is_none_or(|recorded| recorded.equal());
    let equal = agreement.equal() && is_as_recorded;
    Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tells whether the first module gives what its snapshot recorded.
fn told_of_recording(recorded: &Agreement) -> Result<()> {
    let table = differences(&CheckReport::from(recorded).outputs);
    if recorded.equal() {
        let outputs = counted(recorded.outputs.len(), "output");
        let text = format!("as recorded: {outputs} of the first module\n{table}");
        return io::to_stdout(text.as_bytes());
    }
    let mut text =
        String::from("error: the first module does not give what its snapshot recorded\n");
    for (index, output) in recorded.outputs.iter().enumerate() {
        let Some(Witness { index: at, expected, actual, .. }) = &output.witness else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  out{index}: element {at:?} is {expected} here and {actual} in the snapshot"
        );
    }
    io::to_stderr(&(text + &table));
    Ok(())
}

/// How far floats may be off, if that was said.
fn within(args: &Check) -> Option<Within> {
    let Check { rtol, atol, .. } = *args;
    let within = Within { relative: rtol.unwrap_or(0.0), absolute: atol.unwrap_or(0.0) };
    rtol.or(atol).map(|_| within)
}

/// Compares by algebra alone and prints the verdicts.
fn by_algebra(verdicts: &[Verdict], json: bool) -> Result<ExitCode> {
    let report = AlgebraReport::from(verdicts);
    if json {
        io::to_stdout(io::json(&report)?.as_bytes())?;
    } else {
        let lines = report.outputs.iter().enumerate();
        let text: String =
            lines.map(|(index, verdict)| format!("out{index}: {verdict}\n")).collect();
        io::to_stdout(text.as_bytes())?;
    }
    Ok(if report.equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn first_witness(agreement: &Agreement) -> Option<&Witness> {
    agreement.outputs.iter().find_map(|output| output.witness.as_ref())
}

fn agreed(agreement: &Agreement, options: &CheckOptions<'_>) -> String {
    let same = agreement.outputs.iter().all(|output| output.max_ulp == 0);
    let how = if same { "equal" } else { "equal but for rounding" };
    let outputs = counted(agreement.outputs.len(), "output");
    if options.inputs.is_some() {
        return format!("{how}: {outputs} on the given inputs\n") + &algebra_of(agreement);
    }
    let inputs = counted(agreement.inputs_tried, "set");
    let CheckOptions { first_seed, seeds, .. } = options;
    let last = first_seed.wrapping_add(seeds.saturating_sub(1));
    let from = if *seeds > 1 { format!("{first_seed} to {last}") } else { first_seed.to_string() };
    let seeds = if *seeds > 1 { "seeds" } else { "seed" };
    let floats = format!("{how}: {outputs} on {inputs} of inputs from {seeds} {from}\n");
    floats + &algebra_of(agreement)
}

/// Counts the verdicts of algebra, and lists the outputs that differ by it.
fn algebra_of(agreement: &Agreement) -> String {
    let count = |test: fn(&Verdict) -> bool| agreement.algebra.iter().filter(|v| test(v)).count();
    let equal = count(|verdict| matches!(verdict, Verdict::Equal));
    let agree = count(|verdict| matches!(verdict, Verdict::Agrees { .. }));
    let undecided = count(|verdict| matches!(verdict, Verdict::Undecided { .. }));
    let mut text = format!(
        "algebra: {equal} equal over the reals, {agree} on random elements, {undecided} undecided\n"
    );
    for (index, verdict) in agreement.differ_by_algebra() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "warning: out{index} {verdict} over the reals");
    }
    text
}

/// Which outputs differ, where and by how much.
fn disagreement(agreement: &Agreement) -> String {
    let mut text = String::from("error: the outputs differ\n");
    for (index, output) in agreement.outputs.iter().enumerate() {
        let Some(witness) = &output.witness else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  out{index}: {witness}");
    }
    text
}
