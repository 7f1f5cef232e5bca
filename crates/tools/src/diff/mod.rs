//! The structural difference of two modules.
//!
//! ```text
//! side       classes of equal instructions, values and computations   (interner, canonical)
//! matching   computations by their callers, from the entry on
//! pairing    instructions of two computations: what is unique, then the neighbours of pairs (context)
//! flat       what moved into or out of fusions and calls
//! weak       duplicates, names, neighbours; ops that replace others
//! changes    what differs between two that belong together; header
//! report     names and places in place of ids: as text, JSON and HTML
//! ```
//!
//! Names and the order of instructions are no differences; metadata is one only if asked. Fields
//! of protos that text cannot express are not compared.

mod canonical;
mod changes;
mod context;
mod flat;
mod header;
mod html;
mod interner;
mod matching;
mod order;
mod pairing;
mod report;
mod side;
mod text;
mod weak;

use rustc_hash::FxHashMap;
use tilewright::ir::{CompId, Entity as _, InstId, Module};

use flat::Flat;
use interner::Class;
use matching::Matching;
use side::{Interners, Side};

pub use changes::{Change, What};
pub use report::{
    ChangedInstruction, ComputationChanges, Counts, DiffReport, LoneInstruction, ModuleName,
    NamedInstruction,
};

/// How modules are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Whether differences of metadata, origins and statistics count.
    pub metadata: bool,
}

impl DiffOptions {
    /// The same options with metadata compared, or not.
    #[must_use]
    pub const fn with_metadata(mut self, metadata: bool) -> Self {
        self.metadata = metadata;
        self
    }
}

/// The differences of two modules, as ids of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleDiff {
    /// What differs in the header.
    pub header: Vec<Change>,
    /// Every computation of either module: the entry first, then callers before callees.
    pub computations: Vec<ComputationDiff>,
    /// Instructions that stand in another computation than their partners, such as those that
    /// were fused.
    pub moved: Vec<Pair>,
}

/// The differences of two computations that belong together, or a computation that only one module
/// has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputationDiff {
    /// The computation of the first module.
    pub a: Option<CompId>,
    /// The computation of the second module.
    pub b: Option<CompId>,
    /// What differs in the computation as a whole, such as the root.
    pub changes: Vec<Change>,
    /// How many instructions have a partner in the other computation and do not differ from it.
    pub unchanged: usize,
    /// Instructions that differ from their partners.
    pub changed: Vec<Pair>,
    /// Instructions of the first computation without a partner.
    pub removed: Vec<Lone>,
    /// Instructions of the second computation without a partner.
    pub added: Vec<Lone>,
}

/// Two instructions that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pair {
    /// That of the first module.
    pub a: InstId,
    /// That of the second module.
    pub b: InstId,
    /// What differs.
    pub changes: Vec<Change>,
}

/// An instruction without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lone {
    /// The instruction.
    pub id: InstId,
    /// An instruction of the other module that computes the same value: the instruction is a
    /// duplicate, or a parameter of a fusion through which that value comes.
    pub same_as: Option<InstId>,
}

impl ComputationDiff {
    /// Checks whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.a.is_some() && self.b.is_some() && self.differences() == 0
    }

    /// Returns how many differences there are, those of an instruction counting as one.
    fn differences(&self) -> usize {
        self.changes.len() + self.changed.len() + self.removed.len() + self.added.len()
    }
}

impl ModuleDiff {
    /// Checks whether the modules differ in nothing but names and order.
    pub fn is_same(&self) -> bool {
        self.header.is_empty()
            && self.moved.is_empty()
            && self.computations.iter().all(ComputationDiff::is_same)
    }
}

/// Compares two modules as graphs.
///
/// ```
/// use tilewright_tools::diff::{DiffOptions, diff};
///
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = |last: &str| {
///     tilewright::parse(&format!(
///         "HloModule m
///          ENTRY e {{
///            x = f32[2] parameter(0)
///            y = f32[2] parameter(1)
///            ROOT z = f32[2] {last}
///          }}"
///     ))
/// };
/// let (sum, difference) = (module("subtract(x, y)")?, module("subtract(y, x)")?);
/// assert!(diff(&sum, &sum, &DiffOptions::default()).is_same());
/// let found = diff(&sum, &difference, &DiffOptions::default());
/// assert_eq!(found.computations[0].changed[0].changes.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn diff(a: &Module, b: &Module, options: &DiffOptions) -> ModuleDiff {
    let mut interners = Interners::default();
    let a = Side::new(a, options.metadata, &mut interners);
    let b = Side::new(b, options.metadata, &mut interners);
    // The matching prefers the first of equals. So that exchanging the modules only exchanges the
    // result, it goes by an order that the modules themselves have.
    let (matching, flat) = if order::comes_first(&b, &a) {
        let (matching, flat) = matched(&b, &a, &mut interners);
        (matching.mirrored(), flat.mirrored())
    } else {
        matched(&a, &b, &mut interners)
    };
    Compared { a: &a, b: &b, matching: &matching, flat: &flat }.differences()
}

/// Finds what belongs together.
fn matched(a: &Side<'_>, b: &Side<'_>, interners: &mut Interners<'_>) -> (Matching, Flat) {
    let mut matching = Matching::new(a.module, b.module);
    if let (Some(entry_a), Some(entry_b)) = (a.module.entry(), b.module.entry()) {
        matching.pair_computations(entry_a, entry_b);
    }
    // Callers come before callees in the reversed order.
    for &id in a.module.computations().iter().rev() {
        matching::pair_by_callers(&mut matching, a, b, id);
        matching::strong(&mut matching, a, b, id, &mut interners.parts);
    }
    for id in matching::leftover_computations(&mut matching, a, b) {
        matching::strong(&mut matching, a, b, id, &mut interners.parts);
    }
    let flat = Flat::new(&matching, a, b, &mut interners.parts);
    flat::moved(&mut matching, a, b, &flat, false);
    for &id in a.module.computations().iter().rev() {
        if matching::pair_by_callers(&mut matching, a, b, id)
            || matching::pair_by_name(&mut matching, a, b, id)
        {
            matching::strong(&mut matching, a, b, id, &mut interners.parts);
        }
        matching::weak(&mut matching, a, b, id, &mut interners.parts);
    }
    flat::moved(&mut matching, a, b, &flat, true);
    for &id in a.module.computations().iter().rev() {
        weak::replaced(&mut matching, a, b, id);
    }
    (matching, flat)
}

/// Two modules and what belongs together.
struct Compared<'c, 'm> {
    a: &'c Side<'m>,
    b: &'c Side<'m>,
    matching: &'c Matching,
    flat: &'c Flat,
}

impl Compared<'_, '_> {
    fn differences(&self) -> ModuleDiff {
        let mut found = ModuleDiff { header: self.header_changes(), ..ModuleDiff::default() };
        let values =
            [values(self.a.module, &self.flat.of_a), values(self.b.module, &self.flat.of_b)];
        let of_a = entry_first(self.a.module);
        let of_b = entry_first(self.b.module);
        for &id in &of_a {
            found.computations.push(self.computation(id, &values, &mut found.moved));
        }
        for id in of_b.into_iter().filter(|&id| self.matching.computation_a(id).is_none()) {
            let added = self.lone_in_b(id, &values);
            let b = Some(id);
            found.computations.push(ComputationDiff { b, added, ..ComputationDiff::default() });
        }
        found
    }

    fn computation(
        &self,
        id: CompId,
        values: &[Values; 2],
        moved: &mut Vec<Pair>,
    ) -> ComputationDiff {
        let b = self.matching.computation_b(id);
        let mut found = ComputationDiff { a: Some(id), b, ..ComputationDiff::default() };
        for x in self.a.module.instructions(id) {
            let Some(y) = self.matching.b_of(x) else {
                let same_as = self.flat.of_a.get(x.index()).and_then(|of| values[1].get(of));
                found.removed.push(Lone { id: x, same_as: same_as.copied() });
                continue;
            };
            let is_moved = self.is_moved(x, y);
            let pair = Pair { a: x, b: y, changes: self.changes(x, y) };
            if is_moved {
                moved.push(pair);
            } else if pair.changes.is_empty() {
                found.unchanged += 1;
            } else {
                found.changed.push(pair);
            }
        }
        if let Some(b) = b {
            found.added = self.lone_in_b(b, values);
            found.changes = self.computation_changes(id, b);
        }
        found
    }

    fn lone_in_b(&self, id: CompId, values: &[Values; 2]) -> Vec<Lone> {
        let ids = self.b.module.instructions(id).filter(|&y| self.matching.a_of(y).is_none());
        let lone = ids.map(|y| {
            let same_as = self.flat.of_b.get(y.index()).and_then(|of| values[0].get(of));
            Lone { id: y, same_as: same_as.copied() }
        });
        lone.collect()
    }

    /// Lists what differs in two computations as a whole.
    fn computation_changes(&self, c: CompId, d: CompId) -> Vec<Change> {
        let (a, b) = (self.a.module.computation(c), self.b.module.computation(d));
        let mut changes = Vec::new();
        if let (Some(x), Some(y)) = (a.root(), b.root())
            && self.matching.b_of(x) != Some(y)
        {
            let names = (self.a.module.name_of(x).to_owned(), self.b.module.name_of(y).to_owned());
            let change = Change::new(What::Root, "", Some(names.0), Some(names.1));
            changes.push(Change { same_value: self.same_value(x, y), ..change });
        }
        if a.execution_thread() != b.execution_thread() {
            let text = |thread: Option<&str>| thread.map(str::to_owned);
            let (before, after) = (text(a.execution_thread()), text(b.execution_thread()));
            changes.push(Change::new(What::Attribute, "execution_thread", before, after));
        }
        changes
    }

    /// Checks whether two instructions compute the same value.
    fn same_value(&self, x: InstId, y: InstId) -> bool {
        self.flat.same(x, y) || self.a.value.get(x.index()) == self.b.value.get(y.index())
    }

    /// Checks whether two that belong together stand in computations that do not.
    fn is_moved(&self, x: InstId, y: InstId) -> bool {
        flat::is_elsewhere(self.matching, self.a, self.b, x, y)
    }
}

/// The first instruction of each value.
type Values = FxHashMap<Class, InstId>;

/// Returns the first instruction of each value; callers come first.
fn values(module: &Module, flat: &[Class]) -> Values {
    let mut values = Values::default();
    for id in entry_first(module).into_iter().flat_map(|id| module.instructions(id)) {
        if let Some(&class) = flat.get(id.index()) {
            values.entry(class).or_insert(id);
        }
    }
    values
}

/// Returns the entry, then callers before callees.
fn entry_first(module: &Module) -> Vec<CompId> {
    let entry = module.entry();
    let others = module.computations().iter().rev().copied().filter(|&id| Some(id) != entry);
    entry.into_iter().chain(others).collect()
}
