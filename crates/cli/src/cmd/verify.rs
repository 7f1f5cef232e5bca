//! `tilewright verify`: are modules well formed?

use std::process::ExitCode;

use anyhow::Result;
use tilewright::Loaded;
use tilewright::report::{VerifyReport, VerifySummary, counted};

use crate::args::Verify;
use crate::{io, shell};

pub(crate) fn run(args: Verify) -> Result<ExitCode> {
    io::stdin_once(&args.paths);
    let output = args.output.sink();
    let mut report = VerifyReport::default();
    let mut collected = String::new();
    for path in &args.paths {
        let read = io::load(path);
        let name = path.display().to_string();
        if !args.json {
            match &read {
                // A line at once, unless a file gets them all.
                Ok(loaded) => match output {
                    io::Output::Stdout => io::to_stdout(accepted(loaded).as_bytes())?,
                    io::Output::File(_) => collected += &accepted(loaded),
                },
                Err(error) => io::to_stderr(&error.render(shell::colours())),
            }
        }
        report.modules.push(VerifySummary::new(&name, &read));
    }
    if args.json {
        output.write(io::json(&report)?.as_bytes())?;
    } else if output != io::Output::Stdout {
        output.write(collected.as_bytes())?;
    }
    let ok = report.modules.iter().all(|module| module.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn accepted(loaded: &Loaded) -> String {
    let Loaded { module, source, .. } = loaded;
    let instructions = counted(module.instruction_count(), "instruction");
    let computations = counted(module.computations().len(), "computation");
    format!("{}: ok, {instructions} in {computations}\n", source.name)
}
