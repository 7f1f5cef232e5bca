//! Threads that tasks run on.

use std::sync::atomic::{AtomicUsize, Ordering};

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

#[cfg(feature = "rayon")]
impl Pool for rayon::ThreadPool {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
        self.install(|| (0..count).into_par_iter().for_each(task));
    }
}
