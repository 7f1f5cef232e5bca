//! Threads that tasks run on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::Error;

/// Threads that tasks run on, in any order. Results do not depend on how many there are.
pub trait Pool: Sync {
    /// Runs `task` once for each number below `count`, and returns when all are done.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Pool for Serial {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}

/// This many threads, started for each reduction; the calling thread is one of them.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Pool for Threads {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                task(number);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.0.min(count) {
                scope.spawn(work);
            }
            work();
        });
    }
}

/// Runs each task once, whatever the pool does: it may leave tasks out, repeat them, or name some
/// that there are not, and kernels write results without looking.
///
/// # Errors
/// If a task did not come to its end, because a pool caught its panic.
pub(crate) fn run_once(
    pool: &dyn Pool,
    count: usize,
    task: &(dyn Fn(usize) + Sync),
) -> Result<(), Error> {
    let begun: Vec<AtomicBool> = (0..count).map(|_| AtomicBool::new(false)).collect();
    let ended = AtomicUsize::new(0);
    let once = |number: usize| {
        if begun.get(number).is_some_and(|begun| !begun.swap(true, Ordering::Relaxed)) {
            task(number);
            // Whoever reads that a task ended sees the results that it wrote.
            ended.fetch_add(1, Ordering::Release);
        }
    };
    pool.run(count, &once);
    (0..count).for_each(once);
    if ended.load(Ordering::Acquire) == count { Ok(()) } else { Err(Error::Unfinished) }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::{Pool, run_once};
    use crate::error::Error;

    /// A pool that catches panics.
    struct Deaf;

    impl Pool for Deaf {
        fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
            for number in 0..count {
                let _ = catch_unwind(AssertUnwindSafe(|| task(number)));
            }
        }
    }

    #[test]
    fn a_task_that_panics_is_told_of() {
        assert_eq!(run_once(&Deaf, 5, &|_| ()), Ok(()));
        let task = |number: usize| assert_ne!(number, 3);
        assert_eq!(run_once(&Deaf, 5, &task), Err(Error::Unfinished));
    }
}
