//! `tilewright targets`: the built-in targets.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::TargetList;

use crate::args::Listing;
use crate::{io, report};

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    let list = TargetList::new()?;
    let text = if args.json {
        io::json(&list)?
    } else {
        let rows = list.targets.iter().map(|target| {
            let mark = if target.name == list.default { "(default)" } else { "" };
            [target.name.as_str(), mark, &target.description]
        });
        report::columns(&rows.collect::<Vec<_>>())
    };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
