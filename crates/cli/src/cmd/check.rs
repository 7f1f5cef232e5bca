//! `tilewright check`: do two modules give the same outputs?

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::CheckReport;
use tilewright::{Agreement, CheckOptions};

use super::opt::options;
use crate::args::Check;
use crate::io;

pub(crate) fn run(args: Check) -> Result<ExitCode> {
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
    let (outputs, inputs) = (agreement.outputs.len(), agreement.inputs_tried);
    let greatest = agreement.outputs.iter().map(|output| output.max_abs).fold(0.0, f64::max);
    let how = if greatest == 0.0 {
        "bit for bit, but for the sign of zero and what is in a NaN".to_owned()
    } else {
        format!("within tolerance, at most {greatest:.3e} apart")
    };
    format!("equal: {outputs} outputs on {inputs} inputs, {how}\n")
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
