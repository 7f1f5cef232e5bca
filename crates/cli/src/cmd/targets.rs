//! `tilewright targets`: the built-in targets, and files to make one's own from.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::TargetList;

use crate::args::Targets;
use crate::io;

pub(crate) fn run(args: Targets) -> Result<ExitCode> {
    let text = match &args.name {
        Some(name) if !args.list.json => tilewright::target_template(name)?,
        Some(name) => io::report(&TargetList::of(name)?, true)?,
        None => io::report(&TargetList::new()?, args.list.json)?,
    };
    args.list.output.sink().write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
