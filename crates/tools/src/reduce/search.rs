//! Tries candidates in order and keeps the first that passes.
//!
//! Several candidates are tried side by side, as if the ones before them failed ([`super::race`]).
//! Which of them is kept, and what counts as a run, follow from their order alone.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

use tilewright::ir::{Module, Verified};

use super::options::{Candidate, ReduceOptions, ReduceStep};
use super::race::{Judge, Prepared, Race, RaceOutcome, Slot};
use super::size::ReducedSize;

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// No reduction makes the module smaller.
    Fixpoint,
    /// The most runs were made.
    MaxRuns,
    /// The time was over.
    MaxTime,
    /// The caller asked for it.
    Interrupted,
}

/// The state of a search.
pub(super) struct Search<'a> {
    pub(super) best: Verified,
    pub(super) text: String,
    pub(super) size: ReducedSize,
    /// Whether candidates lose parameters of the entry that they do not use.
    pub(super) drops_unused: bool,
    /// The runs that count: those that a search without threads makes.
    pub(super) runs: u64,
    options: &'a ReduceOptions<'a>,
    judge: Judge<'a>,
    begun: Instant,
    /// For the text of every candidate that was tried, whether it was kept.
    known: HashMap<u64, bool>,
    /// The candidates among them whose runs were counted.
    counted: HashSet<u64>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        best: Verified,
        text: String,
        options: &'a ReduceOptions<'a>,
        keep: &'a (dyn Fn(&Candidate<'_>) -> bool + Sync),
    ) -> Self {
        Self {
            size: ReducedSize::of(&best, &text),
            best,
            text,
            drops_unused: false,
            runs: 0,
            options,
            judge: Judge { keep, stop: options.stop, print: options.print },
            begun: Instant::now(),
            known: HashMap::new(),
            counted: HashSet::new(),
        }
    }

    /// Checks whether the module as it is passes.
    pub(super) fn holds(&mut self) -> Result<bool, Ended> {
        self.check_limits()?;
        self.runs = self.runs.saturating_add(1);
        let holds = self.judge.passes(&self.best, &self.text);
        if self.judge.is_stopped() {
            return Err(Ended::Interrupted);
        }
        let key = key(&self.text);
        self.known.insert(key, holds);
        self.counted.insert(key);
        Ok(holds)
    }

    /// Checks whether a candidate that is not smaller passes, without keeping it.
    pub(super) fn passes(&mut self, module: Option<Module>) -> Result<bool, Ended> {
        self.check_limits()?;
        let Some(prepared) = module.and_then(|module| self.judge.prepared(module)) else {
            return Ok(false);
        };
        self.runs = self.runs.saturating_add(1);
        let passes = self.judge.passes(&prepared.module, &prepared.text);
        if self.judge.is_stopped() { Err(Ended::Interrupted) } else { Ok(passes) }
    }

    /// Keeps the first of `count` candidates that is smaller and passes, and returns its number.
    /// `make` writes a candidate, if it can.
    pub(super) fn first(
        &mut self,
        by: &'static str,
        count: usize,
        make: &(dyn Fn(&Module, usize) -> Option<Module> + Sync),
    ) -> Result<Option<usize>, Ended> {
        self.first_of(by, count, make, false)
    }

    /// Like [`Self::first`], but candidates may also be larger.
    pub(super) fn first_of_any_size(
        &mut self,
        by: &'static str,
        count: usize,
        make: &(dyn Fn(&Module, usize) -> Option<Module> + Sync),
    ) -> Result<Option<usize>, Ended> {
        self.first_of(by, count, make, true)
    }

    fn first_of(
        &mut self,
        by: &'static str,
        count: usize,
        make: &(dyn Fn(&Module, usize) -> Option<Module> + Sync),
        may_grow: bool,
    ) -> Result<Option<usize>, Ended> {
        self.check_limits()?;
        let left = self.options.max_runs.map(|most| most.saturating_sub(self.runs));
        let race = Race {
            judge: self.judge,
            best: &self.best,
            below: (!may_grow).then_some(self.size),
            count,
            make,
            known: &self.known,
            counted: &self.counted,
            most: left.unwrap_or(u64::MAX),
            deadline: self.options.max_time.and_then(|most| self.begun.checked_add(most)),
        };
        let RaceOutcome { slots, results, ended } = race.run(self.options.jobs);
        if self.judge.is_stopped() {
            return Err(Ended::Interrupted);
        }
        self.known.extend(results);
        for (number, slot) in slots {
            let (key, winner) = match slot {
                Slot::Skipped => continue,
                Slot::Tried(key) => (key, None),
                Slot::Passed(prepared) => (prepared.key, Some(*prepared)),
            };
            if !self.known.contains_key(&key) {
                break;
            }
            // Runs that an earlier race made in advance do not count before they are needed.
            if self.counted.insert(key) {
                self.runs = self.runs.saturating_add(1);
            }
            if let Some(winner) = winner {
                self.accept(by, winner);
                return Ok(Some(number));
            }
        }
        ended.map_or(Ok(None), Err)
    }

    /// Removes sets of items, the largest sets first, until no single item can be removed.
    /// `items` lists them in order, `without` writes the candidate without some of them.
    pub(super) fn sweep<T: Sync>(
        &mut self,
        by: &'static str,
        items: &dyn Fn(&Module) -> Vec<T>,
        without: &(dyn Fn(&Module, &[T]) -> Option<Module> + Sync),
    ) -> Result<bool, Ended> {
        let mut any = false;
        let mut size = items(&self.best).len();
        while size > 0 {
            // The number of items at the end that were not tried at this size.
            let mut left = usize::MAX;
            loop {
                let all = items(&self.best);
                let begin = all.len().saturating_sub(left);
                let chunks: Vec<&[T]> = all.get(begin..).unwrap_or_default().chunks(size).collect();
                let make = |module: &Module, number: usize| without(module, chunks.get(number)?);
                let Some(number) = self.first(by, chunks.len(), &make)? else { break };
                any = true;
                let tried = number.saturating_add(1).saturating_mul(size);
                left = all.len().saturating_sub(begin).saturating_sub(tried);
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
            size = size.min(items(&self.best).len());
        }
        Ok(any)
    }

    fn accept(&mut self, by: &'static str, winner: Prepared) {
        (self.best, self.text, self.size) = (winner.module, winner.text, winner.size);
        if let Some(progress) = self.options.progress {
            progress(&ReduceStep {
                module: &self.best,
                text: &self.text,
                size: self.size,
                runs: self.runs,
                by,
            });
        }
    }

    fn check_limits(&self) -> Result<(), Ended> {
        if self.judge.is_stopped() {
            return Err(Ended::Interrupted);
        }
        if self.options.max_time.is_some_and(|most| self.begun.elapsed() >= most) {
            return Err(Ended::MaxTime);
        }
        match self.options.max_runs {
            Some(most) if self.runs >= most => Err(Ended::MaxRuns),
            Some(_) | None => Ok(()),
        }
    }
}

pub(super) fn key(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
