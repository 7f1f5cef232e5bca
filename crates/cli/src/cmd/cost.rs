//! `tilewright cost`: shows the cost of each instruction on a target.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::CostReport;

use crate::args::Cost;
use crate::io;

pub(crate) fn run(args: Cost) -> Result<ExitCode> {
    let target = tilewright::target(&args.target)?;
    let module = io::load(&args.input.path)?.module;
    let costs = CostReport::new(&module, &target);
    io::to_stdout(io::report(&costs, args.json)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
