//! `tilewright targets`: the built-in targets.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::TargetList;

use crate::args::Listing;
use crate::io;

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    io::to_stdout(io::report(&TargetList::new()?, args.json)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
