//! `tilewright lower`: how reductions are done in one pass.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Lower;
use crate::{io, report};

pub(crate) fn run(args: Lower) -> Result<ExitCode> {
    // There are only plans to show yet.
    let Lower { input, plan: _, json } = args;
    let module = io::load(&input.path)?.module;
    let plans = tilewright::lowering::plans(&module)?;
    let text = if json { io::json(&plans)? } else { report::plans(&plans) };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
