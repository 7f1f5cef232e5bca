//! The time and memory of each instruction of a run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tilewright_interp::{Observer, Seen};
use tilewright_ir::{InstId, Module};

use crate::report::meaning;

/// Sums the time and bytes of each instruction: an [`Observer`] for
/// [`RunOptions`](crate::RunOptions).
#[derive(Debug, Default)]
pub struct Profiler {
    seen: Mutex<HashMap<InstId, Sum>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    time: Duration,
    bytes: u64,
}

impl Observer for Profiler {
    fn evaluated(&self, seen: &Seen<'_>) {
        let mut sums = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.entry(seen.id()).or_default();
        sum.count = sum.count.saturating_add(1);
        sum.time = sum.time.saturating_add(seen.own());
        sum.bytes = sum.bytes.saturating_add(seen.bytes());
    }
}

/// The time and bytes of each instruction of a run, the slowest first. Each instruction ran by
/// itself; without a profile, elementwise instructions run fused and take less time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Milliseconds of all instructions.
    pub total_ms: f64,
    /// Bytes of all computed values.
    pub total_bytes: u64,
    /// Number of evaluations of instructions.
    pub total_count: u64,
    /// Each instruction that was evaluated.
    pub instructions: Vec<InstructionProfile>,
}

/// The time and bytes of one instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstructionProfile {
    /// Its name.
    pub name: String,
    /// Its op.
    pub opcode: &'static str,
    /// The shape of its result.
    pub shape: String,
    /// Its effect in words, if it only moves or renames elements; `null` for other ops.
    pub meaning: Option<String>,
    /// Number of evaluations.
    pub count: u64,
    /// Milliseconds, without those of instructions in computations that it calls.
    pub ms: f64,
    /// Its fraction of the total time, from 0 to 1.
    pub share: f64,
    /// Bytes of all values that it computed.
    pub bytes: u64,
}

impl Profile {
    /// The profile of a module's run.
    pub fn new(module: &Module, profiler: &Profiler) -> Self {
        let sums = profiler.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums: Vec<(InstId, Sum)> = sums.iter().map(|(&id, &sum)| (id, sum)).collect();
        sums.sort_by(|(a, of_a), (b, of_b)| {
            of_b.time.cmp(&of_a.time).then(of_b.bytes.cmp(&of_a.bytes)).then(a.cmp(b))
        });
        let total = sums.iter().fold(Duration::ZERO, |all, (_, sum)| all.saturating_add(sum.time));
        let added =
            |of: fn(&Sum) -> u64| sums.iter().map(|(_, s)| of(s)).fold(0, u64::saturating_add);
        let instructions =
            sums.iter().map(|&(id, Sum { count, time, bytes })| InstructionProfile {
                name: module.name_of(id).to_owned(),
                opcode: module.opcode(id).name(),
                shape: format!("{:#}", module.shape(id)),
                meaning: meaning(module, id),
                count,
                ms: time.as_secs_f64() * 1e3,
                share: if total.is_zero() { 0.0 } else { time.as_secs_f64() / total.as_secs_f64() },
                bytes,
            });
        Self {
            total_ms: total.as_secs_f64() * 1e3,
            total_bytes: added(|sum| sum.bytes),
            total_count: added(|sum| sum.count),
            instructions: instructions.collect(),
        }
    }
}
