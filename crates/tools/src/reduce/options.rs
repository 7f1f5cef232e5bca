//! What a caller sets, and what it sees of a search.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tilewright::PrintOptions;
use tilewright::ir::Verified;

use super::size::ReducedSize;

/// A smaller module that a predicate judges.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate<'a> {
    /// The module.
    pub module: &'a Verified,
    /// Its text.
    pub text: &'a str,
    pub(super) wanted: Demand<'a>,
}

impl Candidate<'_> {
    /// Returns false once nobody needs to know whether the candidate passes: the search was stopped,
    /// or a candidate that is tried side by side with this one, and comes before it, passes. A long
    /// run can then be broken off; what the predicate returns is not used.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.holds()
    }
}

/// Tells whether the result of a run is still of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    pub(super) stop: Option<&'a AtomicBool>,
    /// The least number of a candidate that passes, and the number of this one.
    pub(super) race: Option<(&'a AtomicUsize, usize)>,
}

impl Demand<'_> {
    pub(super) fn holds(self) -> bool {
        let is_stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let is_late = |(first, own): (&AtomicUsize, usize)| first.load(Ordering::Relaxed) < own;
        !is_stopped && !self.race.is_some_and(is_late)
    }
}

/// A success of a search: the best module so far.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReduceStep<'a> {
    /// The module.
    pub module: &'a Verified,
    /// Its text.
    pub text: &'a str,
    /// Its size.
    pub size: ReducedSize,
    /// The number of candidates tried so far.
    pub runs: u64,
    /// The name of the reduction that made it.
    pub by: &'static str,
}

/// The options of [`reduce()`](crate::reduce()). Begin with the default and set what differs:
///
/// ```
/// let options = tilewright_tools::ReduceOptions::default().with_jobs(1).with_max_runs(1000);
/// assert_eq!(options.max_runs, Some(1000));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ReduceOptions<'a> {
    /// The number of candidates that are tried side by side; the result does not depend on it.
    pub jobs: usize,
    /// The most runs of the predicate, the first on the module itself included; those that are
    /// made in advance, side by side with others, count when they turn out to be needed.
    pub max_runs: Option<u64>,
    /// The time after which no more candidates are tried.
    pub max_time: Option<Duration>,
    /// Ends the search when it becomes true. What the predicate says then is not used.
    pub stop: Option<&'a AtomicBool>,
    /// Is called after each success, from the thread that called.
    pub progress: Option<&'a dyn Fn(&ReduceStep<'_>)>,
    /// The form of the texts.
    pub print: PrintOptions,
}

impl Default for ReduceOptions<'_> {
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            max_runs: None,
            max_time: None,
            stop: None,
            progress: None,
            print: PrintOptions::default(),
        }
    }
}

impl<'a> ReduceOptions<'a> {
    /// With another number of candidates that are tried side by side.
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Self {
        Self { jobs, ..self }
    }

    /// With a limit of runs.
    #[must_use]
    pub fn with_max_runs(self, runs: u64) -> Self {
        Self { max_runs: Some(runs), ..self }
    }

    /// With a limit of time.
    #[must_use]
    pub fn with_max_time(self, time: Duration) -> Self {
        Self { max_time: Some(time), ..self }
    }

    /// With a flag that ends the search.
    #[must_use]
    pub fn with_stop(self, stop: &'a AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// With a function that sees each success.
    #[must_use]
    pub fn with_progress(self, progress: &'a dyn Fn(&ReduceStep<'_>)) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// With another form of the texts.
    #[must_use]
    pub fn with_print(self, print: PrintOptions) -> Self {
        Self { print, ..self }
    }
}
