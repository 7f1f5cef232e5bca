//! Work for several threads.

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use crate::error::Outcome;

/// A part of some work.
pub(crate) type Job<'a> = Box<dyn FnOnce() -> Outcome<()> + Send + 'a>;

/// Runs jobs on the threads of the pool. The threads' loop is compiled here, once: it is much code.
pub(crate) fn run_all(jobs: Vec<Job<'_>>) -> Outcome<()> {
    if jobs.len() < 2 {
        return jobs.into_iter().try_for_each(|job| job());
    }
    jobs.into_par_iter().try_for_each(|job| job())
}
