//! The threads that run the tasks of reductions and programs, and the guard that runs each task
//! once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::Error;

/// Threads that run tasks in any order. Results do not depend on the number of threads.
pub trait Pool: Sync {
    /// Runs `task` once for each number below `count`, and returns when all are done.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

/// A pool of the calling thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Pool for Serial {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}

/// A pool of this many threads: the calling thread, and others that are started for each run.
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

/// Runs each of `count` tasks exactly once, even if the pool leaves tasks out, repeats them, or
/// names tasks that do not exist. Kernels write results without checks, and rely on this.
///
/// # Errors
/// If a task panicked and the pool caught the panic.
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
            // `Release` pairs with `Acquire` below: whoever counts this task as ended sees its
            // results.
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

    /// A pool that catches the panics of tasks.
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
