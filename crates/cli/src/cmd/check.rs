//! `tilewright check`: do two modules give the same outputs?

use std::process::ExitCode;

use anyhow::Result;
use tilewright::ir::Literal;
use tilewright::report::{AlgebraReport, CheckReport};
use tilewright::{
    Agreement, Bisection, CheckOptions, Devices, Error, FloatMode, Loaded, Progress, Recording,
    RunOptions, Verdict, Verified, Within, Witness,
};

use super::opt::options;
use crate::args::Check;
use crate::io;
use crate::progress::{self, Watched};

pub(crate) fn run(args: Check) -> Result<ExitCode> {
    io::stdin_once([&args.a].into_iter().chain(&args.b));
    let options = options(&args.optimisation)?;
    let Loaded { module: a, recording, .. } = io::load(&args.a)?;
    let b = match &args.b {
        Some(path) => io::load(path)?.module,
        None => progress::stage("optimise", || tilewright::optimize(a.clone(), &options))?.module,
    };
    let infeed = io::infeed(args.infeed.as_deref())?;
    // Inputs that the caller asks for take precedence over recorded ones.
    let is_asked = args.inputs.is_some() || args.seed.is_some() || args.seeds.is_some();
    let recording = recording.filter(|_| !is_asked);
    let recorded = recording.as_ref().and_then(|of| tilewright::recorded_devices(&a, of));
    let devices = args.devices.asked(Devices::of(&a)).or(recorded);
    let inputs = inputs(&args, &a, devices, recording.as_ref())?;
    let mut how = CheckOptions::default()
        .with_first_seed(args.seed.unwrap_or(0))
        .with_seeds(args.seeds.unwrap_or(2))
        .with_exact(options.float_mode == FloatMode::Exact)
        .with_limits(args.bounds.limits())
        .with_infeed(&infeed);
    (how.devices, how.inputs, how.within) = (devices, inputs.as_deref(), within(&args));
    let output = args.output.sink();
    if args.algebra {
        let verdicts = shown("compare", &a, &b, &how, |how| tilewright::algebra(&a, &b, how))?;
        return by_algebra(&verdicts, &output, args.json);
    }
    let recorded = match &recording {
        Some(recording) => progress::stage("compare with the recording", || {
            tilewright::check_recording(&a, recording, &how)
        })?,
        None => None,
    };
    let agreement = shown("compare", &a, &b, &how, |how| tilewright::check(&a, &b, how))?;
    let bisection = match first_witness(&agreement) {
        Some(witness) if args.bisect => {
            let bisect = |how: &CheckOptions<'_>| tilewright::bisect(&a, &b, how, witness);
            Some(shown("bisect", &a, &b, &how, bisect)?)
        }
        _ => None,
    };
    tell(Found { agreement, recorded, bisection }, &output, args.json)
}

/// Returns the requested or recorded inputs, if there are any.
fn inputs(
    args: &Check,
    module: &Verified,
    devices: Option<Devices>,
    recording: Option<&Recording>,
) -> Result<Option<Vec<Vec<Literal>>>> {
    let Some(path) = &args.inputs else {
        return Ok(recording.map(Recording::inputs));
    };
    let devices = devices.unwrap_or_else(|| tilewright::devices_of(module));
    Ok(Some(RunOptions::default().with_devices(devices).read_inputs(module, path)?))
}

/// Evaluates the modules, and shows the progress if it takes long.
fn shown<T>(
    stage: &str,
    a: &Verified,
    b: &Verified,
    how: &CheckOptions<'_>,
    work: impl FnOnce(&CheckOptions<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let [of_a, of_b] = &[Progress::new(), Progress::new()];
    let watched = [Watched { module: a, progress: of_a }, Watched { module: b, progress: of_b }];
    let how = how.with_progress([of_a, of_b]);
    progress::timed(stage, || progress::shown(progress::of_evaluations(&watched), || work(&how)))
}

/// The findings of a check.
struct Found {
    agreement: Agreement,
    /// The comparison of the first module with its recorded result.
    recorded: Option<Agreement>,
    bisection: Option<Bisection>,
}

/// Reports the findings.
fn tell(found: Found, output: &io::Output, json: bool) -> Result<ExitCode> {
    let Found { agreement, recorded, bisection } = found;
    let is_as_recorded = recorded.as_ref().is_none_or(Agreement::equal);
    let equal = agreement.equal() && is_as_recorded;
    if json {
        let mut report = CheckReport::with_recording(&agreement, recorded.as_ref());
        report.first_difference = bisection.and_then(|bisection| bisection.first);
        output.write(io::json(&report)?.as_bytes())?;
    } else {
        let (mut result, mut errors) = (String::new(), String::new());
        for agreement in recorded.iter().chain([&agreement]) {
            if agreement.equal() {
                result += &format!("{agreement}\n");
            } else {
                errors += &format!("error: {agreement}\n");
            }
        }
        output.write(result.as_bytes())?;
        io::to_stderr(&errors);
        if let Some(bisection) = bisection {
            io::to_stderr(&format!("{bisection}\n"));
        }
    }
    Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the requested tolerance for floats, if there is one.
fn within(args: &Check) -> Option<Within> {
    let Check { rtol, atol, .. } = *args;
    let within = Within { relative: rtol.unwrap_or(0.0), absolute: atol.unwrap_or(0.0) };
    rtol.or(atol).map(|_| within)
}

/// Compares by algebra alone and prints the verdicts.
fn by_algebra(verdicts: &[Verdict], output: &io::Output, json: bool) -> Result<ExitCode> {
    let report = AlgebraReport::from(verdicts);
    output.write(io::report(&report, json)?.as_bytes())?;
    Ok(if report.equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn first_witness(agreement: &Agreement) -> Option<&Witness> {
    agreement.outputs.iter().find_map(|output| output.witness.as_ref())
}
