//! `tilewright completions`: the script with which a shell completes the command.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory as _};

use crate::args::{Cli, Completions};

pub(crate) fn run(args: Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    let targets = tilewright::Target::builtin_names().chain(["auto"]);
    let pipelines = tilewright::PIPELINES.iter().map(|pipeline| pipeline.name);
    let command = offering(Cli::command(), "target", &targets.collect::<Vec<_>>());
    let mut command = offering(command, "pipeline", &pipelines.collect::<Vec<_>>());
    clap_complete::generate(args.shell, &mut command, "tilewright", &mut script);
    args.output.sink().write(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Has a shell offer these values for an option of all verbs, and no files; the command takes files as well.
fn offering(command: Command, option: &'static str, values: &[&'static str]) -> Command {
    command.mut_subcommands(|verb| {
        if verb.get_arguments().all(|arg| arg.get_id() != option) {
            return verb;
        }
        verb.mut_arg(option, |arg: Arg| arg.value_parser(PossibleValuesParser::new(values)))
    })
}
