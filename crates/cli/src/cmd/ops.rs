//! `tilewright ops`: the ops of HLO, as the table of ops has them.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::OpList;

use crate::args::Listing;
use crate::io;

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    args.output.sink().write(io::report(&OpList::new(), args.json)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
