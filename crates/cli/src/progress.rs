//! A line on stderr that tells how far a long evaluation is.

use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
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

/// What is shorter than this goes unremarked.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a line on a terminal is written anew.
const REFRESH: Duration = Duration::from_secs(1);
/// How often a line is added where stderr is no terminal.
const REPORT: Duration = Duration::from_secs(10);

/// Does something, and tells how far the evaluations in it are where it takes
/// long: the one that made the most steps since the last time.
pub(crate) fn shown<T>(watched: &[Watched<'_>], work: impl FnOnce() -> T) -> T {
    let terminal = std::io::stderr().is_terminal();
    thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        // Without a thread for it, nothing is told.
        let teller = thread::Builder::new().spawn_scoped(scope, move || {
            let mut wait = if terminal { PATIENCE } else { REPORT };
            let mut before = vec![0; watched.len()];
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = if terminal { REFRESH } else { REPORT };
                tell(watched, &mut before, terminal);
            }
            if terminal && before.iter().any(|&steps| steps > 0) {
                io::to_stderr(ERASE);
            }
        });
        let end = End(done);
        let result = work();
        drop(end);
        if let Ok(teller) = teller {
            // It cannot fail, and there would be nothing to do.
            let _ = teller.join();
        }
        result
    })
}

/// Ends the telling, however the work ends.
struct End(#[expect(dead_code, reason = "to be dropped")] Sender<()>);

/// Goes back to the beginning of the line and clears it.
const ERASE: &str = "\r\x1b[2K";

fn tell(watched: &[Watched<'_>], before: &mut [u64], terminal: bool) {
    let mut busiest: Option<(u64, &Watched<'_>)> = None;
    for (watched, before) in watched.iter().zip(before) {
        let steps = watched.progress.steps();
        let made = steps.abs_diff(*before);
        *before = steps;
        if busiest.as_ref().is_none_or(|(most, _)| made > *most) {
            busiest = Some((made, watched));
        }
    }
    if let Some((_, watched)) = busiest {
        io::to_stderr(&line(watched, terminal));
    }
}

fn line(watched: &Watched<'_>, terminal: bool) -> String {
    let Watched { module, progress } = watched;
    let bound = module.instruction_bound();
    let at = progress.instruction().filter(|id| tilewright::ir::Entity::index(*id) < bound);
    let at = at.map(|id| format!(", at `{}`", module.name_of(id))).unwrap_or_default();
    let text = format!("{}: {} steps{at}", module.name, count(progress.steps()));
    if terminal { format!("{ERASE}{}", shortened(&text)) } else { text + "\n" }
}
