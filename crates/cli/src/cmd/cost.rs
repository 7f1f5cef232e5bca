//! `tilewright cost`: shows the cost of each instruction on a target.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::CostReport;

use crate::args::Cost;
use crate::{io, progress};

pub(crate) fn run(args: Cost) -> Result<ExitCode> {
    let target = tilewright::target(&args.target)?;
    let module = io::load(&args.input.path)?.module;
    let weigh = || io::report(&CostReport::new(&module, &target)?, args.json);
    let text = progress::stage("weigh", weigh)?;
    args.output.sink().write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
