//! How many random cases a test tries, and which.
//!
//! `cargo test` tries few, which take seconds, and `.ci/nightly` many. Two variables say so:
//!
//! - `TILEWRIGHT_RANDOM`: how many times as many cases as usual; 1 unless it is set;
//! - `TILEWRIGHT_SEED`: the number of the first case; 0 unless it is set. CI takes it from the commit, so that
//!   each commit tries other cases, and a run can be repeated.

use std::ops::Range;
use std::sync::Mutex;

/// Returns a variable that is a number, or what it is where it is not set.
#[track_caller]
#[expect(clippy::panic, reason = "a test fails by panicking")]
fn number(variable: &str, unset: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, and no number")),
        Err(_) => unset,
    }
}

/// Returns how many times as many cases as usual are tried.
#[track_caller]
pub fn times() -> u64 {
    number("TILEWRIGHT_RANDOM", 1)
}

/// Returns the number of cases where `usual` are usual.
#[track_caller]
pub fn cases(usual: u32) -> u32 {
    usual.saturating_mul(times().try_into().unwrap_or(u32::MAX))
}

/// Returns the numbers of cases where `usual` are usual.
#[track_caller]
pub fn seeds(usual: u64) -> Range<u64> {
    // Far from those of other commits.
    let first = number("TILEWRIGHT_SEED", 0).wrapping_mul(1_000_003) % (1 << 40);
    first..first + usual.saturating_mul(times())
}

/// Takes its turn among all combinations of a test, by number: each commit tries one of `turns`, so that as many
/// commits try all. With more effort than usual, all are tried.
#[derive(Debug)]
pub struct Turns {
    next: u64,
    turns: u64,
}

impl Turns {
    /// One of so many combinations is tried.
    #[track_caller]
    pub fn of(turns: u64) -> Self {
        Self { next: seeds(1).start, turns: if times() > 1 { 1 } else { turns.max(1) } }
    }

    /// Whether the next combination is tried.
    pub fn is_next(&mut self) -> bool {
        self.next = self.next.wrapping_add(1);
        self.next.is_multiple_of(self.turns)
    }
}

/// Returns how many there are of what grows large, to find what takes longer than it should: fewer than `all`,
/// unless more effort is asked for.
#[track_caller]
pub fn large(all: usize) -> usize {
    if times() > 1 { all } else { all / 5 }
}

/// Calls a function with each seed, on all threads.
pub fn each(seeds: Range<u64>, call: impl Fn(u64) + Sync) {
    let next = Mutex::new(seeds);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.lock().ok().and_then(|mut seeds| seeds.next());
                    let Some(seed) = seed else { return };
                    call(seed);
                }
            });
        }
    });
}
