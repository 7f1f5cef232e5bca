//! Limits of an evaluation's resources, checked before use.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tilewright_ir::{Data, ElementType};

use crate::error::{Fault, Outcome};
use crate::value::{map_data, num_bytes, with_data};

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

/// The number of elements computed or read that count as one step.
pub const WORK_PER_STEP: u64 = 512;

/// The most nested calls of computations.
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

/// Counts memory in use, and keeps large arrays after their last use for later ones, because new
/// memory of a process is slow at first.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: Limits,
    live: Cell<u64>,
    /// The most that was live.
    peak: Cell<u64>,
    steps: Cell<u64>,
    spare: RefCell<Vec<Data>>,
}

/// Arrays of fewer bytes are not worth keeping.
const LEAST_SPARE: u64 = 1 << 16;
/// The most spare arrays that are kept.
const MOST_SPARES: usize = 16;

impl Ledger {
    pub(crate) fn new(limits: Limits) -> Rc<Self> {
        Rc::new(Self {
            limits,
            live: Cell::new(0),
            peak: Cell::new(0),
            steps: Cell::new(0),
            spare: RefCell::new(Vec::new()),
        })
    }

    /// Reserves bytes until the charge is dropped.
    pub(crate) fn reserve(self: &Rc<Self>, bytes: u64) -> Outcome<Charge> {
        let (live, limit) = (self.live.get(), self.limits.max_bytes);
        match live.checked_add(bytes) {
            Some(total) if total <= limit => {
                self.live.set(total);
                self.peak.set(self.peak.get().max(total));
                self.keep_within(limit - total);
                Ok(Charge { ledger: Rc::clone(self), bytes })
            }
            _ => Err(Fault::Memory { needed: bytes, live, limit }),
        }
    }

    /// Frees spare arrays until they take at most this many bytes.
    fn keep_within(&self, bytes: u64) {
        let mut spare = self.spare.borrow_mut();
        let total = |spare: &[Data]| spare.iter().map(capacity_bytes).sum::<u64>();
        while !spare.is_empty() && total(&spare) > bytes {
            spare.remove(0);
        }
    }

    /// Takes an array that is no longer needed.
    pub(crate) fn keep(&self, data: Data) {
        let bytes = capacity_bytes(&data);
        if bytes < LEAST_SPARE {
            return;
        }
        let mut spare = self.spare.borrow_mut();
        if spare.len() >= MOST_SPARES {
            spare.remove(0);
        }
        spare.push(data);
        drop(spare);
        self.keep_within(self.limits.max_bytes.saturating_sub(self.live.get()));
    }

    /// Storage with any elements, as many as wanted.
    pub(crate) fn recycled(&self, element_type: ElementType, len: usize) -> Data {
        match self.spare(element_type, len) {
            Some(spare) => map_data!(spare, values => {
                let mut values = values;
                values.resize(len, Default::default());
                values
            }),
            None => Data::zeros(element_type, len),
        }
    }

    /// Storage without elements, with room for as many as wanted.
    pub(crate) fn room(&self, element_type: ElementType, len: usize) -> Data {
        let data = self.spare(element_type, len).unwrap_or(Data::zeros(element_type, 0));
        map_data!(data, values => {
            let mut values = values;
            values.clear();
            values.reserve_exact(len);
            values
        })
    }

    /// Returns a spare array with room for this many elements, and for no more: only these are
    /// charged.
    fn spare(&self, element_type: ElementType, len: usize) -> Option<Data> {
        if num_bytes(element_type, len) < LEAST_SPARE {
            return None;
        }
        let mut spare = self.spare.borrow_mut();
        let fits = |data: &Data| {
            let capacity = with_data!(data, values => values.capacity());
            data.stores(element_type) && capacity == len
        };
        let at = spare.iter().rposition(fits)?;
        Some(spare.swap_remove(at))
    }

    /// Returns the most bytes that were alive at one time.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.get()
    }

    /// Returns the most bytes that may be alive at one time.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.limits.max_bytes
    }

    /// Returns the steps counted so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
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

impl Charge {
    /// The bytes, to be released by another.
    pub(crate) fn take(&mut self) -> Self {
        Self { ledger: Rc::clone(&self.ledger), bytes: std::mem::take(&mut self.bytes) }
    }

    /// Gives the storage that was charged to those to come.
    pub(crate) fn keep(&self, data: Data) {
        self.ledger.keep(data);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.live.set(self.ledger.live.get().saturating_sub(self.bytes));
    }
}

/// Returns the bytes that storage takes.
fn capacity_bytes(data: &Data) -> u64 {
    fn bytes<T>(values: &Vec<T>) -> u64 {
        u64::try_from(values.capacity().saturating_mul(size_of::<T>())).unwrap_or(u64::MAX)
    }
    with_data!(data, values => bytes(values))
}
