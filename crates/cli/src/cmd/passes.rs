//! `tilewright passes`: the passes, and the pipelines made of them.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::PassList;

use crate::args::PassNames;
use crate::io;

pub(crate) fn run(args: PassNames) -> Result<ExitCode> {
    let list = if args.names.is_empty() { PassList::new() } else { PassList::of(&args.names)? };
    args.list.output.sink().write(io::report(&list, args.list.json)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
