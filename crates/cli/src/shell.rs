//! How the command speaks: colours, silence and timings. The options of all verbs.

use std::fmt;
use std::sync::OnceLock;

use clap::{Args, ColorChoice};

use crate::args::Stream;

/// The options that every verb has.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Options of all verbs")]
pub(crate) struct Shell {
    /// When to colour what is written: `auto` is on a terminal, unless NO_COLOR or
    /// CLICOLOR=0 is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto, hide_possible_values = true)]
    color: ColorChoice,
    /// Write no notes, warnings or progress to stderr: only errors, and what options ask for
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say on stderr how long each stage took
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// The kinds of text that are written to stderr besides errors.
#[derive(Clone, Copy, Debug)]
struct Speech {
    notes: bool,
    timings: bool,
    progress: bool,
}

static SPEECH: OnceLock<Speech> = OnceLock::new();

impl Shell {
    /// Applies the options to this run of the command, whose JSON report goes to this stream. A
    /// program that reads JSON from stderr gets nothing else there.
    pub(crate) fn apply(self, json: Option<&Stream>) {
        match self.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        let is_free = !matches!(json, Some(Stream::Stderr));
        let speech = Speech {
            notes: !self.quiet,
            timings: self.verbose && is_free,
            progress: !self.quiet && json.is_none(),
        };
        // `main` calls this once.
        let _ = SPEECH.set(speech);
    }
}

/// Options that do not go together, beyond what clap tells.
#[derive(Debug)]
pub(crate) struct UsageError(&'static str);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for UsageError {}

/// Returns a usage error, which ends the command with 2.
pub(crate) fn usage<T>(message: &'static str) -> anyhow::Result<T> {
    Err(UsageError(message).into())
}

fn speech() -> Speech {
    let default = Speech { notes: true, timings: false, progress: false };
    SPEECH.get().copied().unwrap_or(default)
}

/// Checks whether notes and warnings are written.
pub(crate) fn notes() -> bool {
    speech().notes
}

/// Checks whether the time of each stage is written.
pub(crate) fn timings() -> bool {
    speech().timings
}

/// Checks whether the progress of long work is shown.
pub(crate) fn progress() -> bool {
    speech().progress
}

/// Checks whether what goes to stderr is coloured: `--color` decides, and else NO_COLOR, CLICOLOR,
/// CLICOLOR_FORCE and the terminal.
pub(crate) fn colours() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
