//! Names of instructions, and new ones that are still free.

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use crate::entity::{InstId, SecondaryMap};
use crate::module::Module;

/// The names of a module's instructions.
///
/// Text asks for names that are unique within a computation; names made here
/// are unique in the whole module, as XLA makes them. What is taken is only
/// tracked once the first new name is asked for or a trial begins, so that reading a module
/// does not pay for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    of: SecondaryMap<InstId, SmolStr>,
    taken: Option<FxHashSet<SmolStr>>,
    /// The next number to try after each stem.
    next: FxHashMap<SmolStr, u64>,
    record: Option<Record>,
}

/// The names as they were when their record began.
#[derive(Clone, Debug, Default)]
struct Record {
    /// The names that instructions had, newest last.
    renamed: Vec<(InstId, SmolStr)>,
    /// Those that were not taken.
    free: Vec<SmolStr>,
    /// The numbers that were next after these stems.
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
        if let Some(record) = &mut self.record {
            record.renamed.push((id, self.of[id].clone()));
            if is_new {
                record.free.push(name.clone());
            }
        }
        self.of.set(id, name);
    }

    /// Begins to record what [`Self::roll_back`] goes back to; from now on it is tracked which
    /// names are taken.
    pub(crate) fn begin_record(&mut self, all: impl Iterator<Item = InstId>) {
        tracked(&mut self.taken, &self.of, all);
        self.record = Some(Record::default());
    }

    /// Ends the record and leaves all as it is.
    pub(crate) fn end_record(&mut self) {
        self.record = None;
    }

    /// Ends the record and goes back to what was there when it began.
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

    /// A name like `wanted` that no instruction of the module has:
    /// itself if free, else with the first free number after a dot.
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
    /// A name that no instruction of the module has: `wanted` itself, or its
    /// stem with a number.
    pub fn fresh_name(&mut self, wanted: &str) -> SmolStr {
        self.names.fresh(wanted, self.instructions.keys())
    }

    /// Renames an instruction.
    pub fn set_name(&mut self, id: InstId, name: impl Into<SmolStr>) {
        self.names.set(id, name.into());
    }
}

/// The names that are taken: those of all instructions, unless it was tracked before.
fn tracked<'a>(
    taken: &'a mut Option<FxHashSet<SmolStr>>,
    of: &SecondaryMap<InstId, SmolStr>,
    all: impl Iterator<Item = InstId>,
) -> &'a mut FxHashSet<SmolStr> {
    taken.get_or_insert_with(|| all.map(|id| of[id].clone()).collect())
}

/// A name without the number after its last dot: `add` of `add.12`.
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
