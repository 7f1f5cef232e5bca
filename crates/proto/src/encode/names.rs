//! Names that are unique in the module, as proto wants them. In text they need
//! be so only within their computation.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{InstId, Module};

/// The names of instructions whose own name another one has.
#[derive(Debug, Default)]
pub(super) struct Names(FxHashMap<InstId, String>);

impl Names {
    /// The first in order keeps its name; others get a number after a dot, the
    /// first that is free, as XLA's parser gives them.
    pub(super) fn new(module: &Module) -> Self {
        let mut renamed = FxHashMap::default();
        let mut taken: FxHashSet<Cow<'_, str>> = FxHashSet::default();
        let mut next: FxHashMap<String, u64> = FxHashMap::default();
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                let name = module.name_of(id);
                if !taken.insert(Cow::Borrowed(name)) {
                    let fresh = fresh(name, &mut next, &taken);
                    taken.insert(Cow::Owned(fresh.clone()));
                    renamed.insert(id, fresh);
                }
            }
        }
        Self(renamed)
    }

    pub(super) fn get<'a>(&'a self, module: &'a Module, id: InstId) -> &'a str {
        self.0.get(&id).map_or_else(|| module.name_of(id), String::as_str)
    }
}

/// Returns the first number that is free, counted from 0, which a name without a number has
/// (`xla/service/name_uniquer.cc`).
fn fresh(name: &str, next: &mut FxHashMap<String, u64>, taken: &FxHashSet<Cow<'_, str>>) -> String {
    let stem = match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.parse::<i64>().is_ok() => stem,
        _ => name,
    };
    let next = next.entry(stem.to_owned()).or_insert(0);
    loop {
        let (number, name) = (*next, format!("{stem}.{next}"));
        *next = next.saturating_add(1);
        let is_stem = number == 0 && taken.contains(stem);
        if !is_stem && !taken.contains(name.as_str()) {
            return name;
        }
    }
}
