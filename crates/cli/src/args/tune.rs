//! The options of `tilewright tune`.

use std::path::PathBuf;

use clap::Args;
use tilewright_tools::tune::RaceOptions;

use super::{Optimisation, seconds};

/// `tilewright tune`.
///
/// CMD runs a module on the engine that counts, and prints the seconds of one run, or of several runs,
/// one in each line. `sh -c` runs it for each candidate, again and again in turn, with the path of the
/// candidate's HLO text in place of `{}`; the path is added at the end if CMD has no `{}`. The variable
/// TILEWRIGHT_CANDIDATE holds this path, too, and TILEWRIGHT_FOLDER the folder where `tilewright` was
/// started.
///
/// The original wins unless a candidate is faster beyond doubt. Ctrl-C ends the search with what is
/// known.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Tune {
    /// The module: a file of HLO text or proto, a folder of dumps, or `-` for stdin
    #[arg(value_name = "IN", required_unless_present_any = ["list", "clear"])]
    pub(crate) input: Option<PathBuf>,
    /// The command that runs a module and prints seconds
    #[arg(long, value_name = "CMD", required_unless_present_any = ["list", "clear"])]
    pub(crate) with: Option<String>,
    /// Write the fastest module here instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) optimisation: Optimisation,
    /// How many times faster than the original a candidate must be to win
    #[arg(long, value_name = "X", default_value_t = RaceOptions::default().least_gain, value_parser = gain)]
    pub(crate) least_gain: f64,
    /// End after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = seconds)]
    pub(crate) max_seconds: f64,
    /// The time of one run of CMD; a candidate that takes longer is out of the race [default: 10 times
    /// that of the original, at least 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// List what `tilewright.jit(tune=True)` has decided for this user
    #[arg(long, conflicts_with_all = ["input", "with", "output", "clear"])]
    pub(crate) list: bool,
    /// Forget all that
    #[arg(long, conflicts_with_all = ["input", "with", "output"])]
    pub(crate) clear: bool,
    /// Give the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn gain(text: &str) -> Result<f64, String> {
    let gain: Option<f64> = text.parse().ok().filter(|gain| (1.0..=100.0).contains(gain));
    gain.ok_or_else(|| "it must be a number from 1 to 100".to_owned())
}
