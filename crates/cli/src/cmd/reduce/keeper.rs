//! Judges candidates by a command.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tilewright_tools::Candidate;

use crate::command::{self, ModuleCommand, Outcome, TimeLimit};

/// A command of the shell that judges candidates.
pub(super) struct Keeper {
    command: ModuleCommand,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    /// The outcome of the first run.
    first: OnceLock<Outcome>,
    /// The first error of a run that could not be made.
    failure: Mutex<Option<anyhow::Error>>,
}

impl Keeper {
    pub(super) fn new(
        command: &str,
        timeout: Option<Duration>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        Ok(Self {
            command: ModuleCommand::new(command)?,
            limit: TimeLimit::new(timeout),
            stop: Arc::clone(stop),
            first: OnceLock::new(),
            failure: Mutex::default(),
        })
    }

    /// Checks whether the command exits with 0 on a candidate.
    pub(super) fn keeps(&self, candidate: &Candidate<'_>) -> bool {
        let begun = Instant::now();
        match self.outcome(candidate) {
            Ok(outcome) => {
                self.first.get_or_init(|| outcome);
                self.limit.note(begun.elapsed());
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
        self.first.get().copied()
    }

    /// Returns the first error, if a run could not be made.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn outcome(&self, candidate: &Candidate<'_>) -> Result<Outcome> {
        let folder = command::scratch("reduce")?;
        let path = folder.path().join("candidate.hlo");
        std::fs::write(&path, candidate.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let begun = Instant::now();
        self.command.run(folder.path(), &path, [Stdio::null(), Stdio::null()], || {
            // Or another candidate won.
            let is_unwanted = !candidate.is_wanted() || self.stop.load(Ordering::Relaxed);
            is_unwanted || self.limit.is_over(begun)
        })
    }
}
