//! Counts the sweeps in which a module reads its largest arrays. Reports and the notes of rewrites
//! show this count.

use tilewright_ir::{ArrayShape, CompId, InstId, Module};

use super::ledger::Ledger;
use super::sweeps::{MemorySweeps, Scratch};
use super::unshared_readers::{ReadersView, UnsharedReaders};

/// The number of sweeps in which the entry computation reads its largest arrays: those with more
/// than half as many elements as the largest one. On a target with `shares_sweeps`, each update
/// counts anew; on others, an update follows the edited instructions.
#[derive(Debug)]
pub struct SweepCount {
    now: Count,
    /// The count before the last update, if that update counted anew.
    before: Option<Count>,
}

#[derive(Debug)]
enum Count {
    Shared(usize),
    Unshared(Unshared),
}

/// The readers of the largest arrays, on a target without `shares_sweeps`.
#[derive(Debug, Default)]
struct Unshared {
    entry: Option<CompId>,
    /// The number of elements of the largest array.
    largest: i64,
    readers: UnsharedReaders,
}

impl SweepCount {
    /// Counts the sweeps of the module that the ledger describes.
    pub fn of(ledger: &Ledger<'_>, module: &Module) -> Self {
        Self { now: Count::of(ledger, module), before: None }
    }

    /// Returns the number of sweeps.
    pub fn get(&self) -> usize {
        match &self.now {
            Count::Shared(count) => *count,
            Count::Unshared(unshared) => {
                unshared.entry.map_or(0, |entry| unshared.readers.count(entry))
            }
        }
    }

    /// Follows the last update of the ledger. [`Self::roll_back`] undoes this until [`Self::keep`].
    pub fn update(&mut self, ledger: &Ledger<'_>, module: &Module) {
        self.keep();
        if let Count::Unshared(unshared) = &mut self.now
            && unshared.entry == module.entry()
            && unshared.is_still_largest(ledger.visited(), module)
        {
            let half = unshared.largest / 2;
            let is_large = |id: InstId| elements(module, id) > half;
            let view = ReadersView { module, facts: ledger.facts(), is_large: &is_large };
            unshared.readers.update(ledger.visited(), view);
        } else {
            self.before = Some(std::mem::replace(&mut self.now, Count::of(ledger, module)));
        }
    }

    /// Restores the count before the last update.
    pub fn roll_back(&mut self) {
        match (self.before.take(), &mut self.now) {
            (Some(before), now) => *now = before,
            (None, Count::Unshared(unshared)) => unshared.readers.roll_back(),
            (None, Count::Shared(_)) => {}
        }
    }

    /// Makes the last update permanent.
    pub fn keep(&mut self) {
        self.before = None;
        if let Count::Unshared(unshared) = &mut self.now {
            unshared.readers.keep();
        }
    }
}

impl Count {
    fn of(ledger: &Ledger<'_>, module: &Module) -> Self {
        let model = ledger.model();
        if !model.target.shares_sweeps {
            return Self::Unshared(Unshared::of(ledger, module));
        }
        let Some(entry) = module.entry() else { return Self::Shared(0) };
        let half = largest(module, entry) / 2;
        let (is_large, scratch) =
            (|id: InstId| elements(module, id) > half, &mut Scratch::default());
        let sweeps = MemorySweeps::of((module, entry), &model, ledger.facts(), &is_large, scratch);
        Self::Shared(sweeps.count())
    }
}

impl Unshared {
    fn of(ledger: &Ledger<'_>, module: &Module) -> Self {
        let Some(entry) = module.entry() else { return Self::default() };
        let (largest, mut readers) = (largest(module, entry), UnsharedReaders::default());
        let is_large = |id: InstId| elements(module, id) > largest / 2;
        readers.enter(entry, ReadersView { module, facts: ledger.facts(), is_large: &is_large });
        Self { entry: Some(entry), largest, readers }
    }

    /// Checks whether the largest array still has as many elements as before the instructions in
    /// `edited` were edited. Edits do not change shapes, except those of parameters of loops.
    fn is_still_largest(&self, edited: &[InstId], module: &Module) -> bool {
        let Some(entry) = self.entry else { return false };
        let is_there = |id: InstId| module.instruction(id).parent() == Some(entry);
        let mut is_gone = false;
        for &id in edited {
            let elements = elements(module, id);
            if is_there(id) && elements > self.largest {
                return false;
            }
            is_gone |= !is_there(id) && elements == self.largest;
        }
        !is_gone || largest(module, entry) == self.largest
    }
}

/// Returns the number of elements of the largest array of a computation.
fn largest(module: &Module, computation: CompId) -> i64 {
    module.instructions(computation).map(|id| elements(module, id)).max().unwrap_or(0)
}

fn elements(module: &Module, id: InstId) -> i64 {
    module.array_shape(id).and_then(ArrayShape::num_elements).unwrap_or(0)
}
