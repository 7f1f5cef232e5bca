//! XLA's threads.
//!
//! The thread that called the handler works, too, and takes what nobody else has begun. So a
//! reduction ends even if no other thread ever comes, as in a pool of one thread whose only thread
//! runs the handler. A task that comes late finds that the reduction is over.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tilewright_native::{Pool, Serial};

use super::abi::{Api, Context, ErrorDestroyArgs, NumThreadsArgs, ScheduleArgs, XlaError};

/// XLA's threads, for the time of a call.
pub(crate) struct XlaPool<'a> {
    api: &'a Api,
    context: *mut Context,
    threads: usize,
}

// SAFETY: XLA's functions may be called from any thread, and the context is not touched here.
unsafe impl Sync for XlaPool<'_> {}

impl<'a> XlaPool<'a> {
    /// The pool of an execution; one thread if XLA has none to give.
    pub(crate) fn new(api: &'a Api, context: *mut Context) -> Self {
        let mut threads = 1i64;
        let mut args = NumThreadsArgs {
            struct_size: size_of::<NumThreadsArgs>(),
            extension_start: null_mut(),
            context,
            threads: &raw mut threads,
        };
        // SAFETY: the arguments are as the header says.
        let error = api.num_threads.map(|function| unsafe { function(&raw mut args) });
        let is_known = error.is_some_and(|error| succeeded(api, error));
        let threads = if is_known { usize::try_from(threads).unwrap_or(1) } else { 1 };
        Self { api, context, threads }
    }

    /// Asks for a thread that works on a job. Returns whether one may come.
    fn ask(&self, job: &Arc<Job>) -> bool {
        let Some(schedule) = self.api.schedule else { return false };
        let data = Arc::into_raw(Arc::clone(job));
        let mut args = ScheduleArgs {
            struct_size: size_of::<ScheduleArgs>(),
            extension_start: null_mut(),
            context: self.context,
            task: help,
            data: data.cast_mut().cast::<c_void>(),
        };
        // SAFETY: the arguments are as the header says; the job is counted until `help` has run.
        let error = unsafe { schedule(&raw mut args) };
        let comes = succeeded(self.api, error);
        if !comes {
            // SAFETY: XLA refused the task, so this count of the job is still ours.
            drop(unsafe { Arc::from_raw(data) });
        }
        comes
    }
}

/// Checks that a function of XLA made no error; frees the error.
fn succeeded(api: &Api, error: *mut XlaError) -> bool {
    if error.is_null() {
        return true;
    }
    let mut args = ErrorDestroyArgs {
        struct_size: size_of::<ErrorDestroyArgs>(),
        extension_start: null_mut(),
        error,
    };
    if let Some(destroy) = api.error_destroy {
        // SAFETY: errors that XLA's functions return belong to their caller, who frees them once.
        unsafe { destroy(&raw mut args) };
    }
    false
}

impl Pool for XlaPool<'_> {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let helpers = self.threads.min(count).saturating_sub(1);
        if helpers == 0 {
            return Serial.run(count, task);
        }
        // SAFETY: only the lifetime changes. Threads use the task between `enter` and `leave`, and
        // `Ended` lets none enter and waits for those inside before this function returns.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        let job = Arc::new(Job {
            task,
            count,
            next: AtomicUsize::new(0),
            inside: Mutex::new(Inside { is_over: false, threads: 0 }),
            left: Condvar::new(),
        });
        let _ended = Ended(&job);
        for _ in 0..helpers {
            if !self.ask(&job) {
                break;
            }
        }
        job.work();
    }
}

/// Numbered tasks, each of which the next thread takes.
struct Job {
    task: &'static (dyn Fn(usize) + Sync),
    count: usize,
    next: AtomicUsize,
    inside: Mutex<Inside>,
    left: Condvar,
}

/// The threads of the pool that work on a job.
struct Inside {
    is_over: bool,
    threads: usize,
}

impl Job {
    fn work(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            (self.task)(number);
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a job, also if the thread that began it panics.
struct Ended<'a>(&'a Job);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.inside();
        inside.is_over = true;
        while inside.threads > 0 {
            inside = self.0.left.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Works on a job, if it is not over.
///
/// # Safety
/// `data` must be a counted job, which the call frees.
unsafe extern "C" fn help(data: *mut c_void) {
    // SAFETY: the caller says so.
    let job = unsafe { Arc::from_raw(data.cast::<Job>().cast_const()) };
    {
        let mut inside = job.inside();
        if inside.is_over {
            return;
        }
        inside.threads += 1;
    }
    // Whoever began the job sees that a task did not end.
    let _ = catch_unwind(AssertUnwindSafe(|| job.work()));
    job.inside().threads -= 1;
    job.left.notify_all();
}
