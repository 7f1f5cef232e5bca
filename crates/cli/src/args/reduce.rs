//! The options of `tilewright reduce`.

use std::path::PathBuf;

use clap::Args;

use super::{Input, Stream, seconds};

/// `tilewright reduce`.
///
/// CMD judges a module: it exits with 0 if the module still shows what is looked for, such as a
/// crash or a difference. `sh -c` runs it for each candidate in a new, empty folder, with the path of
/// the candidate's HLO text in place of `{}`; the path is added at the end if CMD has no `{}`. The
/// variable TILEWRIGHT_CANDIDATE holds this path, too, and TILEWRIGHT_FOLDER the folder where
/// `tilewright` was started.
///
/// Ctrl-C ends the search with the best module so far and the exit code 130.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Reduce {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The command that exits with 0 for the modules to keep
    #[arg(long, value_name = "CMD")]
    pub(crate) keep: String,
    /// Write here, after each success [default: IN with the ending .reduced.hlo, stdout for
    /// stdin]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// The time of one run; a command that takes longer is ended, and its module is not kept
    /// [default: 10 times that of the first run, at least 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// How many candidates are tried side by side; the result is the same for any number
    /// [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// End after this many runs
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_seconds: Option<f64>,
    /// Give the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Reduce {
    /// Returns the stream of the report: stderr if the module goes to stdout.
    pub(super) fn stream(&self) -> Stream {
        let output = self.output.as_ref().unwrap_or(&self.input.path);
        if output.as_os_str() == "-" { Stream::Stderr } else { Stream::Stdout }
    }
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs: Option<usize> = text.parse().ok().filter(|jobs| (1..=1024).contains(jobs));
    jobs.ok_or_else(|| "it must be a number from 1 to 1024".to_owned())
}
