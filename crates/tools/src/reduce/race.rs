//! Candidates that are tried side by side, as if the ones before them failed.
//!
//! Threads take the numbers of candidates in order and write them side by side. Then each waits for
//! its turn to *claim* a run: claims are in order, too, so that no text is run twice and no more
//! runs are made than the limit allows. Runs of candidates after one that passes are broken off.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tilewright::PrintOptions;
use tilewright::ir::{Module, Verified, verify};

use super::options::{Candidate, Demand};
use super::search::Ended;
use super::size::ReducedSize;

/// A candidate that can be tried.
pub(super) struct Prepared {
    pub(super) module: Verified,
    pub(super) text: String,
    pub(super) size: ReducedSize,
    pub(super) key: u64,
}

/// What makes a candidate of a module and judges it, on any thread.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) keep: &'a (dyn Fn(&Candidate<'_>) -> bool + Sync),
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) print: PrintOptions,
}

impl Judge<'_> {
    pub(super) fn prepared(self, module: Module) -> Option<Prepared> {
        let module = verify(module).ok()?;
        let text = tilewright::print(&module, &self.print).ok()?;
        let size = ReducedSize::of(&module, &text);
        Some(Prepared { size, key: super::search::key(&text), module, text })
    }

    /// Judges a candidate that no other one competes with.
    pub(super) fn passes(self, module: &Verified, text: &str) -> bool {
        let wanted = Demand { stop: self.stop, race: None };
        !self.is_stopped() && (self.keep)(&Candidate { module, text, wanted })
    }

    pub(super) fn is_stopped(self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// What a race leaves of a candidate.
pub(super) enum Slot {
    /// It could not be written, or is not smaller.
    Skipped,
    /// It has this key.
    Tried(u64),
    /// It passes.
    Passed(Box<Prepared>),
}

/// What a race found.
#[derive(Default)]
pub(super) struct RaceOutcome {
    /// The candidates by their numbers: all up to the first that passes, if nothing ended the race.
    pub(super) slots: BTreeMap<usize, Slot>,
    /// For the keys of candidates that were run, whether they pass.
    pub(super) results: HashMap<u64, bool>,
    /// Why no more runs were made.
    pub(super) ended: Option<Ended>,
}

/// What threads share.
#[derive(Default)]
struct RaceState {
    found: RaceOutcome,
    /// The number that the next thread takes.
    next: usize,
    /// The number whose turn it is to claim a run.
    turn: usize,
    /// The keys whose runs were claimed.
    claimed: HashSet<u64>,
    /// Whether a thread panicked, so that its turn does not come.
    is_broken: bool,
}

/// Candidates, and what is known before they are tried.
pub(super) struct Race<'a> {
    pub(super) judge: Judge<'a>,
    pub(super) best: &'a Module,
    /// Candidates must be smaller than this, if there is a limit.
    pub(super) below: Option<ReducedSize>,
    pub(super) count: usize,
    pub(super) make: &'a (dyn Fn(&Module, usize) -> Option<Module> + Sync),
    /// Candidates that were tried before, and whether they pass.
    pub(super) known: &'a HashMap<u64, bool>,
    /// Those among them that cost no run any more.
    pub(super) counted: &'a HashSet<u64>,
    /// The most runs.
    pub(super) most: u64,
    /// The time after which no more runs are made.
    pub(super) deadline: Option<Instant>,
}

impl Race<'_> {
    /// Tries candidates on several threads until the first that passes is known.
    pub(super) fn run(&self, jobs: usize) -> RaceOutcome {
        let runner = Runner {
            race: self,
            state: Mutex::default(),
            turned: Condvar::new(),
            first: AtomicUsize::new(usize::MAX),
        };
        let others = jobs.min(self.count).saturating_sub(1);
        std::thread::scope(|scope| {
            for _ in 0..others {
                scope.spawn(|| runner.work());
            }
            runner.work();
        });
        runner.state.into_inner().unwrap_or_else(PoisonError::into_inner).found
    }
}

struct Runner<'a> {
    race: &'a Race<'a>,
    state: Mutex<RaceState>,
    /// Is told when a turn ends.
    turned: Condvar,
    /// The least number of a candidate that passes.
    first: AtomicUsize,
}

impl Runner<'_> {
    fn work(&self) {
        let _guard = Guard(self);
        while let Some(number) = self.take() {
            let made = (self.race.make)(self.race.best, number);
            let made = made.and_then(|module| self.race.judge.prepared(module));
            let smaller = |made: &Prepared| self.race.below.is_none_or(|size| made.size < size);
            let Some(prepared) = self.claim(number, made.filter(smaller)) else { continue };
            let wanted = Demand { stop: self.race.judge.stop, race: Some((&self.first, number)) };
            let Prepared { module, text, .. } = &prepared;
            let passes = (self.race.judge.keep)(&Candidate { module, text, wanted });
            // A run that was broken off says nothing.
            if wanted.holds() {
                let mut state = self.lock();
                state.found.results.insert(prepared.key, passes);
                if passes {
                    self.pass(&mut state, number, prepared);
                }
            }
        }
    }

    /// Takes the number of the next candidate.
    fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        if self.race.judge.is_stopped() {
            state.found.ended = Some(Ended::Interrupted);
        }
        if self.race.deadline.is_some_and(|end| Instant::now() >= end) {
            state.found.ended.get_or_insert(Ended::MaxTime);
        }
        let number = state.next;
        let is_over = state.is_broken || state.found.ended.is_some();
        if is_over || number >= self.race.count || number > self.first.load(Ordering::Relaxed) {
            return None;
        }
        state.next = number.saturating_add(1);
        Some(number)
    }

    /// Waits for the turn of a candidate, and returns it if it must be run.
    fn claim(&self, number: usize, made: Option<Prepared>) -> Option<Prepared> {
        let waits = |state: &mut RaceState| state.turn != number && !state.is_broken;
        let state = self.turned.wait_while(self.lock(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.turn = number.saturating_add(1);
        self.turned.notify_all();
        let Some(prepared) = made else {
            state.found.slots.insert(number, Slot::Skipped);
            return None;
        };
        let key = prepared.key;
        state.found.slots.insert(number, Slot::Tried(key));
        if number > self.first.load(Ordering::Relaxed) || state.found.ended.is_some() {
            return None;
        }
        if !self.race.counted.contains(&key) {
            let runs = u64::try_from(state.claimed.len()).unwrap_or(u64::MAX);
            if state.claimed.contains(&key) {
                // A candidate before this one has the same text.
                return None;
            }
            if runs >= self.race.most {
                state.found.ended = Some(Ended::MaxRuns);
                return None;
            }
            state.claimed.insert(key);
        }
        match self.race.known.get(&key) {
            None => Some(prepared),
            Some(false) => None,
            Some(true) => {
                self.pass(&mut state, number, prepared);
                None
            }
        }
    }

    fn pass(&self, state: &mut RaceState, number: usize, prepared: Prepared) {
        self.first.fetch_min(number, Ordering::Relaxed);
        state.found.slots.insert(number, Slot::Passed(Box::new(prepared)));
    }

    fn lock(&self) -> MutexGuard<'_, RaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the race of all threads when one panics: its turn would never come.
struct Guard<'a>(&'a Runner<'a>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_broken = true;
            self.0.turned.notify_all();
        }
    }
}
