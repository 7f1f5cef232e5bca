//! What each instruction of a run took.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tilewright_interp::{Observer, Seen};
use tilewright_ir::{InstId, Module};

/// Adds up time and bytes of each instruction: an [`Observer`] for
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

/// What each instruction of a run took, the slowest first. Each ran by itself:
/// without a profile, elementwise ones run together, and take less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Milliseconds of all instructions.
    pub total_ms: f64,
    /// Bytes of all values made.
    pub total_bytes: u64,
    /// How many times an instruction was evaluated.
    pub total_count: u64,
    /// Each instruction that was evaluated.
    pub instructions: Vec<InstructionProfile>,
}

/// What one instruction took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstructionProfile {
    /// Its name.
    pub name: String,
    /// Its op.
    pub opcode: &'static str,
    /// Its result.
    pub shape: String,
    /// How many times it was evaluated.
    pub count: u64,
    /// Milliseconds, without those of instructions that it calls.
    pub ms: f64,
    /// Its part of the time of all, from 0 to 1.
    pub share: f64,
    /// Bytes of all the values that it made.
    pub bytes: u64,
}

impl Profile {
    /// What a profiler saw of a module.
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
