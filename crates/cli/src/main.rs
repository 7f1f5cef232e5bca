//! The `tilewright` command: thin verbs over the `tilewright` library.
//!
//! [`args`] says what can be typed, [`cmd`] has a file for each verb, [`io`]
//! reads and writes, [`report`] makes tables for people, [`progress`] tells how
//! far a long evaluation is. Each verb returns an
//! exit code; an error becomes a diagnostic on stderr and the exit code 1.

mod args;
mod cmd;
mod io;
mod progress;
mod report;

use std::process::ExitCode;

use clap::Parser as _;

use args::Command;

fn main() -> ExitCode {
    let done = match args::Cli::parse().command {
        Command::Opt(args) => cmd::opt::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Check(args) => cmd::check::run(args),
        Command::Verify(args) => cmd::verify::run(args),
        Command::Cost(args) => cmd::cost::run(args),
        Command::Lower(args) => cmd::lower::run(args),
        Command::Convert(args) => cmd::convert::run(args),
        Command::Passes(args) => cmd::passes::run(args),
        Command::Ops(args) => cmd::ops::run(args),
        Command::Targets(args) => cmd::targets::run(args),
    };
    done.unwrap_or_else(|error| {
        io::to_stderr(&describe(&error));
        match error.downcast_ref::<tilewright::Error>() {
            Some(error) if error.is_usage() => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    })
}

/// An error as people read it.
fn describe(error: &anyhow::Error) -> String {
    match error.downcast_ref::<tilewright::Error>() {
        Some(error) => error.render(io::colours()),
        None => format!("error: {error:#}\n"),
    }
}
