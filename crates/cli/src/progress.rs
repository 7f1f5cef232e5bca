//! Shows the progress of long work in a line on stderr.

use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright::interp::Progress;
use tilewright::ir::Module;
use tilewright::report::{count, shortened};

use crate::io;

/// An evaluation that may take long.
pub(crate) struct Watched<'a> {
    pub(crate) module: &'a Module,
    pub(crate) progress: &'a Progress,
}

/// Shorter work is not reported.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between updates of the line on a terminal.
const REFRESH: Duration = Duration::from_secs(1);
/// The time between lines if stderr is no terminal.
const REPORT: Duration = Duration::from_secs(10);

/// Does work, and meanwhile writes the text of `line` about its progress, if there is one.
pub(crate) fn shown<T>(
    mut line: impl FnMut() -> Option<String> + Send,
    work: impl FnOnce() -> T,
) -> T {
    let terminal = std::io::stderr().is_terminal();
    thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        // If the thread cannot be started, nothing is written.
        let teller = thread::Builder::new().spawn_scoped(scope, move || {
            let mut wait = if terminal { PATIENCE } else { REPORT };
            let mut is_written = false;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = if terminal { REFRESH } else { REPORT };
                if let Some(line) = line() {
                    is_written = true;
                    io::to_stderr(&if terminal {
                        format!("{ERASE}{}", shortened(&line))
                    } else {
                        line + "\n"
                    });
                }
            }
            if terminal && is_written {
                io::to_stderr(ERASE);
            }
        });
        let end = End(done);
        let result = work();
        drop(end);
        if let Ok(teller) = teller {
            // The thread cannot fail, and an error could not be handled.
            let _ = teller.join();
        }
        result
    })
}

/// Ends the telling, however the work ends.
struct End(#[expect(dead_code, reason = "to be dropped")] Sender<()>);

/// Goes back to the beginning of the line and clears it.
const ERASE: &str = "\r\x1b[2K";

/// Returns the progress of the evaluation that made the most steps since the last time.
pub(crate) fn of_evaluations<'a>(
    watched: &'a [Watched<'a>],
) -> impl FnMut() -> Option<String> + Send + 'a {
    let mut before = vec![0; watched.len()];
    move || {
        let mut busiest: Option<(u64, &Watched<'_>)> = None;
        for (watched, before) in watched.iter().zip(&mut before) {
            let steps = watched.progress.steps();
            let made = steps.abs_diff(*before);
            *before = steps;
            if busiest.as_ref().is_none_or(|(most, _)| made > *most) {
                busiest = Some((made, watched));
            }
        }
        busiest.map(|(_, watched)| of_evaluation(watched))
    }
}

fn of_evaluation(watched: &Watched<'_>) -> String {
    let Watched { module, progress } = watched;
    let bound = module.instruction_bound();
    let at = progress.instruction().filter(|id| tilewright::ir::Entity::index(*id) < bound);
    let at = at.map(|id| format!(", at `{}`", module.name_of(id))).unwrap_or_default();
    format!("{}: {} steps{at}", module.name, count(progress.steps()))
}

/// The progress of an optimisation.
#[derive(Default)]
pub(crate) struct Passes {
    /// The number of passes that changed the module, and the last of them.
    changed: Mutex<(u64, &'static str)>,
}

impl Passes {
    /// Tells of a pass that changed the module.
    pub(crate) fn pass(&self, name: &'static str) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        *changed = (changed.0.saturating_add(1), name);
    }

    /// Returns how often passes changed the module so far.
    pub(crate) fn line(&self) -> String {
        match *self.changed.lock().unwrap_or_else(PoisonError::into_inner) {
            (0, _) => "optimising".to_owned(),
            (passes, last) => {
                format!("optimising: runs of passes so far: {}, the last `{last}`", count(passes))
            }
        }
    }
}
