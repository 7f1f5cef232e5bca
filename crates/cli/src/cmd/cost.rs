//! `tilewright cost`: what each instruction costs on a target.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::CostReport;

use crate::args::Cost;
use crate::{io, report};

pub(crate) fn run(args: Cost) -> Result<ExitCode> {
    let target = tilewright::target(&args.target)?;
    let module = io::load(&args.input.path)?.module;
    let costs = CostReport::new(&module, &target);
    let text = if args.json { io::json(&costs)? } else { report::costs(&costs) };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
