//! Bounds on what an evaluation may use, checked before it is used.

use std::cell::Cell;
use std::rc::Rc;

use crate::error::{Fault, Outcome};

/// Bounds on an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most steps. An instruction evaluated is one step, and one more for
    /// every [`WORK_PER_STEP`] elements that it computes or reads, so that a
    /// step takes about as long everywhere (some tenths of a microsecond).
    pub max_steps: u64,
    /// The most bytes of values alive at one time, inputs and constants
    /// included.
    pub max_bytes: u64,
}

/// How many elements computed or read count as one step.
pub const WORK_PER_STEP: u64 = 512;

/// How deeply computations may call each other.
pub(crate) const MAX_DEPTH: usize = 256;

impl Limits {
    /// No bounds.
    pub const NONE: Self = Self { max_steps: u64::MAX, max_bytes: u64::MAX };
}

impl Default for Limits {
    /// 200 million steps (about a minute) and 4 GiB.
    fn default() -> Self {
        Self { max_steps: 200_000_000, max_bytes: 4 << 30 }
    }
}

/// Counts what is in use.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: Limits,
    live: Cell<u64>,
    steps: Cell<u64>,
}

impl Ledger {
    pub(crate) fn new(limits: Limits) -> Rc<Self> {
        Rc::new(Self { limits, live: Cell::new(0), steps: Cell::new(0) })
    }

    /// Reserves bytes until the charge is dropped.
    pub(crate) fn reserve(self: &Rc<Self>, bytes: u64) -> Outcome<Charge> {
        let (live, limit) = (self.live.get(), self.limits.max_bytes);
        match live.checked_add(bytes) {
            Some(total) if total <= limit => {
                self.live.set(total);
                Ok(Charge { ledger: Rc::clone(self), bytes })
            }
            _ => Err(Fault::Memory { needed: bytes, live, limit }),
        }
    }

    /// Counts one step and the steps for `work` elements.
    pub(crate) fn spend(&self, work: u64) -> Outcome<()> {
        let steps = self.steps.get().saturating_add(1).saturating_add(work / WORK_PER_STEP);
        let limit = self.limits.max_steps;
        if steps > limit {
            return Err(Fault::Steps { limit });
        }
        self.steps.set(steps);
        Ok(())
    }
}

/// Bytes reserved in a [`Ledger`].
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Rc<Ledger>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.live.set(self.ledger.live.get().saturating_sub(self.bytes));
    }
}
