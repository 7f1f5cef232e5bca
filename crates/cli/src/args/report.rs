//! The options of `tilewright report`.

use std::path::PathBuf;

use clap::Args;

use super::{Bounds, Input, Optimisation};

/// `tilewright report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write the page here instead of stdout
    #[arg(short, long, value_name = "HTML")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) optimisation: Optimisation,
    /// Evaluate the module before and after on several inputs, and say in the page whether they agree
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}
