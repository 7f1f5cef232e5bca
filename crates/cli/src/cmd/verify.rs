//! `tilewright verify`: are modules well formed?

use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::{VerifyReport, VerifySummary};

use crate::args::Verify;
use crate::io;

pub(crate) fn run(args: Verify) -> Result<ExitCode> {
    let mut report = VerifyReport::default();
    for path in &args.paths {
        let read = io::load(path);
        let name = path.display().to_string();
        if !args.json {
            match &read {
                Ok(loaded) => io::to_stdout(accepted(&name, &loaded.module).as_bytes())?,
                Err(error) => io::to_stderr(&error.render(io::colours())),
            }
        }
        report.modules.push(VerifySummary::new(&name, &read));
    }
    if args.json {
        io::to_stdout(io::json(&report)?.as_bytes())?;
    }
    let ok = report.modules.iter().all(|module| module.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn accepted(name: &str, module: &tilewright::ir::Module) -> String {
    let (computations, instructions) = (module.computations().len(), module.instruction_count());
    format!("{name}: ok, {instructions} instructions in {computations} computations\n")
}
