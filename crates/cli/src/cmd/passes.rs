//! `tilewright passes`: the passes, and the pipelines made of them.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::PassList;

use crate::args::Listing;
use crate::io;

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    io::to_stdout(io::report(&PassList::new(), args.json)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
