//! `tilewright cost`: shows the cost of each instruction on a target, or the memory of each array.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::report::{CostReport, MemoryReport};

use crate::args::Cost;
use crate::{io, progress};

pub(crate) fn run(args: Cost) -> Result<ExitCode> {
    let target = tilewright::target(&args.target)?;
    let module = io::load(&args.input.path)?.module;
    let weigh = || match args.memory {
        true => io::report(&MemoryReport::new(&module, &target)?, args.json),
        false => io::report(&CostReport::new(&module, &target)?, args.json),
    };
    let text = progress::stage("weigh", weigh)?;
    args.output.sink().write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
