//! The `tilewright` command: thin verbs over the `tilewright` library.
//!
//! [`args`] defines the command line, [`cmd`] has a file for each verb, [`io`] reads and
//! writes, [`command`] runs commands of the user on modules, [`dump`] writes the module after each pass, [`shell`] has the options of all verbs,
//! [`report`] makes tables for people, [`progress`] shows the progress of long work. Each verb
//! returns an exit code. An error becomes a diagnostic on stderr and the exit code 1, or 3 if a
//! module could not be evaluated, or 2 if modules could not be compared by `diff`.

mod args;
mod cmd;
mod command;
mod dump;
mod io;
mod progress;
mod report;
mod shell;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Command, Stream};
use tilewright::report::{ErrorReport, ErrorSummary};

/// Rewriting makes many small vectors: `opt` takes 6 % less time than with the allocator of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args::Cli { shell, command } = args::Cli::parse();
    let json = command.json();
    let is_diff = matches!(command, Command::Diff(_));
    shell.apply(json.as_ref());
    run(command).unwrap_or_else(|error| {
        tell(&error, json);
        match error.downcast_ref::<tilewright::Error>() {
            // 1 says that the modules were compared and differ.
            _ if is_diff => ExitCode::from(2),
            Some(error) if error.is_usage() => ExitCode::from(2),
            Some(error) if error.is_evaluation() => ExitCode::from(3),
            None if error.is::<shell::UsageError>() => ExitCode::from(2),
            None if error.is::<tilewright_view::ViewError>() => cmd::graph::exit_code(&error),
            _ => ExitCode::FAILURE,
        }
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Opt(args) => cmd::opt::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::Diff(args) => cmd::diff::run(args),
        Command::Reduce(args) => cmd::reduce::run(args),
        Command::Tune(args) => cmd::tune::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Cost(args) => cmd::cost::run(args),
        Command::Graph(args) => cmd::graph::run(args),
        Command::Report(args) => cmd::report::run(args),
        Command::Lower(args) => cmd::lower::run(args),
        Command::Convert(args) => cmd::convert::run(args),
        Command::Passes(args) => cmd::passes::run(args),
        Command::Ops(args) => cmd::ops::run(args),
        Command::Targets(args) => cmd::targets::run(args),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
    }
}

/// Tells of an error: to people on stderr, and as JSON where the report would be.
fn tell(error: &anyhow::Error, json: Option<Stream>) {
    match json {
        None => io::to_stderr(&describe(error)),
        Some(Stream::Stderr) => io::to_stderr(&as_json(error)),
        Some(Stream::Stdout) => {
            io::to_stderr(&describe(error));
            // If this fails, the error cannot be reported.
            let _ = io::to_stdout(as_json(error).as_bytes());
        }
        Some(Stream::File(path)) => {
            io::to_stderr(&describe(error));
            // It may be the file that cannot be written: the error is on stderr.
            let _ = io::Output::File(path).write(as_json(error).as_bytes());
        }
    }
}

fn as_json(error: &anyhow::Error) -> String {
    let report = match error.downcast_ref::<tilewright::Error>() {
        Some(error) => ErrorReport::from(error),
        None => {
            let message = format!("{error:#}");
            ErrorReport { error: ErrorSummary { code: "input", message, place: None } }
        }
    };
    io::json(&report).unwrap_or_else(|_| describe(error))
}

/// Returns an error as people read it.
fn describe(error: &anyhow::Error) -> String {
    match error.downcast_ref::<tilewright::Error>() {
        Some(error) => error.render(shell::colours()),
        None => format!("error: {error:#}\n"),
    }
}
