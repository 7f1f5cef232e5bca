//! Observes an evaluation while it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilewright_ir::entity::Entity as _;
use tilewright_ir::{InstId, Literal};

use crate::error::{Fault, Outcome};
use crate::value::{Value, num_bytes};

/// An observer of every instruction that is evaluated on one device. It sees the instructions
/// of called computations before their caller, and those of loops once for every turn. It does
/// not see the computation that a reduction or a sort applies to elements.
///
/// With an observer, elementwise instructions run one by one, which is slower and computes the
/// same.
pub trait Observer: Sync {
    /// An instruction has been evaluated.
    fn evaluated(&self, seen: &Seen<'_>);
}

/// An instruction that has been evaluated.
#[derive(Debug)]
pub struct Seen<'a> {
    id: InstId,
    elapsed: Duration,
    own: Duration,
    value: &'a Value,
}

impl Seen<'_> {
    /// Returns the instruction.
    pub fn id(&self) -> InstId {
        self.id
    }

    /// Returns the time of the instruction, including called computations and their
    /// observation.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the time of the instruction itself, without the instructions that it called.
    pub fn own(&self) -> Duration {
        self.own
    }

    /// Returns the bytes of its value.
    pub fn bytes(&self) -> u64 {
        bytes(self.value)
    }

    /// Its value, copied.
    pub fn literal(&self) -> Option<Literal> {
        self.value.clone().into_literal().ok()
    }
}

fn bytes(value: &Value) -> u64 {
    match value {
        Value::Array(array) => num_bytes(array.element_type(), array.len()),
        Value::Tuple(elements) => elements.iter().map(bytes).fold(0, u64::saturating_add),
        Value::Token => 0,
    }
}

/// Counts how often conditionals take each of their branches, on all devices. It costs next to nothing.
#[derive(Debug, Default)]
pub struct BranchCounts {
    taken: Mutex<BTreeMap<(InstId, usize), u64>>,
}

impl BranchCounts {
    /// Counts of zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how often a conditional has taken the branch with this number.
    pub fn of(&self, conditional: InstId, branch: usize) -> u64 {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.get(&(conditional, branch)).copied().unwrap_or(0)
    }

    fn add(&self, conditional: InstId, branch: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry((conditional, branch)).or_default();
        *count = count.saturating_add(1);
    }
}

/// The progress of an evaluation, which another thread may read at any time, and which lets it
/// cancel the evaluation. Keeping it costs next to nothing.
#[derive(Debug, Default)]
pub struct Progress {
    steps: AtomicU64,
    /// The index of the instruction and 1; 0 before the first.
    at: AtomicU64,
    cancelled: Arc<AtomicBool>,
}

impl Progress {
    /// Progress of zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many of the steps that [`Limits`](crate::Limits) bound are done.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the instruction that is being evaluated.
    pub fn instruction(&self) -> Option<InstId> {
        let at = self.at.load(Ordering::Relaxed).checked_sub(1)?;
        usize::try_from(at).ok().map(InstId::from_index)
    }

    /// Lets every evaluation with this progress fail before its next instruction, as
    /// [`EvalError::Cancelled`](crate::EvalError::Cancelled). An instruction that has begun ends
    /// first.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Checks whether [`Progress::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the flag that [`Progress::cancel`] sets, for work before the evaluation that is
    /// cancelled by a flag, such as lowering.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    fn reach(&self, id: Option<InstId>, steps: u64) {
        let at = id.and_then(|id| u64::try_from(id.index()).ok());
        self.at.store(at.map_or(0, |at| at.saturating_add(1)), Ordering::Relaxed);
        self.steps.store(steps, Ordering::Relaxed);
    }
}

/// The observers of an evaluation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Watch<'m> {
    pub(crate) observer: Option<&'m dyn Observer>,
    pub(crate) progress: Option<&'m Progress>,
    pub(crate) branches: Option<&'m BranchCounts>,
    /// The progress that tells whether the evaluation is cancelled, on every device.
    pub(crate) cancel: Option<&'m Progress>,
    /// The time that computations called by the current instruction have taken so far.
    pub(crate) nested: Duration,
}

/// The beginning of an instruction.
pub(crate) struct Begun {
    at: Instant,
    /// The time of the caller's other instructions.
    before: Duration,
}

impl<'m> Watch<'m> {
    /// Returns the watch of a device that nobody observes: it only sees whether it is cancelled, and counts
    /// branches.
    pub(crate) fn unwatched(&self) -> Self {
        Self { cancel: self.cancel, branches: self.branches, ..Self::default() }
    }

    /// Records that a conditional takes a branch.
    pub(crate) fn takes(&self, conditional: InstId, branch: usize) {
        if let Some(branches) = self.branches {
            branches.add(conditional, branch);
        }
    }

    /// Fails if another thread cancelled the evaluation.
    pub(crate) fn check(&self) -> Outcome<()> {
        if self.cancel.is_some_and(Progress::is_cancelled) {
            return Err(Fault::Cancelled);
        }
        Ok(())
    }
    /// Records the beginning of an instruction. The clock is read only if there is an observer.
    pub(crate) fn begin(&mut self, id: Option<InstId>, steps: u64) -> Option<Begun> {
        if let Some(progress) = self.progress {
            progress.reach(id, steps);
        }
        self.observer?;
        Some(Begun { at: Instant::now(), before: std::mem::take(&mut self.nested) })
    }

    /// An instruction has ended.
    pub(crate) fn end(&mut self, begun: &Begun, id: InstId, value: &Value) {
        let elapsed = begun.at.elapsed();
        let own = elapsed.saturating_sub(self.nested);
        if let Some(observer) = self.observer {
            observer.evaluated(&Seen { id, elapsed, own, value });
        }
        // To look takes time, too, which is not the caller's.
        self.nested = begun.before.saturating_add(begun.at.elapsed());
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observed = self.observer.is_some();
        f.debug_struct("Watch").field("observed", &observed).finish_non_exhaustive()
    }
}
