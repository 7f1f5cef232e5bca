//! `tilewright convert`: read a module and write it again.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Convert;
use crate::io;

pub(crate) fn run(args: Convert) -> Result<ExitCode> {
    let output = io::Output::of(args.output).expect_text()?;
    let module = io::load(&args.input.path)?.module;
    output.write(tilewright::print_with(&module, &args.form.options())?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
