//! Runs the command that judges a candidate.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use process_wrap::std::{ChildWrapper, CommandWrap};
use tilewright_tools::Candidate;

/// The name of the variable with the path of the candidate.
const CANDIDATE: &str = "TILEWRIGHT_CANDIDATE";
/// The name of the variable with the folder where `tilewright` was started.
const FOLDER: &str = "TILEWRIGHT_FOLDER";
/// The least time that a run is given if the caller says nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many times as long as the first run a run may take.
const TIMES_FIRST: u32 = 10;
/// The time between two looks at a running command, at first and at most.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Exited(i32),
    /// By a signal.
    Killed,
    TimedOut,
}

/// Judges candidates by a command of the shell.
pub(super) struct Keeper {
    command: String,
    timeout: Option<Duration>,
    stop: Arc<AtomicBool>,
    /// The folder where `tilewright` was started.
    folder: PathBuf,
    /// The outcome of the first run, and its time.
    first: OnceLock<(Outcome, Duration)>,
    /// The first error of a run that could not be made.
    failure: Mutex<Option<anyhow::Error>>,
}

impl Keeper {
    pub(super) fn new(
        command: &str,
        timeout: Option<Duration>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let is_told = command.contains("{}") || command.contains(CANDIDATE);
        Ok(Self {
            command: if is_told { command.to_owned() } else { format!("{command} {{}}") },
            timeout,
            stop: Arc::clone(stop),
            folder: std::env::current_dir().context("cannot tell the current folder")?,
            first: OnceLock::new(),
            failure: Mutex::default(),
        })
    }

    /// Checks whether the command exits with 0 on a candidate.
    pub(super) fn keeps(&self, candidate: &Candidate<'_>) -> bool {
        let begun = Instant::now();
        match self.outcome(candidate) {
            Ok(outcome) => {
                self.first.get_or_init(|| (outcome, begun.elapsed()));
                outcome == Outcome::Exited(0)
            }
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                self.stop.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Returns the outcome of the first run.
    pub(super) fn first(&self) -> Option<Outcome> {
        self.first.get().map(|(outcome, _)| *outcome)
    }

    /// Returns the first error, if a run could not be made.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn outcome(&self, candidate: &Candidate<'_>) -> Result<Outcome> {
        let folder = tempfile::Builder::new()
            .prefix("tilewright-reduce-")
            .tempdir()
            .context("cannot make a folder for a candidate")?;
        let path = folder.path().join("candidate.hlo");
        std::fs::write(&path, candidate.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut child = self.command(folder.path(), &path).spawn().context("cannot run `sh`")?;
        self.wait(child.as_mut(), candidate)
    }

    fn command(&self, folder: &Path, path: &Path) -> CommandWrap {
        let script = self.command.replace("{}", &quoted(path));
        let mut command = CommandWrap::with_new("sh", |command| {
            command
                .args(["-c", &script])
                .current_dir(folder)
                .env(CANDIDATE, path)
                .env(FOLDER, &self.folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        });
        // What the shell starts ends with it.
        #[cfg(unix)]
        command.wrap(process_wrap::std::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::std::JobObject);
        command
    }

    /// Waits until the command ends, or ends it when its time is over, when the search stops, or when
    /// another candidate won.
    fn wait(&self, child: &mut dyn ChildWrapper, candidate: &Candidate<'_>) -> Result<Outcome> {
        let begun = Instant::now();
        let most = self.timeout.or_else(|| {
            self.first.get().map(|(_, first)| first.saturating_mul(TIMES_FIRST).max(PATIENCE))
        });
        let [mut pause, longest] = LOOKS;
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for the command")? {
                return Ok(ended(status));
            }
            let is_late = most.is_some_and(|most| begun.elapsed() >= most);
            if is_late || !candidate.is_wanted() || self.stop.load(Ordering::Relaxed) {
                child.start_kill().context("cannot end the command")?;
                child.wait().context("cannot wait for the command")?;
                return Ok(Outcome::TimedOut);
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2).min(longest);
        }
    }
}

fn ended(status: ExitStatus) -> Outcome {
    status.code().map_or(Outcome::Killed, Outcome::Exited)
}

/// Returns a path as one word of the shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if path.chars().all(is_plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}
