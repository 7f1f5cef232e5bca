//! Shows the progress of long work in a line on stderr, and tells the time of each stage.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tilewright::Progress;
use tilewright::ir::Module;
use tilewright::report::count;

use crate::{io, shell};

/// An evaluation that may take long.
pub(crate) struct Watched<'a> {
    pub(crate) module: &'a Module,
    pub(crate) progress: &'a Progress,
}

/// Shorter work is not shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two questions for the line.
const REFRESH: Duration = Duration::from_millis(200);

/// Does the work of a stage. `-v` tells the time that it took; its name is shown on a terminal if it
/// takes long.
pub(crate) fn stage<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    timed(name, || shown(|| Some(name.into()), work))
}

/// Does the work of a stage, and tells the time that it took with `-v`.
pub(crate) fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    tell_time(name, start.elapsed());
    result
}

/// Tells the time of a stage with `-v`.
pub(crate) fn tell_time(name: &str, time: Duration) {
    if shell::timings() {
        io::to_stderr(&format!("{name}: {:.3} ms\n", time.as_secs_f64() * 1e3));
    }
}

/// Does work, and meanwhile shows the text of `line` about its progress, if there is one: on a
/// terminal alone, and only after a second.
pub(crate) fn shown<T>(
    line: impl FnMut() -> Option<Cow<'static, str>> + Send,
    work: impl FnOnce() -> T,
) -> T {
    if !shell::progress() || !std::io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        // If the thread cannot be started, nothing is shown.
        let teller = thread::Builder::new().spawn_scoped(scope, move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = bar();
                show(&bar, line, || ended.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout));
                bar.finish_and_clear();
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

/// Ends the showing, however the work ends.
struct End(#[expect(dead_code, reason = "to be dropped")] Sender<()>);

/// Returns a line on stderr, cut to the terminal, with the time that has gone by.
fn bar() -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(None, target).with_elapsed(PATIENCE);
    match ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows the text of `line` as long as the work goes on.
fn show(
    bar: &ProgressBar,
    mut line: impl FnMut() -> Option<Cow<'static, str>>,
    goes_on: impl Fn() -> bool,
) {
    loop {
        if let Some(line) = line() {
            bar.set_message(line);
            bar.tick();
        }
        if !goes_on() {
            return;
        }
    }
}

/// Returns the progress of the evaluation that made the most steps since the last time.
pub(crate) fn of_evaluations<'a>(
    watched: &'a [Watched<'a>],
) -> impl FnMut() -> Option<Cow<'static, str>> + Send + 'a {
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
        busiest.map(|(_, watched)| of_evaluation(watched).into())
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
    /// The evaluations of `--check`, before and after.
    pub(crate) evaluations: [Progress; 2],
}

impl Passes {
    /// Tells of a pass that changed the module.
    pub(crate) fn pass(&self, name: &'static str) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        *changed = (changed.0.saturating_add(1), name);
    }

    /// Returns how often passes changed the module so far, and how far the check is.
    pub(crate) fn line(&self) -> Cow<'static, str> {
        let steps = self.evaluations.iter().map(Progress::steps).fold(0, u64::saturating_add);
        let checking =
            if steps > 0 { format!(", checking: {} steps", count(steps)) } else { String::new() };
        match *self.changed.lock().unwrap_or_else(PoisonError::into_inner) {
            (0, _) => format!("optimising{checking}").into(),
            (passes, last) => {
                let passes = count(passes);
                format!("optimising: runs of passes so far: {passes}, the last `{last}`{checking}")
                    .into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use indicatif::{InMemoryTerm, ProgressBar, ProgressDrawTarget};

    use super::{bar, show};

    #[test]
    fn a_line_is_shown_until_the_work_ends() {
        let term = InMemoryTerm::new(3, 40);
        let bar = bar();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(term.clone())));
        let turns = Cell::new(0);
        let next = || {
            turns.set(turns.get() + 1);
            Some(format!("turn {}: {}", turns.get(), "long ".repeat(20)).into())
        };
        let seen = Cell::new(String::new());
        show(&bar, next, || {
            seen.set(term.contents());
            turns.get() < 3
        });
        let seen = seen.take();
        // One line, no wider than the terminal.
        assert!(seen.contains("1s turn 3: long"), "{seen}");
        assert!(seen.lines().count() == 1 && seen.chars().count() <= 40, "{seen}");
        ProgressBar::finish_and_clear(&bar);
        assert_eq!(term.contents(), "");
    }
}
