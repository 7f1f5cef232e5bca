//! `tilewright lower`: reductions and selections as kernels, or as plans.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::lowering;

use crate::args::Lower;
use crate::{io, report};

pub(crate) fn run(args: Lower) -> Result<ExitCode> {
    let Lower { input, target, strategy, plan, json } = args;
    let target = tilewright::target(&target)?;
    let module = io::load(&input.path)?.module;
    let text = if plan {
        let plans = lowering::plans(&module, &target, strategy)?;
        if json { io::json(&plans)? } else { report::plans(&plans) }
    } else {
        let kernels = lowering::module_kernels(&module, &target, strategy)?;
        if json { io::json(&kernels)? } else { report::kernels(&kernels) }
    };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
