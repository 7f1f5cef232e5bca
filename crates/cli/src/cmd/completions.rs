//! `tilewright completions`: the script with which a shell completes the command.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;

use crate::args::{Cli, Completions};

pub(crate) fn run(args: Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilewright", &mut script);
    args.output.sink().write(&script)?;
    Ok(ExitCode::SUCCESS)
}
