//! Long work: without the GIL, on a thread of its own, with an ear for signals such as Ctrl-C.

use std::any::Any;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{ExceptionKind, plain};

/// How long a signal may wait to be heard.
const INTERVAL: Duration = Duration::from_millis(20);

/// The stack of the thread, as large as that of a program's first thread.
const STACK: usize = 8 << 20;

/// Runs `work` on another thread. On a signal whose handler raises, such as Ctrl-C, calls `stop`,
/// waits until the work has ended, and returns the exception.
///
/// # Errors
/// The exception of a signal handler; `TilewrightError` if the work panicked, which is a bug.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (send, mut receive) = channel();
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            // The receiver lives until this thread has ended.
            let _ = send.send(work());
        });
        let worker = worker.map_err(|error| {
            plain(ExceptionKind::Other, format!("no thread for the work: {error}"))
        })?;
        let mut signal = None;
        loop {
            let received;
            (received, receive) = py.detach(move || (receive.recv_timeout(INTERVAL), receive));
            match received {
                Ok(done) => return signal.map_or(Ok(done), Err),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(raised) = py.check_signals() {
                        stop();
                        signal.get_or_insert(raised);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = py.detach(move || worker.join());
                    return Err(signal.unwrap_or_else(|| panicked(ended)));
                }
            }
        }
    })
}

fn panicked(ended: Result<(), Box<dyn Any + Send>>) -> PyErr {
    let panic = ended.err();
    let what = panic.as_ref().and_then(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
    });
    let what = what.unwrap_or("without a message");
    plain(ExceptionKind::Other, format!("the library panicked, which is a bug in it: {what}"))
}
