//! `tilewright run`: evaluate a module.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use tilewright::Limits;
use tilewright::report::RunReport;

use crate::args::Run;
use crate::{io, report};

pub(crate) fn run(args: Run) -> Result<ExitCode> {
    let module = io::load(&args.input.path)?.module;
    let inputs = match &args.inputs {
        Some(path) => tilewright::read_inputs(&module, path)?,
        None => tilewright::random_inputs(&module, args.seed)?,
    };
    let start = Instant::now();
    let result = tilewright::run(&module, &inputs, &Limits::default())?;
    let time = start.elapsed();
    match args.output {
        Some(path) => io::Output::of(Some(path)).write(&tilewright::outputs_to_npz(&result)?)?,
        None => io::to_stdout(report::outputs(&result).as_bytes())?,
    }
    if args.json || args.stats {
        let summary = RunReport::interpreter(time);
        let text = if args.json { io::json(&summary)? } else { report::run(&summary) };
        io::to_stderr(&text);
    }
    Ok(ExitCode::SUCCESS)
}
