//! The time that a kernel takes.
//!
//! Between two waits for memory, each unit of the core works through its own list: loads,
//! stores, arithmetic, functions such as roots, moves across lanes. This takes as long as the
//! longest list, because a good schedule is assumed to keep the core busy. Copies run in
//! parallel, one after another at the bandwidth of main memory, each after its latency.

use tilewright_target::Target;

/// The measurements of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Cycles from start to end.
    pub cycles: f64,
    /// Bytes copied from main memory.
    pub hbm_read_bytes: u64,
    /// Bytes copied to main memory.
    pub hbm_write_bytes: u64,
    /// Bytes of main memory for intermediate arrays.
    pub workspace_bytes: u64,
    /// Bytes of vector memory.
    pub vmem_peak_bytes: u64,
    /// Vectors loaded, stored and computed.
    pub vector_ops: u64,
    /// Vectors whose elements were moved to other positions.
    pub realign_ops: u64,
}

impl Counters {
    /// The counters of two kernels that run one after another.
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

/// The part of the machine that is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The core.
    Core,
    /// The copies between main memory and vector memory.
    Copies,
}

/// A busy period.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The busy part.
    pub lane: Lane,
    /// The line of the kernel's text that started it.
    pub line: usize,
    /// The first cycle.
    pub from: f64,
    /// The cycle after the last.
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

/// The time, and the counters.
#[derive(Debug)]
pub(crate) struct Clock<'a> {
    pub(crate) target: &'a Target,
    pub(crate) counters: Counters,
    pub(crate) events: Vec<Event>,
    now: f64,
    /// For each unit, the cycles of work in its list.
    busy: [f64; UNITS],
    /// The cycle in which main memory becomes free.
    memory_free: f64,
}

/// The maximum number of events that are kept.
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

    /// Adds work to a unit's list: a number of vectors with cycles for each.
    pub(crate) fn work(&mut self, unit: Unit, vectors: u64, cycles: f64) {
        self.counters.vector_ops = self.counters.vector_ops.saturating_add(vectors);
        self.busy[unit as usize] += as_f64(vectors) * cycles;
    }

    /// Counts vectors whose elements move.
    pub(crate) fn realigned(&mut self, vectors: u64) {
        self.counters.realign_ops = self.counters.realign_ops.saturating_add(vectors);
    }

    /// Advances the time until the core has finished its lists.
    pub(crate) fn settle(&mut self, line: usize) {
        let longest = self.busy.iter().copied().fold(0.0, f64::max);
        if longest > 0.0 {
            self.event(Lane::Core, line, self.now, self.now + longest);
        }
        self.now += longest;
        self.busy = [0.0; UNITS];
        self.counters.cycles = self.now;
    }

    /// Starts a copy of this many bytes; returns the cycle in which it is done.
    pub(crate) fn copy(&mut self, bytes: u64, line: usize) -> f64 {
        self.settle(line);
        let from = self.now.max(self.memory_free);
        self.memory_free = from + as_f64(bytes) / self.target.hbm_bytes_per_cycle;
        let done = self.memory_free + self.target.hbm_latency_cycles;
        self.event(Lane::Copies, line, from, done);
        done
    }

    /// Makes the core wait.
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
