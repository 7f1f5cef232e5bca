//! `tilewright check`: do two modules give the same outputs?

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::CheckReport;
use tilewright::{Agreement, CheckOptions};

use super::opt::options;
use crate::args::Check;
use crate::io;
use crate::report::counted;

pub(crate) fn run(args: Check) -> Result<ExitCode> {
    io::stdin_once([&args.a].into_iter().chain(&args.b));
    let options = options(&args.optimisation)?;
    let a = io::load(&args.a)?.module;
    let b = match &args.b {
        Some(path) => io::load(path)?.module,
        None => tilewright::optimize(a.clone(), &options)?.module,
    };
    let how = CheckOptions { seeds: args.seeds, exact: options.exact, ..CheckOptions::default() };
    let agreement = tilewright::check(&a, &b, &how)?;
    if args.json {
        io::to_stdout(io::json(&CheckReport::from(&agreement))?.as_bytes())?;
    } else if agreement.equal() {
        io::to_stdout(agreed(&agreement).as_bytes())?;
    } else {
        io::to_stderr(&disagreement(&agreement));
    }
    Ok(if agreement.equal() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn agreed(agreement: &Agreement) -> String {
    let same = agreement.outputs.iter().all(|output| output.max_ulp == 0);
    let how = if same { "equal" } else { "equal but for rounding" };
    let outputs = counted(agreement.outputs.len(), "output");
    let inputs = counted(agreement.inputs_tried, "set");
    format!("{how}: {outputs} on {inputs} of inputs\n")
}

/// Which outputs differ, where and by how much.
pub(super) fn disagreement(agreement: &Agreement) -> String {
    let mut text = String::from("error: the outputs differ\n");
    for (index, output) in agreement.outputs.iter().enumerate() {
        let Some(witness) = &output.witness else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  out{index}: {witness}");
    }
    text
}
