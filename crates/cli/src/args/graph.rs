//! The options of `tilewright graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tilewright_view::{Emit, Subject};

use super::{Input, Optimisation};

/// `tilewright graph`.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write here instead of stdout; the name says which form: .dot, .svg or .html
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// The form: the language of Graphviz, a drawing, or a page whose parts open and close; if
    /// absent, the name of OUT decides, and stdout gets dot
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Option<EmitArg>,
    /// Optimise the module, and draw it before and after, with the changes marked and explained
    #[arg(long)]
    pub(crate) after: bool,
    /// Draw only what is near this instruction
    #[arg(long, value_name = "NAME", conflicts_with = "computation")]
    around: Option<String>,
    /// How many edges away from the instruction of --around
    #[arg(long, value_name = "N", default_value_t = 2, requires = "around")]
    depth: usize,
    /// Draw only this computation, and what it calls
    #[arg(long, value_name = "NAME")]
    computation: Option<String>,
    /// Colour instructions by their share of the modelled cycles
    #[arg(long, conflicts_with = "profile")]
    pub(crate) cost: bool,
    /// Colour instructions by their share of the time in this file, which
    /// `tilewright run IN --profile --json 2> run.json` writes
    #[arg(long, value_name = "JSON")]
    pub(crate) profile: Option<PathBuf>,
    /// With --target, says what is padded and moved; the other options are those of --after
    #[command(flatten)]
    pub(crate) optimisation: Optimisation,
}

/// The forms of a picture.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum EmitArg {
    Dot,
    Svg,
    Html,
}

impl Graph {
    /// Returns the form that is asked for.
    pub(crate) fn emit(&self) -> Option<Emit> {
        self.emit.map(|emit| match emit {
            EmitArg::Dot => Emit::Dot,
            EmitArg::Svg => Emit::Svg,
            EmitArg::Html => Emit::Html,
        })
    }

    /// Returns the part that is drawn.
    pub(crate) fn subject(&self) -> Subject {
        match (&self.around, &self.computation) {
            (Some(name), _) => Subject::Around { name: name.clone(), depth: self.depth },
            (None, Some(name)) => Subject::Computation(name.clone()),
            (None, None) => Subject::Module,
        }
    }
}
