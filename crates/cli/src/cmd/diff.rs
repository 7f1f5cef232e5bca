//! `tilewright diff`: in what do two modules differ as graphs?

use std::process::ExitCode;

use anyhow::Result;
use tilewright_tools::diff::{DiffOptions, DiffReport};

use crate::args::Diff;
use crate::io::{self, Output};

/// How many differences are listed unless the caller says.
const LISTED: usize = 100;
const LISTED_ON_PAGE: usize = 2000;

pub(crate) fn run(args: Diff) -> Result<ExitCode> {
    io::stdin_once([&args.a, &args.b]);
    let (a, b) = (io::load(&args.a)?, io::load(&args.b)?);
    let report = DiffReport::new(&a, &b, &DiffOptions::default().with_metadata(args.metadata));
    if let Some(path) = args.html {
        let page = report.html(args.limit.unwrap_or(LISTED_ON_PAGE));
        Output::of(Some(path)).write(page.as_bytes())?;
    }
    let limit = args.limit.unwrap_or(LISTED);
    let output = args.output.sink();
    let text = match args.json {
        true => io::json(&report)?,
        false => report.text(&a, &b, limit, output.colours()),
    };
    output.write(text.as_bytes())?;
    Ok(if report.same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
