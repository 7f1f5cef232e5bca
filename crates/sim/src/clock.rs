//! What things take.
//!
//! Between two waits for memory, each unit of the core works off its own list:
//! loads, stores, arithmetic, functions such as roots, moves across lanes. What
//! lies between takes as long as the longest of these lists: the core is taken
//! to be kept busy by a good schedule. Copies run beside it, one after the other
//! at the rate of main memory, each after its latency.

use tilewright_target::Target;

/// What a kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// From start to end.
    pub cycles: f64,
    /// Bytes copied from main memory.
    pub hbm_read_bytes: u64,
    /// Bytes copied to main memory.
    pub hbm_write_bytes: u64,
    /// Bytes of main memory for what lies between.
    pub workspace_bytes: u64,
    /// Bytes of vector memory.
    pub vmem_peak_bytes: u64,
    /// Vectors loaded, stored and computed.
    pub vector_ops: u64,
    /// Vectors of which elements were moved to other places.
    pub realign_ops: u64,
}

impl Counters {
    /// What two kernels take, one after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            cycles: self.cycles + next.cycles,
            hbm_read_bytes: self.hbm_read_bytes.saturating_add(next.hbm_read_bytes),
            hbm_write_bytes: self.hbm_write_bytes.saturating_add(next.hbm_write_bytes),
            workspace_bytes: self.workspace_bytes.max(next.workspace_bytes),
            vmem_peak_bytes: self.vmem_peak_bytes.max(next.vmem_peak_bytes),
            vector_ops: self.vector_ops.saturating_add(next.vector_ops),
            realign_ops: self.realign_ops.saturating_add(next.realign_ops),
        }
    }
}

/// Which part of the machine was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The core.
    Core,
    /// The copies between main memory and vector memory.
    Copies,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What was busy.
    pub lane: Lane,
    /// The line of the kernel's text that began it.
    pub line: usize,
    /// From which cycle.
    pub from: f64,
    /// To which.
    pub to: f64,
}

/// The units of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Load,
    Store,
    Arithmetic,
    Function,
    Lanes,
}

const UNITS: usize = 5;

/// The time, and what was done.
#[derive(Debug)]
pub(crate) struct Clock<'a> {
    pub(crate) target: &'a Target,
    pub(crate) counters: Counters,
    pub(crate) events: Vec<Event>,
    now: f64,
    /// What each unit has still to do.
    busy: [f64; UNITS],
    /// When main memory is free again.
    memory_free: f64,
}

/// The most events that are kept.
const MOST_EVENTS: usize = 100_000;

impl<'a> Clock<'a> {
    pub(crate) fn new(target: &'a Target) -> Self {
        Self {
            target,
            counters: Counters::default(),
            events: Vec::new(),
            now: 0.0,
            busy: [0.0; UNITS],
            memory_free: 0.0,
        }
    }

    /// Work for a unit: vectors, each of which takes some cycles.
    pub(crate) fn work(&mut self, unit: Unit, vectors: u64, cycles: f64) {
        self.counters.vector_ops = self.counters.vector_ops.saturating_add(vectors);
        self.busy[unit as usize] += as_f64(vectors) * cycles;
    }

    /// Vectors of which elements move.
    pub(crate) fn realigned(&mut self, vectors: u64) {
        self.counters.realign_ops = self.counters.realign_ops.saturating_add(vectors);
    }

    /// The core works off its lists.
    pub(crate) fn settle(&mut self, line: usize) {
        let longest = self.busy.iter().copied().fold(0.0, f64::max);
        if longest > 0.0 {
            self.event(Lane::Core, line, self.now, self.now + longest);
        }
        self.now += longest;
        self.busy = [0.0; UNITS];
        self.counters.cycles = self.now;
    }

    /// Starts a copy of so many bytes; gives when it is done.
    pub(crate) fn copy(&mut self, bytes: u64, line: usize) -> f64 {
        self.settle(line);
        let from = self.now.max(self.memory_free);
        self.memory_free = from + as_f64(bytes) / self.target.hbm_bytes_per_cycle;
        let done = self.memory_free + self.target.hbm_latency_cycles;
        self.event(Lane::Copies, line, from, done);
        done
    }

    /// The core waits.
    pub(crate) fn wait(&mut self, until: f64, line: usize) {
        self.settle(line);
        self.now = self.now.max(until);
        self.counters.cycles = self.now;
    }

    fn event(&mut self, lane: Lane, line: usize, from: f64, to: f64) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(Event { lane, line, from, to });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "cycles are a model")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
