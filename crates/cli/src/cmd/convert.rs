//! `tilewright convert`: read a module and write it again.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Convert;
use crate::io;

pub(crate) fn run(args: Convert) -> Result<ExitCode> {
    let output = io::Output::of(args.output);
    let emit = output.form(args.form.emit())?;
    let module = io::load(&args.input.path)?.module;
    output.write(&tilewright::write(&module, emit, &args.form.options())?)?;
    io::warn(&tilewright::losses(&module, emit));
    Ok(ExitCode::SUCCESS)
}
