//! The options of `tilewright diff`.

use std::path::PathBuf;

use clap::Args;

use super::Destination;

/// `tilewright diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A module: a file of HLO text or proto, a folder of dumps, or `-` for stdin
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The module to compare with
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Compare metadata, origins and statistics of instructions, too
    #[arg(long)]
    pub(crate) metadata: bool,
    /// The most differences to list; 100 if absent, 2000 on the page of --html
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) output: Destination,
    /// Write a page that shows the modules side by side here, for a browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Give the report as JSON, with every difference
    #[arg(long)]
    pub(crate) json: bool,
}
