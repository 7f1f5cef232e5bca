//! Times modules by a command.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::command::{self, ModuleCommand, Outcome, TimeLimit};

/// How many bytes of what a command prints are shown when it fails.
const SHOWN: usize = 300;

/// A command that prints the seconds that a module takes.
pub(super) struct Timer {
    command: ModuleCommand,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    folder: TempDir,
}

/// Why there are no seconds.
pub(super) enum Failure {
    /// The user asked to end.
    Stopped,
    /// The command does not run this module.
    Fails(String),
    /// The command cannot be run at all.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl Timer {
    pub(super) fn new(
        command: &str,
        timeout: Option<Duration>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let (command, folder) = (ModuleCommand::new(command)?, command::scratch("tune")?);
        Ok(Self { command, limit: TimeLimit::new(timeout), stop: Arc::clone(stop), folder })
    }

    /// Writes a module to be run under this number.
    pub(super) fn add(&self, number: usize, text: &[u8]) -> Result<()> {
        let path = self.path(number);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("candidate_{number}.hlo"))
    }

    /// Runs the command on a module, and returns the seconds that it prints: the median of several.
    pub(super) fn seconds(&self, number: usize) -> Result<f64, Failure> {
        let begun = Instant::now();
        let [printed, errors] = ["stdout", "stderr"].map(|name| self.folder.path().join(name));
        let output = [command::printed(&printed)?.into(), Stdio::from(command::printed(&errors)?)];
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let outcome = self.command.run(self.folder.path(), &self.path(number), output, || {
            is_stopped() || self.limit.is_over(begun)
        })?;
        let text = String::from_utf8_lossy(&fs::read(&printed).unwrap_or_default()).into_owned();
        let why = match outcome {
            Outcome::Exited(0) => match median_of_lines(&text) {
                Some(seconds) => {
                    self.limit.note(begun.elapsed());
                    return Ok(seconds);
                }
                None => format!("prints no seconds, but {:?}", end_of(&text)),
            },
            Outcome::Stopped if is_stopped() => return Err(Failure::Stopped),
            Outcome::Stopped => "does not end within its time (--timeout)".to_owned(),
            Outcome::Exited(code) => format!("exits with {code}{}", self.complaint()),
            Outcome::Killed => format!("is ended by a signal{}", self.complaint()),
        };
        Err(Failure::Fails(why))
    }

    /// Returns the last line that the command wrote to stderr, behind a colon.
    fn complaint(&self) -> String {
        let errors = fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let last = errors.trim_end().lines().next_back().map(end_of);
        last.map_or_else(String::new, |line| format!(": {line}"))
    }
}

/// Returns the end of a text that may be long.
fn end_of(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

/// Returns the median of the numbers in a text, one in each line; `None` if a line is no number.
fn median_of_lines(text: &str) -> Option<f64> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut numbers: Vec<f64> = lines.map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::{end_of, median_of_lines};

    #[test]
    fn seconds_are_lines() {
        assert_eq!(median_of_lines("1e-3\n"), Some(1e-3));
        assert_eq!(median_of_lines(" 3\n\n1\n2 \n"), Some(2.0));
        assert_eq!(median_of_lines(""), None);
        assert_eq!(median_of_lines("1.5 s\n"), None);
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        assert_eq!(end_of("a\n"), "a");
        assert_eq!(end_of(&"é".repeat(400)).chars().count(), 301);
    }
}
