//! Names of instructions, and generation of unique names.

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use crate::entity::{InstId, SecondaryMap};
use crate::module::Module;

/// The names of a module's instructions.
///
/// Text requires names that are unique within a computation; generated names are unique in the
/// whole module, as in XLA. The set of used names is built only when the first new name is
/// needed or a trial begins, so that reading a module does not pay for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    of: SecondaryMap<InstId, SmolStr>,
    taken: Option<FxHashSet<SmolStr>>,
    /// Whether every name given since the names were last verified was new to the module.
    are_verified: bool,
    /// The next number to try after each stem.
    next: FxHashMap<SmolStr, u64>,
    record: Option<Record>,
}

/// Changes of the names since the record began.
#[derive(Clone, Debug, Default)]
struct Record {
    /// The old names of renamed instructions, newest last.
    renamed: Vec<(InstId, SmolStr)>,
    /// Names that were free.
    free: Vec<SmolStr>,
    /// The old next number of each stem.
    next: FxHashMap<SmolStr, Option<u64>>,
}

impl Names {
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.of.reserve(additional);
    }

    pub(crate) fn get(&self, id: InstId) -> &str {
        &self.of[id]
    }

    pub(crate) fn set(&mut self, id: InstId, name: SmolStr) {
        let is_new = self.taken.as_mut().is_some_and(|taken| taken.insert(name.clone()));
        self.are_verified &= is_new;
        if let Some(record) = &mut self.record {
            record.renamed.push((id, self.of[id].clone()));
            if is_new {
                record.free.push(name.clone());
            }
        }
        self.of.set(id, name);
    }

    /// Checks whether the names are unique in their computations because they were when the module
    /// was last verified.
    pub(crate) fn are_verified(&self) -> bool {
        self.are_verified
    }

    /// Notes that the names are unique in their computations.
    pub(crate) fn set_verified(&mut self) {
        self.are_verified = true;
    }

    /// Begins a record for [`Self::roll_back`]. From now on the set of used names is maintained.
    pub(crate) fn begin_record(&mut self, all: impl Iterator<Item = InstId>) {
        tracked(&mut self.taken, &self.of, all);
        self.record = Some(Record::default());
    }

    /// Ends the record and keeps all changes.
    pub(crate) fn end_record(&mut self) {
        self.record = None;
    }

    /// Ends the record and restores the state in which it began.
    pub(crate) fn roll_back(&mut self) {
        let Some(record) = self.record.take() else { return };
        for (id, name) in record.renamed.into_iter().rev() {
            self.of.set(id, name);
        }
        for name in record.free {
            if let Some(taken) = &mut self.taken {
                taken.remove(&name);
            }
        }
        for (stem, number) in record.next {
            match number {
                Some(number) => self.next.insert(stem, number),
                None => self.next.remove(&stem),
            };
        }
    }

    /// Returns a name that no instruction of the module has: `wanted` itself if it is free,
    /// otherwise its stem, a dot and the first free number.
    pub(crate) fn fresh(&mut self, wanted: &str, all: impl Iterator<Item = InstId>) -> SmolStr {
        let taken = tracked(&mut self.taken, &self.of, all);
        if !wanted.is_empty() && !taken.contains(wanted) {
            return wanted.into();
        }
        let stem = stem(wanted);
        if let Some(record) = &mut self.record {
            let before = || self.next.get(stem).copied();
            record.next.entry(stem.into()).or_insert_with(before);
        }
        let next = self.next.entry(stem.into()).or_insert(1);
        loop {
            let name = SmolStr::from(format!("{stem}.{next}"));
            *next += 1;
            if !taken.contains(&name) {
                return name;
            }
        }
    }
}

impl Module {
    /// Returns a name that no instruction of the module has: `wanted` itself, or its stem with
    /// a number.
    pub fn fresh_name(&mut self, wanted: &str) -> SmolStr {
        self.names.fresh(wanted, self.instructions.keys())
    }

    /// Renames an instruction.
    pub fn set_name(&mut self, id: InstId, name: impl Into<SmolStr>) {
        self.names.set(id, name.into());
    }
}

/// Returns the set of used names; built from all instructions if it does not exist yet.
fn tracked<'a>(
    taken: &'a mut Option<FxHashSet<SmolStr>>,
    of: &SecondaryMap<InstId, SmolStr>,
    all: impl Iterator<Item = InstId>,
) -> &'a mut FxHashSet<SmolStr> {
    taken.get_or_insert_with(|| all.map(|id| of[id].clone()).collect())
}

/// Returns a name without the number after its last dot: `add` of `add.12`.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number))
            if !stem.is_empty()
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            stem
        }
        _ if name.is_empty() => "value",
        _ => name,
    }
}
